"""A chain of kernels writes every intermediate only for the next one to read; one kernel never lets it out."""

from dataclasses import dataclass

from kernels.machines import MACHINES, machine
from kernels.roofline import cost
from widgets import units
from widgets.charts import Box, linear
from widgets.controls import powers_of_two, select, slider
from widgets.declare import Declaration, Prediction
from widgets.scene import Column, Scene, beside_model, circle, figure, line, path, rect, table, text

CHAIN = ("GEMM", "GELU", "LayerNorm", "dropout", "add", "cast")
LANE = Box(64, 112, 592, 26)
RISE, PANEL = 78, 176  # from the kernels down to HBM; from the first panel to the second
BARS = Box(150, 370, 400, 68)


@dataclass(frozen=True)
class Result:
    operations: int
    names: tuple[str, ...]
    rows: int
    width: int
    layers: int
    element_bytes: int
    machine: str
    tensor_bytes: float
    intermediates: int
    materialised_bytes: float  # of one layer
    intermediate_traffic_bytes: float
    unfused_bytes: float
    fused_bytes: float
    unfused_passes: int  # of a layer over memory
    fused_passes: int
    ratio: float
    saved_s: float
    unfused_s: float
    fused_s: float


def run(operations, rows, width, layers, element_bytes, machine_name):
    chain = cost.chain_traffic(operations, rows, width, element_bytes, layers)
    bandwidth = machine(machine_name).bandwidth
    before, after = chain.round_trips
    return Result(
        operations, CHAIN[:operations], rows, width, layers, element_bytes, machine_name, chain.one_tensor_bytes,
        chain.intermediates, chain.materialised_bytes, chain.intermediate_traffic_bytes, chain.unfused_bytes,
        chain.fused_bytes, before, after, chain.ratio, chain.time_saved_s(bandwidth),
        chain.unfused_bytes / bandwidth, chain.fused_bytes / bandwidth,
    )  # fmt: skip


def _arrow(id: str, x: float, start: float, end: float, role: str, tip: str) -> list[dict]:
    back = 7 if start > end else -7
    head = [(x - 5, end + back), (x, end), (x + 5, end + back)]
    return [line(id, x, start, x, end, role, tip), path(f"{id}-head", head, role)]


def _tensor(id: str, x: float, top: float, name: str, role: str, tip: str) -> list[dict]:
    ink = "ink" if role == "waste" else "inverse"
    return [
        rect(id, x - 22, top + 3, 44, LANE.h - 6, role, tip),
        text(f"{id}-name", x, top + 18, name, ink, "small", "middle", bold=True),
    ]


def _chain(r: Result) -> list[dict]:
    """One kernel an operation: each reads what the one before wrote."""
    marks = _lane("chain", 0, f"A kernel for each operation: {r.unfused_passes} passes over memory a layer")
    pitch, size = LANE.w / r.operations, units.si_bytes(r.tensor_bytes)
    wide, top = pitch - 16, LANE.y - RISE
    for i, name in enumerate(r.names):
        x = LANE.x + (i + 0.5) * pitch
        marks += [
            rect(f"op{i}", x - wide / 2, top, wide, 34, "primary", f"kernel {i + 1}: {name}"),
            text(f"op{i}-name", x, top + 22, name, "inverse", "small", "middle", bold=True),
        ]
        first, last = i == 0, i == r.operations - 1
        read, written = "useful" if first else "hot", "useful" if last else "hot"
        marks += _arrow(
            f"read{i}", x - pitch / 2 + (26 if first else 14), LANE.y, top + 34, read, f"{name} reads {size}"
        )
        marks += _arrow(
            f"write{i}",
            x + pitch / 2 - (26 if last else 14),
            top + 34,
            LANE.y,
            written,
            f"{name} writes {size}",
        )
        if not last:
            at = LANE.x + (i + 1) * pitch
            marks += _tensor(
                f"z{i}", at, LANE.y, f"Z{i + 1}", "waste", f"Z{i + 1}: {size}, written and read again"
            )
    marks += _tensor("x0", LANE.x + 26, LANE.y, "X", "useful", f"X: {size}")
    return marks + _tensor("y0", LANE.right - 26, LANE.y, "Y", "useful", f"Y: {size}")


def _fused(r: Result) -> list[dict]:
    """The same operations inside one kernel: what lies between them stays on the chip."""
    top, size = LANE.y - RISE + PANEL, units.si_bytes(r.tensor_bytes)
    marks = _lane("fused", PANEL, f"One kernel: {r.fused_passes} passes, and the rest stays in registers")
    marks.append(
        rect("kernel", LANE.x + 8, top, LANE.w - 16, 34, "primary", "one kernel for the whole chain")
    )
    pitch = LANE.w / r.operations
    for i, name in enumerate(r.names):
        x = LANE.x + (i + 0.5) * pitch
        marks.append(text(f"in{i}", x, top + 22, name, "inverse", "small", "middle", bold=True))
        if i:
            marks.append(text(f"then{i}", x - pitch / 2, top + 22, "→", "inverse", "small", "middle"))
    marks += _arrow("read", LANE.x + 26, LANE.y + PANEL, top + 34, "useful", f"reads X, {size}")
    marks += _arrow("write", LANE.right - 26, top + 34, LANE.y + PANEL, "useful", f"writes Y, {size}")
    marks += _tensor("x1", LANE.x + 26, LANE.y + PANEL, "X", "useful", f"X: {size}")
    return marks + _tensor("y1", LANE.right - 26, LANE.y + PANEL, "Y", "useful", f"Y: {size}")


def _lane(id: str, down: float, title: str) -> list[dict]:
    y = LANE.y + down
    return [
        text(f"{id}-title", 0, y - RISE - 16, title, bold=True),
        rect(f"{id}-hbm", LANE.x, y, LANE.w, LANE.h, "idle", "HBM"),
        text(f"{id}-hbm-name", LANE.x - 10, y + 18, "HBM", "muted", "small", "end"),
        text(f"{id}-sm-name", LANE.x - 10, y - RISE + 22, "chip", "muted", "small", "end"),
    ]


def _bars(r: Result, measured: dict) -> list[dict]:
    x = linear(0, r.unfused_bytes, BARS.x, BARS.right)
    layers = "one layer" if r.layers == 1 else f"{r.layers} layers"
    marks = [
        text(
            "bars-title",
            0,
            BARS.y - 14,
            f"Bytes over HBM, {layers}, and their time on {r.machine}",
            bold=True,
        )
    ]
    rows = (("unfused", "a kernel each", r.unfused_bytes, r.unfused_s, "ink"),
            ("fused", "one kernel", r.fused_bytes, r.fused_s, "useful"))  # fmt: skip
    for i, (id, name, moved, seconds, ink) in enumerate(rows):
        top = BARS.y + i * 34
        must = x(r.fused_bytes)
        marks += [
            text(f"{id}-name", BARS.x - 12, top + 19, name, anchor="end"),
            rect(f"{id}-must", BARS.x, top + 2, must - BARS.x, 24, "useful", f"X and Y: {units.si_bytes(r.fused_bytes)}"),
            text(f"{id}-moved", BARS.right + 12, top + 19,
                 f"{units.si_bytes(moved)}: {units.seconds(seconds)}", ink, bold=True),
        ]  # fmt: skip
        if moved > r.fused_bytes:
            tip = f"intermediates, written and read: {units.si_bytes(r.intermediate_traffic_bytes)}"
            marks += [
                rect(f"{id}-waste", must, top + 2, x(moved) - must, 24, "waste", tip),
                text(f"{id}-waste-name", (must + x(moved)) / 2, top + 19, "intermediates", "ink", "small", "middle",
                     bold=True),
            ]  # fmt: skip
    if "bytes_moved" in measured:
        at = x(measured["bytes_moved"])
        words = f"yours: {units.si_bytes(measured['bytes_moved'])}"
        marks += [
            circle("yours", at, BARS.y + 48, 7, "measured", words),
            text(
                "yours-name",
                max(at, BARS.x + 40),
                BARS.bottom + 12,
                words,
                "measured",
                "small",
                "middle",
                bold=True,
            ),
        ]
    return marks


def scene(r: Result, measured: dict | None = None) -> Scene:
    measured = measured or {}
    tensor = figure("one intermediate", r.tensor_bytes, units.si_bytes)
    traffic = figure("intermediates, written and read", r.intermediate_traffic_bytes, units.si_bytes, "hot")
    ratio = figure("fewer bytes", r.ratio, units.times, "useful")
    saved = figure(f"at best saved on {r.machine}", r.saved_s, units.seconds)
    beside = ()
    if "bytes_moved" in measured:
        beside = (beside_model("bytes", measured["bytes_moved"], r.fused_bytes, units.si_bytes),)
    columns = (
        "done by",
        "passes a layer",
        Column("bytes", "B", units.si_bytes),
        Column("time", "s", units.seconds),
    )
    return Scene(
        summary=f"{', '.join(r.names)}: each intermediate has {tensor.text}; a kernel for each moves {traffic.text} "
        f"of intermediates; one kernel moves {ratio.text} fewer bytes and saves {saved.text} at best.",
        takeaway="What is never written need not be read: fusing removes traffic, not arithmetic."
        if r.operations > 1
        else "One operation has nothing to fuse with.",
        marks=_chain(r) + _fused(r) + _bars(r, measured),
        figures=(tensor, traffic, ratio, saved),
        table=table(columns, [("a kernel each", r.unfused_passes, r.unfused_bytes, r.unfused_s),
                              ("one kernel", r.fused_passes, r.fused_bytes, r.fused_s)]),
        height=BARS.bottom + 18,
        formula=(
            ("tensor = rows · width · bytes",
             f"{r.rows} · {r.width} · {r.element_bytes} = {tensor.text}"),
            ("intermediates = 2 · (operations − 1) · tensor · layers",
             f"2 · {r.intermediates} · {tensor.text} · {r.layers} = {traffic.text}"),
        ),
        beside=beside,
    )  # fmt: skip


SIMULATOR = Declaration(
    title="Fusion traffic",
    question="How many bytes does a chain of kernels move that one kernel does not?",
    controls=(
        slider("operations", "Operations in the chain", 3, 1, 6),
        powers_of_two("rows", "Rows (tokens)", 2048, 1, 16384),
        powers_of_two("width", "Width", 4096, 256, 16384),
        slider("layers", "Layers", 1, 1, 128),
        select("element_bytes", "Bytes of a number", 2, {1: "1: FP8", 2: "2: FP16", 4: "4: FP32"}, more=True),
        select("machine_name", "GPU", "H100", list(MACHINES), more=True),
    ),
    presets={
        "GEMM, GELU, LayerNorm": {},
        "80 layers": {"layers": 80},
        "Six in a chain": {"operations": 6},
        "Decode, one row": {"rows": 1},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "LayerNorm(GELU(X·W + b)) as three kernels, then as one: how many times fewer bytes pass over HBM?",
        "ratio",
        "times fewer",
        0.1,
    ),
    measures={"bytes_moved": "bytes that the fused kernel loaded and stored"},
    source="Performance Engineering",
)  # fmt: skip

"""A chain of kernels writes every intermediate only for the next one to read; one kernel never lets it out.

The weights of the GEMM at its head are read either way, once, and they are counted: with few rows they are nearly all.
"""

from dataclasses import dataclass

from kernels.machines import MACHINES, machine
from kernels.roofline import cost
from widgets import units
from widgets.charts import Box, linear
from widgets.controls import powers_of_two, select, slider
from widgets.declare import Declaration, Prediction
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
    beside_model,
    circle,
    drag,
    figure,
    flowing,
    handle,
    line,
    path,
    rect,
    table,
    text,
)

CHAIN = ("GEMM", "GELU", "LayerNorm", "dropout", "add", "cast")
SHORT = ("GEMM", "GELU", "Norm", "drop", "add", "cast")
LONGEST = len(CHAIN)
RISE = 62  # from the kernels down to HBM
OPERATIONS = slider("operations", "Operations in the chain", 3, 1, LONGEST)
# (HBM of the chain, HBM of the one kernel, the bars, height)
PLACES = {
    True: (Box(64, 88, 592, 24), Box(64, 222, 592, 24), Box(126, 306, 420, 64), 424),
    False: (Box(40, 104, 300, 24), Box(40, 258, 300, 24), Box(0, 346, 330, 100), 500),
}


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
    ratio: float  # of what passes from operation to operation
    weights_bytes: float  # of the GEMM, all layers
    ratio_with_weights: float
    saved_s: float
    unfused_s: float
    fused_s: float


def run(operations, rows, width, layers, element_bytes, machine_name):
    chain = cost.chain_traffic(operations, rows, width, element_bytes, layers)
    bandwidth = machine(machine_name).bandwidth
    before, after = chain.round_trips
    weights = width * width * element_bytes * layers
    unfused, fused = chain.unfused_bytes + weights, chain.fused_bytes + weights
    return Result(
        operations, CHAIN[:operations], rows, width, layers, element_bytes, machine_name, chain.one_tensor_bytes,
        chain.intermediates, chain.materialised_bytes, chain.intermediate_traffic_bytes, chain.unfused_bytes,
        chain.fused_bytes, before, after, chain.ratio, weights, unfused / fused, chain.time_saved_s(bandwidth),
        unfused / bandwidth, fused / bandwidth,
    )  # fmt: skip


def _arrow(id: str, x: float, start: float, end: float, role: str, tip: str) -> list[dict]:
    back = 7 if start > end else -7
    head = [(x - 5, end + back), (x, end), (x + 5, end + back)]
    return [*flowing(line(id, x, start, x, end, role, tip)), path(f"{id}-head", head, role)]


def _tensor(id: str, x: float, lane: Box, name: str, role: str, tip: str) -> list[dict]:
    wide = 44 if lane.w > 400 else 24
    marks = [rect(id, x - wide / 2, lane.y + 3, wide, lane.h - 6, role, tip),
             text(f"{id}-name", x, lane.y + 17, name, "ink" if role == "waste" else "inverse", "small", "middle", bold=True,
                  on=role if role == "waste" else "")]  # fmt: skip
    return about("intermediates" if role == "waste" else "must", marks)


def _weights(id: str, x: float, lane: Box, r: Result) -> list[dict]:
    """The GEMM's own matrix: read once, fused or not."""
    top, size = lane.y - RISE, units.si_bytes(r.weights_bytes / r.layers)
    wide = 34 if lane.w > 400 else 24
    marks = [
        rect(
            f"{id}-w", x - wide / 2, lane.y + 3, wide, lane.h - 6, "memory", f"W, the GEMM's weights: {size}"
        ),
        text(f"{id}-w-name", x, lane.y + 17, "W", "inverse", "small", "middle", bold=True),
        *_arrow(f"{id}-w-read", x, lane.y, top + 30, "memory", f"GEMM reads its weights, {size}"),
    ]
    return about("weights", marks)


def _lane(id: str, lane: Box, title: str) -> list[dict]:
    left = lane.x - 8
    return [
        text(
            f"{id}-title", 0, lane.y - RISE - 14, title, bold=True, size="body" if lane.w > 400 else "small"
        ),
        rect(f"{id}-hbm", lane.x, lane.y, lane.w, lane.h, "idle", "HBM"),
        text(f"{id}-hbm-name", left, lane.y + 17, "HBM", "muted", "small", "end"),
        text(f"{id}-sm-name", left, lane.y - RISE + 20, "chip", "muted", "small", "end"),
    ]


def _chain(r: Result, lane: Box) -> list[dict]:
    """One kernel an operation: each reads what the one before wrote."""
    wide = lane.w > 400
    title = f"A kernel for each operation: {r.unfused_passes} passes over memory a layer"
    marks = _lane("chain", lane, title if wide else f"A kernel each: {r.unfused_passes} passes a layer")
    pitch, size, top = lane.w / r.operations, units.si_bytes(r.tensor_bytes), lane.y - RISE
    edge, apart, gap = (26, 14, 16) if wide else (13, 7, 4)
    for i, name in enumerate(r.names):
        x, first, last = lane.x + (i + 0.5) * pitch, i == 0, i == r.operations - 1
        marks += [
            rect(f"op{i}", x - (pitch - gap) / 2, top, pitch - gap, 30, "primary", f"kernel {i + 1}: {name}"),
            text(
                f"op{i}-name",
                x,
                top + 20,
                name if wide else SHORT[i],
                "inverse",
                "small",
                "middle",
                bold=True,
            ),
        ]
        start = x - pitch / 2 + (edge if first else apart)
        end = x + pitch / 2 - (edge if last else apart)
        marks += _arrow(
            f"read{i}", start, lane.y, top + 30, "useful" if first else "hot", f"{name} reads {size}"
        )
        marks += _arrow(
            f"write{i}", end, top + 30, lane.y, "useful" if last else "hot", f"{name} writes {size}"
        )
        if not last:
            at, tip = lane.x + (i + 1) * pitch, f"Z{i + 1}: {size}, written and read again"
            marks += _tensor(f"z{i}", at, lane, f"Z{i + 1}", "waste", tip)
    marks += _tensor("x0", lane.x + edge, lane, "X", "useful", f"X: {size}")
    marks += _tensor("y0", lane.right - edge, lane, "Y", "useful", f"Y: {size}")
    return marks + _weights("chain", lane.x + (84 if wide else 36 if r.operations < 6 else 30), lane, r)


def _fused(r: Result, lane: Box) -> list[dict]:
    """The same operations inside one kernel: what lies between them stays on the chip."""
    wide, top, size = lane.w > 400, lane.y - RISE, units.si_bytes(r.tensor_bytes)
    title = f"One kernel: {r.fused_passes} passes, and the rest stays in registers"
    marks = _lane("fused", lane, title if wide else f"One kernel: {r.fused_passes} passes a layer")
    marks.append(rect("kernel", lane.x + 2, top, lane.w - 4, 30, "primary", "one kernel for the whole chain"))
    pitch, edge = lane.w / r.operations, 26 if wide else 13
    for i, name in enumerate(r.names):
        x = lane.x + (i + 0.5) * pitch
        marks.append(
            text(f"in{i}", x, top + 20, name if wide else SHORT[i], "inverse", "small", "middle", bold=True)
        )
        if i and wide:
            marks.append(text(f"then{i}", x - pitch / 2, top + 20, "→", "inverse", "small", "middle"))
    marks += _arrow("read", lane.x + edge, lane.y, top + 30, "useful", f"reads X, {size}")
    marks += _arrow("write", lane.right - edge, top + 30, lane.y, "useful", f"writes Y, {size}")
    marks += _tensor("x1", lane.x + edge, lane, "X", "useful", f"X: {size}")
    marks += _tensor("y1", lane.right - edge, lane, "Y", "useful", f"Y: {size}")
    return marks + _weights("fused", lane.x + (84 if wide else 36), lane, r)


def _bars(r: Result, measured: dict, box: Box) -> list[dict]:
    """Bytes of both ways, on the scale of the longest chain; the upper bar's end is the chain's length."""
    wide = box.x > 0
    tensors = 2 * r.tensor_bytes * r.layers
    x = linear(0, r.weights_bytes + LONGEST * tensors, box.x, box.right)
    layers = "one layer" if r.layers == 1 else f"{r.layers} layers"
    marks = [text("bars-title", 0, box.y - 12, f"Bytes over HBM, {layers}{', and their time' * wide} on {r.machine}", bold=True)]  # fmt: skip
    pitch = 34 if wide else 50
    rows = (("unfused", "a kernel each", r.unfused_bytes, r.unfused_s, "ink"),
            ("fused", "one kernel", r.fused_bytes, r.fused_s, "useful"))  # fmt: skip
    for i, (id, name, moved, seconds, ink) in enumerate(rows):
        top = box.y + i * pitch + (0 if wide else 16)
        must, all_of_it = x(r.weights_bytes + r.fused_bytes), x(r.weights_bytes + moved)
        words = f"{units.si_bytes(moved + r.weights_bytes)}: {units.seconds(seconds)}"
        weights = rect(f"{id}-weights", box.x, top + 2, x(r.weights_bytes) - box.x, 24, "memory",
                       f"W: {units.si_bytes(r.weights_bytes)}")  # fmt: skip
        xy = rect(f"{id}-must", x(r.weights_bytes), top + 2, must - x(r.weights_bytes), 24, "useful",
                  f"X and Y: {units.si_bytes(r.fused_bytes)}")  # fmt: skip
        marks += about("weights", weights) + about("must", xy)
        if moved > r.fused_bytes:
            tip = f"intermediates, written and read: {units.si_bytes(r.intermediate_traffic_bytes)}"
            marks += about(
                "intermediates", rect(f"{id}-waste", must, top + 2, all_of_it - must, 24, "waste", tip)
            )
        marks.append(
            text(
                f"{id}-name",
                box.x - 12 if wide else 0,
                top + (19 if wide else -4),
                name,
                anchor="end" if wide else "start",
            )
        )
        marks.append(
            text(
                f"{id}-moved",
                720 if wide else 340,
                top + (19 if wide else -4),
                words,
                ink,
                anchor="end",
                bold=True,
            )
        )
    end = x(r.weights_bytes + r.unfused_bytes)
    marks.append(handle("pull-chain", end, box.y + (14 if wide else 30), "primary",
                        drag(OPERATIONS, "x", lambda n: x(r.weights_bytes + n * tensors))))  # fmt: skip
    if "bytes_moved" in measured:
        at = x(r.weights_bytes + measured["bytes_moved"])
        words = f"yours: {units.si_bytes(measured['bytes_moved'])}"
        marks += [
            circle("yours", at, box.y + pitch + (14 if wide else 30), 7, "measured", words),
            text(
                "yours-name",
                box.x,
                box.y + 2 * pitch + (12 if wide else 18),
                words,
                "measured",
                "small",
                bold=True,
            ),
        ]
    return marks


def _takeaway(r: Result) -> str:
    if r.operations == 1:
        return "One operation has nothing to fuse with."
    if r.ratio_with_weights < 1.1:
        return "With few rows the weights are nearly all of it: fusing saves launches here, not bytes."
    if r.layers > 1:
        return "A layer's intermediates come again in every layer: what is never written need not be read."
    return "What is never written need not be read: fusing removes the intermediates, not the weights."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    measured = measured or {}
    chain_at, fused_at, bars_at, height = PLACES[width == WIDE]
    traffic = figure(
        "intermediates, written and read",
        r.intermediate_traffic_bytes,
        units.si_bytes,
        "hot",
        "intermediates",
    )
    ratio = figure("fewer without the weights", r.ratio, units.times, "useful")
    whole = figure("fewer with the GEMM's weights", r.ratio_with_weights, units.times, term="weights")
    saved = figure(f"at best saved on {r.machine}", r.saved_s, units.seconds)
    tensor, weights = units.si_bytes(r.tensor_bytes), units.si_bytes(r.weights_bytes)
    beside = ()
    if "bytes_moved" in measured:
        beside = (beside_model("bytes", measured["bytes_moved"], r.fused_bytes, units.si_bytes),)
    columns = (
        "done by",
        "passes a layer",
        Column("between operations", "B", units.si_bytes),
        Column("weights", "B", units.si_bytes),
        Column("time", "s", units.seconds),
    )
    return Scene(
        summary=f"{', '.join(r.names)}: each intermediate has {tensor}; a kernel for each moves {traffic.text} "
        f"of intermediates; one kernel moves {ratio.text} fewer bytes between operations, {whole.text} fewer with the "
        f"GEMM's {weights} of weights, and saves {saved.text} at best.",
        takeaway=_takeaway(r),
        marks=_chain(r, chain_at) + _fused(r, fused_at) + _bars(r, measured, bars_at),
        figures=(traffic, ratio, whole, saved),
        table=table(columns, [("a kernel each", r.unfused_passes, r.unfused_bytes, r.weights_bytes, r.unfused_s),
                              ("one kernel", r.fused_passes, r.fused_bytes, r.weights_bytes, r.fused_s)]),
        height=height,
        width=width,
        formula=(
            ("tensor = {rows} · {width} · bytes",
             f"{{rows:{r.rows}}} · {{width:{r.width}}} · {r.element_bytes} = {tensor}"),
            ("{intermediates} = 2 · ({operations} − 1) · tensor · {layers}",
             f"2 · {r.intermediates} · {tensor} · {{layers:{r.layers}}} = {{intermediates:{traffic.text}}}"),
            ("{weights} = {width}² · bytes · {layers}",
             f"{{width:{r.width}}}² · {r.element_bytes} · {{layers:{r.layers}}} = {{weights:{weights}}}"),
        ),
        beside=beside,
        legend=(("memory", "the GEMM's weights"), ("useful", "X and Y"), ("waste", "intermediates")),
    )  # fmt: skip


SIMULATOR = Declaration(
    title="Fusion traffic",
    question="How many bytes does a chain of kernels move that one kernel does not?",
    controls=(
        OPERATIONS,
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

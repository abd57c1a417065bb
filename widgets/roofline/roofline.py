"""Show the limit of an operation, its FLOP per byte against the ridge of the machine, with the batch as the knob."""

from collections.abc import Callable
from dataclasses import dataclass

from kernels.machines import MACHINES, Machine, machine
from kernels.roofline import cost
from widgets import units
from widgets.charts import Box, axis_x, axis_y, log, text_width
from widgets.controls import powers_of_two, select
from widgets.declare import Declaration, Prediction
from widgets.scene import (
    NARROW,
    WIDE,
    Column,
    Scene,
    about,
    beside_model,
    circle,
    drag,
    figure,
    handle,
    line,
    path,
    rect,
    sets,
    table,
    text,
)

BATCH = powers_of_two(
    "batch",
    "Rows: batch, tokens or size",
    1,
    1,
    4096,
    help="Requests of a decode step, tokens of a prompt, or a side.",
)
# (the plot, how far the usual operations reach below it, height)
PLACES = {True: (Box(92, 24, 554, 214), 184, 426), False: (Box(64, 24, 200, 220), 212, 470)}
SHORT = {
    "decode, batch 1": "decode, 1",
    "attention 2048, scores in HBM": "attention, in HBM",
    "attention 2048, tiled": "attention, tiled",
    "prefill, 1024 tokens": "prefill, 1024",
}  # on a phone
CLICKS = {  # a usual operation -> the inputs that show it
    "decode, batch 1": ("decode_70b", 1),
    "GELU": ("gelu", 4096),
    "LayerNorm": ("layernorm", 4096),
    "attention 2048, scores in HBM": ("attention", 2048),
    "attention 2048, tiled": ("tiled", 2048),
    "prefill, 1024 tokens": ("prefill", 1024),
    "GEMM 4096": ("gemm", 4096),
}
BYTES = {"fp16": 2, "fp8": 1}
PARAMETERS, WIDTH_70B = 70e9, 8192
LAYER = 8192  # one linear layer of a decode step, this many inputs and outputs


def _decode_70b(size: int, devices: int, elem: float) -> cost.Operation:
    """All weights of a 70B model, each GPU its slice, and the activations of its batch."""
    flops = 2 * PARAMETERS / devices * size
    return cost.Operation(
        "decode", flops, flops / cost.decode_intensity(size, PARAMETERS, WIDTH_70B, elem, elem)
    )


@dataclass(frozen=True)
class Kind:
    """Hold an operation, and the meaning of its one knob."""

    label: str
    knob: str
    build: Callable[[int, int, float], cost.Operation]  # knob, GPUs, bytes of an element


KINDS = {
    "decode_70b": Kind("Decode, 70B model", "batch", _decode_70b),
    "decode_layer": Kind(
        f"Decode, one layer, {LAYER}²", "batch", lambda n, d, e: cost.decode_operation(n, LAYER, LAYER, e)
    ),
    "prefill": Kind("Prefill, one layer, 4096²", "tokens", lambda n, d, e: cost.gemm(n, 4096, 4096, e)),
    "gemm": Kind("Square GEMM", "size", lambda n, d, e: cost.gemm(n, n, n, e)),
    "attention": Kind(
        "Attention, scores in HBM", "tokens", lambda n, d, e: cost.attention(n, 128, e, scores_in_hbm=True)
    ),
    "tiled": Kind(
        "Attention, tiled", "tokens", lambda n, d, e: cost.attention(n, 128, e, scores_in_hbm=False)
    ),
    "gelu": Kind("GELU", "rows", lambda n, d, e: cost.elementwise(n * 4096, 5, e)),
    "layernorm": Kind("LayerNorm", "rows", lambda n, d, e: cost.elementwise(n * 4096, 8, e)),
}


@dataclass(frozen=True)
class Place:
    name: str
    flop_per_byte: float
    flop_s: float
    bound: str


@dataclass(frozen=True)
class Ridge:
    machine: str
    peak_flop_s: float
    bandwidth_byte_s: float
    flop_per_byte: float


@dataclass(frozen=True)
class Result:
    operation: str
    knob: str
    batch: int
    machine: str
    dtype: str
    devices: int
    flops: float
    bytes_moved: float
    flop_per_byte: float
    ridge_flop_per_byte: float
    peak_flop_s: float
    bandwidth_byte_s: float
    memory_s: float
    compute_s: float
    time_s: float
    attainable_flop_s: float
    peak_share: float
    rate_per_s: float  # of the knob, tokens or rows
    bound: str
    trail: tuple[Place, ...]  # the same operation over the knob
    usual: tuple[Place, ...]
    machines: tuple[Ridge, ...]


def _place(op: cost.Operation, target: Machine, dtype: str, name: str = "") -> Place:
    at = op.intensity
    return Place(name or op.name, at, target.attainable(at, dtype), cost.bound(at, target.ridge(dtype)))


def run(operation, batch, machine_name, dtype, devices):
    target, kind, elem = machine(machine_name), KINDS[operation], BYTES[dtype]
    op = kind.build(batch, devices, elem)
    peak, here = target.rate(dtype), _place(op, target, dtype)
    law = cost.iron_law(op.flops, op.bytes_moved, 0, peak_flop_s=peak, bandwidth_byte_s=target.bandwidth)
    return Result(
        operation,
        kind.knob,
        batch,
        machine_name,
        dtype,
        devices,
        op.flops,
        op.bytes_moved,
        op.intensity,
        target.ridge(dtype),
        peak,
        target.bandwidth,
        law.memory_s,
        law.compute_s,
        law.overlapped_s,
        here.flop_s,
        here.flop_s / peak,
        batch / law.overlapped_s,
        here.bound,
        tuple(_place(kind.build(2**k, devices, elem), target, dtype, str(2**k)) for k in range(13)),
        tuple(_place(one, target, dtype) for one in cost.common_operations(elem)),
        tuple(
            Ridge(m.name, m.rate(dtype), m.bandwidth, m.ridge(dtype))
            for m in MACHINES.values()
            if dtype in m.flops
        ),
    )


def _axes(plot: Box):
    # a GEMM of size 1, 1/3 FLOP per byte, is clear of the axis, so its knob covers no rate
    return log(0.15, 10000, plot.x, plot.right), log(4e10, 3e17, plot.bottom, plot.y)


def _roofs(r: Result, plot: Box) -> list[dict]:
    """Draw the machine's roof, named where it leaves the picture."""
    X, Y = _axes(plot)
    marks = axis_y(
        "rate",
        Y,
        plot.x,
        "",
        lambda v: units.si(v, "FLOP/s" if plot.w > 400 else "F/s"),
        right=plot.right,
        ticks=[1e11, 1e12, 1e13, 1e14, 1e15, 1e16],
    )
    marks += axis_x(
        "intensity",
        X,
        plot.bottom,
        "FLOP per byte moved",
        ticks=(1, 10, 100, 1000, 10000) if plot.w > 400 else (1, 10, 100, 1000),
    )
    mine = next(m for m in r.machines if m.machine == r.machine)
    corners = [
        (X.lo, X.lo * mine.bandwidth_byte_s),
        (mine.flop_per_byte, mine.peak_flop_s),
        (X.hi, mine.peak_flop_s),
    ]
    tip = f"{mine.machine}: {units.si(mine.peak_flop_s, 'FLOP/s')}, {units.si(mine.bandwidth_byte_s, 'B/s')}"
    roof = path("roof", [(X(a), Y(b)) for a, b in corners], "primary", tip)
    name = text(
        "roof-name", plot.right + 6, Y(mine.peak_flop_s) + 4, mine.machine, "primary", "small", bold=True
    )
    return [*marks, *about("machine_name ridge", roof), name]


def _tint(id: str, plot: Box, left: float, right: float, role: str, tip: str) -> dict:
    corners = [(left, plot.y), (right, plot.y), (right, plot.bottom), (left, plot.bottom)]
    return path(id, corners, role, tip, closed=True)


def _ridge(r: Result, plot: Box, reach: float) -> list[dict]:
    """Draw the two halves, each named by what limits an operation there. The half of the point is named in large."""
    wide, at = plot.w > 400, _axes(plot)[0](r.ridge_flop_per_byte)
    name = f"ridge: {units.number(r.ridge_flop_per_byte)} FLOP per byte"
    sides = (
        ("left", "memory", "bytes", at - 10, "end", plot.x, at),
        ("right", "compute", "arithmetic" if wide else "math", at + 10, "start", at, plot.right),
    )
    marks = []
    for id, bound, word, x, anchor, a, b in sides:
        here = bound == r.bound
        tip = f"{'left' if id == 'left' else 'right'} of the ridge, {word} take{'' if id == 'left' else 's'} the time"
        words = f"{word} limit{'' if id == 'left' else 's'} it" if here and wide else word
        size = "big" if here else "small"
        if text_width(words, size, here) > b - a - 20:
            words = word
        if here:
            marks.append(_tint("tint", plot, a, b, bound, tip))
        marks.append(text(id, x, plot.y + 22, words, bound, size, anchor, bold=here))
    return [
        *marks,
        *about("ridge", line("ridge", at, plot.y, at, plot.bottom, "limit", name)),
        # it goes on below the times, and strikes no words through
        *about("ridge", line("ridge-below", at, plot.bottom + (120 if wide else 134), at, plot.bottom + reach, "limit", name)),
        text("ridge-name", at, plot.y - 8, name if wide else name.replace(" per byte", "/B"), "muted", "small", "middle"),
    ]  # fmt: skip


def _times(r: Result, plot: Box) -> list[dict]:
    """Draw how long moving the bytes takes and how long the arithmetic, side by side: the longer one is the limit."""
    wide, marks = plot.w > 400, []
    left, room = (130, 430) if wide else (78, 166)
    for i, (bound, name, short, s) in enumerate(
        (
            ("memory", "moving the bytes", "the bytes", r.memory_s),
            ("compute", "the arithmetic", "the math", r.compute_s),
        )
    ):
        y, long = plot.bottom + (48 if wide else 56) + 28 * i, max(2.0, room * s / r.time_s)
        limits = bound == r.bound
        words = units.seconds(s) + (", the limit" if limits and wide else "")
        marks += about(
            "times",
            rect(f"time-{bound}", left, y, long, 20, bound, f"{name}: {units.seconds(s)}"),
            text(f"time-{bound}-name", left - 8, y + 14, name if wide else short, "ink", "small", "end", bold=limits),
            text(f"time-{bound}-s", left + long + 8, y + 14, words, bound, "small", bold=limits),
        )  # fmt: skip
    return marks


def _rows(r: Result) -> str:
    """Say how much of it there is: batch 1, 1,024 tokens, any number of rows."""
    if _stays(r):
        return f"any number of {r.knob}"
    n = units.count(r.batch)
    return units.counted(r.batch, "token") if r.knob == "tokens" else f"{r.knob} {n}"


def _stays(r: Result) -> bool:
    """Say that the knob moves nothing, because element-wise work does equally much per byte however many rows it has."""
    return len({units.number(p.flop_per_byte) for p in r.trail}) == 1


def _point(r: Result, measured: dict, plot: Box) -> list[dict]:
    (X, Y), marks = _axes(plot), []
    for p in r.trail:
        tip = f"{r.knob} {p.name}: {units.number(p.flop_per_byte)} FLOP per byte, {units.si(p.flop_s, 'FLOP/s')}"
        marks.append(circle(f"trail-{p.name}", X(p.flop_per_byte), Y(p.flop_s), 3.5, "now", tip))
    x, y = X(r.flop_per_byte), Y(r.attainable_flop_s)
    tip = f"{r.knob} {r.batch}: {units.number(r.flop_per_byte)} FLOP per byte, {units.si(r.attainable_flop_s, 'FLOP/s')}"
    left = x > plot.right - 110
    name = _rows(r) if plot.w > 400 or not _stays(r) else f"any {r.knob}"
    # at the stem's foot, where no roof runs, and on the stem's own side of the ridge, if there is room before the axis
    size = "body" if plot.w > 400 else "small"
    wide = 12 + text_width(name, size, True)
    crosses = x < X(r.ridge_flop_per_byte) < x + wide and x - wide > plot.x
    marks += [
        line("stem", x, y, x, plot.bottom, "now"),
        text(
            "here-name",
            x + (-8 if crosses else 8),
            plot.bottom - 7,
            name,
            "now",
            size,
            "end" if crosses else "start",
            bold=True,
            on="ground",
        ),
    ]
    stops = {2**k: X(p.flop_per_byte) for k, p in enumerate(r.trail)}
    marks = [
        *about("here", marks),
        handle("here", x, y, "now", drag(BATCH, "x", lambda n: stops[n]), tip=tip),
    ]
    if "flop_s" in measured:
        at, rate = Y(measured["flop_s"]), units.si(measured["flop_s"], "FLOP/s")
        marks += [
            circle("yours", x, at, 7, "measured", f"measured: {rate}"),
            text(
                "yours-name",
                x + (-12 if left else 12),
                max(at, y + 24) + 16,
                f"yours: {rate}",
                "measured",
                "small",
                "end" if left else "start",
                bold=True,
            ),
        ]
    return marks


def _beside(name: str, x: float, ridge: float, right: float) -> tuple[bool, float, float]:
    """Return whether a dot's name is left of the dot, and its extent. The name never crosses the ridge."""
    wide = text_width(name, "small")
    lo, hi = (0, ridge - 5) if x < ridge else (ridge + 5, right)
    left = x + 9 + wide > hi and x - 9 - wide >= lo
    return (True, x - 9 - wide, x + 6) if left else (False, x - 6, x + 9 + wide)


def _usual(r: Result, plot: Box) -> list[dict]:
    """Draw the usual operations on the same axis, each coloured by its limit and named on its side."""
    X, wide_room, marks, top = _axes(plot)[0], plot.w > 400, [], plot.bottom + (122 if plot.w > 400 else 140)
    rows: list[list[tuple[float, float]]] = []  # of each row, the taken extent
    for i, p in enumerate(sorted(r.usual, key=lambda p: p.flop_per_byte)):
        name = p.name if wide_room else SHORT.get(p.name, p.name)
        x = X(p.flop_per_byte)
        left, start, end = _beside(name, x, X(r.ridge_flop_per_byte), WIDE if wide_room else NARROW)
        free = (k for k, row in enumerate(rows) if all(end + 8 < a or b + 8 < start for a, b in row))
        k = next(free, len(rows))
        if k == len(rows):
            rows.append([])
        rows[k].append((start, end))
        y, role = top + 19 * k, "memory" if p.bound == "memory" else "compute"
        tip, anchor = f"{p.name}: {units.number(p.flop_per_byte)} FLOP per byte", "end" if left else "start"
        operation, size = CLICKS[p.name]
        marks += sets(
            {"operation": operation, "batch": size},
            circle(f"usual{i}", x, y, 5, role, f"{tip}; click to see it"),
            text(f"usual{i}-name", x + (-9 if left else 9), y + 4, name, role, "small", anchor),
        )
    return marks


def _table(r: Result):
    columns = (
        "point",
        Column("FLOP per byte", show=units.number),
        Column("reaches", "FLOP/s", lambda v: units.si(v, "FLOP/s")),
        "limit",
    )
    mine = (_subject(r), r.flop_per_byte, r.attainable_flop_s, r.bound)
    rows = [(p.name, p.flop_per_byte, p.flop_s, p.bound) for p in r.usual]
    ridges = [(f"ridge of {m.machine}", m.flop_per_byte, m.peak_flop_s, "") for m in r.machines]
    return table(columns, [mine, *rows, *ridges])


def _subject(r: Result) -> str:
    """Say what the point is. A model over several GPUs is only in part on each."""
    label = KINDS[r.operation].label
    if r.operation != "decode_70b":
        return label
    if r.devices == 1:
        return "Decode, a 70B model on one GPU"
    return f"Decode on one of {r.devices} GPUs that share a 70B model"


def _takeaway(r: Result) -> str:
    if r.bound == "compute":
        over = units.times(r.flop_per_byte / r.ridge_flop_per_byte)
        return f"Arithmetic limits it, at {over} the FLOP per byte of the ridge. More bandwidth would change nothing."
    if _stays(r):
        return "Bytes limit it at any size, and batching can't move this point. Fusion can, because it removes bytes."
    short = r.ridge_flop_per_byte / r.flop_per_byte
    if r.operation.startswith("decode") and short >= 2:
        most = units.count(r.batch * short)
        return f"Bytes limit it: one read of the weights could serve up to {most} requests, their caches left out."
    if short < 2:
        return "Bytes limit it, but only just: close to the ridge the arithmetic takes about as long."
    return f"Bytes limit it. {units.times(short)} the arithmetic would fit into the time that they take."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    measured, (plot_at, reach, height) = measured or {}, PLACES[width == WIDE]
    at = figure("FLOP per byte", r.flop_per_byte, units.number, "now", "here")
    ridge = figure(f"needed on {r.machine}, {r.dtype}", r.ridge_flop_per_byte)
    part = r.operation == "decode_70b" and r.devices > 1
    time = figure(
        f"time at best, for 1/{r.devices} of the model" if part else "time at best", r.time_s, units.seconds
    )
    share, memory = units.percent(r.peak_share), r.bound == "memory"
    law = figure(
        "limit it" if memory else "limits it",
        r.time_s,
        lambda _: "bytes" if memory else "arithmetic",
        r.bound,
    )
    beside = ()
    if "flop_s" in measured:
        beside = (
            beside_model("rate", measured["flop_s"], r.attainable_flop_s, lambda v: units.si(v, "FLOP/s")),
        )
    return Scene(
        summary=f"{_subject(r)}, {r.knob} {units.count(r.batch)}: {at.text} FLOP per byte where "
        f"{r.machine} needs {ridge.text}; {law.text} {law.label}; it takes {time.text} at best and uses {share} "
        "of the peak.",
        takeaway=_takeaway(r),
        marks=_ridge(r, plot_at, reach)
        + _roofs(r, plot_at)
        + _times(r, plot_at)
        + _point(r, measured, plot_at)
        + _usual(r, plot_at),
        figures=(law, at, ridge, time),
        table=_table(r),
        height=height,
        width=width,
        formula=(
            (
                f"{{here:FLOP per byte}} = FLOP / bytes moved, {{batch:{_rows(r)}}}",
                f"{units.si(r.flops, 'FLOP')} / {units.si_bytes(r.bytes_moved)} = {{here:{at.text}}}",
            ),
            (
                "{ridge} = {machine_name:peak / bandwidth}",
                f"{units.si(r.peak_flop_s, 'FLOP/s')} / {units.si(r.bandwidth_byte_s, 'B/s')} = {{ridge:{ridge.text}}}",
            ),
            (
                "{times:time} = max(bytes / bandwidth, FLOP / peak)",
                f"max({units.seconds(r.memory_s)}, {units.seconds(r.compute_s)}) = {time.text}",
            ),
        ),
        beside=beside,
    )


SIMULATOR = Declaration(
    title="Roofline explorer",
    question="What limits this operation: bytes or arithmetic?",
    controls=(
        select("operation", "Operation", "decode_70b", {name: kind.label for name, kind in KINDS.items()}),
        BATCH,
        select("machine_name", "GPU", "H100", list(MACHINES)),
        select("dtype", "Numbers", "fp16", list(BYTES)),
        powers_of_two("devices", "GPUs that share a 70B model", 8, 1, 16, more=True),
    ),
    presets={
        "Decode, batch 1": {},
        "Decode, batch 256": {"batch": 256},
        "Prefill, 1,024 tokens": {"operation": "prefill", "batch": 1024},
        "GEMM 4096": {"operation": "gemm", "batch": 4096},
        "GELU": {"operation": "gelu", "batch": 4096},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "An H100 does 989 TFLOP/s in fp16 and reads 3.35 TB/s. A 70B model over eight of them decodes one request: "
        "how many FLOP does each GPU do for each byte it reads?",
        "flop_per_byte",
        "FLOP per byte",
        0.5,
    ),
    measures={"flop_s": "FLOP per second that the kernel reached"},
    source="Performance Engineering",
)

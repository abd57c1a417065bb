"""Show the bytes that attention leaves in HBM: a square that grows with the length squared, or four thin strips."""

from dataclasses import dataclass

from kernels.flash_attention import cost
from kernels.machines import MACHINES, machine
from widgets import units
from widgets.charts import (
    Box,
    Part,
    Series,
    axis_x,
    axis_y,
    bars_across,
    linear,
    lines,
    log,
    text_width,
)
from widgets.controls import powers_of_two, select
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
    handle,
    line,
    rect,
    table,
    text,
)

ELEM_BYTES = {"fp16": 2, "fp8": 1}
TILE = cost.Tiling(128, 128)
LENGTHS = [1 << k for k in range(8, 18)]
LENGTH = powers_of_two("length", "Context length", 8192, LENGTHS[0], LENGTHS[-1], unit="tokens")
# (one head to scale, bytes by length, times, height)
PLACES = {
    True: (Box(34, 52, 262, 262), Box(420, 56, 236, 230), Box(70, 372, 400, 52), 430),
    False: (Box(24, 50, 262, 262), Box(54, 388, 226, 160), Box(50, 644, 90, 52), 704),
}


@dataclass(frozen=True)
class Result:
    length: int
    heads: int
    kv_heads: int
    head_dim: int
    elem_bytes: int
    machine: str
    score_matrix_bytes: float  # one head
    scores_layer_bytes: float  # all heads together
    persistent_head_bytes: float  # Q, K, V, output of one head that shares its keys with no other
    naive_head_bytes: float
    naive_bytes: float
    tiled_bytes: float
    state_ratio: float
    q_bytes: float
    kv_bytes: float  # K, and V of the same size
    statistics_bytes: float
    tile_bytes: float
    tiles_across: int
    naive_s: float
    tiled_s: float
    speedup: float
    naive_waits_for_memory: bool
    tiled_waits_for_memory: bool
    memory_bytes: float
    naive_curve_bytes: tuple[float, ...]
    tiled_curve_bytes: tuple[float, ...]


def run(length, heads, head_dim, group, dtype, machine_name) -> Result:
    if group > heads:
        raise ValueError(
            f"group must be at most the {heads} query heads, got {group}; share keys among fewer heads"
        )
    elem, target = ELEM_BYTES[dtype], machine(machine_name)
    target.rate(dtype)

    def shape(tokens: int, q_heads: int = heads, kv_heads: int = heads // group) -> cost.Shape:
        return cost.Shape(tokens, tokens, head_dim, q_heads, kv_heads, elem_bytes=elem)

    s, one = shape(length), shape(length, 1, 1)
    naive, tiled = cost.naive_state_bytes(s), cost.tiled_state_bytes(s)
    naive_s = cost.seconds(s, target, naive=True, dtype=dtype)
    tiled_s = cost.seconds(s, target, dtype=dtype)
    arithmetic_s = cost.flops(s) / target.rate(dtype)
    matrix = cost.score_matrix_bytes(one)
    curve = [shape(tokens) for tokens in LENGTHS]
    return Result(
        length,
        heads,
        heads // group,
        head_dim,
        elem,
        machine_name,
        matrix,
        matrix * heads,
        cost.tiled_state_bytes(one),
        cost.naive_state_bytes(one),
        naive,
        tiled,
        cost.state_ratio(s),
        heads * length * head_dim * elem,
        heads // group * length * head_dim * elem,
        cost.statistics_bytes(s),
        cost.sram_bytes(TILE, head_dim, elem),
        cost.tile_counts(s, TILE)[1],
        naive_s,
        tiled_s,
        naive_s / tiled_s,
        naive_s > arithmetic_s,
        tiled_s > arithmetic_s,
        target.memory_bytes,
        tuple(map(cost.naive_state_bytes, curve)),
        tuple(map(cost.tiled_state_bytes, curve)),
    )


def _shared(r: Result, strip: str) -> str:
    sharers = r.heads // r.kv_heads
    return f"V and K: {strip} each" + (f", for {sharers} query heads" if sharers > 1 else "")


def _to_scale(r: Result, at: Box) -> list[dict]:
    """Draw one head to scale: the score matrix with Q, K, V and the output at its sides."""
    gap = 3
    unit = (at.w - 2 * gap) / (r.length + 2 * r.head_dim)
    thin, side = r.head_dim * unit, r.length * unit
    x, y = at.x + thin + gap, at.y + 2 * (thin + gap)
    matrix, tile = units.si_bytes(r.score_matrix_bytes), max(4, min(TILE.block_n * unit, side))
    strip = units.si_bytes(r.persistent_head_bytes / 4)
    middle, high = x + side / 2, y + side / 2
    right = x + side + gap + thin
    too = ("probabilities: as much again", "each written and read")
    if side < text_width(too[0], "small") + 6:
        too = ("probabilities too,", "each in and out")
    words = max(high - 8, y + tile + 18 if tile < side else 0)  # below the tile, where that is large
    return [
        text("scale-title", 0, 16, "one head, drawn to scale", bold=True),
        *about(
            "strips group",
            rect("v", x, at.y, side, thin, "useful", f"V: {r.head_dim} × {r.length} numbers, {strip}"),
        ),
        *about("strips", rect("k", x, at.y + thin + gap, side, thin, "useful", f"K: as much, {strip}")),
        *about(
            "strips",
            rect("q", at.x, y, thin, side, "useful", f"Q: {r.length} × {r.head_dim} numbers, {strip}"),
        ),
        *about("strips", rect("o", x + side + gap, y, thin, side, "useful", f"Output: as much, {strip}")),
        *about(
            "square", rect("matrix", x, y, side, side, "waste", f"{r.length} × {r.length} scores, {matrix}")
        ),
        text("vk-name", middle, at.y - 8, _shared(r, strip), "useful", "small", "middle"),
        text("q-name", at.x - 8, high, "Q", "useful", "small", "end"),
        text("o-name", right + 8, high, "output", "useful", "small"),
        text("matrix-name", middle, words, f"{matrix} of scores", anchor="middle", bold=True, on="waste"),
        *(
            text(f"matrix-too{i}", middle, words + 18 + 14 * i, line, "ink", "small", "middle", on="waste")
            for i, line in enumerate(too)
        ),
        rect("tile", x, y, tile, tile, "now", f"One tile: {TILE.block_m} × {TILE.block_n} scores"),
        text(
            "tile-name",
            at.x,
            at.bottom + 20,
            f"■ one 128 × 128 tile: {units.si_bytes(r.tile_bytes)} of Q, K and V on chip",
            "now",
            "small",
        ),
    ]


def _curve(r: Result, measured: dict, at: Box) -> list[dict]:
    x = log(LENGTHS[0], LENGTHS[-1], at.x, at.right)
    y = log(1e5, 1e14, at.bottom, at.y)
    here, naive, tiled = x(r.length), y(r.naive_bytes), y(r.tiled_bytes)
    ticks = [1024, 8192, 65536]
    marks = [
        text(
            "curve-title",
            at.x - 40 if at.x > 300 else 0,
            at.y - 40 if at.x > 300 else at.y - 26,
            f"bytes in and out, {units.counted(r.heads, 'head')}, by length",
            bold=True,
        )
    ]
    marks += axis_x("length", x, at.bottom, "tokens", top=at.y, ticks=ticks, show=units.count)
    marks += axis_y("state", y, at.x, right=at.right, ticks=[1e6, 1e9, 1e12], show=units.si_bytes)
    marks += lines(
        "curve",
        [
            Series("naive", list(zip(LENGTHS, r.naive_curve_bytes, strict=True)), "hot"),
            Series("tiled", list(zip(LENGTHS, r.tiled_curve_bytes, strict=True)), "useful"),
        ],
        x,
        y,
    )
    marks += [
        line("length-now", here, at.y + 8, here, at.bottom, "limit"),
        handle("pull-length", here, at.y - 4, "now", drag(LENGTH, "x", x)),
        line("gap", here, naive, here, tiled, "now"),
        circle("naive-now", here, naive, 6, "hot", f"naive: {units.si_bytes(r.naive_bytes)}"),
        circle("tiled-now", here, tiled, 6, "useful", f"tiled: {units.si_bytes(r.tiled_bytes)}"),
    ]
    words, size = units.times(r.state_ratio), "body" if at.w > 230 else "small"
    middle, across = (naive + tiled) / 2, min(here + 8 + text_width(words, size, True), at.right) - here
    doublings = across / at.w * (len(LENGTHS) - 1)
    # between the curves if the lower one, which rises below it, leaves room, otherwise next to the knob
    between = y(r.tiled_bytes * 2**doublings) > middle + 11
    place = (here + 8, middle + 5) if between else (here + 22, at.y)
    marks.append(text("ratio", *place, words, "now", size, bold=True))
    if "bytes_moved" in measured:
        shown = units.si_bytes(measured["bytes_moved"])
        marks.append(circle("measured", here, y(measured["bytes_moved"]), 5, "measured", f"yours: {shown}"))
    return marks


def _times(r: Result, at: Box) -> list[dict]:
    scale = linear(0, max(r.naive_s, r.tiled_s), at.x, at.right)
    rows = []
    for name, time, memory in (
        ("naive", r.naive_s, r.naive_waits_for_memory),
        ("tiled", r.tiled_s, r.tiled_waits_for_memory),
    ):
        waits, role = ("memory", "memory") if memory else ("arithmetic", "compute")
        words = (
            f"{units.seconds(time)}, limited by {waits}" if at.w > 200 else f"{units.seconds(time)}: {waits}"
        )
        rows.append((name, [Part(time, role, f"{name}: {words}")], words))
    title = f"least time of the layer on {r.machine}"
    return [text("times-title", 0, at.y - 10, title, bold=True)] + bars_across("times", rows, at, scale)


def _table(r: Result):
    size = {"unit": "B", "show": units.si_bytes}
    rows = [
        ("naive, one head", r.naive_head_bytes),
        ("tiled, one head", r.persistent_head_bytes),
        ("naive, the layer", r.naive_bytes),
        ("tiled, the layer", r.tiled_bytes),
        ("Q, and as much output", r.q_bytes),
        ("K, and as much V", r.kv_bytes),
        ("score matrix, one head", r.score_matrix_bytes),
        ("score matrices of all heads", r.scores_layer_bytes),
        ("running maximum and sum, fp32", r.statistics_bytes),
        ("tile of Q, K and V on chip", r.tile_bytes),
    ]
    return table(("what", Column("bytes", **size)), rows)


def _formula(r: Result) -> tuple[tuple[str, str], ...]:
    return (
        (
            "tiled = {strips:Q, output, K, V} = 2 · {length} · {head_dim:head size} · ({heads:query} + {group:key heads}) · bytes",
            f"2 · {{length:{r.length}}} · {{head_dim:{r.head_dim}}} · ({{heads:{r.heads}}} + {{group:{r.kv_heads}}}) heads · {r.elem_bytes} B"
            f" = {units.si_bytes(r.tiled_bytes)}",
        ),
        (
            "naive = tiled + 4 · {square:length²} · {heads:query heads} · bytes",
            f"{units.si_bytes(r.tiled_bytes)} + 4 · {{square:{r.length}²}} · {{heads:{r.heads}}} · {r.elem_bytes} B"
            f" = {units.si_bytes(r.naive_bytes)}",
        ),
    )


def _takeaway(r: Result) -> str:
    if r.scores_layer_bytes > r.memory_bytes:
        return "The square no longer fits into memory at all, so tiling is the only way."
    if r.score_matrix_bytes <= r.persistent_head_bytes:
        return f"A square no larger than its four strips still costs {units.times(r.state_ratio)} the bytes: it goes in and out."
    if r.kv_heads < r.heads:
        return "Heads that share K and V read fewer strips, but each still has a square of its own."
    return "Never store the square. Twice the length doubles the strips and quadruples the scores."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    measured, (scale_at, curve_at, times_at, height) = measured or {}, PLACES[width == WIDE]
    naive = figure("moved when scores are stored", r.naive_bytes, units.si_bytes, "hot")
    tiled = figure("moved in tiles", r.tiled_bytes, units.si_bytes, "useful")
    ratio = figure("fewer bytes", r.state_ratio, units.times)
    speedup = figure("faster at best", r.speedup, units.times)
    warning = ""
    if r.scores_layer_bytes > r.memory_bytes:
        scores = units.si_bytes(r.scores_layer_bytes)
        warning = f"The score matrices of one layer, {scores}, do not fit into the memory of {r.machine}."
    beside = ()
    if "bytes_moved" in measured:
        beside = (beside_model("bytes moved", measured["bytes_moved"], r.tiled_bytes, units.si_bytes),)
    return Scene(
        summary=f"{units.count(r.length)} tokens, {units.counted(r.heads, 'head')} of {r.head_dim}: naive attention moves "
        f"{naive.text} a layer, tiled attention {tiled.text}, which is {ratio.text} less and {speedup.text} "
        "faster at best.",
        takeaway=_takeaway(r),
        marks=_to_scale(r, scale_at) + _curve(r, measured, curve_at) + _times(r, times_at),
        figures=(naive, tiled, ratio, speedup),
        table=_table(r),
        height=height,
        width=width,
        formula=_formula(r),
        warning=warning,
        beside=beside,
    )


SIMULATOR = Declaration(
    title="Attention state",
    question="How many bytes does attention save by never storing its scores?",
    controls=(
        LENGTH,
        powers_of_two("heads", "Query heads", 64, 1, 128),
        powers_of_two("head_dim", "Head dimension", 128, 32, 256),
        powers_of_two("group", "Query heads that share a key head", 1, 1, 64),
        select("dtype", "Element type", "fp16", list(ELEM_BYTES), more=True),
        select("machine_name", "GPU", "H200", list(MACHINES), more=True),
    ),
    presets={
        "8,192 tokens, 64 heads": {},
        "512 tokens": {"length": 512},
        "131,072 tokens": {"length": 131072},
        "Grouped queries": {"group": 8},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "8,192 tokens, 64 heads of 128, 16 bits. Naive attention writes and reads scores and probabilities; "
        "tiled attention only Q, K, V and the output. How many times less does the tiled one move?",
        "state_ratio",
        "times less",
    ),
    measures={"bytes_moved": "bytes that the kernel loaded and stored in a layer of this shape"},
    source="Performance Engineering",
)

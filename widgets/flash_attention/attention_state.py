"""Show the bytes that attention leaves in HBM, a square that grows with the length squared, or four thin strips."""

from dataclasses import dataclass

from kernels.flash_attention import cost
from kernels.machines import MACHINES, machine
from widgets import units
from widgets.charts import Box, linear, log, text_width
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
    path,
    rect,
    table,
    text,
)

ELEM_BYTES = {"fp16": 2, "fp8": 1}
TILE = cost.Tiling(128, 128)
LENGTHS = [1 << k for k in range(8, 18)]
LENGTH = powers_of_two("length", "Context length", 8192, LENGTHS[0], LENGTHS[-1], unit="tokens")
# (one head to scale, bars of bytes, bars of time, height)
PLACES = {
    True: (Box(24, 52, 326, 326), Box(424, 62, 292, 104), Box(424, 246, 292, 104), 414),
    False: (Box(24, 50, 262, 262), Box(0, 412, 330, 100), Box(0, 558, 330, 100), 660),
}
BAR, GAP = 26, 3
SMALLEST = 0.7  # of the room, for the shortest context, so that the square can grow while it is pulled


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
    spared_bytes: float  # scores and probabilities, written and read


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
        naive - tiled,
    )


def _shared(r: Result, strip: str) -> str:
    sharers = r.heads // r.kv_heads
    return f"V and K: {strip} each" + (f", for {sharers} query heads" if sharers > 1 else "")


def _sizes(length: int, head_dim: int, at: Box) -> tuple[float, float]:
    """Return how thick a strip is and how long a side of the square, to one scale. All is larger for a longer context."""
    room = log(LENGTHS[0], LENGTHS[-1], SMALLEST * at.w, at.w)(length) - 3 * GAP
    return room * head_dim / (length + 2 * head_dim), room * length / (length + 2 * head_dim)


def _to_scale(r: Result, at: Box) -> list[dict]:
    """Draw one head to scale, the score matrix with Q, K, V and the output at its sides."""
    gap, (thin, side) = GAP, _sizes(r.length, r.head_dim, at)
    unit = side / r.length
    x, y = at.x + thin + gap, at.y + 2 * (thin + gap)
    matrix, tile = units.si_bytes(r.score_matrix_bytes), max(4, min(TILE.block_n * unit, side))
    strip = units.si_bytes(r.persistent_head_bytes / 4)
    middle, high = x + side / 2, y + side / 2
    right = x + side + gap + thin
    too = ("probabilities: as much again", "each written and read")
    if side < text_width(too[0], "small") + 6:
        too = ("probabilities too,", "each in and out")
    if side < 150:  # the words would hide the square
        too = ()
    words = max(high - 8, y + tile + 18 if tile < side else 0)  # below the tile, where that is large
    half = []
    if side >= 190:
        words = y + 0.68 * side
        half = [
            path(
                "half",
                [(middle, y), (middle, high), (x, high)],
                "ink",
                "half the length: a quarter of the scores",
            ),
            *(
                text(
                    f"half-name{i}",
                    (x + middle) / 2,
                    y + side / 4 + 14 * i,
                    said,
                    "ink",
                    "small",
                    "middle",
                    on="waste",
                )
                for i, said in enumerate(("half the length:", "a quarter"))
            ),
        ]
    return [
        text("scale-title", 0, 16, "One head: strips and square to one scale", bold=True),
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
        *about("square", half),
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


def _corner(r: Result, at: Box) -> list[dict]:
    """Let the square's corner be pulled, because the context's length is both of its sides."""

    def right(length: float) -> float:
        return at.x + sum(_sizes(length, r.head_dim, at)) + GAP

    thin, side = _sizes(r.length, r.head_dim, at)
    low = at.y + 2 * (thin + GAP) + side
    return [handle("pull-length", right(r.length), low, "now", drag(LENGTH, "x", right))]


def _ratio(times: float) -> str:
    """Write two ratios side by side with equally many digits."""
    return f"{times:.2f}×" if times < 10 else units.times(times)


def _pair(id: str, title: str, at: Box, rows: list[tuple], end: str) -> list[dict]:
    """Draw two bars to one scale, one below the other, each with its words above it, and how they compare."""
    scale = linear(0, max(sum(size for size, *_ in parts) for _, _, parts in rows), at.x, at.right)
    marks = [text(f"{id}-title", at.x, at.y - 14, title, bold=True)]
    for k, (words, ink, parts) in enumerate(rows):
        y, left = at.y + k * at.h / 2 + 14, at.x
        marks.append(text(f"{id}-name{k}", at.x, y - 6, words, ink))
        for i, (size, role, term, tip) in enumerate(parts):
            wide = max(1, scale(size) - at.x)
            marks += about(term, rect(f"{id}-{k}-{i}", left, y, wide, BAR, role, tip))
            left += wide
        if k and at.right - left > text_width(end, "big", True) + 12:
            marks.append(text(f"{id}-end", left + 8, y + 19, end, "ink", "big", bold=True))
    return marks


def _bytes(r: Result, measured: dict, at: Box) -> list[dict]:
    strips = (r.tiled_bytes, "useful", "strips", f"Q, K, V and the output: {units.si_bytes(r.tiled_bytes)}")
    scores = f"scores and probabilities, written and read: {units.si_bytes(r.spared_bytes)}"
    rows = [
        (
            f"scores stored: {units.si_bytes(r.naive_bytes)}",
            "hot",
            [strips, (r.spared_bytes, "waste", "square", scores)],
        ),
        (f"in tiles, each byte once: {units.si_bytes(r.tiled_bytes)}", "useful", [strips]),
    ]
    title = f"Bytes in and out, {units.counted(r.heads, 'head')}"
    marks = _pair("bytes", title, at, rows, f"{_ratio(r.state_ratio)} fewer")
    if "bytes_moved" in measured:
        x = linear(0, r.naive_bytes, at.x, at.right)
        tip = f"yours: {units.si_bytes(measured['bytes_moved'])}"
        marks.append(circle("measured", x(measured["bytes_moved"]), at.bottom - 22, 5, "measured", tip))
    return marks


def _times(r: Result, at: Box) -> list[dict]:
    rows = []
    for name, time, memory in (
        ("scores stored", r.naive_s, r.naive_waits_for_memory),
        ("in tiles", r.tiled_s, r.tiled_waits_for_memory),
    ):
        waits, role = ("memory", "memory") if memory else ("arithmetic", "compute")
        words = f"{name}: {units.seconds(time)}, limited by {waits}"
        rows.append((words, "ink", [(time, role, "time", words)]))
    return _pair("times", f"Least time on {r.machine}", at, rows, f"{_ratio(r.speedup)} faster")


def _table(r: Result):
    size = {"unit": "B", "show": units.si_bytes}
    rows = [
        ("scores stored, one head", r.naive_head_bytes),
        ("in tiles, one head", r.persistent_head_bytes),
        ("scores stored, the layer", r.naive_bytes),
        ("in tiles, the layer", r.tiled_bytes),
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
            "in tiles = {strips:Q, output, K, V} = 2 · {length} · {head_dim:head size} · ({heads:query} + {group:key heads}) · bytes",
            f"2 · {{length:{r.length}}} · {{head_dim:{r.head_dim}}} · ({{heads:{r.heads}}} + {{group:{r.kv_heads}}}) heads · {r.elem_bytes} B"
            f" = {units.si_bytes(r.tiled_bytes)}",
        ),
        (
            "scores stored = in tiles + 4 · {square:length²} · {heads:query heads} · bytes",
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
    measured, (scale_at, bytes_at, times_at, height) = measured or {}, PLACES[width == WIDE]
    naive = figure("moved when scores are stored", r.naive_bytes, units.si_bytes, "hot")
    tiled = figure("moved in tiles, at least", r.tiled_bytes, units.si_bytes, "useful")
    ratio = figure("fewer bytes at best", r.state_ratio, _ratio)
    speedup = figure("faster at best", r.speedup, _ratio)
    warning = ""
    if r.scores_layer_bytes > r.memory_bytes:
        scores = units.si_bytes(r.scores_layer_bytes)
        warning = f"The score matrices of one layer, {scores}, do not fit into the memory of {r.machine}."
    beside = ()
    if "bytes_moved" in measured:
        beside = (beside_model("bytes moved", measured["bytes_moved"], r.tiled_bytes, units.si_bytes),)
    return Scene(
        summary=f"{units.count(r.length)} tokens, {units.counted(r.heads, 'head')} of {r.head_dim}: attention that stores its scores moves "
        f"{naive.text} a layer, in tiles at least {tiled.text}, which is at best {ratio.text} less and {speedup.text} "
        "faster at best.",
        takeaway=_takeaway(r),
        marks=_to_scale(r, scale_at)
        + _corner(r, scale_at)
        + _bytes(r, measured, bytes_at)
        + _times(r, times_at),
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
        powers_of_two("group", "Query heads per key head", 1, 1, 64),
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

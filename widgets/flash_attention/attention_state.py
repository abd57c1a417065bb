"""Show the bytes that attention leaves in HBM, a square that grows with the length squared, or four thin strips."""

from dataclasses import dataclass

from kernels.flash_attention import cost
from kernels.machines import MACHINES, machine
from widgets import units
from widgets.charts import Box, linear, steady, text_width
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
    path,
    rect,
    table,
    text,
)

ELEM_BYTES = {"fp16": 2, "fp8": 1}
TILE = cost.Tiling(128, 128)
LENGTHS = [1 << k for k in range(8, 18)]
LENGTH = powers_of_two("length", "Context length", 8192, LENGTHS[0], LENGTHS[-1], unit="tokens")
# (one head to scale, bars of bytes, a tile enlarged, height)
PLACES = {
    True: (Box(24, 50, 340, 340), Box(424, 62, 292, 112), Box(424, 252, 292, 150), 414),
    False: (Box(24, 50, 290, 290), Box(0, 404, 330, 112), Box(0, 566, 330, 132), 704),
}
BAR, GAP = 30, 3


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


def _unit(r: Result, at: Box) -> float:
    """Return how long a token is drawn, so that a square of twice the length fits. It stays while the corner is pulled."""
    return (at.w - 4 * GAP) / steady("tokens", 2 * (r.length + r.head_dim))


def _sizes(length: int, r: Result, at: Box) -> tuple[float, float]:
    """Return how thick a strip is and how long a side of the square, to one scale."""
    unit = _unit(r, at)
    thin = r.head_dim * unit
    return thin, min(length * unit, at.w - 4 * GAP - 2 * thin)


def _to_scale(r: Result, at: Box) -> list[dict]:
    """Draw one head to scale: the score matrix with Q, K, V and the output at its sides."""
    gap, (thin, side) = GAP, _sizes(r.length, r, at)
    cut = r.length * _unit(r, at) > side + 0.01
    x, y = at.x + thin + gap, at.y + 2 * (thin + gap)
    matrix, tile = units.si_bytes(r.score_matrix_bytes), min(max(4, TILE.block_n * _unit(r, at)), side)
    strip = units.si_bytes(r.persistent_head_bytes / 4)
    middle, high = x + side / 2, y + side / 2
    title = (
        "Let go: this square is larger than the picture"
        if cut
        else "One head: strips and square to one scale"
    )
    return [
        text("scale-title", 0, 16, title, bold=True),
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
        *_twice(x, y, side, thin, cut),
        text("vk-name", x, at.y - 8, _shared(r, strip), "useful", "small"),
        *([text("q-name", at.x - 8, high, "Q", "useful", "small", "end")] if side > 40 else []),
        *(
            [text("o-name", x + side + thin + 11, high, "output", "useful", "small")]
            if side > 40 and not cut
            else []
        ),
        *_of_scores(middle, high, side, tile, matrix),
        rect(
            "tile", x + side - tile, y, tile, tile, "now", f"One tile: {TILE.block_m} × {TILE.block_n} scores"
        ),
    ]


def _of_scores(middle: float, high: float, side: float, tile: float, matrix: str) -> list[dict]:
    """Name the square where its words leave some of it in view."""
    name, size = f"{matrix} of scores", "body" if side >= 150 else "small"
    if side < text_width(name, size, True) + 6:
        return []
    top = max(high - 8, high - side / 2 + tile + 18)  # below the tile, where that is large
    too = ("probabilities too,", "each in and out") if side >= 150 else ()
    return [
        text("matrix-name", middle, top, name, "ink", size, "middle", bold=True, on="waste"),
        *(
            text(f"matrix-too{i}", middle, top + 18 + 14 * i, words, "ink", "small", "middle", on="waste")
            for i, words in enumerate(too)
        ),
    ]


def _twice(x: float, y: float, side: float, thin: float, cut: bool) -> list[dict]:
    """Draw where the square's sides would be at twice the length: its corner can be pulled there."""
    if cut:
        return []
    far, low, past = x + 2 * side, y + 2 * side, side + 2 * GAP + thin
    tip = "twice the length: four times the scores"
    outline = path(
        "twice", [(x + past, y), (far, y), (far, low), (x, low), (x, y + side + GAP)], "limit", tip
    )
    if side < 90:
        return about("square", outline)
    words = ("twice the length:", "4× the scores")
    names = [
        text(f"twice-name{i}", far - 10, low - 32 + 18 * i, said, "ink", "body", "end", bold=i > 0)
        for i, said in enumerate(words)
    ]
    return about("square", outline, *names)


def _corner(r: Result, at: Box) -> list[dict]:
    """Let the square's corner be pulled, because the context's length is both of its sides."""

    def right(length: float) -> float:
        return at.x + sum(_sizes(length, r, at)) + GAP

    thin, side = _sizes(r.length, r, at)
    low = at.y + 2 * (thin + GAP) + side
    return [handle("pull-length", right(r.length), low, "now", drag(LENGTH, "x", right))]


def _on_chip(r: Result, at: Box) -> list[dict]:
    """Enlarge one tile with the rows of Q, K and V that it needs: this is all that a program holds, at any length."""
    unit = (at.h - 18) / (TILE.block_m + 2 * r.head_dim)
    tile, thick = TILE.block_n * unit, r.head_dim * unit
    x, y = at.x + thick + GAP, at.y + 2 * (thick + GAP)
    words = x + tile + 16
    size = units.si_bytes(r.tile_bytes)
    rows = f"{TILE.block_n} rows, {units.si_bytes(r.tile_bytes / 3)}"
    return [
        text("chip-title", at.x, at.y - 14, "One tile, enlarged", bold=True),
        *about("strips", rect("chip-v", x, at.y, tile, thick, "useful", f"V: {rows}")),
        *about("strips", rect("chip-k", x, at.y + thick + GAP, tile, thick, "useful", f"K: {rows}")),
        *about("strips", rect("chip-q", at.x, y, thick, tile, "useful", f"Q: {rows}")),
        *_letters(at.x, x, at.y, y, thick, tile),
        rect("chip-tile", x, y, tile, tile, "now", f"{TILE.block_m} × {TILE.block_n} scores, never stored"),
        text("chip-size", words, at.y + 0.42 * at.h, size, "now", "huge", bold=True),
        text("chip-words", words, at.y + 0.42 * at.h + 20, "of Q, K and V on chip,", "ink"),
        text("chip-always", words, at.y + 0.42 * at.h + 37, "at any length", "ink", bold=True),
    ]


def _letters(left: float, x: float, top: float, y: float, thick: float, tile: float) -> list[dict]:
    """Name the three pieces where a letter fits."""
    if thick < 18:
        return []
    return [
        text("chip-v-name", x + tile / 2, top + thick / 2 + 4, "V", "inverse", "small", "middle"),
        text("chip-k-name", x + tile / 2, top + 1.5 * thick + GAP + 4, "K", "inverse", "small", "middle"),
        text("chip-q-name", left + thick / 2, y + tile / 2 + 4, "Q", "inverse", "small", "middle"),
    ]


def _leader(r: Result, at: Box, chip: Box) -> list[dict]:
    """Lead from the tile in the square to the enlarged one, where both are side by side."""
    thin, side = _sizes(r.length, r, at)
    x, y = at.x + thin + GAP + side, at.y + 2 * (thin + GAP)
    if chip.x < at.right:
        return []
    return [line("leader", x + 2, y + 2, chip.x - 8, chip.y - 18, "now")]


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
        size = "huge" if at.right - left > text_width(end, "huge", True) + 12 else "big"
        if k and at.right - left > text_width(end, size, True) + 12:
            marks.append(text(f"{id}-end", left + 10, y + 25, end, "useful", size, bold=True))
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
        marks.append(circle("measured", x(measured["bytes_moved"]), at.bottom - 26, 5, "measured", tip))
    return marks


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
    measured, (scale_at, bytes_at, chip_at, height) = measured or {}, PLACES[width == WIDE]
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
        marks=_leader(r, scale_at, chip_at)
        + _to_scale(r, scale_at)
        + _corner(r, scale_at)
        + _bytes(r, measured, bytes_at)
        + _on_chip(r, chip_at),
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

"""One outlier sets the scale of everything that shares it: smaller blocks keep its damage small."""

from dataclasses import dataclass

from kernels.quantization_layouts import cost
from widgets import units
from widgets.charts import Box, Scale, linear, text_width
from widgets.controls import select, slider, steps
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, about, circle, drag, figure, handle, line, path, table, text

COUNT = 64
OUTLIER_AT = 21
TOP = 3.2  # up to so many typical sizes all stems have one scale; above it the outlier's is broken
BREAK, REACH = 24, 52  # units above a panel between which the rest of the outlier's stem may end
GROUP = steps(
    "group", "Numbers that share a scale", 16, (4, 8, 16, 32, 64), help="MXFP4 always takes 32, NVFP4 16."
)
OUTLIER = slider(
    "outlier", "Outlier", 20, 1, 30, unit="×", help="Times the typical size; 3 to 20 in large models."
)
# (one scale for all, a scale for each block, height)
PLACES = {
    True: (Box(44, 88, 664, 104), Box(44, 300, 664, 104), 428),
    False: (Box(4, 103, 332, 104), Box(4, 346, 332, 104), 474),
}
MOST_LEVELS = 40  # in view; a finer ladder is a grey wall


@dataclass(frozen=True)
class Kept:
    """The numbers after packing and unpacking, with one scale for each `group` of them."""

    format: str
    group: int
    values: tuple[float, ...]
    levels: tuple[tuple[float, ...], ...]  # of each block: what it can hold, as far as the picture reaches
    bits_per_weight: float
    error_share: float  # of the ordinary numbers, over their own size
    zeros: int  # ordinary numbers that became 0
    far: int  # ordinary numbers that moved by more than half the typical size
    block_errors: tuple[float, ...]


@dataclass(frozen=True)
class Rival:
    """Another format on the same numbers, in its own block or in the chosen one."""

    name: str
    group: int
    bits_per_weight: float
    error_share: float


@dataclass(frozen=True)
class Result:
    format: str
    group_asked: int
    outlier: float
    values: tuple[float, ...]
    size: float  # root mean square of the ordinary numbers
    one: Kept
    blocks: Kept
    gain: float
    rivals: tuple[Rival, ...]


def _error(values: tuple[float, ...], packed: cost.Quantized, size: float, chosen: list[int]) -> float:
    return cost.rms([values[i] - packed.values[i] for i in chosen]) / size


def _rival(values: tuple[float, ...], size: float, name: str, share: int) -> Rival:
    packed = cost.quantize(values, name, share)
    ordinary = [i for i in range(COUNT) if i != OUTLIER_AT]
    return Rival(name, packed.group, packed.bits_per_weight, _error(values, packed, size, ordinary))


def _kept(values: tuple[float, ...], size: float, name: str, share: int) -> Kept:
    packed = cost.quantize(values, name, share)
    blocks = [range(start, start + packed.group) for start in range(0, COUNT, packed.group)]
    ordinary = [[i for i in block if i != OUTLIER_AT] for block in blocks]

    levels = [
        tuple(
            level
            for level in cost.group_levels([values[i] for i in block], name, scale)
            if abs(level) <= TOP * size
        )
        for block, scale in zip(blocks, packed.scales, strict=True)
    ]
    everyone = [i for block in ordinary for i in block]
    return Kept(
        name,
        packed.group,
        packed.values,
        tuple(levels),
        packed.bits_per_weight,
        _error(values, packed, size, everyone),
        sum(packed.values[i] == 0 for i in everyone),
        sum(abs(packed.values[i] - values[i]) > size / 2 for i in everyone),
        tuple(_error(values, packed, size, block) for block in ordinary),
    )


def run(format_name, group, outlier):
    values = cost.with_outlier(cost.bell_values(COUNT), OUTLIER_AT, outlier)
    size = cost.rms([v for i, v in enumerate(values) if i != OUTLIER_AT])
    # a format whose block is part of it cannot share one scale: its elements alone can, so that only the scale differs
    alone = "fp4 e2m1" if cost.BLOCK_FORMATS[format_name].fixed_group else format_name
    one, blocks = _kept(values, size, alone, COUNT), _kept(values, size, format_name, group)
    return Result(
        format_name,
        group,
        outlier,
        values,
        size,
        one,
        blocks,
        one.error_share / blocks.error_share,
        tuple(_rival(values, size, name, group) for name in cost.BLOCK_FORMATS),
    )


def _panel(id: str, box: Box, kept: Kept, r: Result) -> list[dict]:
    """Draw the numbers as stems, their quantized values as dots, and the ladder of values that each block has."""
    y, pitch = linear(-TOP * r.size, TOP * r.size, box.bottom, box.y), box.w / COUNT
    blocks = COUNT // kept.group
    marks = _ladders(id, box, kept, y)
    words = "error " if blocks <= 8 * box.w / 664 else ""
    names = [f"{words}{units.percent(error, 0)}" for error in kept.block_errors]
    widest = max(text_width(name, "small") for name in names)
    each = kept.group * pitch > widest
    for b in range(1, blocks):
        at = box.x + b * kept.group * pitch
        low = box.bottom + (22 if each else 4)  # between two errors only where each block has its own
        marks.append(line(f"{id}-edge{b}", at, box.y - 4, at, low, "axis"))
    for i, (value, stays) in enumerate(zip(r.values, kept.values, strict=True)):
        if i == OUTLIER_AT:
            continue
        x = box.x + (i + 0.5) * pitch
        tip = f"number {i}: {units.number(value)} kept as {units.number(stays)}"
        marks += [
            line(f"{id}-stem{i}", x, y(0), x, y(value), "idle"),
            circle(f"{id}-dot{i}", x, y(stays), _dot(box), "primary" if stays else "hot", tip),
        ]
    marks += _outlier(id, box, y, kept, r)
    for b, (error, name) in enumerate(zip(kept.block_errors, names, strict=True)):
        x = box.x + (b + 0.5) * kept.group * pitch
        role = "hot" if error > 0.25 else "muted"
        if each or (b % 2 == 0 and 2 * kept.group * pitch > widest):
            marks += about(
                f"errors_{id}", text(f"{id}-error{b}", x, box.bottom + 18, name, role, "small", "middle")
            )
    return marks


def _ladders(id: str, box: Box, kept: Kept, y: Scale) -> list[dict]:
    marks, wide = [], box.w * kept.group / COUNT
    for b, levels in enumerate(kept.levels):
        if len(levels) > MOST_LEVELS:
            continue
        for n, level in enumerate(levels):
            at = box.x + b * wide
            marks.append(line(f"{id}-level{b}-{n}", at + 1, y(level), at + wide - 1, y(level), "grid"))
    return marks


def _dot(box: Box) -> float:
    return 3.2 if box.w > 400 else 2.2


def _outlier(id: str, box: Box, y: Scale, kept: Kept, r: Result) -> list[dict]:
    """Draw the outlier's stem on the others' scale as far as they reach, then broken and shorter. The upper one has a knob."""
    x, unit = box.x + (OUTLIER_AT + 0.5) * box.w / COUNT, r.values[OUTLIER_AT] / r.outlier
    beyond = linear(TOP * r.size, OUTLIER.max * unit, box.y - BREAK, box.y - REACH)

    def place(value: float) -> float:
        return y(value) if value <= TOP * r.size else beyond(value)

    value, stays = r.values[OUTLIER_AT], kept.values[OUTLIER_AT]
    end, torn = place(value), ((x, box.y), (x - 6, box.y - 1), (x + 6, box.y - 6), (x, box.y - 7))
    tip = f"number {OUTLIER_AT}, the outlier: {units.number(value)} kept as {units.number(stays)}"
    if value <= TOP * r.size:
        torn = ((x, end),) * len(torn)
    marks = [path(f"{id}-stem{OUTLIER_AT}", [(x, y(0)), *torn, (x, end)], "now")]
    marks.append(circle(f"{id}-dot{OUTLIER_AT}", x, place(stays), _dot(box), "now", tip))
    if id == "one":
        marks.append(handle("pull-outlier", x, end, "now", drag(OUTLIER, "y", lambda o: place(o * unit))))
    if r.outlier > 1:
        beside = x + (15 if id == "one" else 9)
        marks.append(
            text(f"{id}-outlier", beside, end + 4, units.times(r.outlier), "now", "small", bold=True)
        )
    return marks


def _named(kept: Kept) -> str:
    scale = "one scale for all 64" if kept.group == COUNT else f"a scale for each {kept.group}"
    return f"{kept.format}, {scale}"


def _harm(kept: Kept) -> tuple[int, str, str]:
    """Say how many ordinary numbers are lost, in words and in few. In a codebook without a 0 none can become 0."""
    if cost.BLOCK_FORMATS[kept.format].levels == "codebook":
        return kept.far, "moved by half a typical size", "moved by half"
    return kept.zeros, "ordinary numbers became 0", "became 0"


def _title(id: str, box: Box, kept: Kept) -> list[dict]:
    spent = f"{units.number(kept.bits_per_weight, 4)} bits a weight"
    lost, words, few = _harm(kept)
    became, role = f"{lost} of {COUNT - 1} {words}", "hot" if lost > 16 else "muted"
    at = box.y - REACH - (22 if id == "one" else 14)  # above a knob, above a dot
    if box.w < 400:
        became = f"{spent}; {lost} of {COUNT - 1} {few}"
        return [
            text(f"{id}-title", 0, at - 15, _named(kept), "ink", "small", bold=True),
            text(f"{id}-zeros", 0, at, became, role, "small", bold=True),
        ]
    return [
        text(f"{id}-title", 0, at, f"{_named(kept)}: {spent}", bold=True),
        text(f"{id}-zeros", WIDE, at, became, role, "small", "end", bold=True),
    ]


def _edge(r: Result, box: Box) -> list[dict]:
    """The right edge of the first block: pulled, every block grows."""

    def place(group: float) -> float:
        return box.x + group * box.w / COUNT

    return [handle("pull-group", place(r.group_asked), box.y - 2, "primary", drag(GROUP, "x", place))]


def _takeaway(r: Result) -> str:
    if r.blocks.group == COUNT:
        return "With one scale, every number pays for the range that the largest one needs."
    if r.gain < 1.3:
        return "Without an outlier a smaller block gains little, and its scales cost bits."
    own = units.percent(r.blocks.block_errors[OUTLIER_AT // r.blocks.group], 0)
    return f"A smaller block confines the damage but can't undo it: the outlier's block still errs by {own}."


def _table(r: Result):
    columns = (
        "format",
        Column("scale for each", show=units.count),
        Column("bits a weight", show=lambda v: units.number(v, 4)),
        Column("error", show=units.percent),
    )
    rows = [(_named(k), k.group, k.bits_per_weight, k.error_share) for k in (r.one, r.blocks)]
    return table(columns, rows + [(v.name, v.group, v.bits_per_weight, v.error_share) for v in r.rivals])


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    one_at, blocks_at, height = PLACES[width == WIDE]
    one = figure("error with one scale", r.one.error_share, units.percent, "hot")
    blocks = figure(
        f"error with a scale per {r.blocks.group}", r.blocks.error_share, units.percent, "primary"
    )
    gain = figure("smaller error", r.gain, units.times)
    spent = figure("bits per weight", r.blocks.bits_per_weight, lambda v: units.number(v, 4))
    form = cost.BLOCK_FORMATS[r.format]
    scale = f"({form.scale_bits} + {form.zero_bits})" if form.zero_bits else f"{form.scale_bits}"
    return Scene(
        summary=f"With an outlier {units.times(r.outlier)} the typical size, {_named(r.one)}, errs by {one.text} of an "
        f"ordinary number; {_named(r.blocks)}, by {blocks.text}, which is {gain.text} smaller, at {spent.text} bits a "
        "weight.",
        takeaway=_takeaway(r),
        marks=_title("one", one_at, r.one)
        + _panel("one", one_at, r.one, r)
        + [
            text(
                "how",
                0,
                one_at.bottom + (18 if width == WIDE else 34),
                "stems: the numbers; dots: as kept; lines: the levels",
                "muted",
                "small",
            )
        ]
        + _title("blocks", blocks_at, r.blocks)
        + _panel("blocks", blocks_at, r.blocks, r)
        + _edge(r, blocks_at),
        figures=(one, blocks, gain, spent),
        table=_table(r),
        height=height,
        width=width,
        formula=(
            (
                "bits a weight = {format_name:bits + scale bits} / {group:block}",
                f"{form.bits} + {scale} / {{group:{r.blocks.group}}} = {spent.text}",
            ),
        ),
    )


SIMULATOR = Declaration(
    title="Formats and block scales",
    question="What does one outlier do to the numbers that share its scale?",
    controls=(select("format_name", "Format", "int4", list(cost.BLOCK_FORMATS)), GROUP, OUTLIER),
    presets={
        "int4, blocks of 16": {},
        "No outlier": {"outlier": 1},
        "int8": {"format_name": "int8"},
        "NVFP4": {"format_name": "nvfp4"},
        "Codebook of 3 bits": {"format_name": "codebook, 3 bits"},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "64 numbers go into int4, one of them 20 times the size of the others. With one scale for all, how many of "
        "the 63 ordinary numbers become 0?",
        "one.zeros",
        "of 63",
        0.1,
        units.count,
    ),
    source="Performance Engineering; Real kernels",
)

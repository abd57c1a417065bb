"""Show how one outlier sets the scale of its block, so that smaller blocks keep its damage small."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kernels.quantization_layouts import cost
from widgets import units
from widgets.charts import Box, Scale, linear, text_width
from widgets.controls import select, slider, steps
from widgets.declare import Declaration, Prediction
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
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

COUNT = 64
OUTLIER_AT = 21
# A slice of a trained model, 16 units of an expert with 64 weights each. The first unit holds its layer's outlier.
TRAINED = Path(__file__).parent / "tables/trained_weights.json"
NUMBERS = {"bell": "bell curve", "trained": "trained weights"}
GROUPS = (4, 8, 16, 32, 64)
TOP = 3.2  # typical sizes up to which all stems have one scale, beyond which the outlier's stem is broken
BREAK, REACH = (
    8,
    {"one": 100, "blocks": 26},
)  # units above a panel between which the rest of the outlier's stem may end
MARKED = (10, 20, 30)  # typical sizes named at the outlier's stem, whose scale is another than the panel's
GROUP = steps("group", "Weights that share a scale", 16, GROUPS, help="NVFP4 takes 16, MXFP4 32.")
OUTLIER = slider(
    "outlier",
    "Outlier",
    20,
    1,
    30,
    unit="×",
    help="Times the typical size; 5 as trained here, up to 20 in large models.",
)


class Places(NamedTuple):
    one: Box  # one scale for all
    blocks: Box  # a scale for each block
    height: int


PLACES = {
    True: Places(Box(4, 133, 690, 93), Box(4, 290, 690, 92), 430),
    False: Places(Box(4, 150, 318, 110), Box(4, 340, 318, 110), 500),
}
MOST_LEVELS = 40  # in view, because a finer ladder is a grey wall


@dataclass(frozen=True)
class Kept:
    """Hold the numbers after packing and unpacking, with one scale for each group of `group` numbers."""

    format: str
    group: int
    values: tuple[float, ...]
    levels: tuple[tuple[float, ...], ...]  # of each block, the values it can hold within the picture
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


class Many(NamedTuple):
    """Hold the errors of 1,024 weights as trained, and of 1,024 numbers of a bell curve."""

    trained: float
    bell: float


@dataclass(frozen=True)
class Result:
    format: str
    numbers: str
    outlier: float
    at: int  # position of the outlier
    times: float  # of the typical size, as drawn, where a trained weight keeps its own
    values: tuple[float, ...]
    size: float  # root mean square of the ordinary numbers
    one: Kept
    blocks: Kept
    gain: float
    many: Many
    rivals: tuple[Rival, ...]


@cache
def trained_units() -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, json.loads(TRAINED.read_text(encoding="utf-8"))["weights"]))


@cache
def _many(numbers: str) -> tuple[float, ...]:
    """Return the trained weights, or an equal number of bell-shaped numbers."""
    trained = tuple(value for unit in trained_units() for value in unit)
    return trained if numbers == "trained" else cost.bell_values(len(trained))


@cache
def _many_error(numbers: str, name: str, group: int) -> float:
    values = _many(numbers)
    return cost.rms_error(values, cost.quantize(values, name, group, fixed=False).values) / cost.rms(values)


def _ordinary(at: int, some: Sequence[int] = range(COUNT)) -> list[int]:
    return [i for i in some if i != at]


def _error(values: tuple[float, ...], packed: cost.Quantized, size: float, chosen: list[int]) -> float:
    return cost.rms([values[i] - packed.values[i] for i in chosen]) / size


def _rival(values: tuple[float, ...], at: int, size: float, name: str, share: int) -> Rival:
    packed = cost.quantize(values, name, share)
    return Rival(name, packed.group, packed.bits_per_weight, _error(values, packed, size, _ordinary(at)))


def _kept(values: tuple[float, ...], at: int, size: float, name: str, share: int) -> Kept:
    packed = cost.quantize(values, name, share, fixed=False)
    blocks = [range(start, start + packed.group) for start in range(0, COUNT, packed.group)]

    levels = [
        tuple(
            level
            for level in cost.group_levels([values[i] for i in block], name, scale)
            if abs(level) <= TOP * size
        )
        for block, scale in zip(blocks, packed.scales, strict=True)
    ]
    everyone = _ordinary(at)
    return Kept(
        name,
        packed.group,
        packed.values,
        tuple(levels),
        packed.bits_per_weight,
        _error(values, packed, size, everyone),
        sum(packed.values[i] == 0 for i in everyone),
        sum(abs(packed.values[i] - values[i]) > size / 2 for i in everyone),
        tuple(_error(values, packed, size, _ordinary(at, block)) for block in blocks),
    )


def _drawn(numbers: str, outlier: float) -> tuple[tuple[float, ...], int, float]:
    """Return the 64 numbers, the outlier's position, and the typical size of all other numbers."""
    if numbers == "bell":
        values, at = cost.with_outlier(cost.bell_values(COUNT), OUTLIER_AT, outlier), OUTLIER_AT
        return values, at, cost.rms([values[i] for i in _ordinary(at)])
    values = trained_units()[0]
    at = max(range(COUNT), key=lambda i: abs(values[i]))
    size = cost.rms([values[i] for i in _ordinary(at)])
    if outlier != round(values[at] / size):  # else it stays as training left it
        values = (*values[:at], outlier * size, *values[at + 1 :])
    return values, at, size


def run(numbers, format_name, group, outlier):
    values, at, size = _drawn(numbers, outlier)
    times = outlier if numbers == "bell" else values[at] / size
    one, blocks = (_kept(values, at, size, format_name, share) for share in (COUNT, group))
    return Result(
        format_name,
        numbers,
        outlier,
        at,
        times,
        values,
        size,
        one,
        blocks,
        one.error_share / blocks.error_share,
        Many(*(_many_error(some, format_name, group) for some in ("trained", "bell"))),
        tuple(_rival(values, at, size, name, group) for name in cost.BLOCK_FORMATS),
    )


def _panel(id: str, box: Box, kept: Kept, r: Result) -> list[dict]:
    """Draw the numbers as stems, their quantized values as dots, and the ladder of values that each block has."""
    y, pitch = linear(-TOP * r.size, TOP * r.size, box.bottom, box.y), box.w / COUNT
    blocks = COUNT // kept.group
    marks = _ladders(id, box, kept, y)
    words = "error " if kept.group * pitch > 70 else ""
    names = [f"{words}{_percent(error)}" for error in kept.block_errors]
    widest = max(text_width(name, "small") for name in names)
    each = kept.group * pitch > widest
    for b in range(1, blocks):
        at = box.x + b * kept.group * pitch
        low = box.bottom + (22 if each else 4)  # between two errors only where each block has its own
        marks.append(line(f"{id}-edge{b}", at, box.y - 4, at, low, "axis"))
    for i, (value, stays) in enumerate(zip(r.values, kept.values, strict=True)):
        if i == r.at:
            continue
        x = box.x + (i + 0.5) * pitch
        tip = f"weight {i}: {units.number(value)} kept as {units.number(stays)}"
        marks += [
            _bar(f"{id}-stem{i}", x, y(0), y(value), 0.84 * pitch, "idle"),
            _bar(f"{id}-kept{i}", x, y(0), y(stays), 0.84 * pitch, "primary", tip)
            if stays
            else rect(f"{id}-kept{i}", x - 0.42 * pitch, y(0) - 2.5, 0.84 * pitch, 5, "hot", tip),
        ]
    marks += _outlier(id, box, y, kept, r)
    if blocks == 1:  # its error is a figure
        return marks
    for b, (error, name) in enumerate(zip(kept.block_errors, names, strict=True)):
        x = box.x + (b + 0.5) * kept.group * pitch
        role = "hot" if error > 0.25 else "muted"
        if each or (b % 2 == 0 and 2 * kept.group * pitch > widest):
            marks += [text(f"{id}-error{b}", x, box.bottom + 18, name, role, "small", "middle")]
    return marks


def _percent(error: float) -> str:
    """Write a whole percent, with a tenth where it is below one, so that only an error of zero reads 0%."""
    return units.percent(error, 0 if error >= 0.01 or not error else 1)


def _ladders(id: str, box: Box, kept: Kept, y: Scale) -> list[dict]:
    """Draw the levels of each block as one comb, because a mark for each level would be half of the message."""
    marks, wide = [], box.w * kept.group / COUNT
    for b, levels in enumerate(kept.levels):
        left, right = box.x + b * wide + 1, box.x + (b + 1) * wide - 1
        rungs = [round(y(level), 1) for level in levels]
        if 0 < len(levels) <= MOST_LEVELS:
            points = [(x, high) for high in rungs for x in (left, right, left)]
            marks.append(path(f"{id}-levels{b}", points, "grid"))
    return marks


def _bar(id: str, x: float, zero: float, end: float, wide: float, role: str, tip: str = "") -> dict:
    """Draw a bar from the line of zero up or down."""
    return rect(id, x - wide / 2, min(zero, end), wide, abs(end - zero), role, tip)


def _outlier(id: str, box: Box, y: Scale, kept: Kept, r: Result) -> list[dict]:
    """Draw the outlier's stem on the others' scale as far as they reach, then broken and shorter. The upper end is a knob."""
    x, unit = box.x + (r.at + 0.5) * box.w / COUNT, r.values[r.at] / r.times
    beyond = linear(TOP * r.size, OUTLIER.max * unit, box.y - BREAK, box.y - REACH[id])

    def place(value: float) -> float:
        return y(value) if value <= TOP * r.size else beyond(value)

    value, stays = r.values[r.at], kept.values[r.at]
    end, torn = place(value), ((x, box.y), (x - 6, box.y - 1), (x + 6, box.y - 6), (x, box.y - 7))
    tip = f"weight {r.at}, the outlier: {units.number(value)} kept as {units.number(stays)}"
    if value <= TOP * r.size:
        torn = ((x, end),) * len(torn)
    marks = [path(f"{id}-stem{r.at}", [(x, y(0)), *torn, (x, end)], "now")]
    marks.append(circle(f"{id}-kept{r.at}", x, place(stays), 3.4, "now", tip))
    if id == "one":
        for times in MARKED:
            high = beyond(times * unit)
            marks.append(line(f"{id}-mark{times}", x - 14, high, x + 14, high, "grid"))
            marks.append(text(f"{id}-times{times}", x - 18, high + 4, f"{times}×", "muted", "small", "end"))
        marks.append(handle("pull-outlier", x, end, "now", drag(OUTLIER, "y", lambda o: place(o * unit))))
    if r.times > 1:
        beside = x + (15 if id == "one" else 9)
        marks.append(
            text(f"{id}-outlier", beside, end + 4, units.times(r.outlier), "now", "small", bold=True)
        )
    return marks


def _named(kept: Kept) -> str:
    scale = "one scale for all 64" if kept.group == COUNT else f"a scale for each {kept.group}"
    own = cost.BLOCK_FORMATS[kept.format].fixed_group
    return f"{kept.format}{'’s numbers' if own not in (None, kept.group) else ''}, {scale}"


def _harm(kept: Kept) -> tuple[int, str]:
    """Say how many ordinary numbers are lost. In a codebook without a 0 none can become 0."""
    if cost.BLOCK_FORMATS[kept.format].levels == "codebook":
        return kept.far, "moved by half"
    return kept.zeros, "became 0"


def _of_all(lost: float) -> str:
    return f"{units.count(lost)} of {COUNT - 1}"


def _title(id: str, box: Box, kept: Kept) -> list[dict]:
    """Name the row, and count in it what is lost."""
    spent, (lost, words) = f"{units.number(kept.bits_per_weight, 4)} bits a weight", _harm(kept)
    wide, first = box.w > 400, id == "one"
    at = 12 if first and wide else 28 if first else box.y - REACH[id] - 10
    counted = _counted(f"{id}-lost", box.right, at, first, _of_all(lost), words)
    if wide:
        return [text(f"{id}-title", 0, at, f"{_named(kept)}: {spent}", bold=True), *counted]
    return [
        text(f"{id}-title", 0, at - 16, _named(kept), "ink", "small", bold=True),
        text(f"{id}-bits", 0, at, spent, "muted", "small"),
        *counted,
    ]


def _counted(id: str, x: float, at: float, first: bool, many: str, words: str) -> list[dict]:
    """Write how many are lost, as the largest words: beside the outlier, or in the second row's own line."""
    if not first:
        return [text(id, x, at, f"{many} {words}", "primary", "big", "end", True)]
    return [  # a phone has no more room beside the outlier
        text(id, x, at + 36, many, "hot", "huge" if x > 400 else "big", "end", True),
        text(f"{id}-words", x, at + 54, words, "hot", "body", "end", True),
    ]


def _block(r: Result, box: Box) -> list[dict]:
    """Draw a rule under the first block. Its end is pulled, and every block grows."""
    pitch, y = box.w / COUNT, box.bottom + 38
    right = lambda group: box.x + group * pitch  # noqa: E731
    end, words = right(r.blocks.group), f"{r.blocks.group} share a scale"
    fits = end + 20 + text_width(words, "small", True) < box.right
    place = (end + 20, "start") if fits else (end - 20, "end")
    return about(
        "group",
        line("block-rule", box.x, y, end, y, "primary", words),
        line("block-start", box.x, y - 6, box.x, y + 6, "primary"),
        text("block-words", place[0], y + 4, words, "primary", "small", place[1], True, "ground"),
    ) + [handle("pull-group", end, y, "primary", drag(GROUP, "x", right))]


def _takeaway(r: Result) -> str:
    lost, words = _harm(r.one)
    if r.values == trained_units()[0]:
        return (
            f"As trained, the largest weight is only {units.times(r.outlier)} the typical size, and one scale already zeroes {lost}."
            if words == "became 0"
            else f"As trained, the largest weight is only {units.times(r.outlier)} the typical size. Pull it to see what hurts."
        )
    if r.blocks.group == COUNT:
        return "With one scale, every weight pays for the range that the largest one needs."
    if r.outlier > 1 and r.one.error_share < 0.1:
        error = units.percent(r.one.error_share)
        return f"With so many levels even one scale for all works: the other weights err by only {error}."
    if r.gain < 1.3:
        return "Without an outlier a smaller block gains little, and its scales cost bits."
    own = _percent(r.blocks.block_errors[r.at // r.blocks.group])
    return f"A smaller block confines the damage but can't undo it: the outlier's block still errs by {own}."


def _table(r: Result):
    columns = (
        "format",
        Column("scale for each", show=units.count),
        Column("bits a weight", show=lambda v: units.number(v, 4)),
        Column("error", show=units.percent),
    )
    rows = [(_named(k), k.group, k.bits_per_weight, k.error_share) for k in (r.one, r.blocks)]
    rows += [
        (f"{r.format}, 1,024 {words}", r.blocks.group, r.blocks.bits_per_weight, error)
        for words, error in (("weights as trained", r.many.trained), ("of a bell curve", r.many.bell))
    ]
    return table(columns, rows + [(v.name, v.group, v.bits_per_weight, v.error_share) for v in r.rivals])


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    one_at, blocks_at, height = PLACES[width == WIDE]
    one = figure("error, one scale", r.one.error_share, units.percent, "hot")
    blocks = figure(
        f"error, blocks of {r.blocks.group}",
        r.blocks.error_share,
        units.percent,
        "primary",
    )
    lost = _harm(r.blocks)[1]
    kept = [
        figure(f"{lost}, {words}", _harm(some)[0], _of_all, role)
        for some, words, role in (
            (r.one, "one scale", "hot"),
            (r.blocks, f"blocks of {r.blocks.group}", "primary"),
        )
    ]
    spent = units.number(r.blocks.bits_per_weight, 4)
    legend = [("idle", "a weight"), ("primary", "as it is kept"), ("hot", "kept as 0")]
    if any(0 < len(levels) <= MOST_LEVELS for levels in r.one.levels):
        legend.append(("axis line", f"all that {r.format} can hold with its scale"))
    form = cost.BLOCK_FORMATS[r.format]
    scale = f"({form.scale_bits} + {form.zero_bits})" if form.zero_bits else f"{form.scale_bits}"
    return Scene(
        summary=f"With an outlier {units.times(r.outlier)} the typical size, {_named(r.one)}, errs by {one.text} of an "
        f"ordinary number; {_named(r.blocks)}, by {blocks.text}, which is {units.times(r.gain)} smaller, at {spent} bits a "
        f"weight; {kept[0].text} and {kept[1].text} {lost}.",
        takeaway=_takeaway(r),
        marks=[
            *_title("one", one_at, r.one),
            *_panel("one", one_at, r.one, r),
            *_title("blocks", blocks_at, r.blocks),
            *_panel("blocks", blocks_at, r.blocks, r),
            *_block(r, blocks_at),
        ],
        figures=(*kept, one, blocks),
        caption="Error: how far the 63 ordinary weights move (root mean square), as a share of their own size.",
        legend=tuple(legend),
        table=_table(r),
        height=height,
        width=width,
        formula=(
            (
                "bits a weight = {format_name:bits} + scale bits / {group:block}",
                f"{form.bits} + {scale} / {{group:{r.blocks.group}}} = {spent}",
            ),
        ),
    )


SIMULATOR = Declaration(
    title="Formats and block scales",
    question="What does one outlier do to the numbers that share its scale?",
    controls=(
        select("format_name", "Format", "int4", list(cost.BLOCK_FORMATS)),
        GROUP,
        OUTLIER,
        select(
            "numbers",
            "Numbers",
            "trained",
            NUMBERS,
            help="Trained: 64 weights of the course's tiny model.",
            more=True,
        ),
    ),
    presets={
        "int4, blocks of 16": {},
        "As trained": {"outlier": 5},
        "Blocks of 4": {"group": 4},
        "int8": {"format_name": "int8"},
        "NVFP4": {"format_name": "nvfp4"},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "64 weights of a trained layer go into int4, one of them pulled up to 20 times the size of the others. With one "
        "scale for all, how many of the other 63 become 0?",
        "one.zeros",
        "of 63",
        0.1,
        units.count,
    ),
    source="Performance Engineering; Real kernels",
)

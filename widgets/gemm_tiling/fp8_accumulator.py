"""Show how a running sum in few mantissa bits stops growing, and how promoting it now and then keeps it right."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate, pairwise

from kernels.gemm_tiling import cost
from widgets import units
from widgets.charts import Box, Scale, axis_x, axis_y, linear, spread, text_width
from widgets.controls import powers_of_two, slider, steps
from widgets.declare import Declaration, Prediction, Stepper
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
    only,
    path,
    plated,
    table,
    text,
    timed,
)

GOLDEN = 0.6180339887498949  # its multiples spread evenly over one, so terms need no random generator
FRAMES = 64
BITS = slider(
    "bits",
    "Mantissa bits of the sum",
    3,
    2,
    23,
    help="FP8 numbers keep 3, BF16 7, FP16 10. Hopper's FP8 tensor core adds with about 14.",
)
# (the plot, one addition enlarged, height)
PLACES = {
    True: (Box(56, 30, 412, 234), Box(56, 374, 640, 0), 430),
    False: (Box(50, 80, 262, 200), Box(16, 376, 308, 0), 432),
}


@dataclass(frozen=True)
class Accumulator:
    name: str
    mantissa_bits: int
    sums: tuple[float, ...]
    final_sum: float
    error_share: float


@dataclass(frozen=True)
class Result:
    terms: tuple[float, ...]
    bits: int
    promote_every: int
    narrow: Accumulator
    promoted: Accumulator
    fp16: Accumulator
    fp32: Accumulator
    exact_sums: tuple[float, ...]
    exact_sum: float
    error_shares: tuple[float, ...]  # of the narrow sum, after each term
    wall_sum: float  # here every term is less than half a gap, and the sum can never pass
    lost_from: int  # the first term from which on the narrow sum stays as it is, or 0 if it grows to the end


@lru_cache(maxsize=4)
def _values(terms: int, spread: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The terms, and their exact sums."""
    values = tuple(1 + spread * (2 * (i * GOLDEN % 1) - 1) for i in range(1, terms + 1))
    return values, tuple(accumulate(values))


@lru_cache(maxsize=64)  # other bits leave FP16 and FP32 as they are, another promotion the narrow sum too
def _summed(terms: int, spread: float, bits: int, every: int) -> tuple[tuple[float, ...], float]:
    """The running sums, and how far the last is off."""
    values, exact = _values(terms, spread)
    sums = tuple(cost.running_sums(values, bits, every))
    return sums, abs(sums[-1] - exact[-1]) / exact[-1]


def run(bits, promote_every, terms, spread) -> Result:
    values, exact = _values(terms, spread)

    def accumulator(name: str, mantissa_bits: int, every: int = 0) -> Accumulator:
        sums, error = _summed(terms, spread, mantissa_bits, every)
        return Accumulator(name, mantissa_bits, sums, sums[-1], error)

    narrow = accumulator(f"{bits} bits", bits)
    last = next(i for i in range(terms, 0, -1) if i == 1 or narrow.sums[i - 1] != narrow.sums[i - 2])
    return Result(
        terms=values,
        bits=bits,
        promote_every=promote_every,
        narrow=narrow,
        promoted=accumulator(f"{bits} bits, promoted", bits, promote_every),
        fp16=accumulator("FP16", 10),
        fp32=accumulator("FP32", 23),
        exact_sums=exact,
        exact_sum=exact[-1],
        error_shares=tuple(abs(s - e) / e for s, e in zip(narrow.sums, exact, strict=True)),
        wall_sum=2.0 ** (bits + 1 if max(values) <= 1 else bits + 2),
        lost_from=0 if last == terms else last + 1,
    )


def _steps(terms: int) -> list[int]:
    """Return the terms that get a step, either all or FRAMES terms evenly apart. The last is always included."""
    apart = max(1, terms // FRAMES)
    return list(range(apart, terms + 1, apart))


def _scales(terms: int, plot: Box) -> tuple[Scale, Scale]:
    """The axes end where the exact sum does, whatever the number of terms."""
    return linear(0, terms, plot.x, plot.right), linear(0, 1.05 * terms, plot.bottom, plot.y)


def _shown(r: Result) -> list[tuple[str, tuple[float, ...], str]]:
    some = [("exact", r.exact_sums, "secondary"), (f"{r.bits} bits", r.narrow.sums, "hot")]
    return (
        [*some, (f"promoted every {r.promote_every}", r.promoted.sums, "primary")]
        if r.promote_every
        else some
    )


def _axes(r: Result, plot: Box) -> list[dict]:
    terms = len(r.terms)
    x, y = _scales(terms, plot)
    quarters = [terms * q / 4 for q in range(5)]
    marks = axis_y("sum", y, plot.x, "running sum", right=plot.right, ticks=quarters)
    # a wall just above the axis has its knob at the last number's position
    named = quarters if y(r.wall_sum) < plot.bottom - 14 else quarters[:-1]
    return marks + axis_x("terms", x, plot.bottom, "terms added", ticks=named)


def _pieces(r: Result, plot: Box) -> list[tuple[int, list[dict]]]:
    """Return a piece of each sum for each step, because what stays is not sent again, and how many pieces a step has."""
    x, y = _scales(len(r.terms), plot)
    at, pieces = _steps(len(r.terms)), []
    if r.promote_every:  # under the others: its first part is the narrow sum's own
        pieces.append((2, timed("cursor", *about("promote_every", _promoted(r, at, x, y)))))
    for _, sums, role in _shown(r):
        if role != "primary":
            points = [(x(0), y(0)), *((x(term), y(sums[term - 1])) for term in at)]
            ends = enumerate(pairwise(points))
            lines = [line(f"run-{role}-{n}", *before, *now, role) for n, (before, now) in ends]
            pieces.append((1, timed("cursor", *lines)))
    return pieces


def _runs(r: Result, i: int, marks: list[dict], plot: Box, wide: bool) -> list[dict]:
    """Draw the sums as far as terms were added, with their names and values now."""
    x, y = _scales(len(r.terms), plot)
    names, shown = [], _shown(r)
    said = [f"{name}: {units.number(sums[i - 1], 4)}" for name, sums, _ in shown]
    levels = spread([y(sums[i - 1]) for _, sums, _ in shown])
    for k, (words, level, (_, _, role)) in enumerate(zip(said, levels, shown, strict=True)):
        place = (plot.right + 44, level + 4) if wide else (0, 12 + 16 * k)
        names.append(text(f"run-{role}-name", *place, words, role, "body" if wide else "small", bold=True))
    return [*marks, *timed("cursor", *_promotions(r, i, x, y)), *names, *_gap(r, i, plot, y, levels, wide)]


def _gap(r: Result, i: int, plot: Box, y: Scale, levels: list[float], wide: bool) -> list[dict]:
    """Say how much is lost between the narrow sum and the exact one, as large as it is."""
    top, low = y(r.exact_sums[i - 1]), y(r.narrow.sums[i - 1])
    if not wide or low - max(levels[0], levels[-1] if r.promote_every else 0) < 60:
        return []
    x, middle = plot.right + 34, (max(levels[0], levels[-1] if r.promote_every else 0) + low) / 2
    share = units.percent(r.error_shares[i - 1], 0)
    return [
        line("lost", x, top, x, low, "hot", f"{share} of the exact sum is lost"),
        text("lost-share", x + 10, middle + 6, share, "hot", "huge", bold=True),
        text("lost-name", x + 12, middle + 22, "lost", "hot", "small", bold=True),
    ]


def _promoted(r: Result, at: list[int], x: Scale, y: Scale) -> list[dict]:
    """Draw the FP32 sum, which takes the partial sums as steps, and the partial sum, which starts anew at each of them."""
    every, sums, marks, before = r.promote_every, r.promoted.sums, [], 0
    for n, term in enumerate(at):
        base = sums[before // every * every - 1] if before >= every else 0.0
        partial = (sums[before - 1] - base) if before else 0.0
        stairs, teeth = [(x(before), y(base))], [(x(before), y(partial))]
        for moved in range((before // every + 1) * every, term + 1, every):
            stairs += [(x(moved), y(base)), (x(moved), y(sums[moved - 1]))]
            teeth += [(x(moved), y(sums[moved - 1] - base)), (x(moved), y(0))]
            base = sums[moved - 1]
        if term % every:
            stairs.append((x(term), y(base)))
            teeth.append((x(term), y(sums[term - 1] - base)))
        marks += [path(f"run-primary-{n}", stairs, "primary"), path(f"partial-{n}", teeth, "primary")]
        before = term
    return marks


def _promotions(r: Result, i: int, x: Scale, y: Scale) -> list[dict]:
    """Mark where the partial sum moves into the FP32 sum, while these moments can be distinguished."""
    every = r.promote_every
    if not every or len(r.terms) // every > 16:
        return []
    return about(
        "promote_every",
        [
            circle(f"promotion{k}", x(n), y(r.promoted.sums[n - 1]), 4, "primary", f"promoted after term {n}")
            for k, n in enumerate(range(every, i + 1, every))
        ],
    )


def _partial_name(r: Result, plot: Box, y: Scale) -> list[dict]:
    """Name the partial sum's teeth where they stay well under the wall."""
    if not r.promote_every:
        return []
    high = y(r.promote_every * 1.08) - 6
    if high < y(min(r.wall_sum, y.hi)) + 36:
        return []
    return [
        text("partial-name", plot.right - 8, high, "partial sums", "primary", "small", "end", on="ground")
    ]


def _wall(r: Result, plot: Box, y: Scale) -> list[dict]:
    """Draw the height that no term gets past, which a hand can pull."""
    marks = []
    if r.wall_sum <= y.hi:
        marks += about(
            "wall",
            line(
                "wall",
                plot.x,
                y(r.wall_sum),
                plot.right,
                y(r.wall_sum),
                "limit",
                f"from {units.number(r.wall_sum)} on every term is less than half a gap",
            ),
        )
        under = y(r.wall_sum) + (16 if y(r.wall_sum) < plot.bottom - 20 else -6)
        words = "no term gets past"
        marks.append(text("wall-name", plot.right - 8, under, words, "hot", "small", "end", on="ground"))
    above = r.wall_sum / 2.0**r.bits

    def place(bits: float) -> float:
        return y(above * 2.0**bits)

    marks += _partial_name(r, plot, y)
    return [*marks, handle("pull-wall", plot.right + 16, place(r.bits), "hot", drag(BITS, "y", place))]


def _cursor(r: Result, i: int, plot: Box) -> list[dict]:
    """Mark this step on both lines."""
    (x, y), marks = _scales(len(r.terms), plot), []
    for name, sums, role in (("exact", r.exact_sums, "secondary"), (f"{r.bits} bits", r.narrow.sums, "hot")):
        tip = f"{name}, after {units.counted(i, 'term')}: {units.number(sums[i - 1], 4)}"
        marks.append(circle(f"cursor-{role}", x(i), y(sums[i - 1]), 5, role, tip))
    return marks


def _at(r: Result, i: int, plot: Box) -> dict:
    """Draw this step on the axis of terms."""
    x, _ = _scales(len(r.terms), plot)
    return line("cursor", x(i), plot.bottom + 4, x(i), plot.bottom - 10, "now")


def _before(r: Result, i: int) -> float:
    return r.narrow.sums[i - 2] if i > 1 else 0.0


def _near(before: float, gap: float, lens: Box) -> Scale:
    wide = 5 * max(gap, 0.6)
    return linear(before - 0.3 * wide, before + 0.7 * wide, lens.x, lens.right)


def _ticks(before: float, gap: float, lens: Box) -> list[dict]:
    """Draw the numbers that exist near the sum. Once the sum stops growing, they are the same at every step."""
    x = _near(before, gap, lens)
    numbers = range(math.ceil(max(0, x.lo) / gap), math.floor(x.hi / gap) + 1)
    every, shown = 1, _exactly(gap)
    while len(numbers) / every > (7 if lens.w > 400 else 4):
        every *= 2
    title = "one addition, enlarged; ticks: the sums that exist"
    if len(numbers) > 80:
        title = f"one addition, enlarged; {units.count(len(numbers))} sums exist here, too many to draw"
        if lens.w < 400:
            title = f"one addition, enlarged, among {units.count(len(numbers))} sums"
    marks = [
        text("lens-title", lens.x, lens.y - 42, title, "muted", "small"),
        line("lens", lens.x, lens.y, lens.right, lens.y, "axis"),
    ]
    for k, n in enumerate(numbers if len(numbers) <= 80 else ()):
        at = x(n * gap)
        marks.append(line(f"lens-{k}", at, lens.y - 6, at, lens.y + 6, "axis"))
        if n % every == 0:
            name = shown(n * gap)
            if at - text_width(name, "small") / 2 < 0:
                continue
            marks.append(text(f"lens-name-{k}", at, lens.y + 24, name, "muted", "small", "middle"))
    return marks


def _lens(r: Result, i: int, lens: Box, ticks: Callable) -> list[dict]:
    """Draw one addition enlarged, with the numbers that exist near the sum, where it should land, and where it does."""
    before, after = _before(r, i), r.narrow.sums[i - 1]
    target = before + r.terms[i - 1]
    gap = cost.spacing(max(target, 1.0), r.bits)
    x, shown = _near(before, gap, lens), _exactly(gap)
    landed, role = ("stays", "hot") if after == before else ("lands here", "useful")
    high = lens.y - 16
    return ticks(before, gap, lens) + [
        line("add", x(before), high, x(target), high, "now"),
        line("fall", x(target), high, x(target), lens.y, "limit"),
        circle("add-end", x(target), high, 4, "now", f"should land at {shown(target)}"),
        text(
            "add-name",
            x(target) + 10,
            high + 4,
            f"+ {shown(r.terms[i - 1])}",
            "now",
            "small",
            bold=True,
        ),
        circle("landed", x(after), lens.y, 6, role, f"lands at {shown(after)}"),
        text("landed-name", x(after), lens.y + 44, landed, role, "small", "middle", bold=True),
    ]


def _exactly(gap: float) -> Callable[[float], str]:
    """Return how to write sums that stand this far apart: with the digits that they have, so that an addition is right."""
    places = next((p for p in range(2, 6) if (gap * 10**p).is_integer()), 6)

    def shown(value: float) -> str:
        words = f"{value:,.{places}f}"
        return words.rstrip("0").rstrip(".") if "." in words else words

    return shown


def _caption(r: Result, i: int) -> str:
    before, term, after = _before(r, i), r.terms[i - 1], r.narrow.sums[i - 1]
    gap = cost.spacing(before + term, r.bits)
    shown = _exactly(gap)
    total = shown(sum(float(shown(one).replace(",", "")) for one in (before, term)))  # of what is printed
    added = f"Term {units.count(i)} of {units.count(len(r.terms))}: {shown(before)} + {shown(term)} = {total}"
    if after == before:
        return f"{added}, and the next sum that exists is {units.number(gap)} away: the term is lost."
    return f"{added}, rounded to {shown(after)}; the sums stand {units.number(gap)} apart."


def _table(r: Result):
    columns = (
        "accumulator",
        "mantissa bits",
        Column("final sum", show=lambda v: units.number(v, 4)),
        Column("error", show=units.percent),
    )
    known = (r.narrow, r.promoted, r.fp16, r.fp32) if r.promote_every else (r.narrow, r.fp16, r.fp32)
    return table(columns, [(a.name, a.mantissa_bits, a.final_sum, a.error_share) for a in known])


def _takeaway(r: Result) -> str:
    if not r.lost_from and r.bits >= 14:
        return f"{r.bits} bits are enough for terms near 1. Where terms cancel, the same error weighs more."
    if not r.lost_from and r.narrow.error_share < 0.01:
        return "These bits are enough for this many terms. Add more, and the same wall comes."
    if r.promote_every and r.promoted.error_share < 0.1 * r.narrow.error_share:
        before, after = (_off(one.error_share) for one in (r.narrow, r.promoted))
        return f"Promoted to more bits every {r.promote_every} terms, the sum ends {after} off instead of {before}."
    if r.lost_from:
        return "A narrow sum stops growing without a word. Every term after its wall is lost."
    return "Near its wall a narrow sum rounds every term, so it errs before it stops."


def _off(error: float) -> str:
    return units.percent(error) if error >= 0.0005 else "less than 0.1%"


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    plot_at, lens_at, height = PLACES[width == WIDE]
    axes, wall = plated(_axes(r, plot_at)), plated(_wall(r, plot_at, _scales(len(r.terms), plot_at)[1]))
    drawn = {"bits", *(mark["k"] for mark in wall if "k" in mark)}
    gap = units.number(r.wall_sum / 2**r.bits)
    power = 1 if r.wall_sum == 2.0 ** (r.bits + 1) else 2
    formula = (
        only(drawn, f"{{wall}} at 2^({{bits}} + {power}): no term is more than half a gap"),
        only(
            drawn,
            f"2^({{bits:{r.bits}}} + {power}) = {{wall:{units.number(r.wall_sum)}}}, where sums stand {gap} apart",
        ),
    )
    same = {
        "takeaway": _takeaway(r),
        "table": _table(r),
        "height": height,
        "width": width,
        "formula": (formula,),
    }
    ticks, scenes, pieces = cache(_ticks), [], _pieces(r, plot_at)
    for number, i in enumerate(_steps(len(r.terms)), 1):
        exact = figure("exact sum so far", r.exact_sums[i - 1], _four)
        narrow = figure(f"sum in {r.bits} mantissa bits", r.narrow.sums[i - 1], _four, "hot")
        off = (
            "hot" if r.error_shares[i - 1] >= 0.0005 else "ink"
        )  # an error that is shown as 0.0% needs no warning
        error = figure("error", r.error_shares[i - 1], units.percent, off)
        promoted = figure(f"promoted every {r.promote_every}", r.promoted.sums[i - 1], _four, "primary")
        rescue = (
            f", and {promoted.text} when promoted every {r.promote_every} terms" if r.promote_every else ""
        )
        so_far = [mark for each, marks in pieces for mark in marks[: each * number]]
        runs = _runs(r, i, so_far, plot_at, width == WIDE)
        scenes.append(
            Scene(
                summary=f"{units.counted(i, 'term')} near 1 sum to {exact.text}; an accumulator of {r.bits} mantissa bits "
                f"says {narrow.text}, an error of {error.text}{rescue}.",
                figures=(exact, narrow, error, promoted) if r.promote_every else (exact, narrow, error),
                marks=[
                    _at(r, i, plot_at),
                    *axes,
                    *runs,
                    *wall,
                    *_cursor(r, i, plot_at),
                    *_lens(r, i, lens_at, ticks),
                ],
                caption=_caption(r, i),
                **same,
            )
        )
    return scenes


def _four(value: float) -> str:
    return units.number(value, 4)


def start(r: Result) -> int:
    """Open at the last term. Played, the sums are drawn from the first."""
    return len(_steps(len(r.terms))) - 1


SIMULATOR = Declaration(
    title="FP8 accumulator",
    question="What happens to a long sum when the accumulator keeps few bits?",
    controls=(
        BITS,
        steps(
            "promote_every",
            "Promote after",
            16,
            (0, 4, 8, 16, 32, 64, 128),
            lambda n: f"{n} terms" if n else "never",
            help="The partial sum moves into an FP32 sum and starts anew, as DeepGEMM does.",
        ),
        powers_of_two("terms", "Terms", 64, 16, 4096),
        slider(
            "spread",
            "Spread of the terms",
            0.1,
            0.0,
            0.5,
            step=0.05,
            help="Terms lie evenly between 1 minus and 1 plus this.",
        ),
    ),
    presets={
        "3 bits, 64 terms": {},
        "Never promoted": {"promote_every": 0},
        "BF16's 7 bits, 1,024 terms": {"bits": 7, "terms": 1024},
        "Hopper's 14 bits, 1,024 terms": {"bits": 14, "terms": 1024, "promote_every": 128},
        "FP16's 10 bits, equal terms": {"bits": 10, "terms": 4096, "spread": 0.0, "promote_every": 128},
    },
    run=run,
    stepper=Stepper("term", frames, start),
    prediction=Prediction(
        "64 terms near 1 are added, one after the other, into a sum that keeps 3 mantissa bits. "
        "What does it say in the end?",
        "narrow.final_sum",
    ),
    source="Real kernels",
)

"""Compare a hot expert's surplus pairs on its own GPU and shared evenly with ranks that get a copy for one step."""

from dataclasses import dataclass

from kernels.expert_load_balance import cost
from kernels.machines import machine
from widgets import units
from widgets.charts import Box, axis_x, axis_y, linear, log, steady, text_width, won_and_lost, words_within
from widgets.controls import log_slider, steps
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, about, drag, figure, handle, line, path, rect, table, text

HIDDEN, INTERMEDIATE = 7168, 2048  # DeepSeek-V3's expert
FEW, MANY = 64, 65_536
DECODE = 4096  # surplus pairs that no decode step has (16 times the mean of 65,536 pairs over 256 experts)
PAIRS = log_slider(
    "pairs",
    "Surplus pairs of the expert",
    2048,
    FEW,
    MANY,
    6,
    units.count,
    help="(token, expert) pairs beyond the mean load, shared evenly by the GPUs with a copy.",
)
HELPERS = steps("helpers", "Copies", 1, (1, 2, 3, 5, 7), units.count)
THICK = 24
# (lanes, the curve, height)
PLACES = {
    True: (Box(150, 24, 552, 132), Box(60, 240, 520, 142), 418),
    False: (Box(18, 44, 296, 194), Box(52, 332, 178, 118), 490),
}


@dataclass(frozen=True)
class Result:
    pairs: int
    helpers: int
    link_byte_s: float
    rate_flop_s: float
    weight_bytes: float
    expert_bytes: float
    kept_s: float
    sent_s: float
    share_s: float
    copied_s: float
    one_copy_s: float  # the same with a single copy
    faster: float
    even: float
    curve: tuple[tuple[float, float, float], ...]  # pairs, kept, copied


def run(pairs, helpers, link_gb_s, bits) -> Result:
    gpu, link, size = machine("H200"), link_gb_s * 1e9, bits / 8
    rate = gpu.rate("bf16")

    def at(count: float) -> cost.Copied:
        return cost.copied(count, rate, link, HIDDEN, INTERMEDIATE, size, helpers)

    now = at(pairs)
    stops = [FEW * (MANY / FEW) ** (n / 40) for n in range(41)]
    return Result(
        pairs,
        helpers,
        link,
        rate,
        size,
        cost.expert_memory_bytes(1, HIDDEN, INTERMEDIATE, bits=bits),
        now.kept_s,
        now.sent_s,
        now.share_s,
        now.copied_s,
        cost.copied(pairs, rate, link, HIDDEN, INTERMEDIATE, size, 1).copied_s,
        now.kept_s / now.copied_s,
        cost.break_even_pairs(rate, link, size, helpers),
        tuple((n, at(n).kept_s, at(n).copied_s) for n in stops),
    )


def _lane(id: str, at: Box, x, y: float, title: str, boxes, wide: bool) -> list[dict]:
    """Draw one rank's or link's time: (start, end, role, words, figure) for each box."""
    where = (at.x - 18, y + 16, "end") if wide else (at.x, y - 6, "start")
    marks = [text(f"{id}-title", *where[:2], title, "ink", "small", anchor=where[2])]
    marks.append(rect(f"{id}-idle", at.x, y, at.w, THICK, "idle", "waits"))
    for n, (start, end, role, words, name) in enumerate(boxes):
        left, right = x(start), x(end)
        bar = rect(
            f"{id}-{n}",
            left,
            y,
            max(1, right - left - 1),
            THICK,
            role,
            f"{words}: {units.seconds(end - start)}",
        )
        marks += about(name, bar)
        end = right - (22 if id == "kept" else 0)  # of the room beside the knob
        marks += words_within(f"{id}-{n}", left, end, y, (words, words.split()[0]), role)
    return marks


def _lanes(r: Result, at: Box) -> list[dict]:
    wide = at.x > 50
    end = steady("time", (1.2 if wide else 1.4) * max(r.kept_s, r.copied_s))
    x = linear(0, end, at.x, at.right)
    step = 34 if wide else 50
    tops = [at.y, *(at.y + step * n + 12 for n in (1, 2, 3))]
    each = r.sent_s / r.helpers
    copies = [(n * each, (n + 1) * each, "network", f"copy {n + 1}", "sent") for n in range(r.helpers)]
    shares = units.counted(r.pairs / (r.helpers + 1), "pair")
    alone = [(0, r.kept_s, "secondary", units.counted(r.pairs, "surplus pair"), "kept")]
    note = "Surplus: pairs beyond the mean load, shared evenly."
    marks = [text("note", 0, 12, note, "muted", "small")] if not wide else []
    marks += _lane("kept", at, x, tops[0], "not copied: its GPU", alone, wide)
    marks += _lane("link", at, x, tops[1], "copied: its link", copies, wide)
    marks += _lane(
        "own", at, x, tops[2], "copied: its GPU", [(0, r.share_s, "primary", shares, "share")], wide
    )
    left, right, why = x(r.share_s), x(r.copied_s), ("waits for the helper", "waits")
    for words in why:
        if right - left > text_width(words, "small") + 12:
            marks.append(
                text(
                    "own-waits", (left + right) / 2, tops[2] + 16, words, "ink", "small", "middle", on="idle"
                )
            )
            break
    after = [(r.sent_s, r.copied_s, "primary", shares, "share")]
    marks += _lane("helper", at, x, tops[3], "copied: last helper", after, wide)
    for id, ends, y, role in (
        ("kept", r.kept_s, tops[0], "secondary"),
        ("copied", r.copied_s, tops[3], "primary"),
    ):
        past = 22 if id == "kept" else 8  # of the knob
        marks.append(text(f"{id}-s", x(ends) + past, y + 17, units.seconds(ends), role, bold=True, on="idle"))
    pull = drag(PAIRS, "x", lambda n: x(n * r.kept_s / r.pairs))
    marks.append(handle("pull-kept", x(r.kept_s), tops[0] + THICK / 2, "secondary", pull))
    return marks + axis_x(
        "time", x, tops[3] + THICK + 6, show=units.seconds, ticks=None if wide else x.ticks(3)
    )


def _sides(r: Result, even: float, at: Box) -> list[dict]:
    """Name both sides of the crossing, each over its own area, with the number on the side that has room for it."""
    many, wide = units.count(r.even), at.w > 300
    pays, room = f"pays from {many} pairs" if wide else f"from {many}", (716 if wide else 336) - even - 6
    options, size = ("don't copy below", "don't copy"), "small"
    marks = []
    if text_width(pays, "big", True) <= room:
        marks.append(text("even-name", even + 6, at.y - 8, pays, "useful", "big", bold=True))
    else:
        options, size = (f"don't copy below {many}", f"not below {many}"), "big" if wide else "small"
    for words in options:
        if even - 6 - text_width(words, size, True) > at.x:
            marks.append(text("below-name", even - 6, at.y - 8, words, "hot", size, "end", bold=True))
            break
    return marks


def _curve(r: Result, at: Box) -> list[dict]:
    """Draw the speed-up by copies over the number of surplus pairs, as a win above 1x and a loss below."""
    x = log(FEW, MANY, at.x + 18, at.right)
    y = linear(0, steady("faster", 2 if r.helpers == 1 else 4 if r.helpers < 4 else 8), at.bottom, at.y)
    level, wide = y(1), at.w > 300
    points = [(x(n), y(kept / copied)) for n, kept, copied in r.curve]
    title = "Speed with copies, over the surplus pairs" if wide else "Speed with copies"
    marks = [text("curve-title", 0, at.y - 30, title, bold=True), *won_and_lost(points, level)]
    marks += axis_y(
        "faster",
        y,
        at.x,
        show=units.times,
        right=at.right,
        ticks=(0, 1, *(n for n in (2, 4, 8) if n <= y.hi)),
    )
    ticks = (64, 256, 1024, 4096, 16_384, 65_536) if wide else (64, 1024, 16_384)
    marks += axis_x("pairs", x, at.bottom, "surplus (token, expert) pairs", units.count, ticks=ticks)
    marks.append(line("one-level", at.x, level, at.right, level, "limit", "as fast as without copies"))
    marks += about("copied", path("curve-faster", points, "primary"))
    marks.append(text("one-name", at.right + 8, level + 4, "1×: same time", "muted", "small"))
    if FEW < r.even < MANY:
        said = f"even: {units.count(r.even)}"
        marks += about("even", line("even", x(r.even), at.y, x(r.even), at.bottom, "limit", said))
        marks += _sides(r, x(r.even), at)
    place, role = (x(r.pairs), y(r.faster)), "useful" if r.faster > 1 else "hot"
    side = (place[0] - 22, "end") if place[0] > at.x + at.w / 2 else (place[0] + 22, "start")
    now = text(
        "faster-now", side[0], place[1] + 4, units.times(r.faster), role, "body", side[1], True, "ground"
    )
    tip = f"{units.count(r.pairs)} pairs: {units.times(r.faster)} as fast with copies"
    return [*marks, now, handle("pull-pairs", *place, role, drag(PAIRS, "x", x), tip=tip)]


def _takeaway(r: Result) -> str:
    if r.even > MANY:
        return "No surplus of one step is worth a copy over this link, so the weights stay."
    if r.faster > 1 and r.one_copy_s < r.copied_s * 0.995:
        one, now = units.seconds(r.one_copy_s), units.seconds(r.copied_s)
        return f"The surplus is long enough for these copies, but a single one is sooner: {one}, not {now}."
    if r.faster > 1:
        return "The surplus is long enough to pay for the copies, so in a prompt's step weights travel."
    if r.pairs > r.even / (r.helpers + 1):
        return "An even split loses here. Copying would pay if the helpers took fewer of the pairs."
    if r.pairs >= DECODE:
        return "Over this link the copies take longer than they save, so the weights stay where they are."
    return "The copies take longer than they save. In a decode step, leave weights where they are."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    lanes_at, curve_at, height = PLACES[width == WIDE]
    kept = figure("not copied", r.kept_s, units.seconds, "ink", "kept")
    copied = figure("copied", r.copied_s, units.seconds, "primary", "copied")
    gain = figure("as fast with copies", r.faster, units.times, "useful" if r.faster > 1 else "hot")
    even = figure("pairs break even, shared evenly", r.even, units.count, "ink", "even")
    share = units.counted(r.pairs / (r.helpers + 1), "pair")
    return Scene(
        summary=f"{units.count(r.pairs)} surplus pairs take {kept.text} on the expert's GPU and {copied.text} with "
        f"{units.counted(r.helpers, 'copy', 'copies')}, {gain.text} as fast. {even.text} pairs, shared evenly, break even.",
        takeaway=_takeaway(r),
        marks=_lanes(r, lanes_at) + _curve(r, curve_at),
        figures=(kept, copied, gain, even),
        table=table(
            ("step", Column("time", "s", units.seconds)),
            [
                (f"{units.count(r.pairs)} pairs on the expert's GPU", r.kept_s),
                (
                    f"{units.counted(r.helpers, 'copy', 'copies')} of {units.si_bytes(r.expert_bytes)} over its link",
                    r.sent_s,
                ),
                (f"{share} on each GPU", r.share_s),
                ("with copies", r.copied_s),
            ],
        ),
        height=height,
        width=width,
        legend=(
            ("secondary", "all pairs on one GPU"),
            ("primary", "pairs shared"),
            ("network", "weights travel"),
        ),
        formula=(
            (
                "{kept:not copied} = {pairs:pairs} · 6 · hidden · intermediate / peak",
                f"{{pairs:{units.count(r.pairs)}}} · 6 · {HIDDEN} · {INTERMEDIATE} / {units.si(r.rate_flop_s, 'FLOP/s')} = {{kept:{kept.text}}}",
            ),
            (
                "{copied:copied} = {helpers:copies} · weights / link + {kept:not copied} / ({helpers:copies} + 1)",
                f"{{helpers:{r.helpers}}} · {units.si_bytes(r.expert_bytes)} / {units.si(r.link_byte_s, 'B/s')} + "
                f"{{kept:{kept.text}}} / {r.helpers + 1} = {{copied:{copied.text}}}",
            ),
            (
                "{even:break-even} = ({helpers:copies} + 1) · bytes of a weight / 2 · peak / link",
                f"({{helpers:{r.helpers}}} + 1) · {r.weight_bytes / 2:g} · {units.si(r.rate_flop_s, 'FLOP/s')} / "
                f"{units.si(r.link_byte_s, 'B/s')} = {{even:{even.text}}}",
            ),
        ),
    )


SIMULATOR = Declaration(
    title="Copying a hot expert",
    question="When does it pay to copy a hot expert's weights for a single step?",
    controls=(
        PAIRS,
        HELPERS,
        steps(
            "link_gb_s",
            "Link, one direction",
            450,
            (25, 50, 100, 160, 450, 900),
            unit="GB/s",
            help="A network port 50, NVLink of an H800 160, of an H200 450, of a B200 900.",
        ),
        steps("bits", "Bits of a weight", 16, (4, 8, 16), units.count, more=True),
    ),
    presets={
        "A busy decode step": {},
        "A decode step": {"pairs": 256},
        "A prompt": {"pairs": 16_384},
        "A prompt, three copies": {"pairs": 16_384, "helpers": 3},
        "Over the network": {"pairs": 16_384, "link_gb_s": 50},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "An expert of DeepSeek-V3 has 88 MB of weights in bf16, and NVLink sends them in 196 µs. Its 2,048 surplus pairs take "
        "182 µs on an H200's tensor cores. With one copy each of two GPUs takes half. From how many surplus pairs do both ways take "
        "the same time?",
        "even",
        "pairs",
        0.15,
    ),
    source="MoonEP, with the copy and the arithmetic at their peak rates",
)

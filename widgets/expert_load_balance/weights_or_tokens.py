"""A hot expert's surplus pairs: computed where its weights are, or shared with ranks that get a copy for one step."""

from dataclasses import dataclass

from kernels.expert_load_balance import cost
from kernels.machines import machine
from widgets import units
from widgets.charts import Box, axis_x, axis_y, linear, log, steady, words_within
from widgets.controls import log_slider, steps
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, about, drag, figure, handle, line, path, rect, table, text

HIDDEN, INTERMEDIATE = 7168, 2048  # DeepSeek-V3's expert
FEW, MANY = 64, 65_536
DECODE = 4096  # surplus pairs that no decode step has: 16 times the mean of 65,536 pairs over 256 experts
SHORTEST, LONGEST = 5e-6, 3e-2  # ends of the axis in every state
PAIRS = log_slider(
    "pairs",
    "Surplus pairs of the expert",
    2048,
    FEW,
    MANY,
    6,
    units.count,
    help="(token, expert) pairs beyond an even share.",
)
HELPERS = steps("helpers", "Copies", 1, (1, 2, 3, 5, 7), units.count)
THICK = 24
# (lanes, the curve, height)
PLACES = {
    True: (Box(150, 30, 552, 132), Box(60, 232, 520, 146), 414),
    False: (Box(18, 44, 296, 194), Box(52, 326, 178, 118), 484),
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
        now.kept_s / now.copied_s,
        cost.break_even_pairs(rate, link, size, helpers),
        tuple((n, at(n).kept_s, at(n).copied_s) for n in stops),
    )


def _lane(id: str, at: Box, x, y: float, title: str, boxes, wide: bool) -> list[dict]:
    """Draw one rank's or link's time: (start, end, role, words, figure) for each box."""
    where = (at.x - 8, y + 16, "end") if wide else (at.x, y - 6, "start")
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
        marks += words_within(f"{id}-{n}", left, right, y, (words, words.split()[0]), role)
    return marks


def _lanes(r: Result, at: Box) -> list[dict]:
    wide = at.x > 50
    end = steady("time", (1.15 if wide else 1.25) * max(r.kept_s, r.copied_s))
    x = linear(0, end, at.x, at.right)
    step = 34 if wide else 50
    tops = [at.y, *(at.y + step * n + 12 for n in (1, 2, 3))]
    each = r.sent_s / r.helpers
    copies = [(n * each, (n + 1) * each, "network", f"copy {n + 1}", "sent") for n in range(r.helpers)]
    shares = units.counted(r.pairs / (r.helpers + 1), "pair")
    alone = [(0, r.kept_s, "useful", units.counted(r.pairs, "pair"), "kept")]
    note = "Rows travel either way: not counted."
    if wide:
        note = "A pair's row travels to a GPU either way, so only weights and arithmetic are counted."
    marks = [text("note", 0, 12, note, "muted", "small")]
    marks += _lane("kept", at, x, tops[0], "not copied: its GPU", alone, wide)
    marks += _lane("link", at, x, tops[1], "copied: its link", copies, wide)
    marks += _lane(
        "own", at, x, tops[2], "copied: its GPU", [(0, r.share_s, "primary", shares, "share")], wide
    )
    after = [(r.sent_s, r.copied_s, "primary", shares, "share")]
    marks += _lane("helper", at, x, tops[3], "copied: last helper", after, wide)
    for id, ends, y, role in (
        ("kept", r.kept_s, tops[0], "useful"),
        ("copied", r.copied_s, tops[3], "primary"),
    ):
        marks.append(text(f"{id}-s", x(ends) + 8, y + 17, units.seconds(ends), role, bold=True, on="idle"))
    return marks + axis_x(
        "time", x, tops[3] + THICK + 6, show=units.seconds, ticks=None if wide else x.ticks(3)
    )


def _curve(r: Result, at: Box) -> list[dict]:
    x, y = log(FEW, MANY, at.x + 18, at.right), log(SHORTEST, LONGEST, at.bottom, at.y)
    marks = [text("curve-title", 0, at.y - 26, "Time of the surplus, over its pairs", bold=True)]
    marks += axis_y("seconds", y, at.x, show=units.seconds, right=at.right, ticks=(1e-5, 1e-4, 1e-3, 1e-2))
    ticks = (64, 1024, 16_384) if at.w < 300 else (64, 256, 1024, 4096, 16_384, 65_536)
    marks += axis_x("pairs", x, at.bottom, "surplus (token, expert) pairs", units.count, ticks=ticks)
    last = r.curve[-1]
    lower = "kept" if last[1] < last[2] else "copied"
    for id, role, column in (("kept", "useful", 1), ("copied", "primary", 2)):
        marks += about(id, path(f"curve-{id}", [(x(row[0]), y(row[column])) for row in r.curve], role))
        place = y(last[column]) + (12 if id == lower else -3)
        words = {"kept": "not copied", "copied": "copied"}[id]
        marks.append(text(f"curve-{id}-name", at.right + 20, place, words, role, "small", bold=True))
    if FEW < r.even < MANY:
        marks += about(
            "even",
            line("even", x(r.even), at.y, x(r.even), at.bottom, "limit", f"even: {units.count(r.even)}"),
        )
        left = x(r.even) > at.x + at.w / 2
        words = f"break-even: {units.count(r.even)}"
        anchor = ("end", -6) if left else ("start", 6)
        marks.append(text("even-name", x(r.even) + anchor[1], at.y - 2, words, "ink", "small", anchor[0]))
    tip = f"{units.count(r.pairs)} pairs: {units.seconds(r.kept_s)}"
    return [*marks, handle("pull-pairs", x(r.pairs), y(r.kept_s), "useful", drag(PAIRS, "x", x), tip=tip)]


def _takeaway(r: Result) -> str:
    if r.even > MANY:
        return "No surplus of one step is worth a copy over this link. The weights stay where they are."
    if r.faster > 1:
        return (
            "The surplus is long enough to pay for the copies. Weights travel in steps as large as a prompt."
        )
    if r.pairs >= DECODE:
        return "Over this link the copies take longer than they save, so the weights stay where they are."
    return "The copies take longer than they save. Leave the weights where they are: a decode step's surplus is this small."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    lanes_at, curve_at, height = PLACES[width == WIDE]
    kept = figure("not copied", r.kept_s, units.seconds, "useful", "kept")
    copied = figure("copied", r.copied_s, units.seconds, "primary", "copied")
    gain = figure("as fast with copies", r.faster, units.times)
    even = figure("pairs break even", r.even, units.count, "", "even")
    share = units.counted(r.pairs / (r.helpers + 1), "pair")
    return Scene(
        summary=f"{units.count(r.pairs)} surplus pairs take {kept.text} on the expert's GPU and {copied.text} with "
        f"{units.counted(r.helpers, 'copy', 'copies')}, {gain.text} as fast; {even.text} pairs break even.",
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
            ("useful", "all pairs on one GPU"),
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
        "182 µs on an H200's tensor cores. With one copy two GPUs share them. From how many surplus pairs do both ways take "
        "the same time?",
        "even",
        "pairs",
        0.15,
    ),
    source="MoonEP; the copy and the arithmetic at their peak rates",
)

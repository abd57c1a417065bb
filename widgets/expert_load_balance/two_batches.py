"""Show a decode step in two halves. One computes while the other's rows travel, and every weight is read twice."""

from dataclasses import dataclass

from kernels.expert_load_balance import cost_batches as cost
from kernels.machines import machine
from widgets import units
from widgets.charts import (
    Box,
    axis_x,
    axis_y,
    limit_across,
    linear,
    log,
    steady,
    text_width,
    won_and_lost,
    words_within,
)
from widgets.controls import steps
from widgets.declare import Declaration, Prediction
from widgets.scene import (
    NARROW,
    WIDE,
    Column,
    Scene,
    about,
    drag,
    figure,
    handle,
    line,
    path,
    rect,
    table,
    text,
)

SIZES = (8, 16, 32, 64, 128, 256, 512)
DRAWN = tuple(round(8 * 2 ** (i / 2)) for i in range(13))  # points of the curve, the sizes among them
LEAST, MOST = 0.4, 1.6  # times faster, at the ends of the axis in every state
SLIVER = 0.005  # of the window, because a narrower event isn't drawn
FROM = 4  # the layer that is drawn, so that the start is forgotten
TOKENS = steps("tokens", "Tokens per GPU", 32, SIZES)
SMS = steps(
    "sms",
    "SMs that the exchange holds",
    0,
    (0, 4, 6, 12, 24, 36),
    help="With 0, the network card writes into the buffer and a hook fetches. DeepEP's versions hold 24 and 4 to 6.",
)
THICK = 24
SHORT = {"attention": "attn", "dispatch": "disp", "experts": "exp", "combine": "comb"}
# (lanes, the curve, height)
PLACES = {
    True: (Box(112, 20, 518, 170), Box(112, 262, 420, 106), 410),
    False: (Box(18, 24, 254, 212), Box(40, 316, 186, 104), 462),
}


@dataclass(frozen=True)
class AtTokens:
    tokens: int
    faster: float
    faster_without_sms: float


@dataclass(frozen=True)
class Result:
    tokens: int
    sms: int
    keys: int
    link_byte_s: float
    whole: cost.Pieces
    half: cost.Pieces
    whole_s: float
    halves_s: float
    halves_us: float
    faster: float
    slower: float  # arithmetic next to an exchange
    again_s: float  # reading weights again in the second half (both halves' arithmetic less one piece's)
    slowed_s: float  # what arithmetic loses to the SMs that an exchange holds
    sms_idle: float  # share of the time in halves
    link_idle: float
    events: tuple[cost.Event, ...]
    curve: tuple[AtTokens, ...]
    pays_from: int  # tokens per GPU from which halves are faster, 0 if they never are


def run(tokens, sms, link_gb_s, keys) -> Result:
    layer, gpu, link = cost.Layer(), machine("H200"), link_gb_s * 1e9

    def at(count: int, held: int) -> cost.Overlap:
        return cost.overlap(layer, gpu, count, keys, link, held)

    now, slower = at(tokens, sms), 1 / (1 - sms / gpu.sms)
    computing = 2 * now.half.compute_s * slower
    return Result(
        tokens,
        sms,
        keys,
        link,
        now.whole,
        now.half,
        now.whole_s,
        now.halves_s,
        1e6 * now.halves_s,
        now.faster,
        slower,
        2 * now.half.compute_s - now.whole.compute_s,
        computing - 2 * now.half.compute_s,
        max(0.0, 1 - computing / now.halves_s),
        max(0.0, 1 - 2 * now.half.exchange_s / now.halves_s),
        now.events,
        tuple(AtTokens(n, at(n, sms).faster, at(n, 0).faster) for n in DRAWN),
        _first(lambda n: at(n, sms).faster > 1),
    )


def _first(pays) -> int:
    """Return the smallest number of tokens that pays, if all larger ones do, or 0."""
    low, high = SIZES[0] - 1, SIZES[-1]
    if not pays(high):
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return high


def _box(id: str, x, window, event: cost.Event, y: float, role: str, words: tuple[str, ...]) -> list[dict]:
    """Draw a piece as far as it is within the window."""
    start, end = max(event.start_s, window[0]), min(event.end_s, window[1])
    if end - start <= SLIVER * (window[1] - window[0]):
        return []
    left, right = x(start - window[0]), x(end - window[0])
    tip = f"{words[0]}: {units.seconds(event.end_s - event.start_s)}"
    bar = rect(id, left, y, max(1, right - left - 1.5), THICK, role, tip)
    return [
        *about("whole" if id.startswith("one") else "halves", bar),
        *words_within(id, left, right, y, words, role),
    ]


def _under(
    id: str,
    box: list[dict],
    y: float,
    role: str,
    words: tuple[str, ...],
    before: bool,
    said: float,
    wide: bool,
) -> tuple[list[dict], float]:
    """Name a piece on the link below it where its name doesn't fit into it, and say if it is of the layer before."""
    bar, named = box[0], len(box) > 1
    if named:
        words = ("of the layer before",) if before and wide else ()
    elif not wide:
        words = words[1:]
    for one in words:
        right = bar["x"] + text_width(one, "small", not named)
        if bar["x"] > said + 4 and right < NARROW - 4 + (WIDE - NARROW) * wide:
            ink = "muted" if named else role
            return [text(f"{id}-under", bar["x"], y, one, ink, "small", bold=not named)], right
    return [], said


def _lanes(r: Result, at: Box) -> list[dict]:
    """Draw a layer on one clock, in one piece and in halves in the middle of a run, each to its end."""
    wide = at.x > 50
    end = max(r.whole_s, r.halves_s)
    x = linear(0, steady("time", end), at.x, at.right)
    first = min(e.start_s for e in r.events if e.layer == FROM)
    step = 34 if wide else 48
    tops = [at.y + n * step + (14 if n > 1 else 0) for n in range(4)]
    titles = ("one piece: SMs", "one piece: link", "halves: SMs", "halves: link")
    ends = (r.whole_s, r.whole_s, r.halves_s, r.halves_s)
    marks = axis_x("time", x, at.bottom, show=units.seconds, ticks=None if wide else x.ticks(3))
    for n, (title, y) in enumerate(zip(titles, tops, strict=True)):
        where = (at.x - 8, y + 16, "end") if wide else (at.x, y - 5, "start")
        marks.append(text(f"lane-{n}", *where[:2], title, "ink", "small", anchor=where[2]))
        marks.append(rect(f"idle-{n}", at.x, y, x(ends[n]) - at.x, THICK, "idle", "waits"))
    for n, (id, ink) in enumerate((("whole", "useful"), ("halves", "primary"))):
        place, top = x(ends[2 * n]), tops[2 * n]
        marks += about(
            id,
            line(f"{id}-end", place, top - 3, place, tops[2 * n + 1] + THICK + 3, "limit"),
            text(f"{id}-us", place + 7, top + 17, units.seconds(ends[2 * n]), ink, bold=True),
        )
    faster, ends_s = r.halves_s < r.whole_s, sorted((r.whole_s, r.halves_s))
    apart = units.seconds(ends_s[1] - ends_s[0], 2)
    if x(ends_s[1]) - x(ends_s[0]) > 4:
        low = tops[3 if faster else 1] + THICK / 2
        words = f"{apart} {'less' if faster else 'more'}" if wide else f"{'−' if faster else '+'}{apart}"
        role, place = "useful" if faster else "hot", x(ends_s[1]) + 7
        marks += [
            line("saved", x(ends_s[0]) + 1, low, x(ends_s[1]), low, role, words),
            line("saved-to", x(ends_s[1]), low - 6, x(ends_s[1]), low + 6, role),
            text("saved-us", place, low + 5, words, role, "small", bold=True),
        ]
    for event in cost.schedule([r.whole], layers=1):
        link = cost.PIECES[event.piece] == "link"
        id = f"one-{event.layer}-{event.piece}"
        marks += _box(id, x, (0, end), event, tops[link], "useful", (event.piece, SHORT[event.piece]))
    said = at.x - 6.0  # where the last name under the link ends
    for event in sorted(r.events, key=lambda event: event.start_s):
        link = cost.PIECES[event.piece] == "link"
        half = "AB"[event.batch]
        words = (f"{event.piece} {half}", f"{SHORT[event.piece]} {half}", half)
        role = ("primary", "secondary")[event.batch]
        id = f"half-{event.batch}-{event.layer}-{event.piece}"
        box = _box(
            id, x, (first, first + r.halves_s), event, tops[2 + link], role, words[:-1] if link else words
        )
        if link and box:
            under, said = _under(id, box, tops[3] + THICK + 13, role, words, event.layer < FROM, said, wide)
            if not under and len(box) < 2:
                left = box[0]["x"]
                under = words_within(id, left, left + box[0]["w"] + 4, tops[3], words[-1:], role)
            box += under
        marks += box
    return marks


def _curve(r: Result, at: Box) -> list[dict]:
    """Draw how much faster halves are, over the tokens, with a knob at this state."""
    x, y = log(SIZES[0], SIZES[-1], at.x + 18, at.right), linear(LEAST, MOST, at.bottom, at.y)
    over = "over 1× halves pay" if r.pays_from else "never over 1×"
    marks = [text("curve-title", 0, at.y - 18, f"Two halves' speed: {over}", bold=True)]
    ticks = (0.5, 1, 1.5)
    marks += axis_y("faster", y, at.x, show=units.times, right=at.right, ticks=ticks)
    marks += axis_x(
        "tokens", x, at.bottom, "tokens per GPU", units.count, ticks=SIZES[:: 2 if at.w < 300 else 1]
    )
    marks += limit_across("even", at, y(1), "")[:1]
    ends = []
    if r.sms:
        points = [(x(one.tokens), y(one.faster_without_sms)) for one in r.curve]
        marks.append(path("without", points, "overhead"))
        ends.append((points[-1][1], "no SMs held", "overhead"))
    points = [(x(one.tokens), y(one.faster)) for one in r.curve]
    marks += won_and_lost(points, y(1))
    marks += about("sms", path("with", points, "now"))
    ends.append((points[-1][1], f"{r.sms} SMs held" if r.sms else "no SMs held", "now"))
    apart = 0 if len(ends) < 2 or ends[1][0] - ends[0][0] > 16 else 16 - (ends[1][0] - ends[0][0])
    for n, (place, words, role) in enumerate(ends):
        shift = apart / 2 * (-1 if n == 0 and len(ends) > 1 else 1 if n else 0)
        marks.append(text(f"end-{n}", at.right + 20, place + 4 + shift, words, role, "small", bold=True))
    if r.pays_from > SIZES[0]:
        place, words = x(r.pays_from), f"faster from {r.pays_from} tokens"
        marks.append(line("pays", place, at.y, place, at.bottom, "limit", words))
        for words, size in ((f"pays from {r.pays_from} tokens", "big"), (f"from {r.pays_from}", "big")):
            if place + 8 + text_width(words, size, True) < at.right:
                marks.append(text("pays-name", place + 8, at.bottom - 10, words, "useful", size, bold=True))
                break
    tip = f"{r.tokens} tokens: {units.times(r.faster)}"
    return [*marks, handle("pull-tokens", x(r.tokens), y(r.faster), "now", drag(TOKENS, "x", x), tip=tip)]


def _takeaway(r: Result) -> str:
    if r.faster < 1 and r.curve[DRAWN.index(r.tokens)].faster_without_sms > 1:
        return "The SMs that the exchange holds eat the gain. With a hook that frees them, halves win."
    if r.faster < 1:
        return "Each half reads all weights again, and that costs more than the exchange it hides."
    if r.link_idle < 0.1:
        busy = units.percent(1 - r.link_idle, 0)
        return f"The link carries rows {busy} of the time. Only fewer bytes or a faster link help much."
    return "One half computes while the other travels. That hides more than the second read costs."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    lanes_at, curve_at, height = PLACES[width == WIDE]
    whole = figure("a layer in one piece", r.whole_s, units.seconds, "useful", "whole")
    halves = figure("in two halves", r.halves_s, units.seconds, "primary", "halves")
    gain = figure("speed of halves", r.faster, units.times)
    alone = units.percent(1 - r.whole.compute_s / r.whole_s, 0)
    idle = figure(f"SMs wait in halves, {alone} in one piece", r.sms_idle, lambda v: units.percent(v, 0))
    computing = units.seconds(2 * r.half.compute_s * r.slower)
    travels = units.seconds(2 * r.half.exchange_s)
    return Scene(
        summary=f"With {r.tokens} tokens per GPU a layer takes {whole.text} in one piece and {halves.text} in two halves, "
        f"{gain.text} as fast, with {r.sms} SMs for the exchange. In halves the SMs wait {idle.text} of the time.",
        takeaway=_takeaway(r),
        marks=_lanes(r, lanes_at) + _curve(r, curve_at),
        figures=(whole, halves, gain, idle),
        table=table(
            ("piece", Column("all tokens", "s", units.seconds), Column("one half", "s", units.seconds)),
            [(name, one, half) for name, one, half in zip(cost.PIECES, r.whole, r.half, strict=True)]
            + [
                ("a layer", r.whole_s, r.halves_s),
                ("weights read again", 0.0, r.again_s),
                ("slower with fewer SMs", 0.0, r.slowed_s),
            ],
        ),
        height=height,
        width=width,
        legend=(
            ("primary", "half A"),
            ("secondary", "half B, begun in the layer before"),
            ("useful", "all tokens at once"),
        ),
        formula=(
            (
                "{whole:one piece} = attention + dispatch + experts + combine",
                f"{' + '.join(units.seconds(one) for one in r.whole)} = {{whole:{whole.text}}}",
            ),
            (
                "{halves:two halves} ≥ max(computing of both on 132 − {sms} SMs, exchange of both)",
                f"max({computing}, {travels}) on 132 − {{sms:{r.sms}}} SMs",
            ),
        ),
    )


SIMULATOR = Declaration(
    title="Two batches in flight",
    question="When does it pay to compute one half while the other travels?",
    controls=(
        TOKENS,
        SMS,
        steps(
            "link_gb_s",
            "Link, one direction",
            50,
            (25, 50, 100, 160, 450),
            unit="GB/s",
            help="A network port 50, NVLink of an H800 160, of an H200 450.",
        ),
        steps("keys", "Keys of a user", 4096, (512, 1024, 4096, 16384), units.count, more=True),
    ),
    presets={
        "A hook, no SMs held": {},
        "24 SMs held": {"sms": 24},
        "Few users": {"tokens": 8},
        "Many users": {"tokens": 256},
        "Over NVLink": {"link_gb_s": 450},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "A decode layer of 32 tokens takes 70 µs of attention, 36 of dispatch, 46 of experts and 72 of combine, 225 in all. "
        "Attention and experts read weights for 85 µs whatever the number of tokens. In two halves, one computes while the "
        "other travels, and the exchange holds no SM. How many µs does a layer take?",
        "halves_us",
        "µs",
        0.06,
    ),
    source="DeepSeek-V3 Technical Report; DeepEP",
)

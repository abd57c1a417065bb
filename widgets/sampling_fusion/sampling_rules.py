"""Show which tokens of a distribution each sampling rule leaves, and the one that is drawn."""

from dataclasses import dataclass

from kernels.sampling_fusion import cost_distribution as small
from widgets import units
from widgets.charts import Box, Scale, axis_y, linear, steady, text_width
from widgets.controls import slider
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, about, drag, figure, handle, line, rect, table, text

WORDS = ("mat", "sofa", "floor", "bed", "chair", "roof", "table", "moon", "dog", "idea", "seven", "oboe")
LOGITS = (3.2, 2.8, 2.5, 2.0, 1.7, 1.3, 0.9, 0.2, -0.3, -1.0, -1.6, -2.4)
TEMPERATURE = slider("temperature", "Temperature", 0.8, 0.0, 2.0, step=0.1, help="0 takes the best token.")
TOP_K = slider("top_k", "Top-k", 8, 1, len(LOGITS), help="Keeps the k best; 12 of 12 turns the rule off.")
TOP_P = slider("top_p", "Top-p", 0.9, 0.1, 1.0, step=0.05, help="Keeps the best that hold this share.")
MIN_P = slider(
    "min_p", "Min-p", 0.2, 0.0, 0.5, step=0.05, help="Keeps what has this share of the best one's."
)
U = slider("u", "Random number of the draw", 0.6, 0.0, 1.0, step=0.05, more=True)
# the bars, the strip of the draw, the total height
PLACES = {
    True: (Box(48, 86, 580, 206), Box(48, 354, 580, 22), 420),
    False: (Box(40, 92, 270, 206), Box(0, 390, 310, 22), 458),
}


@dataclass(frozen=True)
class Result:
    row: tuple[small.Ranked, ...]
    kept: int
    kept_share: float  # of the probability before the rules
    lost_share: float
    cut_by_top_k: int
    cut_by_top_p: int
    cut_by_min_p: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    min_p_level: float  # the share below which min-p cuts
    u: float
    drawn: int
    drawn_share: float
    best_shares: tuple[float, ...]  # of the best token, at each stop of the temperature
    left_by_p: tuple[int, ...]  # tokens that top-k and top-p leave, at each stop of top-p


def run(temperature, top_k, top_p, min_p, u) -> Result:
    row = small.distribution(LOGITS, temperature, top_k, top_p, min_p)
    left = [one for one in row if not one.cut_by]
    cuts = [sum(one.cut_by == rule for one in row) for rule in ("top-k", "top-p", "min-p")]
    drawn, kept_share = small.draw(row, u), sum(one.tempered for one in left)
    return Result(
        tuple(row), len(left), kept_share, 1 - kept_share, *cuts, temperature, top_k, top_p, min_p,
        min_p * row[0].tempered, u, drawn, row[drawn].final,
        tuple(small.distribution(LOGITS, t, top_k, top_p, min_p)[0].tempered for t in TEMPERATURE.values()),
        tuple(_left(small.distribution(LOGITS, temperature, top_k, p, 0.0)) for p in TOP_P.values()),
    )  # fmt: skip


def _left(row) -> int:
    return sum(one.cut_by in ("", "min-p") for one in row)


def _level(r: Result, box: Box) -> Scale:
    top = next(p for p in (0.3, 0.4, 0.5, 0.7, 1.0) if p >= r.row[0].tempered)
    return linear(0, steady("shares", top), box.bottom, box.y)


def _share(share: float) -> str:
    if 0 < share < 0.0005:
        return "<0.1%"
    return units.percent(share, 0 if share >= 0.9995 else 1)


def _shares(r: Result, y: Scale, box: Box, pitch: float) -> list[dict]:
    """Print over each bar the share that it is as high as. Under the bars are chances, and their name."""
    marks = [text("chance-name", box.x - 6, box.bottom + 30, "chance", "muted", "small", "end")]
    for i, one in enumerate(r.row):
        place = box.x + (i + 0.5) * pitch, y(one.tempered) - (20 if i == 0 else 5)  # the best has a knob
        marks.append(text(f"share-{i}", *place, _share(one.tempered), "ink", "small", "middle", on="ground"))
    return marks


def _bars(r: Result, y: Scale, box: Box, pitch: float, wide: bool) -> list[dict]:
    """Draw the tokens, best first, as the temperature left them. Under each is its share after the rules, or the rule."""
    marks, thick = [line("bars-axis", box.x, box.bottom, box.right, box.bottom, "axis")], 0.72 * pitch
    for i, one in enumerate(r.row):
        middle, word, cut = box.x + (i + 0.5) * pitch, WORDS[one.token], one.cut_by
        role = "dropped" if cut else "now" if i == r.drawn else "useful"
        fate = f"dropped by {cut}" if cut else f"drawn with {_share(one.final)}"
        tip = f"{word}: {_share(one.tempered)} at this temperature, {fate}"
        top = y(one.tempered)
        low = box.bottom + (14 if wide or i % 2 == 0 else 28)
        marks += [
            rect(f"bar-{i}", middle - thick / 2, top, thick, box.bottom - top, role, tip),
            text(f"word-{i}", middle, low, word, "muted" if cut else "ink", "small", "middle"),
        ]
        if not wide:
            percent = "<1" if 0 < one.final < 0.005 else f"{100 * one.final:.0f}"
            short = "0" if cut == "greedy" else cut.removeprefix("top-")[0] if cut else percent
            at = (middle, box.bottom + 44)
            marks.append(text(f"fate-{i}", *at, short, role, "small", "middle", bold=True))
        if wide:
            said = "0%" if cut == "greedy" else cut or _share(one.final)
            marks.append(text(f"fate-{i}", middle, low + 16, said, role, "small", "middle", bold=True))
    return marks


def _cuts(r: Result, y: Scale, box: Box, pitch: float, wide: bool) -> list[dict]:
    """Mark where the rules cut: top-k and top-p between two tokens, min-p at a height. Each mark has a knob. Temperature 0
    leaves the rules nothing to cut."""
    if not r.temperature:
        return []
    left, stops = dict(zip(TOP_P.values(), r.left_by_p, strict=True)), TOP_P.values()

    def after(k: float) -> float:
        return box.x + min(k, len(r.row)) * pitch

    def after_p(p: float) -> float:
        return after(left[min(stops, key=lambda stop: abs(stop - p))])

    marks = []
    for id, term, x, top, words, pull in (
        (
            "k",
            "top_k",
            after(r.top_k),
            box.y - 58,
            _rule("top-k", r.top_k, len(r.row)),
            drag(TOP_K, "x", after),
        ),
        ("p", "top_p", after_p(r.top_p), box.y - 32, _rule("top-p", r.top_p, 1), drag(TOP_P, "x", after_p)),
    ):
        long = text_width(words, "small") + 24
        meets = id == "p" and x < after(r.top_k) < x + long  # then on the other side of its line
        side = (x - 22, "end") if meets or x + long > box.right + 60 * wide else (x + 22, "start")
        marks += about(term, line(f"cut-{id}", x, box.bottom, x, top, "limit", words))
        marks.append(text(f"cut-{id}-name", side[0], top + 4, words, "ink", "small", side[1], on="ground"))
        marks.append(handle(f"pull-{id}", x, top, "primary", pull, named=True))
    level, best = y(r.min_p_level), r.row[0].tempered
    words = _rule("min-p", r.min_p, 0)
    marks += about("min_p", line("cut-min", box.x, level, box.right + 12, level, "limit", words))
    side = (box.right + 28, level + 4, "start") if wide else (box.right - 4, level - 8, "end")
    marks.append(
        text("cut-min-name", side[0], side[1], words, "ink", "small", side[2], on="" if wide else "ground")
    )
    marks.append(
        handle(
            "pull-min", box.right + 12, level, "primary", drag(MIN_P, "y", lambda p: y(p * best)), named=True
        )
    )
    return marks


def _heat(r: Result, y: Scale, box: Box, pitch: float) -> list[dict]:
    """Let the best token's bar be pulled: the temperature makes it higher or lower."""
    shares = dict(zip(TEMPERATURE.values(), r.best_shares, strict=True))

    def top(temperature: float) -> float:
        return y(shares[min(shares, key=lambda stop: abs(stop - temperature))])

    return [handle("pull-heat", box.x + 0.5 * pitch, top(r.temperature), "now", drag(TEMPERATURE, "y", top))]


def _rule(name: str, value: float, off: float) -> str:
    return f"{name}: off" if value == off else f"{name} {units.number(value)}"


def _draw(r: Result, strip: Box) -> list[dict]:
    """Draw the chances one after the other from 0 to 1. Where the random number falls, that token is drawn."""
    x, at, wide = linear(0, 1, strip.x, strip.right), 0.0, strip.w > 400
    marks = [
        text("draw-title", strip.x, strip.y - 8, "the draw: their chances from 0 to 1", "muted", "small")
    ]
    for i, one in enumerate(r.row):
        if not one.final:
            continue
        left, right, word = x(at), x(at + one.final), WORDS[one.token]
        role, tip = ("now" if i == r.drawn else "useful"), f"{word}: {_share(one.final)}"
        marks.append(rect(f"draw-{i}", left, strip.y, right - left - 1, strip.h, role, tip))
        room, cut = text_width(word, "small") + 8, x(r.u)
        spans = [(left, right)] if not left < cut < right else [(left, cut - 2), (cut + 2, right)]
        left, right = max(spans, key=lambda span: span[1] - span[0])  # the mark's line goes through no word
        middle = (left + right) / 2
        if right - left > room:
            marks.append(
                text(f"draw-{i}-word", middle, strip.y + 15, word, "inverse", "small", "middle", on=role)
            )
        at += one.final
    place, words = x(r.u), f"u = {units.number(r.u)} draws “{WORDS[r.row[r.drawn].token]}”"
    side = (
        (place - 22, "end")
        if place + text_width(words, bold=True) + 22 > strip.right
        else (place + 22, "start")
    )
    marks += about("u", line("draw-u", place, strip.y - 4, place, strip.bottom + 16, "now"))
    marks.append(
        text(
            "draw-words", side[0], strip.bottom + 20, words, "now", "body" if wide else "small", side[1], True
        )
    )
    return [*marks, handle("pull-u", place, strip.bottom + 16, "now", drag(U, "x", x), named=True)]


def _takeaway(r: Result) -> str:
    if not r.temperature:
        return "Temperature 0 leaves the best token alone, whatever the rules say."
    cuts = {"top-k": r.cut_by_top_k, "top-p": r.cut_by_top_p, "min-p": r.cut_by_min_p}
    said = [f"{rule} {many}" for rule, many in cuts.items() if many]
    if not said:
        return "No rule cuts here, so even the worst token may be drawn."
    said[0] = said[0].replace(" ", " drops ").capitalize()
    listed = said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
    return f"{listed} of 12 tokens, which held {_share(r.lost_share)} of the probability."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    (box, strip, height), wide = PLACES[width == WIDE], width == WIDE
    y, pitch, drawn = _level(r, box), box.w / len(r.row), WORDS[r.row[r.drawn].token]
    kept = figure("of 12 tokens may be drawn", r.kept, units.count, "useful")
    share = figure("of the probability was theirs", r.kept_share, _share)
    taken = figure(f"chance of “{drawn}”, drawn by u = {units.number(r.u)}", r.drawn_share, _share, "now")
    title = "“The cat sat on the …”: the next token" + ("'s share, and below it its chance" if wide else "")
    marks = [
        text("title", 0, 14, title, bold=True),
        *axis_y(
            "share",
            y,
            box.x,
            "",
            lambda v: units.percent(v, 0),
            ticks=[y.hi * i / 2 for i in range(3)],
        ),
        *_bars(r, y, box, pitch, wide),
        *_cuts(r, y, box, pitch, wide),
        *(_shares(r, y, box, pitch) if wide else []),
        *_heat(r, y, box, pitch),
        *_draw(r, strip),
    ]
    if not wide:
        words = "chance in %, or what dropped it: top-k, top-p, min-p"
        marks.append(text("chances-key", 0, box.bottom + 60, words, "muted", "small"))
    return Scene(
        summary=f"The rules leave {kept.text} of 12 tokens, which held {share.text} of the probability; "
        f"“{drawn}” has a chance of {taken.text} and is drawn.",
        takeaway=_takeaway(r),
        marks=marks,
        figures=(kept, share, taken),
        table=table(
            (
                "token",
                Column("logit"),
                Column("share", show=_share),
                "dropped by",
                Column("chance", show=_share),
            ),
            [(WORDS[one.token], one.logit, one.tempered, one.cut_by or "–", one.final) for one in r.row],
        ),
        height=height,
        width=width,
        formula=(
            (
                "share = e^(logit / {temperature}), divided by the sum",
                f"temperature {{temperature:{units.number(r.temperature)}}}, first {{top_k:top-k}} {{top_k:{r.top_k}}}, then {{top_p:top-p}} "
                f"{{top_p:{units.number(r.top_p)}}}, then {{min_p:min-p}} {{min_p:{units.number(r.min_p)}}}",
            ),
        ),
        legend=(("useful", "may be drawn"), ("now", "drawn"), ("dropped", "dropped by a rule")),
    )


SIMULATOR = Declaration(
    title="Sampling rules",
    question="Which tokens may be drawn next?",
    controls=(
        TEMPERATURE,
        TOP_K,
        TOP_P,
        MIN_P,
        U,
    ),
    presets={
        "Three rules": {},
        "Hot": {"temperature": 2.0},
        "Cold": {"temperature": 0.3},
        "Top-p alone": {"top_k": 12, "min_p": 0.0},
        "No rule": {"top_k": 12, "top_p": 1.0, "min_p": 0.0},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "At a temperature of 0.8 the shares of twelve tokens are 38.5, 23.4, 16.1, 8.6, 5.9, 3.6% and less. Top-k keeps the best 8, "
        "then top-p the best that hold 90%, then min-p what has 0.2 of the best one's share. How many may still be drawn?",
        "kept",
        "tokens",
        0.01,
        units.count,
    ),
    source="Beyond attention",
)

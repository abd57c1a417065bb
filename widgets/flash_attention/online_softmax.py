"""Show softmax over a row, one tile of keys at a time. A larger maximum scales down all earlier sums."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from kernels.flash_attention import cost
from widgets import units
from widgets.charts import Box, linear, text_width
from widgets.controls import powers_of_two, select, slider, steps
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import (
    NARROW,
    WIDE,
    Column,
    Scene,
    about,
    circle,
    drag,
    extent,
    figure,
    handle,
    line,
    rect,
    table,
    text,
)

TILE = powers_of_two("tile", "Keys in a tile", 4, 1, 16, help="16 is the ordinary softmax.")
PULLED, HIGHEST = 4, 7.0  # the key whose score is pulled, and how far (the axis ends above this)
WHICH = "The bar with the knob on it, before anything scales it or adds to it."
SCORE = slider("score", "One key's score", 5.0, 0.0, HIGHEST, step=0.5, help=WHICH)
HEIGHT = {True: 430, False: 460}


class Panels(NamedTuple):
    """Hold what is drawn, from top to bottom: scores, the weight of each key, and the line of the output."""

    scores: Box
    weights: Box
    output: Box  # its height is nothing: a line of numbers
    wide: bool

    @property
    def width(self) -> int:
        return WIDE if self.wide else NARROW


PLACES = {
    True: Panels(Box(30, 24, 590, 108), Box(30, 196, 590, 104), Box(30, 386, 590, 0), True),
    False: Panels(Box(20, 56, 264, 90), Box(20, 214, 264, 98), Box(20, 412, 290, 0), False),
}
LARGEST_FP32 = math.log(3.4028234663852886e38)  # a score above this has an exponential beyond fp32
OUTPUTS = min(chain(*cost.SCENE.values)), max(chain(*cost.SCENE.values))  # a weighted mean stays between
ORDERS = {"given": "as given", "rising": "smallest first", "falling": "largest first"}
EXACT, SHORT = units.fixed(3), units.fixed(2)
ASIDE = [(aside, up) for up in (0, 13, 26, 39) for aside in (0, 5, -5)]


@dataclass(frozen=True)
class Result:
    tile: int
    scores: tuple[float, ...]
    values: tuple[float, ...]
    states: tuple[cost.State, ...]  # after each tile
    first_shrink: float  # the first rescale below 1 of a sum that isn't empty, or 1 if there is none
    output: float
    whole_row_output: float  # the ordinary softmax, which sees all scores first
    unscaled_outputs: tuple[
        float, ...
    ]  # after each tile, if a larger maximum left the earlier sums as they were
    difference: float
    scale: float
    shift: float
    pulled: int  # the position of the key whose score is pulled


def _tiled(row, tile: int) -> list:
    return [row[at : at + tile] for at in range(0, len(row), tile)]


def run(order, tile, score, scale, shift) -> Result:
    keys = list(zip(chain(*cost.SCENE.scores), chain(*cost.SCENE.values), strict=True))
    mine = keys[PULLED] = (score, keys[PULLED][1])
    if order != "given":
        keys.sort(key=lambda key: key[0], reverse=order == "falling")
    scores = tuple(scale * score + shift for score, _ in keys)
    values = tuple(value for _, value in keys)
    states = cost.online_trace(_tiled(scores, tile), _tiled(values, tile))
    whole = cost.online_trace([scores], [values])[0].output
    shrinks = [state.rescale for state in states[1:] if state.rescale < 1]
    last = states[-1].output
    return Result(
        tile,
        scores,
        values,
        tuple(states),
        shrinks[0] if shrinks else 1.0,
        last,
        whole,
        _unscaled(states),
        abs(last - whole),
        scale,
        shift,
        next(i for i, key in enumerate(keys) if key is mine),
    )


def _unscaled(states: Sequence[cost.State]) -> tuple[float, ...]:
    """Return the outputs of a kernel that forgets the factor and so adds each tile's sums to sums of another scale."""
    total, weighted, found = 0.0, 0.0, []
    for before, now in zip([None, *states], states, strict=False):
        kept = before.l * now.rescale if before else 0.0
        total += now.l - kept
        weighted += now.output * now.l - (before.output * kept if before else 0.0)
        found.append(weighted / total)
    return tuple(found)


def _across(r: Result, key: float, at: Panels) -> float:
    """Return where key number `key` begins. All three panels share this position."""
    return at.scores.x + key * at.scores.w / len(r.scores)


def _role(r: Result, key: int, step: int) -> str:
    tile = key // r.tile
    return "now" if tile == step else "primary" if tile < step else "idle"


def _title(r: Result, at: Panels) -> str:
    if r.shift:
        return (
            f"Scores of one query, {r.shift} added to each" if at.wide else f"Scores, {r.shift} added to each"
        )
    return "Scores of one query, tile by tile"


def _overflows(r: Result) -> bool:
    return max(r.scores) > LARGEST_FP32


def _infinite(r: Result, step: int, at: Panels) -> list[dict]:
    """Write under each score what its exponential alone would be in fp32, where one would be beyond it."""
    if not _overflows(r):
        return []
    pitch, low = at.scores.w / len(r.scores), at.scores.bottom + 15
    place = (at.scores.right + 6, low) if at.wide else (0, low + 14)
    marks = [
        text(
            "infinite",
            *place,
            "exp alone" if at.wide else "exp(score) alone, in fp32",
            "hot",
            "small",
            bold=True,
        )
    ]
    for key, score in enumerate(r.scores[: (step + 1) * r.tile]):
        shown = "∞" if score > LARGEST_FP32 else "…"
        if key == r.pulled and score < r.shift + 1.5 * r.scale:  # the knob is there
            continue
        middle = _across(r, key, at) + at.scores.w / 146 + 0.39 * pitch
        marks.append(text(f"infinite-{key}", middle, low, shown, "hot", "body", "middle", bold=True))
    return marks


def _scores(r: Result, step: int, at: Panels) -> list[dict]:
    y = linear(r.shift, r.shift + 1.3 * HIGHEST * r.scale, at.scores.bottom, at.scores.y)
    pitch, m = at.scores.w / len(r.scores), r.states[step].m
    pulled_x = _across(r, r.pulled, at) + at.scores.w / 146 + 0.39 * pitch
    high = y(r.scores[r.pulled])
    taken = [
        (pulled_x - 9, high - 16, pulled_x + 9, high + 16),
        (at.scores.x, y(m) - 1, at.scores.right, y(m) + 1),
        (0, 0, at.scores.right, 16),  # the title
    ]
    marks, names = [text("scores-title", 0, 12, _title(r, at), bold=True)], []
    for key, score in enumerate(r.scores):
        x, top = _across(r, key, at) + at.scores.w / 146, min(y(score), at.scores.bottom - 2)
        role, shown = _role(r, key, step), units.number(score, 4)
        if role == "idle" and key != r.pulled:  # not read yet, so it waits on the next tile's floor
            away = min(_across(r, key + r.tile, at) + at.scores.w / 146, at.width - 0.78 * pitch)
            marks.append(rect(f"score-{key}", away, at.scores.bottom, 0.78 * pitch, 0, role))
            middle = away + 0.39 * pitch
            names.append(
                text(f"score-{key}-name", middle, at.scores.bottom - 4, "", "ink", "small", "middle")
            )
            continue
        tip = f"Key {key}: score {shown}"
        marks.append(rect(f"score-{key}", x, top, 0.78 * pitch, at.scores.bottom - top, role, tip))
        free = at.wide and at.scores.bottom - top > 40 and not top + 18 < y(m) < top + 38
        if key == r.pulled and free:  # its number in the bar, under the knob
            ink = "ink" if role == "idle" else "inverse"
            middle = x + 0.39 * pitch
            names.append(
                text(f"score-{key}-name", middle, top + 32, shown, ink, "small", "middle", bold=True, on=role)
            )
            continue
        over = top - (19 if key == r.pulled else 4)
        if y(m) - 2 < over < y(m) + 14:  # the maximum's line would strike it through
            over = y(m) - (19 if key == r.pulled else 4)
        # on a phone, where a number is wider than its bar, this tile's are a little aside or one above another
        places = ((0, 0),) if at.wide else ASIDE if role == "now" else ()
        for aside, up in places:
            middle = x + 0.39 * pitch + aside
            name = text(f"score-{key}-name", middle, over - up, shown, "ink", "small", "middle")
            if at.wide or _free_of(name, names[-2:], taken):
                names.append(name)
                break
    marks += _unread(r, step, at, at.scores.bottom if y(m) < at.scores.bottom - 30 else y(m) - 6)
    seen = _across(r, min((step + 1) * r.tile, len(r.scores)), at)

    def reach(score: float) -> float:
        return y(r.scale * score + r.shift)

    marks = about("s", marks)
    bar = _across(r, r.pulled, at) + at.scores.w / 146 + 0.39 * pitch
    top = y(r.scores[r.pulled])
    grip = handle("pull-score", bar, top, _role(r, r.pulled, step), drag(SCORE, "y", reach))
    return marks + [
        *about(
            "m",
            line(
                "m-line",
                at.scores.x,
                y(m),
                at.scores.right,
                y(m),
                "limit",
                f"Running maximum: {units.number(m, 4)}",
            ),
        ),
        line("m-seen", at.scores.x, y(m), seen, y(m), "ink"),
        text(
            "m-name",
            at.scores.right + 6,
            y(m) + 4,
            f"m = {units.number(m, 4)}" if at.wide else f"m {units.number(m, 3)}",
            "ink",
            "big" if at.wide else "small",
            bold=True,
        ),
        *names,  # after the lines, so that none strikes a number through
        grip,
    ]


def _unread(r: Result, step: int, at: Panels, low: float) -> list[dict]:
    """Name each tile that has not been read yet, because its scores are unknown."""
    marks = []
    for i in range(step + 1, len(r.states)):
        left, right = _across(r, i * r.tile, at), _across(r, min((i + 1) * r.tile, len(r.scores)), at)
        box = rect(
            f"unread-{i}",
            left + 4,
            low - 24,
            right - left - 8,
            24,
            "idle",
            f"tile {i} is not read yet",
        )
        if not i * r.tile <= r.pulled < (i + 1) * r.tile:  # whose score is in one's hand is known
            words = "not read yet" if at.wide else "unread"
            marks.append(box)
            if text_width(words, "small") < right - left - 14:
                middle = (left + right) / 2
                marks.append(
                    text(
                        f"unread-{i}-name",
                        middle,
                        low - 8,
                        words,
                        "muted",
                        "small",
                        "middle",
                        on="idle",
                    )
                )
    return marks


def _free_of(name: dict, others: list[dict], taken: list[tuple]) -> bool:
    """Return whether a number covers none of the others, no knob and no line."""
    left, top, right, low = extent(name)
    return all(right < a or c < left or low < b or d < top for a, b, c, d in (*map(extent, others), *taken))


def _weights(r: Result, step: int, at: Panels) -> list[dict]:
    """Draw the weight of each key relative to the largest so far, with an outline of its weight before this tile."""
    y = linear(0, 1, at.weights.bottom, at.weights.y)
    state, pitch = r.states[step], at.weights.w / len(r.scores)
    title = "Weight of each key: exp(score − m)" if at.wide else "Weights: exp(score − m)"
    marks = [
        text("weights-title", 0, at.weights.y - 10, title, bold=True),
        line("weights-axis", at.weights.x, at.weights.bottom, at.weights.right, at.weights.bottom, "axis"),
    ]
    for key, score in enumerate(r.scores):
        x, role = _across(r, key, at) + at.scores.w / 146, _role(r, key, step)
        if role == "idle":
            marks.append(rect(f"weight-{key}", x, at.weights.bottom, 0.78 * pitch, 0, role))
            continue
        if role == "primary" and state.rescale < 1:
            before = y(math.exp(score - r.states[step - 1].m))
            marks.append(rect(f"before-{key}", x, before, 0.78 * pitch, at.weights.bottom - before, "idle"))
        top, weight = y(math.exp(score - state.m)), EXACT(math.exp(score - state.m))
        tip = f"Key {key}: exp({units.number(score, 4)} − {units.number(state.m, 4)}) = {weight}; its value {units.number(r.values[key])}"
        marks += about("l", rect(f"weight-{key}", x, top, 0.78 * pitch, at.weights.bottom - top, role, tip))
    marks += _values(r, step, at)
    if step and state.rescale < 1:
        words = f"{'earlier weights ' if at.wide else ''}× {EXACT(state.rescale)}"
        right = at.weights.right
        marks += about(
            "factor", text("rescale", right, at.weights.y - 10, words, "primary", "big", "end", True)
        )
    return marks


def _total(r: Result, step: int, at: Panels) -> list[dict]:
    """Write the running sum at the end of the bars that it sums."""
    x, y = at.weights.right + 6, at.weights.bottom - 34
    return [
        text("l-title", x, y, "sum l" if at.wide else "sum", "muted", "small"),
        *about(
            "l",
            text(
                "l-name", x, y + 20, SHORT(r.states[step].l), "ink", "big" if at.wide else "body", bold=True
            ),
        ),
    ]


def _values(r: Result, step: int, at: Panels) -> list[dict]:
    """Write the value of each key that was read under its weight, because the answer is their mean by these weights."""
    low, pitch, marks = at.weights.bottom + 15, at.weights.w / len(r.scores), []
    if at.wide:
        marks.append(text("values-title", at.weights.right + 6, low, "values", "muted", "small"))
    for key, value in enumerate(r.values):
        middle = _across(r, key, at) + at.scores.w / 146 + 0.39 * pitch
        shown = "" if _role(r, key, step) == "idle" else units.number(value)
        under = 0 if at.wide or pitch > 18 else 13 * (key % 2)  # on a phone, neighbours would touch
        marks.append(text(f"value-{key}", middle, low + under, shown, "muted", "small", "middle"))
    return about("o", marks)


def _output(r: Result, step: int, at: Panels) -> list[dict]:
    """Draw the output on a line of numbers. It goes to the whole row's, and without the factor somewhere else."""
    x, y = linear(*OUTPUTS, at.output.x, at.output.right), at.output.y
    now, whole, wrong = r.states[step].output, r.whole_row_output, r.unscaled_outputs[step]
    goal, shown = f"whole row at once: {EXACT(whole)}", EXACT(now)
    place = min(
        max(x(whole), text_width(goal, "small") / 2 + 4), at.width - text_width(goal, "small") / 2 - 4
    )
    marks = [
        text(
            "output-title",
            0,
            y - 46,
            "Answer so far: the mean of the values, by weight"
            if at.wide
            else "Answer so far: the values’ mean, by weight",
            bold=True,
        ),
        line("output-axis", x.start, y, x.end, y, "axis"),
        text("output-low", x.start - 8, y + 4, units.number(x.lo), "muted", "small", "end"),
        text("output-high", x.end + 8, y + 4, units.number(x.hi), "muted", "small"),
        line("whole", x(whole), y - 20, x(whole), y + 7, "limit", goal),
        text("whole-name", place, y - 26, goal, "ink", "small", "middle"),
    ]
    for i, state in enumerate(r.states[:step]):
        tip = f"After tile {i}: output {EXACT(state.output)}"
        marks.append(circle(f"dot-{i}", x(state.output), y, 3.5, "primary", tip))
    apart = abs(wrong - now) > 5e-4
    if _overflows(r):
        words = "without m: ∞ / ∞, no answer at all"
        marks.append(
            text(
                "without-m",
                x.start,
                y + 41,
                words if at.wide else "without m: ∞ / ∞",
                "hot",
                "body" if at.wide else "small",
                bold=True,
            )
        )
    elif apart:  # the same mistake as leaving out the multiplication by the factor
        words = f"without the factor: {EXACT(wrong)}"
        half = text_width(words, "small", True) / 2
        middle = min(max(x(wrong), half + 4), at.width - half - 4)
        tip = f"a kernel that never rescales would say {EXACT(wrong)}"
        marks += [
            line("wrong-a", x(wrong) - 5, y - 5, x(wrong) + 5, y + 5, "hot", tip),
            line("wrong-b", x(wrong) - 5, y + 5, x(wrong) + 5, y - 5, "hot", tip),
            text("wrong-name", middle, y + 41, words, "hot", "small", "middle", bold=True),
        ]
    marks.append(circle("dot", x(now), y, 7, "now", f"After tile {step}: output {shown}"))
    words = f"{shown}, the same" if step == len(r.states) - 1 else shown
    half = text_width(words, "big", True) / 2 + 4
    middle = min(max(x(now), half), at.width - half)
    return about("o", marks) + [text("o-name", middle, y + 25, words, "now", "big", "middle", True)]


def _tiles(r: Result, at: Panels) -> list[dict]:
    """Draw where one tile ends and the next begins."""
    marks = []
    for i in range(1, len(r.states)):
        x, panels = _across(r, i * r.tile, at), enumerate((at.scores, at.weights))
        marks += [line(f"tile-{i}-{p}", x, box.y - 8, x, box.bottom, "grid") for p, box in panels]
    return marks


def _names(r: Result, step: int, at: Panels) -> list[dict]:
    """Name the tiles where there is room, each that was read with the factor it brought."""
    marks, room = [], _across(r, r.tile, at) - _across(r, 0, at)
    if _overflows(r) and not at.wide:  # there stands what would be infinite
        return []
    for i, state in enumerate(r.states):
        names = [f"tile {i}, factor {EXACT(state.rescale)}"] * (0 < i <= step) + [f"tile {i}", str(i)]
        words = next((name for name in names if text_width(name, "small") < room - 4), "")
        middle = _across(r, (i + 0.5) * r.tile, at)
        marks.append(text(f"tile-{i}", middle, at.scores.bottom + 27, words, "muted", "small", "middle"))
    return marks if r.tile > (1 if at.wide else 2) else []


def _caption(r: Result, step: int) -> str:
    state = r.states[step]
    if not step:
        return f"Tile 0 is the first: m goes from −∞ to {units.number(state.m, 4)}. There is nothing yet to rescale."
    high = units.number(state.tile_max, 4)
    if state.rescale < 1:
        return (
            f"Tile {step} brings {high}, a larger maximum: all weights so far are multiplied "
            f"by {EXACT(state.rescale)}, then the tile is added."
        )
    return f"Tile {step} brings at most {high}, no more than m: the factor is 1, the tile is only added."


def _formula(r: Result, step: int) -> tuple[tuple[str, str], ...]:
    new = r.states[step]
    m = units.number(new.m, 4)
    if step:
        now = f"exp({units.number(r.states[step - 1].m, 4)} − {{m:{m}}}) = {EXACT(new.rescale)}"
    else:
        now = f"first tile, {{m:m = {m}}}: nothing to rescale"
    return (("{factor} = exp(old m − {m:new m})", now),)


def _table(r: Result):
    columns = ("tile", "tile max", "m", Column("rescale", show=EXACT), Column("l", show=SHORT))
    rows = [(str(i), s.tile_max, s.m, s.rescale if i else "–", s.l, s.output) for i, s in enumerate(r.states)]
    return table((*columns, Column("output", show=EXACT)), rows)


def _warning(r: Result, step: int) -> str:
    if not _overflows(r):
        return ""
    m = r.states[step].m
    if m <= LARGEST_FP32:
        return "A later score's exponential is beyond fp32: without m the sum would be infinite."
    return f"exp({units.number(m, 4)}) is beyond fp32: without m the sum would be infinite."


def _takeaway(r: Result, step: int) -> str:
    if _overflows(r):
        return "Only differences from m are exponentiated, so nothing overflows and nothing else changes."
    if r.tile == len(r.scores):
        return "One tile with all keys is ordinary softmax, which needs the whole row at once."
    if not any(state.rescale < 1 for state in r.states[1:]):
        return "With the largest score first nothing is ever rescaled, and the answer is the same."
    if step == len(r.states) - 1:
        return "Three running numbers gave the whole row's softmax exactly, as they do in any order."
    if r.tile == 1:
        return "Even key by key, three running numbers are enough: a larger maximum only rescales them."
    return "Three running numbers give the whole row's softmax. A larger maximum only rescales them."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    at = PLACES[width == WIDE]
    tiles, rows = _tiles(r, at), _table(r)
    scenes = []
    for step, state in enumerate(r.states):
        m = figure("m, the largest score so far", state.m, lambda v: units.number(v, 4), term="m")
        shown = EXACT if step else lambda none: "none"
        rescale = figure("factor on earlier weights", state.rescale, shown, term="factor")
        changed = f"what came before was multiplied by {rescale.text}" if step else f"nothing came before (factor {rescale.text})"  # fmt: skip
        total = figure("l, the sum of weights", state.l, SHORT, term="l")
        output = figure("answer so far", state.output, EXACT, "now", "o")
        scenes.append(
            Scene(
                summary=f"After tile {step} of {len(r.states)}: m is {m.text}, {changed}, l is {total.text} and the "
                f"answer {output.text}.",
                takeaway=_takeaway(r, step),
                marks=tiles
                + _names(r, step, at)
                + _weights(r, step, at)
                + _scores(r, step, at)
                + _total(r, step, at)
                + _infinite(r, step, at)
                + _output(r, step, at),
                figures=(m, rescale, total, output),
                table=rows,
                height=HEIGHT[at.wide],
                width=width,
                formula=_formula(r, step),
                warning=_warning(r, step),
                caption=_caption(r, step),
            )
        )
    return scenes


def start(r: Result) -> int:
    """Open at the end, where the answer is the whole row's."""
    return len(r.states) - 1


SIMULATOR = Declaration(
    title="Online softmax",
    question="How can softmax be exact without ever seeing the whole row?",
    controls=(
        select("order", "Order of the keys", "given", ORDERS),
        TILE,
        SCORE,
        slider(
            "scale",
            "Scale of the scores",
            1.0,
            0.25,
            2.0,
            step=0.25,
            more=True,
            help="Larger: one key takes all.",
        ),
        steps("shift", "Added to every score", 0, (0, 10, 50, 100), more=True, help="Changes nothing but m."),
    ),
    presets={
        "Four tiles of four": {},
        "Largest first": {"order": "falling"},
        "Key by key, smallest first": {"order": "rising", "tile": 1},
        "All at once": {"tile": 16},
        "Overflow": {"shift": 100},
    },
    run=run,
    stepper=Stepper("tile", frames, start),
    prediction=Prediction(
        "The first tile's largest score is 3, the second's is 5. By what factor is everything gathered "
        "from the first tile multiplied when the second arrives?",
        "first_shrink",
        tolerance=0.05,
    ),
    source="Real kernels; Performance Engineering",
)

"""Choose the rounds that make a 70B model fast, one after the other, and see how each shortens a token's time."""

from dataclasses import dataclass, replace
from itertools import permutations

from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, linear, text_width
from widgets.controls import select, slider
from widgets.declare import Declaration, Prediction
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
    drag,
    extent,
    figure,
    handle,
    line,
    rect,
    sets,
    table,
    text,
)

START, PRECISION, FUSION, GUESSING = cost.ROUNDS
ROUNDS = {"precision": PRECISION, "fusion": FUSION, "guessing": GUESSING}
NAMES = {"precision": "int4 weights", "fusion": "fusion", "guessing": "speculative decoding"}
SHORT_NAMES = {"precision": "int4", "fusion": "fusion", "guessing": "speculation"}
TOLD = tuple(ROUNDS)  # the order of the source
ORDER = select(
    "order",
    "Order of the rounds",
    "guessing-fusion-precision",
    {"-".join(order): ", ".join(SHORT_NAMES[name] for name in order) for order in permutations(ROUNDS)},
)
BASELINE = slider("baseline_ms", "Step before the first round", 85, 20, 150, unit="ms", more=True)
NUMBERS = (
    slider("gemm_cut", "int4 makes the GEMMs shorter by", 45, 0, 100, unit="%", more=True),
    slider("attention_cut", "Fusion makes attention shorter by", 30, 0, 100, unit="%", more=True),
    slider("acceptance", "Chance that a guess is kept", 0.78, 0.0, 1.0, step=0.01),
    slider("drafts", "Guesses per round", 5, 0, 12, more=True),
    BASELINE,
    slider("draft_ms", "Time of all guesses of a round", 4.0, 0.0, 40.0, step=0.5, unit="ms", more=True),
)  # what the report gives
ROLES = {
    "GEMM": "compute",
    "attention": "memory",
    "element-wise": "waste",
    "all-reduce": "network",
    "launch gaps": "overhead",
    "guesses": "now",
}
SHORT = {"element-wise": "element", "all-reduce": "reduce", "launch gaps": "gaps"}  # what fits into a bar
PITCH, THICK, STRIP, HEAD = (
    36,
    20,
    7,
    14,
)  # of the choices, their bars, the parts under the bar of the chosen one, a heading
# (all bars: left, top of the first, width, its height; the knobs; height)
PLACES = {True: (Box(196, 46, 410, 24), 172, 402), False: (Box(26, 50, 210, 24), 10, 462)}
PHONE_PITCH = 46  # where names stand above the bars


@dataclass(frozen=True)
class Round:
    """A round of the source, in its order."""

    name: str
    parts_s: dict[str, float]
    arithmetic_s: float  # between tokens
    from_reported_s: float  # by arithmetic from the figure reported for the round before
    reported_s: float
    ratio: float  # arithmetic over reported
    reported_tokens_s: float  # 0 where none is reported


@dataclass(frozen=True)
class Row:
    """Hold the start or a chosen round, with the time that is left, and the time that each next round would leave."""

    pick: str  # '' at the start
    shares_s: dict[str, float]  # the share of a token's time for each part, and for guessing
    token_s: float
    saved_s: float  # against the row before
    choices_s: dict[str, float]
    best: str
    reported_s: float  # 0 in another order than the source's


@dataclass(frozen=True)
class Result:
    gemm_share: float
    gemm_cut: float
    attention_cut: float
    without_gemm_s: float
    acceptance: float
    drafts: int
    draft_s: float
    tokens_a_round: float
    target_s: float
    picks: tuple[str, ...]
    rounds: tuple[Round, ...]
    rows: tuple[Row, ...]
    end_s: float
    speedup: float
    reported_speedup: float
    rounds_to_target: int  # 0 if the choices never reach it
    first_saves_s: float
    first_as_last_saves_s: float
    after_precision_ms: float
    as_reported: bool  # the shares and cuts are the report's, not the reader's


def run(order, gemm_cut, attention_cut, acceptance, drafts, baseline_ms, draft_ms) -> Result:
    baseline_s, draft_s = baseline_ms * 1e-3, draft_ms * 1e-3
    told = {
        "precision": replace(PRECISION, cuts={"GEMM": gemm_cut / 100}),
        "fusion": replace(FUSION, cuts={**FUSION.cuts, "attention": attention_cut / 100}),
        "guessing": replace(GUESSING, name=f"speculation: {units.counted(drafts, 'guess', 'guesses')}"),
    }

    def played(*picks: str) -> list:
        """Play the rounds in the chosen order. Guesses once begun go on."""
        rounds = [START]
        for i, pick in enumerate(picks):
            rounds.append(replace(told[pick], speculates="guessing" in picks[: i + 1]))
        return cost.playbook(baseline_s, acceptance=acceptance, drafts=drafts, draft_s=draft_s, rounds=rounds)

    given = (gemm_cut, attention_cut, acceptance, drafts, baseline_ms, draft_ms)
    as_reported = given == tuple(one.default for one in NUMBERS)
    picks, source = tuple(order.split("-")), played(*TOLD)
    mine = played(*picks)
    rows = [_row("", mine[0], mine[0].between_tokens_s, draft_s, {}, START.reported_between_tokens_s)]
    for i, pick in enumerate(picks):
        choices = {
            name: played(*picks[:i], name)[-1].between_tokens_s for name in ROUNDS if name not in picks[:i]
        }
        first = (
            i == 0 and pick == TOLD[0] and baseline_ms == BASELINE.default
        )  # one round has no order and no guesses
        said = told[pick].reported_between_tokens_s if first or (picks == TOLD and as_reported) else 0.0
        rows.append(_row(pick, mine[i + 1], rows[-1].token_s, draft_s, choices, said))
    reached = [i for i, row in enumerate(rows) if row.token_s <= cost.PLAYBOOK_TARGETS["between tokens"]]
    others = played(*(name for name in ROUNDS if name != picks[0]))[-1].between_tokens_s
    return Result(
        cost.BASELINE_SHARES["GEMM"],
        gemm_cut / 100,
        attention_cut / 100,
        cost.best_case_s(baseline_s, cost.BASELINE_SHARES, "GEMM"),
        acceptance,
        drafts,
        draft_s,
        cost.expected_tokens(acceptance, drafts),
        cost.PLAYBOOK_TARGETS["between tokens"],
        picks,
        tuple(map(_round, source)),
        tuple(rows),
        rows[-1].token_s,
        rows[0].token_s / rows[-1].token_s,
        START.reported_between_tokens_s / GUESSING.reported_between_tokens_s,
        reached[0] if reached else 0,
        rows[1].saved_s,
        others - source[-1].between_tokens_s,
        source[1].between_tokens_s * 1e3,
        as_reported,
    )


def _round(one) -> Round:
    said = one.round
    return Round(
        said.name, one.parts_s, one.between_tokens_s, one.from_reported_s, said.reported_between_tokens_s,
        one.contradiction, said.reported_tokens_s or 0,
    )  # fmt: skip


def _row(pick: str, one, before_s: float, draft_s: float, choices: dict, reported_s: float) -> Row:
    step_s = {**({"guesses": draft_s} if one.round.speculates else {}), **one.parts_s}
    each = one.between_tokens_s / sum(step_s.values())  # a round of guesses yields several tokens
    shares = {part: each * time_s for part, time_s in step_s.items()}
    best = min(choices, key=choices.get) if choices else ""
    return Row(pick, shares, one.between_tokens_s, before_s - one.between_tokens_s, choices, best, reported_s)


def _parts(r: Result, i: int, x, y: float, high: float) -> list[dict]:
    """Draw a token's time by parts, and name each part that has room and no hatching."""
    row, start, marks = r.rows[i], 0.0, []
    for part, role in ROLES.items():
        share_s = row.shares_s.get(part, 0.0)
        left, wide = x(start), x(start + share_s) - x(start)
        tip = f"{part}: {units.seconds(share_s)} of {units.seconds(row.token_s)}"
        bar = rect(f"row{i}-{part}", left, y, max(0, wide - 1.5), high, role, tip if share_s else "")
        marks += about("gemm" if part == "GEMM" else "left", bar)
        name = SHORT.get(part, part)
        if high > STRIP and role != "waste" and wide > text_width(name, "small") + 10:
            middle = y + high / 2 + 4
            marks.append(
                text(
                    f"row{i}-{part}-name",
                    left + wide / 2,
                    middle,
                    name,
                    "inverse",
                    "small",
                    "middle",
                    on=role,
                )
            )
        start += share_s
    return marks


def _disputed(r: Result) -> bool:
    """Return whether the state is the one that the source reports, a first round whose GEMMs take no time at all."""
    return r.gemm_cut == 1 and r.rows[1].reported_s > 0


def _beside(knob: float, top: float, name: str) -> tuple:
    return knob - 18, top + THICK / 2 + 4, name, "ink", "small", "end"


def _above(left: float, top: float, name: str) -> tuple:
    return left, top - 5, name, "ink", "small", "start"


def _choices(r: Result, i: int, x, y: float, knob: float, wide: bool) -> list[dict]:
    """Draw the time that each open choice would leave, the best choice filled, and the knob that takes one."""
    row, before_s = r.rows[i], r.rows[i - 1].token_s
    names = NAMES if wide else SHORT_NAMES
    pitch, first = (PITCH, y) if wide else (PHONE_PITCH, y + 12)
    places = {name: first + pitch * k for k, name in enumerate(row.choices_s)}
    ends = [top + THICK / 2 for top in places.values()]
    marks = [line(f"pick{i}-line", knob, ends[0], knob, ends[-1], "axis")] if len(ends) > 1 else []
    for name, top in places.items():
        left_s, taken, best = row.choices_s[name], name == row.pick, name == row.best
        slower = left_s > before_s + 1e-9
        role = "useful" if best and left_s < before_s - 1e-9 else "hot" if slower and taken else "idle"
        words = units.seconds(left_s) + ", best" * (best and len(ends) > 1)
        if slower and taken:
            words += f", +{units.seconds(left_s - before_s)}"
        size = "small" if not wide else "big" if best and len(ends) > 1 else "body"
        tip = f"{NAMES[name]} in round {i} would leave {units.seconds(left_s)} a token"
        marks += [
            line(f"pick{i}-{name}-stop", knob - 4, top + THICK / 2, knob + 4, top + THICK / 2, "axis"),
            *sets(
                {ORDER.name: _with(r.picks, i - 1, name)},
                text(f"pick{i}-{name}", *(_beside(knob, top, names[name]) if wide else _above(x(0), top, names[name])), taken, "" if wide else "ground"),
                rect(f"pick{i}-{name}-bar", x(0), top, x(left_s) - x(0), THICK, role, f"{tip}: click to take it"),
                text(f"pick{i}-{name}-ms", x(left_s) + 8, top + 15, words, "ink" if role == "idle" else role, size, bold=best or taken, on="ground"),
            ),
        ]  # fmt: skip
        marks[-1]["role"] = "hot" if slower else marks[-1]["role"]
    marks += _parts(r, i, x, places[row.pick] + THICK, STRIP)
    # only orders that keep the rounds before, one for each round that is left
    to = [_with(r.picks, i - 1, name) for name in row.choices_s]
    pull = drag(ORDER, "y", lambda order: 0.0)
    pull |= {"at": ends, "to": to}
    return [*marks, handle(f"pull-{i}", knob, places[row.pick] + THICK / 2, "now", pull)]


def _longest(r: Result) -> float:
    """Return the time at which the scale ends, the start's or 90 ms, so that cuts leave the axes alone."""
    return max(90e-3, r.rows[0].token_s)


def _with(picks: tuple[str, ...], i: int, name: str) -> str:
    """Return the order in which round i and the round that is `name` are swapped."""
    return "-".join(name if k == i else picks[i] if one == name else one for k, one in enumerate(picks))


def _rows(r: Result, wide: bool) -> list[dict]:
    """Draw the start, and under it each round's choices on the same scale."""
    at, knob, height = PLACES[wide]
    x = linear(0, _longest(r), at.x, at.right)
    target, goal = x(r.target_s), f"target: {units.seconds(r.target_s)}"
    title = (
        "Time between two tokens, and what each choice would leave: click one"
        if wide
        else "Time between two tokens"
    )
    marks = [
        text("title", 0, 14, title, bold=True),
        text("target-name", target, at.y - 8, goal, "muted", "small", "start"),
        text("row0-name", *(_beside(knob, at.y + 2, "start: 16 bits, eager") if wide else _above(at.x, at.y, "start"))),
        *_parts(r, 0, x, at.y, at.h),
        text("row0-ms", x(r.rows[0].token_s) + 8, at.y + 17, units.seconds(r.rows[0].token_s), bold=True, on="ground"),
    ]  # fmt: skip
    y = at.bottom + 18
    for i, row in enumerate(r.rows[1:], 1):
        after = f", after {NAMES[r.rows[i - 1].pick]}" if i > 1 else ""
        marks.append(text(f"row{i}-name", 0, y, f"Round {i}{after}", "ink", "small", bold=True, on="ground"))
        marks += _choices(r, i, x, y + HEAD, knob, wide)
        if _disputed(r) and i == 1:
            place, told = x(row.reported_s), units.seconds(row.reported_s)
            top = y + HEAD
            marks += [
                line("row1-told", place, top - 3, place, top + THICK + STRIP + 2, "measured", f"reported: {told}"),
            ]  # fmt: skip
        y += HEAD + (PITCH if wide else PHONE_PITCH) * len(row.choices_s) + (12 if wide else 10)
    return [*_target(target, at.y - 4, height - 4, marks, goal), *marks]


def _target(x: float, top: float, low: float, marks: list[dict], tip: str) -> list[dict]:
    """Draw the target as a line down all rows, with a gap at each text that it would cross."""
    crossed = [extent(one) for one in marks if one["t"] == "text"]
    gaps = sorted((up - 2, down + 2) for left, up, right, down in crossed if left - 4 < x < right + 4)
    pieces = []
    for up, down in [*gaps, (low, low)]:
        if up - top > 6:
            pieces.append((top, min(up, low)))
        top = max(top, down)
    return [line(f"target{i or ''}", x, a, x, b, "limit", tip) for i, (a, b) in enumerate(pieces)]


def _takeaway(r: Result) -> str:
    if any(row.saved_s < -1e-9 for row in r.rows):
        late = next(i for i, row in enumerate(r.rows) if row.saved_s < -1e-9)
        return f"Guesses that are rarely kept make each token slower in round {late}. Leave them out there."
    one = r.rounds[1]
    if _disputed(r) and one.ratio > 1:
        said, left = units.seconds(one.reported_s), units.seconds(r.without_gemm_s)
        return f"A report claims {said} after int4 alone. With no GEMMs at all, {left} would remain."
    made = units.times(r.speedup)
    if not r.as_reported:
        return f"These numbers give {made} in any order. Order decides only how soon you gain."
    name, goal = NAMES[r.picks[0]].capitalize(), units.seconds(r.target_s)
    rounds = units.counted(r.rounds_to_target, "round")
    return f"{name} first: at most {goal} after {rounds}. Every order ends at {made}."


def _table(r: Result):
    columns = (
        "round",
        "picked",
        Column("time per token", "s", units.seconds),
        Column("saved", "s", lambda s: units.seconds(s).replace("-", "−")),
        *(Column(f"with {name}", "s", units.seconds) for name in NAMES.values()),
        Column("reported", "s", units.seconds),
    )
    rows = [
        (
            str(i) if i else "start",
            NAMES.get(row.pick, "nothing yet"),
            row.token_s,
            row.saved_s if i else "none",
            *(row.choices_s.get(name, "done") if i else "no pick" for name in ROUNDS),
            row.reported_s or "in another order",
        )
        for i, row in enumerate(r.rows)
    ]
    return table(columns, rows)


def _formula(r: Result) -> tuple[tuple[str, str], ...]:
    last = r.rows[-1]
    step_s = (last.token_s * r.tokens_a_round) - r.draft_s
    return (
        (
            "a token = ({draft_ms:guesses} + step) / tokens of {drafts} guesses at {acceptance}",
            f"({units.seconds(r.draft_s)} + {units.seconds(step_s)}) / {units.number(r.tokens_a_round)} = {units.seconds(last.token_s)}",
        ),
    )


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    wide = width == WIDE
    end = figure("between tokens after three rounds", r.end_s, units.seconds, "primary")
    gain = figure("speed against the start", r.speedup, units.times, "primary")
    some = "round" if r.rounds_to_target == 1 else "rounds"
    reach = figure(
        f"{some} until a token takes at most {units.seconds(r.target_s)}",
        r.rounds_to_target,
        lambda n: units.count(n) if n else "no",
    )
    picks = ", then ".join(NAMES[row.pick] for row in r.rows[1:])
    return Scene(
        summary=f"From {units.seconds(r.rows[0].token_s)} between two tokens, {picks} leave {end.text}, which is "
        f"{gain.text} the start's speed; it takes {reach.text} {some} to reach {units.seconds(r.target_s)}.",
        takeaway=_takeaway(r),
        marks=_rows(r, wide),
        figures=(end, gain, reach),
        table=_table(r),
        height=PLACES[wide][2],
        width=width,
        formula=_formula(r),
        legend=(
            *((role, part) for part, role in ROLES.items() if any(row.shares_s.get(part) for row in r.rows)),
            ("useful", "best next"),
            *([("measured line", "claimed by a report")] if _disputed(r) else []),
        ),
    )


SIMULATOR = Declaration(
    title="70B playbook",
    question="Three rounds to make a 70B model fast: which one comes next?",
    controls=(
        ORDER,
        *NUMBERS,
    ),
    presets={
        "Best first": {},
        "As told": {"order": "-".join(TOLD)},
        "GEMMs of no time": {"order": "-".join(TOLD), "gemm_cut": 100},
        "Slow guesses, rarely kept": {
            "order": "fusion-precision-guessing",
            "acceptance": 0.25,
            "draft_ms": 20.0,
        },
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "A decode step takes 85 ms, and 38% of it are GEMMs. 4-bit weights make the GEMMs 45% shorter, and nothing "
        "else changes. How many milliseconds does the step take then?",
        "after_precision_ms",
        "ms",
        0.05,
    ),
    source="Performance Engineering",
)

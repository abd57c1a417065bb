"""Choose the rounds that make a 70B model fast, one after the other, and see how each shortens a token's time."""

from dataclasses import dataclass, replace
from itertools import permutations

from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, linear, text_width
from widgets.controls import select, slider
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, about, drag, figure, handle, line, rect, table, text

START, PRECISION, FUSION, GUESSING = cost.ROUNDS
ROUNDS = {"precision": PRECISION, "fusion": FUSION, "guessing": GUESSING}
NAMES = {"precision": "int4 weights", "fusion": "fusion", "guessing": "guessing"}
TOLD = tuple(ROUNDS)  # the order of the source
ORDER = select(
    "order",
    "Order of the rounds",
    "-".join(TOLD),
    {"-".join(order): ", ".join(NAMES[name].split()[0] for name in order) for order in permutations(ROUNDS)},
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
    "element-wise": "useful",
    "all-reduce": "network",
    "launch gaps": "overhead",
    "guesses": "now",
}
SHORT = {"element-wise": "element", "all-reduce": "reduce", "launch gaps": "gaps"}  # what fits into a bar
# (the bars, pitch of the rows, the choices of the first round: their bars' room and pitch, height)
PLACES = {
    True: (Box(0, 40, 340, 30), 92, Box(546, 118, 104, 24), 386),
    False: (Box(0, 44, 262, 26), 134, Box(122, 173, 130, 20), 506),
}


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
    """Hold the start or a chosen round: the time that is left, and the time that each next round would leave."""

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
        )  # one round: no order, no guesses
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


def _bar(r: Result, i: int, x, y: float, high: float) -> list[dict]:
    """Draw a token's remaining time by parts, the time that the round removed, and the reported time."""
    row, start, marks = r.rows[i], 0.0, []
    before = r.rows[max(0, i - 1)].token_s
    for part, role in ROLES.items():
        share_s = row.shares_s.get(part, 0.0)
        left, wide = x(start), x(start + share_s) - x(start)
        tip = f"{part}: {units.seconds(share_s)} of {units.seconds(row.token_s)}"
        bar = rect(f"row{i}-{part}", left, y, max(0, wide - 1.5), high, role, tip if share_s else "")
        marks += about("gemm" if part == "GEMM" else "left", bar)
        name = SHORT.get(part, part)
        if wide > text_width(name, "small") + 10:
            middle = left + wide / 2
            marks.append(
                text(
                    f"row{i}-{part}-name",
                    middle,
                    y + high / 2 + 4,
                    name,
                    "inverse",
                    "small",
                    "middle",
                    on=role,
                )
            )
        start += share_s
    end, target, words = max(x(row.token_s), x(before)), x(r.target_s), units.seconds(row.token_s)
    if end < target < end + 12 + text_width(words, bold=True):
        end = target - 2  # the target's line doesn't cross the result
    if row.saved_s > 0:
        tip = f"saved: {units.seconds(row.saved_s)}"
        marks.append(rect(f"row{i}-saved", x(row.token_s), y, x(before) - x(row.token_s), high, "idle", tip))
    role = _verdict(r, i, row.token_s) or "ink"
    if role == "hot":
        words += f", +{units.seconds(-row.saved_s)}"
    marks.append(text(f"row{i}-ms", end + 8, y + high / 2 + 5, words, role, bold=True, on="ground"))
    if _disputed(r) and i == 1:
        place, told = x(row.reported_s), units.seconds(row.reported_s)
        rest = units.seconds(r.without_gemm_s)
        marks += [
            line("row1-told", place, y + high + 1, place, y + high + 6, "measured", f"reported: {told}"),
            text("row1-told-ms", 0, y + high + 17, f"reported: {told}, but without GEMMs it is {rest}", "measured", "small", on="ground"),
        ]  # fmt: skip
    return marks


def _disputed(r: Result) -> bool:
    """Return whether the state asks what the source reports: a first round whose GEMMs take no time at all."""
    return r.gemm_cut == 1 and r.rows[1].reported_s > 0


def _verdict(r: Result, i: int, token_s: float) -> str:
    """Return the role of a time that round i leaves: slower than before, within the target, or neither."""
    if i and token_s > r.rows[i - 1].token_s + 1e-9:
        return "hot"
    return "useful" if token_s <= r.target_s else ""


def _chooser(r: Result, i: int, at: Box) -> list[dict]:
    """Draw what each choice would leave as a bar on one scale, and the knob that takes one of them."""
    row, x = r.rows[i], linear(0, _longest(r), at.x, at.right)
    places = {name: at.y + at.h * k for k, name in enumerate(ROUNDS)}
    ends = list(places.values())
    marks = [line(f"pick{i}-line", at.x - 16, ends[0], at.x - 16, ends[-1], "axis")]
    for name, y in places.items():
        open_, chosen = name in row.choices_s, name == row.pick
        best = name == row.best and len(row.choices_s) > 1
        role = "ink" if chosen or best else "muted"
        words = units.seconds(row.choices_s[name]) if open_ else "done"
        if open_:
            role = _verdict(r, i, row.choices_s[name]) or role
        end = x(row.choices_s[name]) if open_ else at.x
        marks += [
            line(f"pick{i}-{name}-stop", at.x - 20, y, at.x - 12, y, "axis"),
            text(f"pick{i}-{name}", at.x - 36, y + 4, NAMES[name], "ink" if open_ else "muted", "small", "end", chosen),
            text(f"pick{i}-{name}-ms", end + 6, y + 4, words + ", best" * best, role, "small", bold=best or chosen),
        ]  # fmt: skip
        if open_:
            tip = f"{NAMES[name]} in round {i} would leave {units.seconds(row.choices_s[name])} a token"
            marks.append(
                rect(f"pick{i}-{name}-bar", at.x, y - 7, end - at.x, 14, "primary" if chosen else "idle", tip)
            )
    pull = drag(ORDER, "y", lambda order: places[order.split("-")[i - 1]])
    # only orders that keep the rounds before, one for each round that is left
    to = [_with(r.picks, i - 1, name) for name in ROUNDS if name in row.choices_s]
    pull |= {"at": [pull["at"][pull["to"].index(order)] for order in to], "to": to}
    return [*marks, handle(f"pull-{i}", at.x - 16, places[row.pick], "now", pull)]


def _longest(r: Result) -> float:
    """Return the time at which both scales end: the start's, or 90 ms, so that cuts leave the axes alone."""
    return max(90e-3, r.rows[0].token_s)


def _with(picks: tuple[str, ...], i: int, name: str) -> str:
    """Return the order in which round i and the round that is `name` have changed places."""
    return "-".join(name if k == i else picks[i] if one == name else one for k, one in enumerate(picks))


def _rows(r: Result, wide: bool) -> list[dict]:
    at, pitch, choices, _ = PLACES[wide]
    x = linear(0, _longest(r), at.x, at.right)
    target = x(r.target_s)
    words = f"target: {units.seconds(r.target_s)}"
    marks = [text("target-name", max(target - 36, 142), at.y - 6, words, "muted", "small")]
    marks.append(text("title", 0, 14, "Time between two tokens", bold=True))
    if wide:
        marks.append(text("picks-title", choices.x - 114, 14, "Which round next?", bold=True))
        marks.append(
            text(
                "picks-what", choices.x - 114, 34, "what each would leave of a token's time", "muted", "small"
            )
        )
    for i, row in enumerate(r.rows):
        y = at.y + pitch * i - (0 if wide or not i else 66)
        name = f"round {i}: {NAMES[row.pick]}" if i else "start: 16 bits, eager"
        marks.append(text(f"row{i}-name", 0, y - 6, name, "ink", "small", bold=bool(i), on="ground"))
        marks += _bar(r, i, x, y, at.h)
        marks.insert(0, line(f"target{i}", target, y - 4, target, y + at.h + 4, "limit", words))
        if i:
            marks += _chooser(r, i, replace(choices, y=choices.y + pitch * (i - 1)))
    return marks


def _takeaway(r: Result) -> str:
    picks = r.picks
    if any(row.saved_s < -1e-9 for row in r.rows):
        return "Guesses that are rarely kept make every token slower."
    if picks != TOLD:
        first, last = units.seconds(r.first_saves_s), units.seconds(r.first_as_last_saves_s)
        return f"{NAMES[picks[0]].capitalize()} saves {first} as the first round, {last} as the last. The end is the same."
    one = r.rounds[1]
    if r.gemm_cut == 1 and one.ratio > 1:
        return f"Even GEMMs that take no time leave {units.seconds(r.without_gemm_s)}. The report says {units.seconds(one.reported_s)}."
    made = units.times(r.speedup)
    if not r.as_reported:
        return f"These numbers give {made} in any order. Order decides only who looks good."
    best = r.rows[1].best
    most = units.seconds(r.rows[0].token_s - r.rows[1].choices_s[best])
    return f"{NAMES[best].capitalize()} first would save most, {most}. Any order ends at {made}."


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
        f"{some} until a token takes {units.seconds(r.target_s)}",
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
        height=PLACES[wide][3],
        width=width,
        formula=_formula(r),
        legend=(
            *((role, part) for part, role in ROLES.items() if any(row.shares_s.get(part) for row in r.rows)),
            ("idle", "saved"),
            *([("measured line", "reported by the source")] if _disputed(r) else []),
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
        "As told": {},
        "Guessing first": {"order": "guessing-fusion-precision"},
        "Fusion first": {"order": "fusion-precision-guessing"},
        "GEMMs of no time": {"gemm_cut": 100},
        "Slow guesses, rarely kept": {"acceptance": 0.25, "draft_ms": 20.0},
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

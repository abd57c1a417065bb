"""The 70B playbook, round by round: what was reported, beside what its own shares and cuts come to."""

from dataclasses import dataclass, replace

from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, linear, text_width
from widgets.controls import slider
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import WIDE, Column, Scene, about, drag, figure, handle, line, rect, table, text

GEMM_CUT = slider("gemm_cut", "int4 makes the GEMMs shorter by", 45, 0, 100, unit="%")
ATTENTION_CUT = slider("attention_cut", "Fusion makes attention shorter by", 30, 0, 100, unit="%")
KEPT = slider("acceptance", "Chance that a guess is kept", 0.78, 0.0, 1.0, step=0.01)
GUESSES = slider("drafts", "Guesses a round", 5, 0, 12)
DRAFT = slider("draft_ms", "Time of all guesses of a round", 4.0, 0.0, 40.0, step=0.5, unit="ms", more=True)
# (the bars, the pitch of the rounds, their right edge)
PLACES = {True: (Box(88, 8, 440, 4 * 84), 84, 720), False: (Box(0, 8, 258, 4 * 116), 116, 340)}
AGREE = 0.04  # relative: what rounding of the reported figures explains
ROLES = {
    "GEMM": "compute",
    "attention": "memory",
    "element-wise": "useful",
    "all-reduce": "network",
    "launch gaps": "overhead",
    "guesses": "now",
}

KEY = (*((role, part) for part, role in ROLES.items()), ("idle", "reported"))
SHORT = {"element-wise": "element", "all-reduce": "reduce", "launch gaps": "gaps"}  # what fits into a bar


@dataclass(frozen=True)
class Round:
    name: str
    parts_s: dict[str, float]
    shares_s: dict[str, float]  # what each part, and guessing, takes of a token
    arithmetic_s: float  # between tokens
    from_reported_s: float  # by arithmetic from the figure reported for the round before
    reported_s: float
    ratio: float  # arithmetic over reported
    admitted: int
    reported_tokens_s: float  # 0 where none is reported
    requests_in_flight: float  # what rate and interval need; 0 where no rate is reported
    reported_first_token_s: float


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
    target_tokens_s: float
    rounds: tuple[Round, ...]
    after_precision_ms: float
    speedup: float
    reported_speedup: float


def run(gemm_cut, attention_cut, acceptance, drafts, baseline_ms, draft_ms) -> Result:
    baseline_s, draft_s = baseline_ms * 1e-3, draft_ms * 1e-3
    first, precision, fusion, guessing = cost.ROUNDS
    rounds = (
        first,
        replace(precision, cuts={"GEMM": gemm_cut / 100}),
        replace(fusion, cuts={**fusion.cuts, "attention": attention_cut / 100}),
        replace(guessing, name=f"speculation: {units.counted(drafts, 'guess', 'guesses')}"),
    )
    given = {"acceptance": acceptance, "drafts": drafts, "draft_s": draft_s, "rounds": rounds}
    results = tuple(_round(one, draft_s) for one in cost.playbook(baseline_s, **given))
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
        cost.PLAYBOOK_TARGETS["tokens_s"],
        results,
        results[1].arithmetic_s * 1e3,
        results[0].arithmetic_s / results[-1].arithmetic_s,
        results[0].reported_s / results[-1].reported_s,
    )


def _round(one, draft_s: float) -> Round:
    said = one.round
    step_s = {**({"guesses": draft_s} if said.speculates else {}), **one.parts_s}
    each = one.between_tokens_s / sum(step_s.values())  # a round of guesses yields several tokens
    return Round(
        said.name,
        one.parts_s,
        {part: each * time_s for part, time_s in step_s.items()},
        one.between_tokens_s,
        one.from_reported_s,
        said.reported_between_tokens_s,
        one.contradiction,
        said.batch,
        said.reported_tokens_s or 0,
        one.implied_requests or 0,
        said.reported_first_token_s or 0,
    )


def _agrees(one: Round) -> bool:
    return abs(one.ratio - 1) <= AGREE


def _scale(r: Result, at: Box):
    return linear(0, max(90e-3, r.rounds[0].arithmetic_s), at.x, at.right)


def _bars(r: Result, i: int, now: bool, places) -> list[dict]:
    """A round, by arithmetic and as reported; all rounds stand, and the one of this step is named in bold."""
    at, pitch, edge = places
    one, y, wide_layout = r.rounds[i], at.y + pitch * i, edge > 400
    x, drawn = _scale(r, at), cost.ROUNDS[i].speculates
    marks = [text(f"round{i}", 0, y + 14, one.name, "ink" if now else "muted", bold=now, on="ground")]
    y += 0 if wide_layout else 30
    if wide_layout:
        marks.append(text(f"round{i}-a", at.x - 10, y + 34, "arithmetic", "primary", "small", "end"))
        marks.append(text(f"round{i}-r", at.x - 10, y + 69, "reported", "muted", "small", "end"))
    else:
        marks.append(text(f"round{i}-a", 0, y + 18, "arithmetic", "primary", "small"))
        marks.append(text(f"round{i}-r", 0, y + 84, "reported", "muted", "small"))
    start = 0.0
    for p, (part, share_s) in enumerate(one.shares_s.items()):
        left, wide = x(start), x(start + share_s) - x(start)
        tip = f"round {i}, {part}: {units.seconds(share_s)} of {units.seconds(one.arithmetic_s)} a token"
        bar = rect(f"round{i}-{part}", left, y + 22, max(0, wide - 1.5), 16, ROLES[part], tip)
        term = (
            "share"
            if (i, part) == (0, "GEMM")
            else "step"
            if i == 0
            else "attention_cut"
            if part == "attention"
            else "left"
        )
        marks += about(term, bar)
        name = SHORT.get(part, part)
        if wide > text_width(name, "small") + 4:
            marks.append(
                text(f"round{i}-{p}-name", left + wide / 2, y + 34, name, "inverse", "small", "middle")
            )
        start += share_s
    # between the two bars, whose ends it leaves free, the knob
    told, end, pulled = units.seconds(one.reported_s), x(start), _pulled(r, i, x, y + 48)
    beside = _clear_of_knob(pulled, x(one.reported_s) + 8, told)
    ours, more = units.seconds(one.arithmetic_s), "hot" if one.ratio > 1 + AGREE else "ink"
    marks += [
        text(f"round{i}-a-ms", end + (18 if drawn else 8), y + 35, ours, more, bold=True, on="ground"),
        rect(
            f"round{i}-told",
            at.x,
            y + 58,
            x(one.reported_s) - at.x,
            14,
            "idle",
            f"round {i}, reported: {told}",
        ),
        text(f"round{i}-r-ms", _clear_of(x(r.target_s), beside, told), y + 70, told, "ink", bold=True),
    ]
    return marks + pulled + _beside(one, i, at.y + pitch * i, edge)


def _pulled(r: Result, i: int, x, y: float) -> list[dict]:
    """What a round is about, in the hand: the GEMMs' end, attention's end, the end of a guessed token."""
    first, fused = r.rounds[0].parts_s, r.rounds[2].parts_s
    if i == 1:
        return [
            handle(
                "pull-gemm",
                x(first["GEMM"] * (1 - r.gemm_cut)),
                y,
                "compute",
                drag(GEMM_CUT, "x", lambda cut: x(first["GEMM"] * (1 - cut / 100))),
            )
        ]
    if i == 2:
        return [
            handle(
                "pull-attention",
                x(fused["GEMM"] + first["attention"] * (1 - r.attention_cut)),
                y,
                "memory",
                drag(ATTENTION_CUT, "x", lambda cut: x(fused["GEMM"] + first["attention"] * (1 - cut / 100))),
            )
        ]
    if i == 3:
        whole = r.rounds[3].arithmetic_s * r.tokens_a_round
        return [
            handle(
                "pull-kept",
                x(r.rounds[3].arithmetic_s),
                y,
                "primary",
                drag(KEPT, "x", lambda kept: x(whole / cost.expected_tokens(kept, r.drafts))),
            )
        ]
    return []


def _clear_of(upright: float, left: float, words: str) -> float:
    """Where bold words begin: at `left`, or past the upright line that would strike them through."""
    return upright + 6 if left - 2 < upright < left + text_width(words, bold=True) + 2 else left


def _clear_of_knob(pulled: list[dict], left: float, words: str) -> float:
    """Where bold words begin: at `left`, or right of the knob that would cover them."""
    if pulled and left < pulled[0]["x"] + 20 and pulled[0]["x"] - 20 < left + text_width(words, bold=True):
        return pulled[0]["x"] + 20
    return left


def _beside(one: Round, i: int, y: float, edge: float) -> list[dict]:
    """What else is reported of the round, at the right edge."""
    if not one.reported_tokens_s:
        return []
    fits = one.requests_in_flight <= 1.1 * one.admitted
    needs = f"{units.number(one.requests_in_flight, 2)} requests at once, {one.admitted} admitted"
    rate = f"reported {units.count(one.reported_tokens_s)} tokens/s need {needs}"
    if edge < 400:
        rate = f"{units.count(one.reported_tokens_s)} tokens/s need {needs.replace(' requests at once', '')}"
        y += 20
    role = "muted" if fits else "hot"
    return [text(f"round{i}-rate", edge, y + 14, rate, role, "small", "end", not fits, on="ground")]


def _target(r: Result, at: Box) -> list[dict]:
    x = _scale(r, at)(r.target_s)
    name = f"target: {units.seconds(r.target_s)}"
    return [
        line("target", x, at.y + 20, x, at.bottom - 6, "limit", name),
        text("target-name", x, at.bottom + 10, name, "muted", "small", "middle"),
    ]


def _caption(r: Result, i: int) -> str:
    one = r.rounds[i]
    ms, told = units.seconds(one.arithmetic_s), units.seconds(one.reported_s)
    if i == 0:
        return (
            f"Little's law: {units.count(one.reported_tokens_s)} tokens/s at {told} need "
            f"{units.number(one.requests_in_flight, 2)} requests at once, and only {one.admitted} are admitted."
        )
    if i == 1:
        return (
            f"{units.percent(r.gemm_cut, 0)} off a part of {units.percent(r.gemm_share, 0)} leaves {ms}, not {told}: "
            f"even GEMMs of no time at all would leave {units.seconds(r.without_gemm_s)}."
        )
    from_before = (
        f"From the {units.seconds(r.rounds[i - 1].reported_s)} reported before, the same arithmetic gives "
    )
    if i == 2:
        return f"{from_before}{units.seconds(one.from_reported_s)}, and {told} is reported; from the start it is {ms}."
    return (
        f"{from_before}{units.seconds(one.from_reported_s)} at {_tokens(r.tokens_a_round)} a round, "
        f"and {told} is reported; from the start it is {ms}."
    )


def _tokens(value: float) -> str:
    said = units.number(value)
    return f"{said} token" if said == "1" else f"{said} tokens"


def _table(r: Result):
    columns = (
        "round",
        Column("arithmetic", "s", units.seconds),
        Column("from the report before", "s", units.seconds),
        Column("reported", "s", units.seconds),
        Column("reported tokens/s", show=units.count),
        Column("requests that needs"),
        Column("admitted", show=units.count),
        Column("reported first token", "s", units.seconds),
    )
    rows = [
        (
            x.name,
            x.arithmetic_s,
            x.from_reported_s,
            x.reported_s,
            x.reported_tokens_s or "not given",
            x.requests_in_flight or "not given",
            x.admitted,
            x.reported_first_token_s or "not given",
        )
        for x in r.rounds
    ]
    return table(columns, rows)


def _takeaway(r: Result, i: int) -> str:
    """Does this round add up?"""
    first, one, last = r.rounds[0], r.rounds[i], r.rounds[-1]
    if i == 0:
        needs = units.number(one.requests_in_flight, 2)
        return f"Not even the baseline adds up: its rate needs {needs} requests at once, and {one.admitted} are admitted."
    if i == 1 and not _agrees(one):
        most, told = first.arithmetic_s / r.without_gemm_s, first.reported_s / one.reported_s
        return (
            f"No: with GEMMs at {units.percent(r.gemm_share, 0)} of the step, shorter GEMMs bring {units.times(most)} at "
            f"most, and {units.times(told)} is reported."
        )
    if i == 3 and last.arithmetic_s > r.rounds[2].arithmetic_s:
        return "Guesses that are rarely kept make a token dearer than without them."
    if i == 3 and not _agrees(last):
        made, told = units.times(r.speedup), units.times(r.reported_speedup)
        return f"No: by arithmetic all rounds together bring {made}, and {told} is reported."
    if not _agrees(one):
        if abs(one.from_reported_s / one.reported_s - 1) <= AGREE:
            return "This round adds up from the report before it, and not from the start: the first error is carried along."
        return "No: neither from the start nor from the report before it does this round come to what is reported."
    return "So far it adds up: the cuts, taken off their own parts, come to what is reported."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    scenes, places = [], PLACES[width == WIDE]
    for i, one in enumerate(r.rounds):
        ours = figure("between tokens, by arithmetic", one.arithmetic_s, units.seconds, "primary")
        told = figure("reported", one.reported_s, units.seconds)
        more = "hot" if one.ratio > 1 + AGREE else "ink"
        ratio = figure("arithmetic over report", one.ratio, units.times, more)
        marks = _target(r, places[0])
        for row in range(4):
            marks += _bars(r, row, row == i, places)
        scenes.append(
            Scene(
                summary=f"Round {i}, {one.name}: {ours.text} between tokens by arithmetic, {told.text} reported, "
                f"a ratio of {ratio.text}.",
                takeaway=_takeaway(r, i),
                marks=marks,
                figures=(ours, told, ratio),
                table=_table(r),
                height=round(places[0].bottom) + 16,
                width=width,
                formula=_formula(r, i),
                legend=KEY,
                caption=_caption(r, i),
            )
        )
    return scenes


def _formula(r: Result, i: int) -> tuple[tuple[str, str], ...]:
    if i == 3:
        step = units.seconds(sum(r.rounds[3].parts_s.values()))
        text_ = f"({units.seconds(r.draft_s)} + {step}) / {units.number(r.tokens_a_round)} = "
        return (
            (
                "a token = ({draft_ms:guesses} + step) / tokens of {drafts} guesses at {acceptance}",
                text_ + units.seconds(r.rounds[3].arithmetic_s),
            ),
        )
    if i == 1:
        text_ = f"{units.seconds(r.rounds[0].arithmetic_s)} · (1 − {{share:{r.gemm_share}}} · {{gemm_cut:{units.number(r.gemm_cut)}}}) = "
        return (("{step} · (1 − {share} · {gemm_cut:cut})", text_ + units.seconds(r.rounds[1].arithmetic_s)),)
    return (("requests at once = tokens/s · {baseline_ms:s a token}", _little(r.rounds[i])),)


def _little(one: Round) -> str:
    rate, held = units.count(one.reported_tokens_s), units.number(one.requests_in_flight)
    return f"{rate} · {one.reported_s} = {held}"


def start(r: Result) -> int:
    """Open at the round that the state changes: the guesses', or the one that the question is about."""
    usual = (KEPT.default, GUESSES.default, DRAFT.default * 1e-3)
    return 3 if (r.acceptance, r.drafts, r.draft_s) != usual else 1


SIMULATOR = Declaration(
    title="70B playbook",
    question="Do the rounds that made a 70B model fast add up?",
    controls=(
        GEMM_CUT,
        ATTENTION_CUT,
        KEPT,
        GUESSES,
        slider("baseline_ms", "Step before the first round", 85, 20, 150, unit="ms", more=True),
        DRAFT,
    ),
    presets={
        "As told": {},
        "Bytes alone: a quarter": {"gemm_cut": 75},
        "GEMMs of no time": {"gemm_cut": 100},
        "Slow guesses, rarely kept": {"acceptance": 0.25, "draft_ms": 20.0},
    },
    run=run,
    stepper=Stepper("round", frames, start),
    prediction=Prediction(
        "A decode step takes 85 ms; 38% of it are GEMMs. Weights of 4 bits make the GEMMs 45% shorter, and nothing "
        "else changes. How many milliseconds does the step take then?",
        "after_precision_ms",
        "ms",
        0.05,
    ),
    source="Performance Engineering",
)

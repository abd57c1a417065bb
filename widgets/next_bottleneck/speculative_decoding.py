"""Guess a few tokens cheaply and check them all in one pass. Show how many result, and when it pays."""

import math
from dataclasses import dataclass

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import (
    Box,
    Part,
    axis_x,
    axis_y,
    bars_up,
    linear,
    steady,
)
from widgets.controls import powers_of_two, select, slider
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import (
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
    sets,
    table,
    text,
    text_width,
)

MOST_BATCH, MOST_DRAFTS = 256, 12
KEPT = slider("acceptance", "Chance that a guess is kept", 0.78, 0.0, 1.0, step=0.01)
GUESSES = slider("drafts", "Guesses a round", 5, 0, MOST_DRAFTS)
BATCH = powers_of_two("batch", "Requests in the batch", 1, 1, MOST_BATCH)
STEPS_SHOWN = 64
FEW, MOST = 4, 12  # plain steps that the run is long, at least and at most, if rounds are short
NEAR = 0.05  # of the best time, a difference too small to count
HIGH, CELL = 14, 20  # of a pass, of a token
# (the clock, y of plain and of guessing, the times by guesses, height)
PLACES = {
    True: (Box(92, 0, 604, 146), 30, 82, Box(58, 234, 650, 156), 420),
    False: (Box(8, 0, 302, 206), 62, 142, Box(56, 298, 276, 176), 504),
}
BITS = {16: "16 bits", 8: "8 bits", 4: "4 bits"}


@dataclass(frozen=True)
class AtGuesses:
    """Hold a token's time with this number of guesses a round, in its two parts."""

    drafts: int
    draft_s: float
    check_s: float
    token_s: float
    verify_s: float  # a whole check, of a round's tokens


@dataclass(frozen=True)
class Result:
    acceptance: float
    drafts: int
    batch: int
    free_tokens: float  # of a pass, the number up to which one more token costs no time
    checked_tokens: int
    chances: tuple[float, ...]  # that a round yields its first, second, ... token
    tokens: float  # a round
    draft_s: float
    verify_s: float
    round_s: float
    plain_s: float
    token_s: float
    speedup: float
    best_drafts: int
    nearly_best: tuple[int, int]  # the fewest and the most guesses within NEAR of the best time
    break_even_acceptance: float  # 1 if no acceptance is enough, 0 without guesses
    at_guesses: tuple[AtGuesses, ...]
    kept: tuple[int, ...]  # guesses that each round of the run keeps
    shown_s: float  # the run's stretch of time
    plain_tokens: int  # that come out in it
    guessed_tokens: int
    pays_up_to: int  # requests, with these guesses, or 0 if they never pay
    policy_guesses: bool


def run(acceptance, drafts, draft_ms, batch, step_ms, weight_bits) -> Result:
    gpu = machine("H100")
    free = cost.free_tokens(gpu.rate("fp16"), gpu.bandwidth, weight_bits / 8)

    def at(guesses: int, requests: int):
        return cost.speculation_from_times(
            acceptance, guesses, requests, draft_token_s=draft_ms * 1e-3, step_s=step_ms * 1e-3, free=free
        )

    now = at(drafts, batch)
    kept = usual_run(_rounds_shown(now), acceptance, drafts, now.tokens)
    shown_s = len(kept) * now.round_s
    even = cost.break_even_acceptance(drafts, now.draft_s, now.verify_s, now.plain_s) if drafts else 0.0
    rounds = [at(k, batch) for k in range(MOST_DRAFTS + 1)]
    times = [one.token_s for one in rounds]
    nearly = [k for k, one in enumerate(times) if one <= (1 + NEAR) * min(times)]
    last = cost.last_batch_that_pays(
        acceptance, drafts, MOST_BATCH, draft_token_s=draft_ms * 1e-3, step_s=step_ms * 1e-3, free=free
    )
    return Result(
        acceptance,
        drafts,
        batch,
        free,
        batch * (drafts + 1),
        tuple(acceptance**i for i in range(drafts + 1)),
        now.tokens,
        now.draft_s,
        now.verify_s,
        now.round_s,
        now.plain_s,
        now.token_s,
        now.speedup,
        times.index(min(times)),
        (min(nearly), max(nearly)),
        1.0 if even is None else even,
        tuple(
            AtGuesses(k, one.draft_s / one.tokens, one.verify_s / one.tokens, one.token_s, one.verify_s)
            for k, one in enumerate(rounds)
        ),
        kept,
        shown_s,
        int(shown_s / now.plain_s + 1e-9),
        sum(kept) + len(kept),
        last,
        cost.speculate(batch),
    )


def _rounds_shown(now) -> int:
    """Return how many rounds the run takes, enough for its tokens to agree with the average if a short run can."""
    rounds = math.ceil(FEW * now.plain_s / now.round_s - 1e-9)
    while rounds * now.round_s < MOST * now.plain_s:
        ahead = round(rounds * now.tokens) - int(rounds * now.round_s / now.plain_s + 1e-9)
        if ahead * (now.speedup - 1) > 0 or now.speedup == 1:
            break
        rounds += 1
    return rounds


def usual_run(rounds: int, acceptance: float, drafts: int, tokens: float) -> tuple[int, ...]:
    """Return the guesses that each round of a run keeps. Of 64 runs it is one that yields the expected tokens,
    without a round of extreme luck."""
    kept = [kept_in(i, acceptance, drafts) for i in range(64 + rounds)]
    runs = [tuple(kept[i : i + rounds]) for i in range(64)]
    return min(
        runs,
        key=lambda run: (abs(sum(run) + rounds - rounds * tokens), max(abs(k + 1 - tokens) for k in run)),
    )


def kept_in(i: int, acceptance: float, drafts: int) -> int:
    """Return how many guesses round i keeps. Rounds halve the range of chances repeatedly, so any few rounds keep
    close to the average.
    """
    chance, half, place = 0.0, 0.5, i + 1
    while place:
        chance, half, place = chance + half * (place & 1), half / 2, place >> 1
    return sum(acceptance ** (j + 1) > chance for j in range(drafts))


def _pass(id: str, x, start_s: float, end_s: float, now_s: float, y: float, role: str, tip: str) -> dict:
    """Draw a pass up to the clock's time. A pass that waits has no width and moves with the clock."""
    left, right = x(min(start_s, now_s)), x(min(end_s, now_s))
    gap = 1 if now_s >= end_s and right - left > 3 else 0
    return rect(id, left, y, right - left - gap, HIGH, role, tip if now_s > start_s else "")


def _token(id: str, x: float, y: float, wide: float, role: str, sign: str, tip: str) -> list[dict]:
    marks = [rect(id, x, y, wide - min(2, wide / 4), CELL, role, tip)]
    if role == "dropped":
        marks.append(line(f"{id}-strike", x - 1, y + CELL / 2, x + wide - 1, y + CELL / 2, "hot"))
    elif sign and wide > text_width(sign, "small") + 4:
        ink, on = ("ink", "idle") if role == "idle" else ("inverse", "")
        marks.append(text(f"{id}-sign", x + wide / 2 - 1, y + 15, sign, ink, "small", "middle", on=on))
    return marks


def _lanes(r: Result, now_s: float, at: Box, plain_y: float, guess_y: float) -> list[dict]:
    """Run both ways on one clock, a token a pass or guesses that one pass keeps or strikes out."""
    x = linear(0, steady("time", r.shown_s), at.x, at.right)
    wide = at.x > 40
    wide_of = lambda seconds: x(seconds) - x(0)  # noqa: E731
    cell = min(26, wide_of(r.plain_s), wide_of(r.round_s) / (r.drafts + 1))
    done = now_s * (1 + 1e-9)
    marks = [line("now-s", x(now_s), plain_y - 6, x(now_s), at.bottom, "now")]
    marks += axis_x("time", x, at.bottom, show=units.seconds, ticks=None if wide else x.ticks(2))
    out = 0
    for i in range(r.plain_tokens + (r.plain_tokens * r.plain_s < r.shown_s * (1 - 1e-9))):
        start, end = i * r.plain_s, (i + 1) * r.plain_s  # the last one goes on beyond the run
        tip = f"Pass {i + 1} yields token {i + 1} after {units.seconds(end)}"
        marks.append(_pass(f"plain-{i}", x, start, end, now_s, plain_y, "secondary", tip))
        if end <= done:
            out = i + 1
            marks += _token(f"plain-{i}-out", x(end) - cell, plain_y + 18, cell, "primary", "+1", tip)
    plain_out, out = _passes(r, now_s), 0
    for i, kept in enumerate(r.kept):
        start = i * r.round_s
        marks += _round(r, i, kept, now_s, x, guess_y, cell)
        out += (kept + 1) * (start + r.round_s <= done)
    for id, y, words, role, tokens in (
        ("plain", plain_y, "plain", "secondary", plain_out),
        ("guess", guess_y, "guessing", "primary", out),
    ):
        told = f"{units.number(tokens)} {'token' if tokens == 1 else 'tokens'}"
        if wide:
            marks.append(text(f"{id}-name", at.x - 12, y + 12, words, role, anchor="end", bold=True))
            marks.append(text(f"{id}-out", at.x - 12, y + 32, told, "ink", anchor="end", bold=True))
        else:
            marks.append(text(f"{id}-name", at.x, y - 9, f"{words}: {told}", role, bold=True, on="ground"))
    title = (
        "One run, both ways on one clock. One pass checks all guesses."
        if wide
        else "One run, both ways on one clock."
    )
    return [text("lanes-title", 0, 13, title, bold=True), *marks]


def _passes(r: Result, now_s: float) -> float:
    """Return the tokens of plain decoding so far, the one in the making as its part, to a tenth."""
    return round(now_s / r.plain_s, 1)


def _round(r: Result, i: int, kept: int, now_s: float, x, y: float, cell: float) -> list[dict]:
    """Draw one round up to the clock's time, with each guess below its own time and, at the end of the check, the tokens
    of the round."""
    start, marks = i * r.round_s, []
    check_s, end = start + r.draft_s, start + r.round_s
    tip = f"Round {i + 1}: guessing takes {units.seconds(r.draft_s)}"
    marks += about("drafts", _pass(f"draft-{i}", x, start, check_s, now_s, y, "overhead", tip))
    tip = f"Round {i + 1}: one pass checks {units.counted(r.drafts + 1, 'place')} in {units.seconds(r.verify_s)}"
    marks += about("check", _pass(f"check-{i}", x, check_s, end, now_s, y, "primary", tip))
    over, each_s = now_s * (1 + 1e-9) >= end, r.draft_s / r.drafts if r.drafts else 0
    told = x(end) - (r.drafts + 1) * cell  # the round's cells end with its check
    for k in range(r.drafts):
        made_s = start + each_s * (k + 1)
        if made_s > now_s * (1 + 1e-9) or now_s <= start:
            break
        role, sign, said, left, wide = "now", "?", "not checked yet", x(made_s - each_s), x(each_s) - x(0)
        if over:
            left, wide = told + k * cell, cell
            role, sign, said = (
                ("primary", "✓", "kept") if k < kept else ("dropped", "", "struck out") if k == kept else
                ("idle", "–", "discarded with it")
            )  # fmt: skip
        tip = f"Round {i + 1}, guess {k + 1}: {said}"
        marks += about("drafts", _token(f"guess-{i}-{k}", left, y + 18, wide, role, sign, tip))
    if over:
        tip = f"Round {i + 1}: the check's own token comes after {units.counted(kept, 'kept guess', 'kept guesses')}"
        marks += about("tokens", _token(f"own-{i}", x(end) - cell, y + 18, cell, "primary", "+1", tip))
    return marks


def _by_guesses(r: Result, at: Box) -> list[dict]:
    """Draw the time of a token over the guesses. Each guess costs its time, and ever fewer more tokens share the
    check."""
    top = steady("guesses", 1.13 * max(one.token_s for one in r.at_guesses))
    y = linear(0, top, at.bottom, at.y)
    few = (
        "no guesses are"
        if r.best_drafts == 0
        else "1 guess is"
        if r.best_drafts == 1
        else f"{r.best_drafts} guesses are"
    )
    best_s = r.at_guesses[r.best_drafts].token_s
    low, high = r.nearly_best
    near = f"; {low} to {high} are within {NEAR:.0%}" if high > low and at.w > 400 else ""
    size, best, detail = (
        "huge" if at.w > 400 else "big",
        f"{few} best",
        f"{units.seconds(best_s)} a token{near}",
    )
    left, after = at.x - 54, at.x - 54 + text_width(f"{few} best", size, True) + 10
    marks = [
        text("guesses-title", left, at.y - 53, "Time per token, by guesses per round", bold=True),
        text("guesses-best", left, at.y - 20, best, "useful", size, bold=True),
        text(
            "guesses-best-s", after, at.y - 20, detail, "useful", "body" if at.w > 400 else "small", bold=True
        ),
    ]
    marks += axis_y("token", y, at.x, show=units.seconds, right=at.right, ticks=(0, r.plain_s))
    columns = []
    for one in r.at_guesses:
        words = f"{_guesses(one.drafts)}: {units.seconds(one.token_s)} a token"
        columns.append(
            (
                str(one.drafts),
                [
                    Part(
                        one.check_s,
                        "useful" if one.drafts == r.best_drafts else "primary",
                        f"{words}, {units.seconds(one.check_s)} of it the check",
                    ),
                    Part(one.draft_s, "overhead", f"{words}, {units.seconds(one.draft_s)} of it guessing"),
                ],
            )
        )
    bars = bars_up("guess-bar", columns, at, y)
    for k in range(len(columns)):  # a click on a bar or on its number chooses it
        mine = [m for m in bars if m["id"] in (f"guess-bar-{k}-0", f"guess-bar-{k}-1", f"guess-bar-name{k}")]
        marks += about("token", sets({"drafts": k}, *mine))
    marks.append(line("plain-level", at.x, y(r.plain_s), at.right, y(r.plain_s), "limit", "a plain step"))
    x = linear(0, MOST_DRAFTS, at.x + at.w / 26, at.right - at.w / 26)
    tip = f"{_guesses(r.drafts)}: {units.seconds(r.token_s)} a token"

    def middle(drafts: int) -> float:
        return min(max(x(drafts), at.x + 26), at.right - 26)

    marks += _times(r, at, y, middle)
    half, top = 0.375 * at.w / len(r.at_guesses), y(r.token_s)
    if high > low:  # a bracket below the numbers that differ too little
        left, right, under = x(low) - half, x(high) + half, at.bottom + 24
        tip = f"within {NEAR:.0%} of the best: {low} to {high}"
        marks.append(
            path(
                "guesses-near",
                [(left, under - 4), (left, under), (right, under), (right, under - 4)],
                "useful",
                tip,
            )
        )
    left, right = x(r.drafts) - half, x(r.drafts) + half
    around = [(left, at.bottom), (left, top), (right, top), (right, at.bottom)]
    marks.append(path("guesses-now", around, "now"))
    # above its bar, because readers look at the bar's top
    knob = handle("pull-guesses", x(r.drafts), top - 16, "now", drag(GUESSES, "x", x), tip=tip)
    return [*marks, knob]


def _times(r: Result, at: Box, y, middle) -> list[dict]:
    """Write the time of the chosen bar above its knob, or at the knob's side where the bar is high, and the best one's."""
    chosen, best = r.at_guesses[r.drafts], r.at_guesses[r.best_drafts]
    top, x = y(chosen.token_s), middle(r.drafts)
    role, words = "useful" if r.drafts == r.best_drafts else "ink", units.seconds(chosen.token_s)
    place = (x, top - 34, "middle")
    if top - 34 < at.y - 8:
        place = (x + 20, top - 12, "start") if x < at.x + at.w / 2 else (x - 20, top - 12, "end")
    now = text("guesses-now-ms", *place[:2], words, role, "small", place[2], True, on="ground")
    if r.drafts == r.best_drafts or abs(middle(r.best_drafts) - x) < 54:  # the knob's own time goes first
        return [now]
    said, low = units.seconds(best.token_s), y(best.token_s) - 6
    return [
        now,
        text(
            "guesses-best-ms", middle(r.best_drafts), low, said, "useful", "small", "middle", True, "ground"
        ),
    ]


def _guesses(count: int) -> str:
    return units.counted(count, "guess", "guesses")


def _why_fewer(r: Result) -> str:
    """Return why the guesses beyond the best number don't pay. They lengthen the check, or take long themselves."""
    fewer = r.at_guesses[r.best_drafts]
    if r.verify_s > fewer.verify_s * (1 + 1e-9):
        return f"checking {r.drafts} takes {units.seconds(r.verify_s)}, checking {r.best_drafts} takes {units.seconds(fewer.verify_s)}."
    return f"at {units.number(r.draft_s / r.drafts * 1e3)}\u202fms each, the last cost more than they save."


def _takeaway(r: Result) -> str:
    if r.drafts == 0:
        return "Without guesses, every token costs one full reading of the weights."
    if r.speedup <= 1 and r.best_drafts:
        few = "one" if r.best_drafts == 1 else r.best_drafts
        these = "One guess is" if r.drafts == 1 else f"{r.drafts} guesses are"
        return f"{these} slower than none here, but {few} would still pay."
    if r.speedup <= 1 and r.checked_tokens > r.free_tokens:
        return "With a full batch the check is no longer free, so plain decoding is faster."
    if r.speedup <= 1:
        return "Wrong guesses cost their time too. Below the break-even chance, don't guess."
    if r.best_drafts < r.drafts:
        few = "One guess" if r.best_drafts == 1 else f"{r.best_drafts} guesses"
        return f"{few} would pay more than {r.drafts}: {_why_fewer(r)}"
    if r.best_drafts > r.drafts:
        low, high = r.nearly_best
        near = f", though {low} to {high} hardly differ" if high > low else ""
        return f"Guessing pays here, and {r.best_drafts} guesses would pay most{near}."
    return "One reading of the weights checks every guess, and no other number of guesses is faster."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    """Return one scene for each plain step of the stretch of time. The last shows the whole stretch."""
    lanes_at, plain_y, guess_y, guesses_at, height = PLACES[width == WIDE]
    one = "token per round" if units.number(r.tokens) == "1" else "tokens per round"
    tokens = figure(one, r.tokens, units.number, term="tokens")
    token = figure("time per token", r.token_s, units.seconds, term="token")
    gain = figure("plain decoding's speed", r.speedup, units.times, "useful" if r.speedup > 1 else "hot")
    label = "guess is best here" if r.best_drafts == 1 else "guesses are best here"
    best = figure(label, r.best_drafts, units.count, "useful" if r.best_drafts else "hot")
    p, k = units.number(r.acceptance), r.drafts
    broken = r.batch >= cost.ADAPTIVE_BATCH and r.speedup <= 1
    same = dict(
        summary=f"{_guesses(k)}, each kept with {units.percent(r.acceptance, 0)}, {'yields' if k == 1 else 'yield'} "
        f"{tokens.text} {'token' if tokens.text == '1' else 'tokens'} a round; "
        f"with {units.seconds(r.draft_s)} for the guesses and {units.seconds(r.verify_s)} for the check that is "
        f"{token.text} a token, {gain.text} plain steps of {units.seconds(r.plain_s)}; at this batch of "
        f"{r.batch}, {_guesses(r.best_drafts)} would be best.",
        takeaway=_takeaway(r),
        figures=(best, gain, token, tokens),
        table=table(
            (
                "guesses a round",
                Column("guessing a token", "s", units.seconds),
                Column("checking a token", "s", units.seconds),
                Column("a token", "s", units.seconds),
            ),
            [(str(one.drafts), one.draft_s, one.check_s, one.token_s) for one in r.at_guesses],
        ),
        height=height,
        width=width,
        legend=(
            ("secondary", "plain step"),
            ("overhead", "guessing"),
            ("primary", "check, and tokens that come out"),
            ("dropped", "struck out"),
            ("idle", "discarded after it"),
        ),
        formula=(
            (
                "{tokens} = (1 − {acceptance:p}ᵏ⁺¹) / (1 − {acceptance:p}), k = {drafts:guesses}"
                if r.acceptance < 1
                else "{tokens} = {drafts:k} + 1",
                f"p = {p}, k = {k}: {{tokens:{tokens.text}}}",
            ),
            (
                "a token = ({drafts:guesses} + check) / {tokens}",
                f"({{drafts:{units.seconds(r.draft_s)}}} + {units.seconds(r.verify_s)}) / {{tokens:{tokens.text}}} = {token.text}",
            ),
        ),
        warning="Slower than plain decoding: "
        + (
            f"these guesses pay up to {units.counted(r.pays_up_to, 'request')}."
            if r.pays_up_to
            else "these guesses never pay."
        )
        if broken
        else "",
    )
    rest = _by_guesses(r, guesses_at)
    times = [r.shown_s * (i + 1) / STEPS_SHOWN for i in range(STEPS_SHOWN)]
    return [
        Scene(marks=_lanes(r, t, lanes_at, plain_y, guess_y) + rest, caption=_caption(r, t), **same)
        for t in times
    ]


def _caption(r: Result, now_s: float) -> str:
    plain, rounds = _passes(r, now_s), min(len(r.kept), int(now_s / r.round_s + 1e-9))
    out = sum(r.kept[:rounds]) + rounds
    into = now_s - rounds * r.round_s
    doing = " The next guesses are checked." if into >= r.draft_s else " The draft model guesses."
    if rounds == len(r.kept):
        doing = ""
    return f"After {units.seconds(now_s)} of this run: {units.number(plain)} {'token' if plain == 1 else 'tokens'} by plain decoding, {out} by guessing.{doing}"


SIMULATOR = Declaration(
    title="Speculative decoding",
    question="How many tokens should you guess before each check?",
    controls=(
        KEPT,
        GUESSES,
        slider("draft_ms", "Time of one guess", 0.8, 0.0, 8.0, step=0.1, unit="ms"),
        BATCH,
        slider("step_ms", "Time of one plain step", 32, 4, 100, unit="ms", more=True),
        select(
            "weight_bits",
            "Weights",
            4,
            BITS,
            more=True,
            help="Narrow weights are read sooner, so fewer tokens a pass are free (H100, 16-bit arithmetic).",
        ),
    ),
    presets={
        "5 guesses of 78%": {},
        "Kept a quarter of the time": {"acceptance": 0.25, "drafts": 4},
        "32 requests": {"batch": 32},
        "A slow draft model": {"draft_ms": 8.0},
        "64 requests": {"batch": 64},
    },
    run=run,
    stepper=Stepper("moment", frames, lambda r: STEPS_SHOWN - 1),
    prediction=Prediction(
        "A small model guesses 5 tokens, each kept with a chance of 78%; the first that is not ends the run, and the "
        "large model adds one token of its own. How many tokens does a round yield on average?",
        "tokens",
        "tokens",
    ),
    source="Performance Engineering",
)

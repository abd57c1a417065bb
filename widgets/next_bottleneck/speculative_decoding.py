"""Guess a few tokens cheaply, check them all in one pass: how many come out, and when it pays."""

from dataclasses import dataclass

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import (
    Box,
    Part,
    Series,
    axis_x,
    axis_y,
    bars_up,
    limit_across,
    linear,
    lines,
    log,
    text_width,
)
from widgets.controls import powers_of_two, select, slider
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import WIDE, Column, Scene, about, drag, figure, handle, line, path, rect, table, text

MOST_BATCH, MOST_DRAFTS = 256, 12
KEPT = slider("acceptance", "Chance that a guess is kept", 0.78, 0.0, 1.0, step=0.01)
GUESSES = slider("drafts", "Guesses a round", 5, 0, MOST_DRAFTS)
BATCH = powers_of_two("batch", "Requests in the batch", 1, 1, MOST_BATCH)
STEPS_SHOWN = 16
# (both lanes of time, the chances, the guesses, the batch, height)
PLACES = {
    True: (
        Box(80, 36, 384, 100),
        Box(562, 56, 150, 74),
        Box(58, 230, 330, 120),
        Box(470, 230, 240, 120),
        376,
    ),
    False: (
        Box(14, 44, 304, 132),
        Box(44, 650, 280, 76),
        Box(56, 264, 274, 116),
        Box(44, 458, 286, 116),
        758,
    ),
}
BITS = {16: "16 bits", 8: "8 bits", 4: "4 bits"}


@dataclass(frozen=True)
class AtBatch:
    batch: int
    speedup: float


@dataclass(frozen=True)
class AtGuesses:
    """A token's time with so many guesses a round, in its two parts."""

    drafts: int
    draft_s: float
    check_s: float
    token_s: float


@dataclass(frozen=True)
class Result:
    acceptance: float
    drafts: int
    batch: int
    free_tokens: float  # of a pass: up to so many, one more costs no time
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
    break_even_acceptance: float  # 1 if no acceptance is enough, 0 without guesses
    at_guesses: tuple[AtGuesses, ...]
    at_batch: tuple[AtBatch, ...]
    best_at_batch: tuple[AtBatch, ...]  # with the number of guesses that is best at each
    pays_up_to: int  # requests, with these guesses; 0 if they never pay
    policy_guesses: bool


def run(acceptance, drafts, draft_ms, batch, step_ms, weight_bits) -> Result:
    gpu = machine("H100")
    free = cost.free_tokens(gpu.rate("fp16"), gpu.bandwidth, weight_bits / 8)

    def at(guesses: int, requests: int):
        return cost.speculation_from_times(
            acceptance, guesses, requests, draft_token_s=draft_ms * 1e-3, step_s=step_ms * 1e-3, free=free
        )

    now = at(drafts, batch)
    even = cost.break_even_acceptance(drafts, now.draft_s, now.verify_s, now.plain_s) if drafts else 0.0
    rounds = [at(k, batch) for k in range(MOST_DRAFTS + 1)]
    times = [one.token_s for one in rounds]
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
        1.0 if even is None else even,
        tuple(
            AtGuesses(k, one.draft_s / one.tokens, one.verify_s / one.tokens, one.token_s)
            for k, one in enumerate(rounds)
        ),
        tuple(AtBatch(b, at(drafts, b).speedup) for b in _batches(batch)),
        tuple(
            AtBatch(b, max(at(k, b).speedup for k in range(MOST_DRAFTS + 1)))
            for b in sorted({round(MOST_BATCH ** (i / 12)) for i in range(13)})
        ),
        last,
        cost.speculate(batch),
    )


def _batches(batch: int) -> list[int]:
    rungs = {round(MOST_BATCH ** (i / 32)) for i in range(33)}
    return sorted(rungs | {batch})


def _lanes(r: Result, now_s: float, at: Box) -> list[dict]:
    """The same stretch of time twice: step by step, and in rounds."""
    x = linear(0, max(4 * r.plain_s, r.round_s), at.x, at.right)
    wide_room = at.x > 40
    plain_y, guess_y = at.y, at.y + (38 if wide_room else 50)
    marks = [
        line("now-s", x(now_s), at.y - 8, x(now_s), at.bottom - 6, "now"),  # it passes behind every word
        text("lanes-title", 0, 12, "tokens out at the end of each pass, on average", "muted", "small"),
    ]
    for id, y, words, role in (
        ("plain", plain_y, "plain", "muted"),
        ("guess", guess_y, "guessing", "primary"),
    ):
        place = (at.x - 10, y + 19, "end") if wide_room else (at.x, y - 6, "start")
        marks.append(
            text(f"{id}-name", *place[:2], words, role, anchor=place[2], bold=id == "guess", on="ground")
        )
    marks += axis_x("time", x, at.bottom - 6, show=units.seconds, ticks=None if wide_room else x.ticks(2))
    for i in range(int((x.hi / r.plain_s) + 1e-9)):
        if (i + 1) * r.plain_s > now_s * (1 + 1e-9):
            break
        left, right = x(i * r.plain_s), x((i + 1) * r.plain_s)
        tip = f"Token {i + 1} after {units.seconds((i + 1) * r.plain_s)}"
        marks += about("plain", rect(f"plain-{i}", left, plain_y, right - left - 2, 28, "secondary", tip))
        words = ("1 token" if i == 0 else f"{i + 1} tokens") if right - left > 64 else str(i + 1)
        if right - left > 18 and i < 40:
            marks.append(
                text(f"plain-{i}-name", (left + right) / 2, plain_y + 19, words, "inverse", anchor="middle")
            )
    for i in range(min(24, int(x.hi / r.round_s + 1e-9))):
        start = i * r.round_s
        if start + r.round_s > now_s * (1 + 1e-9):
            break
        middle, right = x(start + r.draft_s), x(start + r.round_s)
        for k in range(r.drafts):
            left = x(start + r.draft_s * k / r.drafts)
            wide = (middle - x(start)) / r.drafts
            tip = f"Round {i + 1}: guess {k + 1} of {r.drafts}"
            marks += about(
                "guesses drafts",
                rect(f"draft-{i}-{k}", left, guess_y, max(0.5, wide - 1), 28, "overhead", tip),
            )
        places = units.counted(r.drafts + 1, "place")
        tip = f"Round {i + 1}: one pass checks {places} in {units.seconds(r.verify_s)}"
        marks += about(
            "check", rect(f"check-{i}", middle, guess_y, max(1, right - middle - 2), 28, "primary", tip)
        )
        out = units.number((i + 1) * r.tokens)
        for words in (f"{out} token{'s' * (out != '1')}", out):
            if text_width(words) < right - middle - 8:
                marks.append(
                    text(
                        f"check-{i}-name",
                        (middle + right) / 2,
                        guess_y + 19,
                        words,
                        "inverse",
                        anchor="middle",
                    )
                )
                break
    return marks


def _chances(r: Result, at: Box) -> list[dict]:
    """Chance of each token of a round; their sum is what the round yields."""
    y = linear(0, 1, at.bottom, at.y)
    columns = []
    for i, chance in enumerate(r.chances):
        what = "the target's own" if i == 0 else f"needs {units.counted(i, 'guess', 'guesses')} kept"
        tip = f"Token {i + 1} of a round, {what}: {units.percent(chance)}"
        columns.append((str(i + 1), [Part(chance, "useful", tip), Part(1 - chance, "dropped", tip)]))
    wide = at.w * min(1, (r.drafts + 1) / 7)
    box = Box(at.x, at.y, wide, at.h)
    marks = axis_y("chance", y, at.x, show=lambda v: units.percent(v, 0), ticks=(0, 0.5, 1))
    marks.append(text("chance-title", at.x - 44, at.y - 44, "chance of each token", "muted", "small"))
    sum_of = f"together {units.number(r.tokens)} a round"
    marks.append(text("chance-sum", at.x - 44, at.y - 28, sum_of, "useful", bold=True))
    bars = about(
        "tokens",
        bars_up(
            "chance",
            columns,
            box,
            y,
            every=1 if wide / (r.drafts + 1) > 14 else 3,
            below=28,  # clear of the knob at a chance of 0
        ),
    )
    if r.drafts == 0:
        return marks + bars
    # the second token needs one guess kept: the height of its bar is that chance
    x = at.x + wide * 1.5 / (r.drafts + 1)
    return marks + bars + [handle("pull-kept", x, y(r.acceptance), "useful", drag(KEPT, "y", y))]


def _by_guesses(r: Result, at: Box) -> list[dict]:
    """Time of a token over the guesses: each costs its time, and the check is shared by ever fewer more tokens."""
    top = 1.5 * r.plain_s
    y = linear(0, top, at.bottom, at.y)
    few = (
        "no guesses are"
        if r.best_drafts == 0
        else "1 guess is"
        if r.best_drafts == 1
        else f"{r.best_drafts} guesses are"
    )
    best_s = r.at_guesses[r.best_drafts].token_s
    marks = [
        text("guesses-title", at.x - 54, at.y - 42, "time of a token, by guesses a round", "muted", "small"),
        text(
            "guesses-best",
            at.x - 54,
            at.y - 25,
            f"{few} best: {units.seconds(best_s)} a token",
            "useful",
            bold=True,
        ),
    ]
    marks += axis_y("token", y, at.x, show=units.seconds, right=at.right, ticks=(0, r.plain_s))
    columns = []
    for one in r.at_guesses:
        words = f"{_guesses(one.drafts)}: {units.seconds(one.token_s)} a token"
        shown, check = min(one.token_s, top), min(one.check_s, top)
        columns.append(
            (
                str(one.drafts),
                [
                    Part(
                        check,
                        "useful" if one.drafts == r.best_drafts else "primary",
                        f"{words}, {units.seconds(one.check_s)} of it the check",
                    ),
                    Part(shown - check, "overhead", f"{words}, {units.seconds(one.draft_s)} of it guessing"),
                ],
            )
        )
    marks += about("token", bars_up("guess-bar", columns, at, y))
    marks.append(line("plain-level", at.x, y(r.plain_s), at.right, y(r.plain_s), "limit", "a plain step"))
    over = [one.drafts for one in r.at_guesses if one.token_s > top]
    if over:
        place = (at.x, "start") if r.drafts > MOST_DRAFTS / 2 else (at.right, "end")  # away from the knob
        marks.append(text("guesses-over", place[0], at.y - 8, "↑ longer still", "muted", "small", place[1]))
    x = linear(0, MOST_DRAFTS, at.x + at.w / 26, at.right - at.w / 26)
    tip = f"{_guesses(r.drafts)}: {units.seconds(r.token_s)} a token"
    knob = handle("pull-guesses", x(r.drafts), y(r.token_s), "now", drag(GUESSES, "x", x), tip=tip)
    return [*marks, knob]


def _by_batch(r: Result, at: Box) -> list[dict]:
    """Speedup over the batch: as soon as the pass is no longer free, guessing loses."""
    peak = max(one.speedup for one in r.at_batch)
    top = next(t for t in (4, 8, 16) if t >= peak or t == 16)
    # the first batch stands clear of the axis, so that the knob covers none of its numbers
    x, y = log(1, MOST_BATCH, at.x + 22, at.right - 18), linear(0, top, at.bottom, at.y)
    pay = "pays" if r.drafts == 1 else "pay"
    stop = f"{_guesses(r.drafts)} {pay} up to {units.counted(r.pays_up_to, 'request')}"
    if r.pays_up_to == MOST_BATCH:
        stop = "it pays at every batch"
    elif r.drafts == 0:
        stop = "without guesses: no gain"
    elif r.pays_up_to == 0:
        stop = "it pays at no batch"
    marks = [
        text("batch-title", at.x - 44, at.y - 42, "speedup, by requests in the batch", "muted", "small"),
        text("batch-stop", at.x - 44, at.y - 25, stop, "useful" if r.pays_up_to else "hot", bold=True),
    ]
    marks += axis_y(
        "speedup", y, at.x, show=units.times, right=at.right, ticks=[top * q / 4 for q in range(5)]
    )
    marks += axis_x("batch", x, at.bottom, show=units.count, ticks=(1, 4, 16, 64, 256))
    marks += limit_across("even", at, y(1), "no gain, no loss")[:1]
    best = [(x(one.batch), y(one.speedup)) for one in r.best_at_batch]
    marks.append(path("best-gain", best, "idle", "with the number of guesses that is best at each batch"))
    curve = [(one.batch, one.speedup) for one in r.at_batch]
    marks += lines("gain", [Series("", curve, "primary")], x, y)[:1]
    rule = x(cost.ADAPTIVE_BATCH)
    marks += [
        line(
            "policy",
            rule,
            at.bottom,
            rule,
            at.y - 4,
            "limit",
            "a rule of thumb of the source: guess below it",
        ),
        text(
            "policy-name", rule, at.y - 8, f"rule of thumb: {cost.ADAPTIVE_BATCH}", "muted", "small", "middle"
        ),
    ]
    if 0 < r.pays_up_to < MOST_BATCH:
        tip = f"up to {r.pays_up_to} requests it gains, above it loses"
        marks.append(line("stop", x(r.pays_up_to), at.bottom, x(r.pays_up_to), y(1), "useful", tip))
    shown = units.times(r.speedup)
    role = "useful" if r.speedup > 1 else "hot"
    marks.append(
        handle("now", x(r.batch), y(r.speedup), role, drag(BATCH, "x", x), tip=f"Batch {r.batch}: {shown}")
    )
    low = y(r.speedup) < at.y + 14  # keeps clear of the words above the plot
    place = (x(r.batch) + 22, y(r.speedup) + (18 if low else -9), "start")
    if r.speedup <= 1 or place[0] > at.right - 56:
        place = (at.right, min(y(1), y(r.speedup)) - 16, "end")
    marks.append(text("now-name", *place[:2], shown, role, "body", place[2], True, on="ground"))
    return marks


def _guesses(count: int) -> str:
    return units.counted(count, "guess", "guesses")


def _takeaway(r: Result) -> str:
    if r.drafts == 0:
        return "Without guesses, each token costs one reading of all weights."
    if r.speedup <= 1 and r.best_drafts:
        few = "one guess" if r.best_drafts == 1 else f"{r.best_drafts} guesses"
        these = "one guess is" if r.drafts == 1 else f"{r.drafts} guesses are"
        return f"{these.capitalize()} slower than none here; {few} would still pay."
    if r.speedup <= 1 and r.checked_tokens > r.free_tokens:
        return "The pass that checks is no longer free: with a full batch, plain decoding is faster."
    if r.speedup <= 1:
        return "Guesses that are dropped cost their time too: below the break-even acceptance, do not guess."
    if r.best_drafts != r.drafts:
        way = "fewer" if r.best_drafts < r.drafts else "more"
        return f"It pays, and {way} guesses would pay more: {r.best_drafts} are best here."
    return "One reading of the weights, several tokens: it pays while checking is free and guesses are kept."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    """One for each plain step of the stretch of time; the last shows all of it."""
    lanes_at, chances_at, guesses_at, batch_at, height = PLACES[width == WIDE]
    one = "token a round" if units.number(r.tokens) == "1" else "tokens a round"
    tokens = figure(one, r.tokens, units.number, "useful", "tokens")
    token = figure("a token", r.token_s, units.seconds, "primary", "token")
    gain = figure("against plain steps", r.speedup, units.times, "useful" if r.speedup > 1 else "hot")
    label = "guess is best here" if r.best_drafts == 1 else "guesses are best here"
    best = figure(label, r.best_drafts, units.count)
    p, k = units.number(r.acceptance), r.drafts
    broken = r.batch >= cost.ADAPTIVE_BATCH and r.speedup <= 1
    same = dict(
        summary=f"{_guesses(k)}, each kept with {units.percent(r.acceptance, 0)}, {'yields' if k == 1 else 'yield'} "
        f"{tokens.text} {'token' if tokens.text == '1' else 'tokens'} a round; "
        f"with {units.seconds(r.draft_s)} for the guesses and {units.seconds(r.verify_s)} for the check that is "
        f"{token.text} a token, {gain.text} plain steps of {units.seconds(r.plain_s)}; at this batch of "
        f"{r.batch}, {_guesses(r.best_drafts)} would be best.",
        takeaway=_takeaway(r),
        figures=(tokens, token, gain, best),
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
            ("overhead", "guessing"),
            ("primary", "checking"),
            ("useful", "token kept, or best number"),
            ("dropped", "not reached"),
            ("idle", "grey line: with the best number of guesses"),
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
    rest = _chances(r, chances_at) + _by_guesses(r, guesses_at) + _by_batch(r, batch_at)
    whole = max(4 * r.plain_s, r.round_s)
    times = [whole * (i + 1) / STEPS_SHOWN for i in range(STEPS_SHOWN)]
    return [Scene(marks=_lanes(r, t, lanes_at) + rest, caption=_caption(r, t), **same) for t in times]


def _caption(r: Result, now_s: float) -> str:
    plain, rounds = int(now_s / r.plain_s + 1e-9), int(now_s / r.round_s + 1e-9)
    return (
        f"After {units.seconds(now_s)}: {plain} {'token' if plain == 1 else 'tokens'} step by step, and on average "
        f"{units.number(rounds * r.tokens)} in {rounds} {'round' if rounds == 1 else 'rounds'} of guesses."
    )


SIMULATOR = Declaration(
    title="Speculative decoding",
    question="How many guessed tokens should one pass check, and when should it stop guessing?",
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

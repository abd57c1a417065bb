"""Show a server under load: the effect of more arrivals, a smaller batch and larger pieces of prompts on users'
waiting time."""

from dataclasses import dataclass
from functools import lru_cache

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, axis_x, axis_y, linear, log, spread
from widgets.controls import powers_of_two, slider, steps
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, about, drag, figure, handle, line, path, rect, table, text

MOST_RATE, REQUESTS = 16, 200
WHOLE = 16384  # more than any prompt has, so that a step computes one whole prompt
RATES = tuple(range(2, MOST_RATE + 1))
LEAST_GAP_S = 5e-3
LEAST_S, MOST_S, MOST_GAP_S = 0.03, 30.0, 0.2  # ends of the axes, the same in every state
RATE = slider("rate", "Requests per second", 10, RATES[0], MOST_RATE)
CHUNK = steps(
    "chunk",
    "Prompt tokens in a step",
    256,
    (64, 128, 256, 512, 1024, 2048, WHOLE),
    lambda tokens: f"{units.count(tokens)} tokens" if tokens < WHOLE else "a whole prompt",
    help="How much of the waiting prompts a step computes next to everybody's next token.",
)
# (time to the first token, time between tokens, what arrives, height)
PLACES = {
    True: (Box(54, 44, 206, 136), Box(430, 44, 172, 136), Box(8, 272, 560, 26), 336),
    False: (Box(54, 44, 162, 120), Box(54, 258, 162, 100), Box(8, 452, 324, 26), 520),
}


@dataclass(frozen=True)
class AtRate:
    """Hold what users see at one rate of requests. P50 is the median, P99 the slowest of a hundred."""

    rate: int
    first_p50_s: float
    first_p99_s: float
    gap_p50_s: float
    gap_p99_s: float
    in_time_s: float  # of the requests that arrive each second, those that see both promises kept


@dataclass(frozen=True)
class Result:
    rate: int
    batch: int
    chunk: int  # 0 means a whole prompt
    prompt: int
    output: int
    curve: tuple[AtRate, ...]
    now: AtRate
    limit_s: float  # requests a second that the server can answer at most
    running: float  # requests that it decodes then
    step_s: float
    load: float  # of the limit
    free_tokens: float
    late_share: float  # of what arrives


@lru_cache(maxsize=8)
def _replica() -> cost.Server:
    return cost.server(cost.LLAMA_8B, machine("H100"), reached=0.6)


@lru_cache(maxsize=32)
def _curve(batch: int, chunk: int, prompt: int, output: int) -> tuple[AtRate, ...]:
    drawn = cost.requests(REQUESTS, prompt, output)
    found = []
    for rate in RATES:
        one = cost.serve(_replica(), drawn, rate=rate, batch=batch, chunk=chunk)
        found.append(
            AtRate(
                rate,
                one.first_token_s(0.5),
                one.first_token_s(0.99),
                one.gap_s(0.5),
                one.gap_s(0.99),
                rate * one.in_time(),
            )
        )
    return tuple(found)


def run(rate, batch, chunk, prompt, output) -> Result:
    chunk = chunk if chunk < WHOLE else 0
    curve = _curve(batch, chunk, prompt, output)
    now = curve[rate - RATES[0]]
    most = cost.limit(_replica(), prompt=prompt, output=output, batch=batch, chunk=chunk)
    return Result(
        rate,
        batch,
        chunk,
        prompt,
        output,
        curve,
        now,
        most.rate,
        most.running,
        most.step_s,
        rate / most.rate,
        _replica().free_tokens,
        1 - now.in_time_s / rate,
    )


def _named(at: Box, names: list[tuple[str, float, str, str]]) -> list[dict]:
    """Name curves at their right ends, pushed apart where they end close together."""
    places = spread([y for _, y, _, _ in names], 15)
    return [
        text(f"{id}-name", at.right + 20, y + 4, words, role, "small", bold=role != "muted")
        for (id, _, words, role), y in zip(names, places, strict=True)
    ]


def _chart(r: Result, id: str, at: Box, y, title: str, picks, promise_s: float, ticks) -> list[dict]:
    """Draw two percentiles over the rate, with the promise and the server's limit."""
    x = linear(0, MOST_RATE, at.x, at.right)
    marks = [text(f"{id}-title", at.x - 46, at.y - 22, title, bold=True)]
    marks += axis_y(
        f"{id}-s", y, at.x, show=lambda s: units.seconds(s) if s else "0", right=at.right, ticks=ticks
    )
    marks += axis_x(f"{id}-rate", x, at.bottom, "requests per second", units.count, ticks=(0, 4, 8, 12, 16))
    tip = f"Promise: {units.seconds(promise_s)}"
    marks.append(line(f"{id}-promise", at.x, y(promise_s), at.right, y(promise_s), "limit", tip))
    if r.limit_s <= MOST_RATE:
        tip = f"At most {units.number(r.limit_s)} requests per second"
        here = x(r.limit_s)
        marks += about("limit", line(f"{id}-limit", here, at.y, here, at.bottom, "limit", tip))
        marks.append(text(f"{id}-limit-name", here, at.y - 5, "limit", "muted", "small", "middle"))
    names = [(f"{id}-promise", y(promise_s), f"promise {units.seconds(promise_s)}", "muted")]
    for pick, role, words in picks:
        points = [(x(one.rate), y(getattr(one, pick))) for one in r.curve]
        marks += about("rate", path(f"{id}-{pick}", points, role))
        names.append((f"{id}-{pick}", points[-1][1], words, role))
    now_s = getattr(r.now, picks[0][0])
    if now_s > y.hi * 1.001:  # the axis ends before it
        here = (
            x(r.rate) + (22 if r.rate < MOST_RATE / 2 else -22),
            "start" if r.rate < MOST_RATE / 2 else "end",
        )
        words = f"↑ {units.seconds(now_s)}"
        marks.append(
            text(f"{id}-above", here[0], at.y + 14, words, "hot", "small", here[1], True, on="ground")
        )
    return marks + _named(at, names)


def _knob(r: Result, at: Box, y) -> dict:
    x = linear(0, MOST_RATE, at.x, at.right)
    tip = f"{r.rate} requests per second: {units.seconds(r.now.first_p99_s)}"
    return handle("pull-rate", x(r.rate), y(r.now.first_p99_s), "hot", drag(RATE, "x", x), tip=tip)


def _kinds(r: Result) -> tuple[tuple[str, float, str], ...]:
    return (("in time", r.now.in_time_s, "useful"), ("late", r.rate - r.now.in_time_s, "hot"))


def _arrivals(r: Result, at: Box) -> list[dict]:
    """Draw every request that arrives in a second as in time or late."""
    x = linear(0, MOST_RATE, at.x, at.right)
    title = f"{r.rate} arrive per second, {units.number(r.now.in_time_s)} in time"
    if at.w > 400:
        title += ": first token and the mean gap keep their promises"
    marks, start = [text("bar-title", at.x, at.y - 12, title, bold=True)], 0.0
    for words, size, role in _kinds(r):
        if size > 0.01:
            tip = f"{units.number(size)} per second: {words}"
            marks += about(
                "rate", rect(f"bar-{role}", x(start), at.y, x(start + size) - x(start), at.h, role, tip)
            )
        start += size
    marks += axis_x("bar", x, at.bottom, "", units.count, ticks=(0, 4, 8, 12, 16))
    if r.limit_s <= MOST_RATE:
        tip = f"At most {units.number(r.limit_s)} requests per second"
        marks += about(
            "limit", line("bar-limit", x(r.limit_s), at.y - 4, x(r.limit_s), at.bottom, "limit", tip)
        )
    return marks


def _takeaway(r: Result) -> str:
    if r.load > 1:
        return "Past the limit the queue grows as long as the load lasts. Full throughput serves people who left."
    if r.now.gap_p99_s > 3 * r.now.gap_p50_s:
        return "Large pieces of prompts stop everybody's tokens. A request's mean gap hides it, one gap in a hundred doesn't."
    if r.running < r.batch / 2 and r.chunk and r.chunk < 0.6 * r.free_tokens:
        return "Pieces this small leave free arithmetic unused, so the limit falls."
    if r.late_share > 0.02:
        return "The server keeps up on average, and waits already break the promise. Plan below the knee."
    return "Below the knee the first token waits a little, and the next ones hardly notice the load."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    first_at, gap_at, bar_at, height = PLACES[width == WIDE]
    first_y = log(LEAST_S, MOST_S, first_at.bottom, first_at.y)
    gap_y = log(LEAST_GAP_S, MOST_GAP_S, gap_at.bottom, gap_at.y)
    first = figure(
        "first token for 99 of 100",
        r.now.first_p99_s,
        lambda s: units.with_unit(s, "s"),  # as the prediction asks for it
        "useful" if r.now.first_p99_s <= cost.FIRST_TOKEN_S else "hot",
    )
    gap = figure(
        "99 of 100 gaps between tokens",
        r.now.gap_p99_s,
        units.seconds,  # in no colour, because the promise is about a request's mean gap
    )
    good = figure(
        f"requests in time, of {r.rate} a second",
        r.now.in_time_s,
        units.number,
        "useful" if r.late_share < 0.02 else "hot",
        "rate",
    )
    most = figure("requests a second at most", r.limit_s, units.number, term="limit")
    marks = _chart(
        r,
        "first",
        first_at,
        first_y,
        "Time to the first token",
        (("first_p99_s", "hot", "99 of 100"), ("first_p50_s", "primary", "median")),
        cost.FIRST_TOKEN_S,
        (0.1, 1, 10),
    )
    marks += _chart(
        r,
        "gap",
        gap_at,
        gap_y,
        "Time between two tokens",
        (("gap_p99_s", "hot", "99 of 100"), ("gap_p50_s", "primary", "median")),
        cost.BETWEEN_S,
        (0.01, 0.1),
    )
    whole = f"{units.count(r.chunk)}" if r.chunk else "a whole prompt"
    piece = f"{{chunk:{units.count(r.chunk)}}} / {units.count(r.prompt)}" if r.chunk else "{chunk:1}"
    share = "{chunk} / prompt" if r.chunk else "{chunk:1 prompt}"
    step = units.seconds(r.step_s)
    return Scene(
        summary=f"With {r.rate} requests per second, batches of up to {r.batch} and {whole} "
        f"{'prompt tokens ' if r.chunk else ''}per step, 99 of 100 first tokens come within {first.text} and 99 of 100 gaps are within {gap.text}; "
        f"of {r.rate} a second {good.text} are in time, and the server can answer {most.text} at most.",
        takeaway=_takeaway(r),
        marks=[*marks, _knob(r, first_at, first_y), *_arrivals(r, bar_at)],
        figures=(first, gap, good, most),
        table=table(
            (
                "requests per second",
                Column("first token, median", "s", units.seconds),
                Column("first token, P99", "s", units.seconds),
                Column("between, median", "s", units.seconds),
                Column("between, P99", "s", units.seconds),
                Column("in time", "1/s", units.number),
            ),
            [
                (
                    units.count(one.rate),
                    one.first_p50_s,
                    one.first_p99_s,
                    one.gap_p50_s,
                    one.gap_p99_s,
                    one.in_time_s,
                )
                for one in r.curve
            ],  # fmt: skip
        ),
        height=height,
        width=width,
        legend=(("useful", "in time, by its first token and its mean gap"), ("hot", "late")),
        formula=(
            (
                f"{{limit}} = min({{batch}} / answer, {share}) / step",
                f"min({{batch:{r.batch}}} / {r.output}, {piece}) / {step} = {{limit:{most.text}}} per second",
            ),
            (
                "load = {rate} / {limit}",
                f"{{rate:{r.rate}}} / {{limit:{most.text}}} = {units.percent(r.load, 0)}",
            ),
        ),
    )


SIMULATOR = Declaration(
    title="Serving under load",
    question="What does load do to the time that users wait?",
    controls=(
        RATE,
        powers_of_two("batch", "Requests in work at most", 64, 4, 128),
        CHUNK,
        steps(
            "prompt", "Tokens of a prompt, on average", 2000, (500, 1000, 2000, 4000), units.count, more=True
        ),
        steps("output", "Tokens of an answer, on average", 200, (100, 200, 400), units.count, more=True),
    ),
    presets={
        "Near the knee": {},
        "Half full": {"rate": 6},
        "Past the limit": {"rate": 13},
        "Whole prompts": {"rate": 6, "chunk": WHOLE},
        "Pieces too small": {"rate": 6, "chunk": 128},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "Llama-3-8B on an H100 answers 11.7 requests per second at most, each with 2000 tokens in and 200 out. With 5 "
        "per second, 99 of 100 users have their first token after 0.25 s. After how many seconds with 10 per second?",
        "now.first_p99_s",
        "s",
        tolerance=0.2,
        show=units.number,
    ),
    source="Performance Engineering",
)

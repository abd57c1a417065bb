"""Show a server under load, and the effect of more arrivals, a smaller batch and larger pieces of prompts on users'
waiting time."""

from dataclasses import dataclass
from functools import lru_cache

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, Scale, axis_x, axis_y, linear, spread, text_width
from widgets.controls import powers_of_two, slider, steps
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, about, drag, figure, handle, line, path, rect, table, text

MOST_RATE, REQUESTS = 16, 200
WHOLE = 16384  # more than any prompt has, so that a step computes one whole prompt
RATES = tuple(range(2, MOST_RATE + 1))
FIRST_S, GAP_S = (
    2.0,
    0.1,
)  # where the two axes end, the same in every state, so that a longer wait leaves with an arrow
RATE = slider("rate", "Requests per second", 10, RATES[0], MOST_RATE)
CHUNK = steps(
    "chunk",
    "Prompt tokens in a step",
    256,
    (64, 128, 256, 512, 1024, 2048, WHOLE),
    lambda tokens: f"{units.count(tokens)} tokens" if tokens < WHOLE else "a whole prompt",
    help="How much of the waiting prompts a step computes next to everybody's next token.",
)
# (the first token, the gaps, what arrives, height)
PLACES = {
    True: (Box(60, 42, 500, 112), Box(60, 190, 500, 64), Box(60, 292, 500, 70), 402),
    False: (Box(54, 56, 278, 120), Box(54, 240, 278, 78), Box(54, 362, 278, 84), 488),
}
ALONE = {True: Box(60, 196, 500, 166), False: Box(54, 240, 278, 206)}  # what arrives, where no gap is long


@dataclass(frozen=True)
class AtRate:
    """Hold what users see at one rate of requests. P50 is the median, P99 the slowest of a hundred."""

    rate: int
    first_p50_s: float
    first_p99_s: float
    gap_p50_s: float
    gap_p99_s: float  # of all gaps
    mean_gap_p99_s: float  # of the requests' mean gaps, which the promise is about
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
    kept_rate: (
        int  # the most a second at which 99 of 100 see both promises kept, or 0 for fewer than the axis has
    )


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
                one.mean_gap_s(0.99),
                rate * one.in_time(),
            )
        )
    return tuple(found)


def _kept(curve: tuple[AtRate, ...]) -> int:
    """Return the last rate before the first one that breaks a promise."""
    kept = 0
    for one in curve:
        if one.first_p99_s > cost.FIRST_TOKEN_S or one.mean_gap_p99_s > cost.BETWEEN_S:
            break
        kept = one.rate
    return kept


def _say_kept(rate: int) -> str:
    if not rate:
        return f"under {RATES[0]}"
    return f"{rate} or more" if rate == MOST_RATE else str(rate)


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
        _kept(curve),
    )


def _limit(r: Result, id: str, x: Scale, at: Box) -> list[dict]:
    if r.limit_s > MOST_RATE:
        return []
    tip = f"At most {units.number(r.limit_s)} requests per second"
    return about("limit", line(f"{id}-limit", x(r.limit_s), at.y, x(r.limit_s), at.bottom, "limit", tip))


def _until(points: list[tuple[float, float]], most: float) -> list[tuple[float, float]]:
    """Return a curve up to where it leaves the axis, which ends at `most`."""
    kept = []
    for (a, b), (c, d) in zip(points, [*points[1:], points[-1]], strict=True):
        if b > most:
            break
        kept.append((a, b))
        if d > most:
            kept.append((a + (c - a) * (most - b) / (d - b), most))
    return kept or [(points[0][0], most)] * 2


def _curve_of(r: Result, field: str, role: str, name: str, at: Box, x: Scale, y: Scale) -> tuple[list, tuple]:
    """Draw one wait over the rate. Return its marks, and (id, y, words, role) of its name at the right."""
    points = _until([(one.rate, getattr(one, field)) for one in r.curve], y.hi)
    marks = about("rate", path(field, [(x(a), y(b)) for a, b in points], role))
    last = getattr(r.curve[-1], field)
    if last > y.hi:
        out = x(points[-1][0])
        marks.append(path(f"{field}-out", [(out - 4, at.y + 5), (out, at.y - 1), (out + 4, at.y + 5)], role))
        name = f"↑ {units.seconds(last)} at {r.curve[-1].rate}"
    return marks, (f"{field}-name", y(last), name, role)


def _names(names: list[tuple], at: Box, wide: bool, title_y: float) -> list[dict]:
    """Write names at the curves' ends, or on a phone over the panel's right end."""
    if wide:
        places = spread([max(y, at.y + 4) for _, y, _, _ in names], 15)
        return [
            text(id, at.right + 12, place + 4, words, role, "small", bold=role != "muted")
            for (id, _, words, role), place in zip(names, places, strict=True)
        ]
    marks, right = [], at.right
    for id, _, words, role in names:
        marks.append(text(id, right, title_y, words, role, "small", "end", bold=role != "muted"))
        right -= text_width(words, "small", role != "muted") + 8
    return marks


def _promise(field: str, words: str, promise_s: float, at: Box, y: Scale, wide: bool) -> tuple[list, tuple]:
    place = y(promise_s)
    id, said = f"{field}-promise", f"{words} {units.seconds(promise_s)}"
    marks = [line(id, at.x, place, at.right, place, "limit", said)]
    return marks, (f"{id}-name", place, said, "muted")


def _gaps_matter(r: Result) -> bool:
    """Return whether at some rate one gap in a hundred is longer than the promise of their mean."""
    return any(one.gap_p99_s > cost.BETWEEN_S for one in r.curve)


def _kept_so_far(r: Result, id: str, x: Scale, at: Box) -> list[dict]:
    """Shade the rates at which both promises are kept."""
    if not r.kept_rate:
        return []
    place, tip = x(r.kept_rate), f"Both promises are kept up to {r.kept_rate} requests per second"
    corners = [(at.x, at.y), (place, at.y), (place, at.bottom), (at.x, at.bottom)]
    shade = path(f"{id}-shade", corners, "useful", tip, closed=True)
    return [shade, line(id, place, at.y, place, at.bottom, "useful", tip)]


def _waits(r: Result, first_at: Box, x: Scale, wide: bool) -> list[dict]:
    """Draw the wait for the first token over the rate, with its promise."""
    y = linear(0, FIRST_S, first_at.bottom, first_at.y)
    marks = [text("first-title", 0, 14, "First token: 99 of 100 wait less than this", bold=True)]
    marks += _kept_so_far(r, "kept", x, first_at)
    marks += axis_y(
        "first-s", y, first_at.x, show=units.seconds, right=first_at.right, ticks=(0, 0.5, 1, 1.5, 2)
    )
    marks += _limit(r, "first", x, first_at)
    kept_left = r.kept_rate <= r.limit_s
    if r.kept_rate:
        place, words = x(r.kept_rate), f"kept up to {r.kept_rate}" if wide else f"kept: {r.kept_rate}"
        side = ("end", 3) if kept_left else ("start", -3)
        marks.append(
            text("kept-name", place + side[1], first_at.y - 10, words, "useful", "small", side[0], True)
        )
    if r.limit_s <= MOST_RATE:
        said = f"limit: {units.number(r.limit_s)}"
        fits = x(r.limit_s) + text_width(said, "small") < (720 if wide else 340)
        side = ("start", -3) if kept_left and fits else ("end", 3)
        marks.append(
            text("limit-name", x(r.limit_s) + side[1], first_at.y - 10, said, "muted", "small", side[0])
        )
    promised, promise = _promise("first_p99_s", "promise", cost.FIRST_TOKEN_S, first_at, y, wide)
    curve, name = _curve_of(r, "first_p99_s", "hot", "first token", first_at, x, y)
    marks += [*promised, *curve, *_names([name, promise], first_at, wide, first_at.bottom + 18)]
    tip = f"{r.rate} requests per second: {units.seconds(r.now.first_p99_s)}"
    if r.now.first_p99_s > y.hi:  # its knob stands at the axis' end
        beyond = f"↑ {units.seconds(r.now.first_p99_s)}"
        marks.append(
            text(
                "beyond",
                min(x(r.rate), (WIDE if wide else 340) - 34),
                first_at.y + 34,
                beyond,
                "hot",
                "body",
                "middle",
                True,
                "ground",
            )
        )
    return [*marks, handle("pull-rate", x(r.rate), y(r.now.first_p99_s), "hot", drag(RATE, "x", x), tip=tip)]


def _gaps(r: Result, gap_at: Box, x: Scale, wide: bool) -> list[dict]:
    """Draw the gaps between two tokens over the rate, any gap and a request's mean, with the promise of the mean."""
    gap_y = linear(0, GAP_S, gap_at.bottom, gap_at.y)
    title = gap_at.y - (12 if wide else 24)
    marks = [text("gap-title", 0, title, "Between two tokens: 99 of 100 wait less", bold=True)]
    marks += _kept_so_far(r, "kept-gap", x, gap_at)
    marks += axis_y("gap-s", gap_y, gap_at.x, show=units.seconds, right=gap_at.right, ticks=(0, 0.05, 0.1))
    marks += _limit(r, "gap", x, gap_at)
    promised, promise = _promise("mean_gap_p99_s", "promise: mean", cost.BETWEEN_S, gap_at, gap_y, wide)
    any_gap, any_name = _curve_of(r, "gap_p99_s", "secondary", "any gap", gap_at, x, gap_y)
    mean, mean_name = _curve_of(r, "mean_gap_p99_s", "primary", "mean gap", gap_at, x, gap_y)
    marks += [*promised, *any_gap, *mean]
    return marks + _names([any_name, promise, mean_name], gap_at, wide, gap_at.y - 9)


def _gap_gauge(r: Result, at: Box) -> list[dict]:
    """Draw the other promise where no gap comes near it: how much of it the mean gap takes."""
    left, wide = at.right + 12, 128
    gap, most = r.now.mean_gap_p99_s, cost.BETWEEN_S
    words = f"{units.seconds(gap)} of {units.seconds(most)}"
    return [
        text("gauge-title", left, at.y - 14, "Mean gap", bold=True),
        rect("gauge", left, at.y, wide, 14, "idle", f"promise: a mean gap of at most {units.seconds(most)}"),
        rect(
            "gauge-now",
            left,
            at.y,
            wide * min(1.0, gap / most),
            14,
            "useful",
            f"99 of 100 mean gaps within {words}",
        ),
        text("gauge-words", left, at.y + 31, words, "useful", "small", bold=True),
    ]


def _answer(r: Result, x: Scale, at: Box) -> list[dict]:
    """Write the rate that keeps both promises into its shade, over its bars."""
    size, words = ("huge", "keep both promises") if at.w > 400 else ("big", "keep both")
    whose = f"99% {words}"
    if text_width(whose, "small", True) + 24 < x(r.kept_rate) - at.x:
        words = whose
    many = f"{r.kept_rate} a second"
    if not r.kept_rate or at.h < 100 or x(r.kept_rate) - at.x < text_width(many, size, True) + 24:
        return []
    return [
        text("answer", at.x + 10, at.y + 32, many, "useful", size, bold=True),
        text("answer-name", at.x + 11, at.y + 50, words, "useful", "small", bold=True),
    ]


def _arrivals(r: Result, at: Box, x: Scale) -> list[dict]:
    """Draw at each rate the requests of a second, those in time below those that are late."""
    y, wide = linear(0, MOST_RATE, at.bottom, at.y), (x(3) - x(2)) * 0.7
    title = f"{r.rate} arrive per second, {units.number(r.now.in_time_s)} in time"
    if at.w > 400:
        title += ": first token and mean gap as promised"
    marks = [text("bar-title", 0, at.y - 14, title, bold=True)]
    marks += _kept_so_far(r, "kept-bar", x, at)
    marks += axis_y("bar", y, at.x, show=units.count, right=at.right, ticks=(0, 8, 16))
    for one in r.curve:
        now, left, cut = one.rate == r.rate, x(one.rate) - wide / 2, y(one.in_time_s)
        tip = f"{one.rate} arrive per second, {units.number(one.in_time_s)} of them in time"
        late = rect(f"late{one.rate}", left, y(one.rate), wide, cut - y(one.rate), "hot", tip)
        good = rect(f"good{one.rate}", left, cut, wide, at.bottom - cut, "useful", tip)
        marks += about("rate", [late, good]) if now else [late, good]
    marks += _answer(r, x, at)
    left, right, top = x(r.rate) - wide / 2 - 3, x(r.rate) + wide / 2 + 3, y(r.rate) - 3
    frame = [(left, at.bottom), (left, top), (right, top), (right, at.bottom)]
    marks += about("rate", path("bar-now", frame, "now"))
    return [
        *marks,
        *_limit(r, "bar", x, at),
        *axis_x("rate", x, at.bottom, "requests per second", units.count, ticks=(2, 4, 8, 12, 16)),
    ]


def _takeaway(r: Result) -> str:
    if r.load > 1:
        got, most = units.number(r.now.in_time_s), max(r.curve, key=lambda one: one.in_time_s)
        if most.rate >= r.rate:
            return f"More arrive than the server can answer, so the queue grows: {got} of {r.rate} a second are in time."
        return f"More arrive, fewer are served in time: {got} of {r.rate} a second, but {units.number(most.in_time_s)} at {most.rate}."
    if r.now.gap_p99_s > 3 * r.now.gap_p50_s:
        one, mean = units.seconds(r.now.gap_p99_s), units.seconds(r.now.mean_gap_p99_s)
        return f"A whole prompt makes one gap in 100 take {one}. The mean gap, {mean}, hides it."
    if r.running < r.batch / 2 and r.chunk and r.chunk < 0.6 * r.free_tokens:
        return "Pieces this small leave free arithmetic unused, so the limit falls."
    if r.late_share > 0.02:
        return "Below the limit, some first tokens already come late. Plan below the knee."
    return "Well below the limit, all are served in time. Pull the load up to see who is late."


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    wide = width == WIDE
    first_at, gap_at, bar_at, height = PLACES[wide]
    bar_at = bar_at if _gaps_matter(r) else ALONE[wide]
    x = linear(RATES[0] - 1, MOST_RATE + 0.5, first_at.x, first_at.right)
    gaps = _gaps(r, gap_at, x, wide) if _gaps_matter(r) else _gap_gauge(r, bar_at) if wide else []
    first = figure(
        "99 of 100 first tokens within",
        r.now.first_p99_s,
        lambda s: units.with_unit(s, "s"),  # as the prediction asks for it
        "useful" if r.now.first_p99_s <= cost.FIRST_TOKEN_S else "hot",
    )
    gap = figure(
        "99 of 100 mean gaps within",
        r.now.mean_gap_p99_s,
        units.seconds,
        "useful" if r.now.mean_gap_p99_s <= cost.BETWEEN_S else "hot",
    )
    kept = figure("a second keep both promises", r.kept_rate, _say_kept, "useful")
    most = figure("requests a second at most", r.limit_s, units.number, term="limit")
    whole = f"{units.count(r.chunk)}" if r.chunk else "a whole prompt"
    piece = f"{{chunk:{units.count(r.chunk)}}} / {units.count(r.prompt)}" if r.chunk else "{chunk:1}"
    share = "{chunk} / prompt" if r.chunk else "{chunk:1 prompt}"
    step = units.seconds(r.step_s, 4)  # so that the limit can be worked out
    return Scene(
        summary=f"With {r.rate} requests per second, batches of up to {r.batch} and {whole} "
        f"{'prompt tokens ' if r.chunk else ''}per step, 99 of 100 first tokens come within {first.text} and 99 of 100 requests have a mean gap within {gap.text}; "
        f"of {r.rate} a second {units.number(r.now.in_time_s)} are in time. Both promises are kept for {kept.text} a second, and the server can answer {most.text} at most.",
        takeaway=_takeaway(r),
        marks=[*_waits(r, first_at, x, wide), *gaps, *_arrivals(r, bar_at, x)],
        figures=(kept, first, gap, most),
        table=table(
            (
                "requests per second",
                Column("first token, median", "s", units.seconds),
                Column("first token, P99", "s", units.seconds),
                Column("between, median", "s", units.seconds),
                Column("between, P99", "s", units.seconds),
                Column("mean between, P99", "s", units.seconds),
                Column("in time", "1/s", units.number),
            ),
            [
                (
                    units.count(one.rate),
                    one.first_p50_s,
                    one.first_p99_s,
                    one.gap_p50_s,
                    one.gap_p99_s,
                    one.mean_gap_p99_s,
                    one.in_time_s,
                )
                for one in r.curve
            ],  # fmt: skip
        ),
        height=height,
        width=width,
        legend=(
            ("useful", "in time"),
            ("hot", "late"),
        ),
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
    question="How many requests can arrive before users wait too long?",
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

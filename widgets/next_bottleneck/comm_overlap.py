"""Show gradients that leave while the backward pass still runs, and the communication that shows at the end."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import takewhile

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, Scale, axis_x, linear, log, steady, text_width
from widgets.controls import number, powers_of_two, slider, steps
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
    table,
    text,
    timed,
)

HIDDEN, NVLINK = 8192, 900e9  # a 70B model's, and both directions together, as the source counts
LAUNCH_S = 5e-6  # of each all-reduce
SHOWN = 48  # buckets drawn apart, beyond which they are drawn in groups
FRAMES = 24
BUCKET = steps(
    "bucket_mb",
    "Size of a bucket",
    25,
    (1, 5, 25, 100, 400, 1600, 6400, 25600),
    lambda value: units.si_bytes(value * 1e6),
    help="25 MB is what DDP starts with.",
)
# (the lanes, the journey of the gradients, height)
PLACES = {
    True: (Box(96, 22, 540, 232), Box(96, 308, 540, 30), 372),
    False: (Box(10, 30, 310, 270), Box(10, 372, 310, 30), 424),
}
THICK = 26  # of a lane's bars


@dataclass(frozen=True)
class Sent:
    """Hold buckets drawn as one, with when the first is full and when it starts, how long the link is busy, the last's
    end."""

    buckets: int
    full_s: float
    start_s: float
    busy_s: float
    end_s: float


@dataclass(frozen=True)
class Moment:
    """Hold how far the overlapped step is at one moment."""

    now_s: float
    sent_share: float  # of the gradients
    hidden_s: float  # of the communication so far
    waits_s: float  # so far


@dataclass(frozen=True)
class AtScale:
    gpus: int
    efficiency: float


@dataclass(frozen=True)
class Result:
    bucket_mb: float
    gradient_bytes: float
    gpus: int
    link_byte_s: float
    ring_factor: float
    forward_s: float
    backward_s: float
    communication_s: float  # as one message
    serial_s: float
    hidden_step_s: float  # if all that fits under the backward pass were hidden
    buckets: int
    sent: tuple[Sent, ...]
    moments: tuple[Moment, ...]
    interference_s: float
    exposed_s: float
    hidden_share: float  # of the communication
    step_s: float
    step_ms: float
    speedup: float
    efficiency: float
    reported: tuple[AtScale, ...]
    last_bucket_bytes: float
    message_bytes: float
    message_launch_s: float
    message_transfer_s: float
    launch_over_transfer: float
    bucket_launch_s: float
    bucket_transfer_s: float
    smallest_fits: bool  # under the backward pass, the launches of the smallest buckets too


def run(bucket_mb, link_gb_s, gpus, parameters_b, tokens, mfu, sms) -> Result:
    parameters, link = parameters_b * 1e9, link_gb_s * 1e9
    taken = cost.sm_share_taken(sms)
    step = cost.training_step(
        parameters,
        tokens,
        devices=gpus,
        peak_flop_s=machine("H100").rate("fp16"),
        link_byte_s=link,
        mfu=mfu / 100,
        sm_share=taken,
    )
    backward_s = step.backward_s + step.interference_s  # on the SMs that the link leaves it
    bucket_bytes = min(bucket_mb * 1e6, 2 * parameters)
    timeline = cost.bucket_timeline(2 * parameters, bucket_bytes, backward_s, devices=gpus, link_byte_s=link)
    one = cost.all_reduce(bucket_bytes, gpus, link, LAUNCH_S)
    exposed_s = cost.exposed_s(timeline[-1].end_s, backward_s)
    compute_s = step.forward_s + step.backward_s
    total_s = compute_s + step.interference_s + exposed_s
    message = cost.activation_message(HIDDEN, 1, NVLINK)
    return Result(
        bucket_mb,
        2 * parameters,
        gpus,
        link,
        cost.ring_factor(gpus),
        step.forward_s,
        step.backward_s,
        step.communication_s,
        step.serial_s,
        step.overlapped_s,
        len(timeline),
        _groups(timeline),
        _moments(
            _groups(timeline), step.forward_s, backward_s, total_s, max(0.0, step.communication_s - exposed_s)
        ),
        step.interference_s,
        exposed_s,
        max(0.0, 1 - exposed_s / step.communication_s),
        total_s,
        total_s * 1e3,
        step.serial_s / total_s,
        cost.overlap_efficiency(compute_s, exposed_s + step.interference_s),
        tuple(AtScale(n, cost.overlap_efficiency(1.0, cost.reported_exposed_share(n))) for n in _scales()),
        2 * parameters - (len(timeline) - 1) * bucket_bytes,
        message.sent_bytes,
        message.latency_s,
        message.transfer_s,
        message.latency_over_transfer,
        one.latency_s,
        one.transfer_s,
        math.ceil(2 * parameters / (BUCKET.stops[0] * 1e6)) * LAUNCH_S + step.communication_s < backward_s,
    )


def _moments(
    sent: tuple[Sent, ...], forward_s: float, backward_s: float, step_s: float, hidden_s: float
) -> tuple[Moment, ...]:
    """Return the moments at which the clock stops, from the start of the backward pass to the end of the step."""
    drawn = [cost.Bucket(one.full_s, one.start_s, one.start_s + one.busy_s) for one in sent]
    end_s = max(backward_s, sent[-1].end_s)
    every, under, found = cost.sent_s(drawn, end_s), cost.sent_s(drawn, backward_s), []
    for i in range(FRAMES):
        now_s = forward_s + (step_s - forward_s) * (i + 1) / FRAMES
        into = now_s - forward_s if i < FRAMES - 1 else end_s
        so_far = cost.sent_s(drawn, min(into, backward_s)) / under if under else 0.0
        waits_s = max(0.0, into - backward_s)
        found.append(Moment(now_s, cost.sent_s(drawn, into) / every, hidden_s * so_far, waits_s))
    return tuple(found)


def _scales() -> list[int]:
    return [8 << k for k in range(8)]


def _groups(timeline) -> tuple[Sent, ...]:
    size = math.ceil(len(timeline) / SHOWN)
    groups = [timeline[i : i + size] for i in range(0, len(timeline), size)]
    return tuple(
        Sent(len(g), g[0].ready_s, g[0].start_s, sum(b.end_s - b.start_s for b in g), g[-1].end_s)
        for g in groups
    )


def _block(id: str, x: Scale, y: float, start_s: float, time_s: float, name: str, role: str) -> list[dict]:
    left, right = x(start_s), x(start_s + time_s)
    marks = [rect(id, left, y, max(1, right - left - 1.5), THICK, role, f"{name}: {units.seconds(time_s)}")]
    for words in (name, name.removeprefix("all-")):
        if right - left > text_width(words) + 10:
            named = text(f"{id}-name", (left + right) / 2, y + 18, words, "inverse", anchor="middle")
            return [*marks, named]
    return marks


def _lanes(r: Result, at: Box) -> Callable[[float], list[dict]]:
    """Draw at each moment the pass in turn, the pass that overlaps, and its link up to then, on one clock."""
    wide = at.x > 50
    x = linear(0, steady("time", max(r.serial_s, r.step_s)), at.x, at.right)
    y1, y2, y3 = (at.y, at.y + 54, at.y + 116) if wide else (at.y, at.y + 62, at.y + 128)
    late = r.forward_s + r.backward_s + r.interference_s
    marks = axis_x("time", x, at.bottom - 22, show=units.seconds, ticks=None if wide else x.ticks(3))
    lanes = (
        (y1, "no overlap", "muted", units.seconds(r.serial_s), r.serial_s, "ink"),
        (y2, "overlapped", "primary", units.seconds(r.step_s), r.step_s, "primary"),
        (y3, "its link", "network", "", 0, "ink"),
    )
    for k, (y, name, role, time, end, ink) in enumerate(lanes):
        words = name if wide or not time else f"{name}: {time}"
        # a phone has the link's name under its bars, because the lines of the buckets run between the lanes
        place = (
            (at.x - 10, y + 18, "end") if wide else (at.x, y + 42 if name == "its link" else y - 6, "start")
        )
        marks.append(text(f"lane{k}", *place[:2], words, role, anchor=place[2], bold=k == 1))
        if wide and time:
            marks.append(text(f"end{k}", x(end) + 8, y + 18, time, ink, bold=True))
    marks += _block("turn-f", x, y1, 0, r.forward_s, "forward", "secondary")
    marks += _block("turn-b", x, y1, r.forward_s, r.backward_s, "backward", "compute")
    turn = _block("turn-c", x, y1, r.forward_s + r.backward_s, r.communication_s, "all-reduce", "network")
    marks += about("all_reduce", turn)
    marks += _block("over-f", x, y2, 0, r.forward_s, "forward", "secondary")
    room = x(late) - x(r.forward_s) - 1.5
    marks.append(rect("over-room", x(r.forward_s), y2, room, THICK, "idle", "backward, not yet done"))
    lent, tip = x(late - r.interference_s), f"longer by {units.seconds(r.interference_s)}: the link's SMs"
    longer = rect("over-lent", lent, y2, max(2, x(late) - lent), THICK, "overhead", tip)
    first, sent = _first_bucket(r, x, late, y3 + (46 if wide else 60), at), _sent(r, x, y2, y3)

    def until(now: float) -> list[dict]:
        return [
            *marks,
            *timed(
                "now",
                *_block("over-b", x, y2, r.forward_s, min(now, late) - r.forward_s, "backward", "compute"),
            ),
            *timed("now", *([longer] if r.interference_s and now >= late else [])),
            *timed("now", *about("shows", _wait(r, x, late, now, y2))),
            *sent(now),
            line("now", x(now), y2 - 3, x(now), y3 + THICK + 3, "now"),
            *first,
        ]

    return until


def _wait(r: Result, x: Scale, late: float, now: float, y: float) -> list[dict]:
    """Draw the link's remaining work when the pass is over, named where there is room."""
    wide = x(now) - x(late)
    if now <= late or wide <= 1:
        return []
    marks = [
        rect("shows-now", x(late), y, wide, THICK, "waste", f"waits: {units.seconds(r.exposed_s)} in all")
    ]
    for words in (f"waits {units.seconds(now - late)}", "waits"):
        if text_width(words, "small") + 28 < wide:
            middle = x(late) + wide / 2
            return [*marks, text("waits", middle, y + 17, words, "ink", "small", "middle", on="waste")]
    return marks


def _first_bucket(r: Result, x: Scale, late: float, y: float, at: Box) -> list[dict]:
    """Draw the part of the pass that goes by until a bucket is full. Below it the size is pulled, on a log scale."""
    pass_s = late - r.forward_s

    left, first = x(r.forward_s), x(r.forward_s + pass_s * min(1.0, r.bucket_mb * 1e6 / r.gradient_bytes))
    place = log(BUCKET.min, BUCKET.max, left + 8, x(late) - 8)
    knob = place(r.bucket_mb)
    whole = r.bucket_mb * 1e6 >= r.gradient_bytes
    words = f"a bucket is full after {units.seconds(r.sent[0].full_s)}"
    if whole:
        words = f"the only bucket is full with all {units.si_bytes(r.gradient_bytes)}, after {units.seconds(r.sent[0].full_s)}"
    if r.sent[0].buckets > 1:
        words += f", each bar above is {r.sent[0].buckets}"
    from_x = min(max(left, knob - text_width(words, "small") / 2), at.right - text_width(words, "small"))
    return [
        *about(
            "bucket_mb",
            path("bucket", [(left, y - 18), (left, y - 13), (first, y - 13), (first, y - 18)], "primary"),
        ),
        line("bucket-track", left + 8, y, x(late) - 8, y, "axis"),
        handle("pull-bucket", knob, y, "primary", drag(BUCKET, "x", place)),
        text("bucket-name", from_x, y + 25, words, "primary", "small"),
    ]


def _sent(r: Result, x: Scale, y2: float, y3: float) -> Callable[[float], list[dict]]:
    """Draw each bucket (or group). It leaves the pass where it is full, and waits until the link is free."""

    @cache  # what has been sent stays as it is
    def bucket(i: int, done: float) -> list[dict]:
        one = r.sent[i]
        left, wide = x(r.forward_s + one.start_s), x(done) - x(0)
        tip = f"{units.count(one.buckets)} of {_buckets(r.buckets)}, sent by {units.seconds(one.end_s)} of backward"
        bar = rect(f"sent{i}", left, y3, max(0.6, wide - (0.8 if wide > 2 else 0)), THICK, "network", tip)
        marks = about("all_reduce", bar)
        if i % max(1, len(r.sent) // 12) == 0:
            full = f"full after {units.seconds(one.full_s)} of backward, sent from {units.seconds(one.start_s)} on"
            marks.append(line(f"drop{i}", x(r.forward_s + one.full_s), y2 + THICK, left, y3, "network", full))
        return timed("now", *marks)

    def until(now: float) -> list[dict]:
        began = takewhile(lambda place: r.forward_s + place[1].start_s < now, enumerate(r.sent))
        return [
            mark for i, one in began for mark in bucket(i, min(one.busy_s, now - (r.forward_s + one.start_s)))
        ]

    return until


def _journey(r: Result, at: Box, now: Moment) -> list[dict]:
    """Draw the answer in one bar, the communication hidden and shown until now, with both names at the end."""
    x = linear(0, r.communication_s, at.x, at.right)
    hidden, wide, over = now.hidden_s, at.x > 50, now is r.moments[-1]
    title = f"Gradient traffic, {units.seconds(r.communication_s)}"
    if r.interference_s:  # hidden, and still paid for
        lent = units.seconds(r.interference_s)
        alone = f"Traffic: {units.seconds(r.communication_s)}, without {lent} of lent SMs"
        title = f"{title}: what is hidden, what shows, without the {lent} of lent SMs" if wide else alone
    elif wide:
        title += ": what is hidden, what shows"
    marks = [text("journey-title", 0, at.y - 14, title, bold=True)]
    cut = x(hidden)
    shown = x(min(hidden + now.waits_s, r.communication_s)) if not over else at.right
    rest = rect("shown", cut, at.y, shown - cut, at.h, "waste", f"shows: {units.seconds(now.waits_s)}")
    if not over:
        marks.append(rect("unsent", at.x, at.y, at.w, at.h, "idle", "not yet sent"))
    marks += [
        rect("hidden", at.x, at.y, max(0, cut - at.x), at.h, "useful", f"hidden: {units.seconds(hidden)}"),
        *about("shows", rest),
    ]
    if not over:
        return marks
    words, shows = f"{_hidden(r)} hidden", f"{units.seconds(r.exposed_s)} show"
    inside = cut - at.x > text_width(words, bold=True) + 12
    ink, place = ("inverse", (at.x + 10, at.y + 20)) if inside else ("useful", (at.x, at.y + 48))
    marks.append(text("hidden-name", *place, words, ink, bold=True))
    if at.right - cut > text_width(shows, bold=True) + 24:
        where = {"x": (cut + at.right) / 2, "y": at.y + 20, "role": "ink", "anchor": "middle", "on": "waste"}
    else:
        where = {"x": at.right, "y": at.y + 48, "role": "waste", "anchor": "end"}
    marks.append(text("shown-name", s=shows, bold=True, **where))
    return marks


def _hidden(r: Result) -> str:
    """Return the hidden share. A share that only rounds to all or to nothing says so."""
    if r.exposed_s > 0 and r.hidden_share > 0.9995:
        return "> 99.9%"
    return units.percent(r.hidden_share) if r.hidden_share >= 0.0005 else "nothing"


def _buckets(count: int) -> str:
    return units.counted(count, "bucket")


def _takeaway(r: Result) -> str:
    if r.communication_s > r.backward_s:
        return f"The link needs longer than the backward pass, so {units.seconds(r.exposed_s)} must show."
    if r.exposed_s > 0.5 * r.communication_s:
        return "A bucket leaves when it is full. The larger the bucket, the later the first one starts."
    if r.interference_s > r.exposed_s:
        return "Hiding is not free, because SMs that move bytes are missing from the arithmetic."
    if r.exposed_s > 0.1 * r.communication_s and r.smallest_fits:
        return "The last bucket always shows whole, so on this link the smallest hide the most."
    if r.exposed_s > 0.1 * r.communication_s:
        return "A bucket too large starts late, one too small pays launches. One in between hides most."
    return "Sent during the backward pass, the gradients cost almost nothing. Only the last bucket shows."


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    lanes_at, journey_at, height = PLACES[width == WIDE]
    turn = figure("one after the other", r.serial_s, units.seconds)
    over = figure("overlapped", r.step_s, units.seconds, "primary")
    gain = figure("the speed", r.speedup, units.times)
    lent = f", besides {units.seconds(r.interference_s)} of lent SMs" if r.interference_s else ""
    shows = figure(f"communication that still shows{lent}", r.exposed_s, units.seconds, "waste", "shows")
    ring = units.number(r.ring_factor)
    same = {
        "summary": f"{units.si_bytes(r.gradient_bytes)} of gradients over {r.gpus} GPUs at {units.si_bytes(r.link_byte_s)}/s "
        f"take {units.seconds(r.communication_s)}. Sent after the backward pass, they make the step {turn.text} long. "
        f"In {_buckets(r.buckets)} during that pass, {over.text}, {gain.text} as fast, and {shows.text} still show.",
        "takeaway": _takeaway(r),
        "table": table(
            ("part of the step", Column("time", "s", units.seconds)),
            [
                ("forward", r.forward_s),
                ("backward", r.backward_s),
                ("all-reduce alone", r.communication_s),
                ("shows", r.exposed_s),
                ("SMs lent to the link", r.interference_s),
                ("step in turn", r.serial_s),
                ("step overlapped", r.step_s),
                ("if all that fits were hidden", r.hidden_step_s),
                ("a full bucket: launch", r.bucket_launch_s),
                ("a full bucket: transfer", r.bucket_transfer_s),
            ],
        ),
        "height": height,
        "width": width,
        "legend": (("overhead", "backward takes longer without the lent SMs"),) if r.interference_s else (),
        "formula": (
            (
                "{all_reduce:all-reduce} = 2(N − 1)/N · bytes / {link_gb_s:link}",
                f"{ring} · {units.si_bytes(r.gradient_bytes, 4)} / {{link_gb_s:{units.si_bytes(r.link_byte_s)}/s}} = "
                f"{{all_reduce:{units.seconds(r.communication_s)}}}",
            ),
            (
                "{shows} = last bucket's end − backward",
                f"{{shows:{units.seconds(r.exposed_s)}}}: the last bucket holds {units.si_bytes(r.last_bucket_bytes)}",
            ),
            (
                "a full {bucket_mb:bucket} = launch + 2(N − 1)/N · its bytes / link",
                f"{units.seconds(r.bucket_launch_s)} + {{bucket_mb:{units.seconds(r.bucket_transfer_s)}}}",
            ),
        ),
    }
    lanes, scenes = _lanes(r, lanes_at), []
    for now in r.moments:
        figures = (turn, over, gain, shows)
        if now is not r.moments[-1]:
            clock = figure("on the clock", now.now_s, units.seconds, "primary")
            sent = figure("of the gradients sent", now.sent_share, units.percent)
            waits = figure("waits so far", now.waits_s, units.seconds, "waste", "shows")
            figures = (turn, clock, sent, waits)
        said = f"After {figures[1].text} {figures[2].text} of the gradients are sent and the GPUs have waited {figures[3].text}. "
        scenes.append(
            Scene(
                marks=lanes(now.now_s) + _journey(r, journey_at, now),
                caption=_caption(r, now.now_s),
                figures=figures,
                **{**same, "summary": same["summary"] if now is r.moments[-1] else said + same["summary"]},
            )
        )
    return scenes


def _caption(r: Result, now: float) -> str:
    sent = sum(one.buckets for one in r.sent if r.forward_s + one.end_s <= now + 1e-12)
    if sent == r.buckets:
        return f"After {units.seconds(now)} every bucket has arrived, and the step is over."
    left = f"{units.count(sent)} of {_buckets(r.buckets)} {'has' if r.buckets == 1 else 'have'} arrived"
    if now <= r.forward_s + r.backward_s + r.interference_s:
        return f"After {units.seconds(now)} the backward pass still runs, and {left}."
    return f"After {units.seconds(now)} the pass is over and the GPUs wait for the link. {left}."


SIMULATOR = Declaration(
    title="Communication overlap",
    question="How much gradient traffic can the backward pass hide?",
    controls=(
        BUCKET,
        steps(
            "link_gb_s",
            "Link, one direction",
            450,
            (25, 50, 64, 150, 300, 450, 900),
            unit="GB/s",
            help="NVLink 450, PCIe 64, network 50.",
        ),
        powers_of_two("gpus", "GPUs in the ring", 8, 2, 1024),
        number(
            "parameters_b",
            "Parameters, billions",
            8.03,
            0.1,
            70.0,
            step=0.01,
            more=True,
            help="8.03 billion are the source's 16.1 GB of gradients in 16 bits.",
        ),
        powers_of_two("tokens", "Tokens a GPU a step", 2048, 512, 16384, more=True),
        slider("mfu", "MFU of forward and backward", 40, 10, 80, unit="%", more=True),
        slider(
            "sms",
            "SMs that the link takes",
            0,
            0,
            16,
            more=True,
            help="A heavy collective holds 4 to 8 of 132.",
        ),
    ),
    presets={
        "8 GPUs on NVLink": {},
        "All in one bucket": {"bucket_mb": 25600},
        "Over PCIe": {"link_gb_s": 64},
        "1,024 GPUs on a network": {"gpus": 1024, "link_gb_s": 50},
        "The link takes 8 SMs": {"sms": 8},
    },
    run=run,
    stepper=Stepper("moment", frames, lambda r: FRAMES - 1),
    prediction=Prediction(
        "A step computes 83 ms forward and 166 ms backward. Then 16.1 GB of gradients cross NVLink in 62 ms, 312 in all. "
        "If each bucket of 25 MB leaves as soon as it is full, how many milliseconds does the step take?",
        "step_ms",
        "ms",
        0.04,
    ),
    source="Performance Engineering",
)

"""Gradients that leave while the backward pass still runs: what of the communication shows at the end."""

import math
from dataclasses import dataclass

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, Scale, axis_x, linear, text_width
from widgets.controls import number, powers_of_two, slider, steps
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import (
    WIDE,
    Column,
    Scene,
    about,
    drag,
    figure,
    flowing,
    handle,
    line,
    path,
    rect,
    table,
    text,
)

HIDDEN, NVLINK = 8192, 900e9  # a 70B model's, and both directions together, as the source counts
SHOWN = 48  # buckets drawn apart; more are drawn in groups
FRAMES = 24
BUCKET = steps("bucket_mb", "Size of a bucket", 25, (1, 5, 25, 100, 400, 1600, 6400, 25600),
               lambda value: units.si_bytes(value * 1e6), help="25 MB is what DDP starts with.")  # fmt: skip
# (the lanes, the journey of the gradients, height)
PLACES = {
    True: (Box(96, 28, 540, 190), Box(96, 296, 540, 30), 370),
    False: (Box(10, 40, 310, 250), Box(10, 378, 310, 30), 452),
}


@dataclass(frozen=True)
class Sent:
    """Buckets drawn as one: when the first starts, how long the link is busy, when the last ends."""

    buckets: int
    start_s: float
    busy_s: float
    end_s: float


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
    interference_s: float
    exposed_s: float
    hidden_share: float  # of the communication
    step_s: float
    step_ms: float
    speedup: float
    efficiency: float
    reported: tuple[AtScale, ...]
    batch: int
    message_bytes: float
    message_launch_s: float
    message_transfer_s: float
    launch_over_transfer: float


def run(bucket_mb, link_gb_s, gpus, batch, parameters_b, tokens, mfu, sms) -> Result:
    parameters, link = parameters_b * 1e9, link_gb_s * 1e9
    taken = cost.sm_share_taken(sms)
    step = cost.training_step(
        parameters, tokens, devices=gpus, peak_flop_s=machine("H100").rate("fp16"), link_byte_s=link,
        mfu=mfu / 100, sm_share=taken,
    )  # fmt: skip
    timeline = cost.bucket_timeline(
        2 * parameters, bucket_mb * 1e6, step.backward_s, devices=gpus, link_byte_s=link
    )
    exposed_s = cost.exposed_s(timeline[-1].end_s, step.backward_s)
    compute_s = step.forward_s + step.backward_s
    total_s = compute_s + step.interference_s + exposed_s
    message = cost.activation_message(HIDDEN, batch, NVLINK)
    return Result(
        bucket_mb, 2 * parameters, gpus, link, cost.ring_factor(gpus), step.forward_s, step.backward_s,
        step.communication_s, step.serial_s, step.overlapped_s, len(timeline), _groups(timeline),
        step.interference_s, exposed_s, max(0.0, 1 - exposed_s / step.communication_s), total_s, total_s * 1e3, step.serial_s / total_s,
        cost.overlap_efficiency(compute_s, exposed_s + step.interference_s),
        tuple(AtScale(n, cost.overlap_efficiency(1.0, cost.reported_exposed_share(n))) for n in _scales()),
        batch, message.sent_bytes, message.latency_s, message.transfer_s, message.latency_over_transfer,
    )  # fmt: skip


def _scales() -> list[int]:
    return [8 << k for k in range(8)]


def _groups(timeline) -> tuple[Sent, ...]:
    size = math.ceil(len(timeline) / SHOWN)
    groups = [timeline[i : i + size] for i in range(0, len(timeline), size)]
    return tuple(Sent(len(g), g[0].start_s, sum(b.end_s - b.start_s for b in g), g[-1].end_s) for g in groups)


def _block(id: str, x: Scale, y: float, start_s: float, time_s: float, name: str, role: str) -> list[dict]:
    left, right = x(start_s), x(start_s + time_s)
    marks = [rect(id, left, y, max(1, right - left - 1.5), 26, role, f"{name}: {units.seconds(time_s)}")]
    if right - left > text_width(name) + 10:
        marks.append(text(f"{id}-name", (left + right) / 2, y + 18, name, "inverse", anchor="middle"))
    return marks


def _lanes(r: Result, now: float, at: Box) -> list[dict]:
    """Up to the moment `now`: the pass in turn, the pass that overlaps, and its link, on one clock."""
    wide = at.x > 50
    x = linear(0, max(r.serial_s, r.step_s), at.x, at.right)
    y1, y2, y3 = (at.y, at.y + 58, at.y + 116) if wide else (at.y, at.y + 72, at.y + 144)
    late = r.forward_s + r.backward_s + r.interference_s
    marks = axis_x("time", x, at.bottom - 22, show=units.seconds, ticks=None if wide else x.ticks(3))
    ends = ((y1, "in turn", "muted", units.seconds(r.serial_s), r.serial_s, "ink"),
            (y2, "overlapped", "primary", units.seconds(r.step_s), r.step_s, "primary"), (y3, "its link", "network", "", 0, "ink"))  # fmt: skip
    for k, (y, name, role, time, end, ink) in enumerate(ends):
        if wide:
            marks.append(text(f"lane{k}", at.x - 10, y + 18, name, role, anchor="end", bold=k == 1))
            marks.append(text(f"end{k}", x(end) + 8, y + 18, time, ink, bold=True))
        else:
            marks.append(
                text(f"lane{k}", at.x, y - 6, f"{name}: {time}" if time else name, role, bold=k == 1)
            )
    marks += _block("turn-f", x, y1, 0, r.forward_s, "forward", "secondary")
    marks += _block("turn-b", x, y1, r.forward_s, r.backward_s, "backward", "compute")
    marks += about(
        "all_reduce",
        _block("turn-c", x, y1, r.forward_s + r.backward_s, r.communication_s, "all-reduce", "network"),
    )
    marks += _block("over-f", x, y2, 0, r.forward_s, "forward", "secondary")
    marks.append(
        rect(
            "over-room",
            x(r.forward_s),
            y2,
            x(late) - x(r.forward_s) - 1.5,
            26,
            "idle",
            "backward, not yet done",
        )
    )
    marks += _block("over-b", x, y2, r.forward_s, min(now, late) - r.forward_s, "backward", "compute")
    if now > late and x(now) - x(late) > 1:
        marks += about(
            "shows",
            rect(
                "shows-now",
                x(late),
                y2,
                x(now) - x(late),
                26,
                "waste",
                f"waits: {units.seconds(r.exposed_s)} in all",
            ),
        )
    marks += _sent(r, now, x, y2, y3)
    parameters = r.gradient_bytes

    def place(mega: float) -> float:
        return x(r.forward_s + r.backward_s * min(1.0, mega * 1e6 / parameters))

    first = place(r.bucket_mb)
    bracket = path(
        "bucket",
        [(x(r.forward_s), y3 + 38), (x(r.forward_s), y3 + 44), (first, y3 + 44), (first, y3 + 38)],
        "primary",
    )
    marks += about("bucket_mb", bracket)
    marks.append(handle("pull-bucket", first, y3 + 44, "primary", drag(BUCKET, "x", place)))
    full = f"a bucket is full after {units.seconds(r.backward_s * min(1.0, r.bucket_mb * 1e6 / parameters))}"
    right = first > at.x + 0.55 * at.w
    marks.append(
        text(
            "bucket-name",
            first - 22 if right else first + 22,
            y3 + 48,
            full,
            "primary",
            "small",
            "end" if right else "start",
        )
    )
    return [*marks, line("now", x(now), at.y - 8, x(now), at.bottom - 22, "now")]


def _sent(r: Result, now: float, x: Scale, y2: float, y3: float) -> list[dict]:
    """Each bucket (or group of them) drops from the pass to the link when it is full and the link is free."""
    marks = []
    for i, one in enumerate(r.sent):
        start, busy = r.forward_s + one.start_s, one.busy_s
        if start >= now:
            break
        left, done = x(start), min(busy, now - start)
        wide = x(done) - x(0)
        tip = f"{units.count(one.buckets)} of {units.count(r.buckets)} buckets, sent by {units.seconds(one.end_s)} of backward"
        bar = rect(f"sent{i}", left, y3, max(0.6, wide - (0.8 if wide > 2 else 0)), 26, "network", tip)
        marks += about("all_reduce", bar)
        if i % max(1, len(r.sent) // 12) == 0:
            marks += flowing(line(f"drop{i}", left, y2 + 26, left, y3, "network", tip))
    return marks


def _journey(r: Result, at: Box) -> list[dict]:
    """The answer in one bar: what of the communication hides, and what shows."""
    x = linear(0, r.communication_s, at.x, at.right)
    hidden, wide = max(0.0, r.communication_s - r.exposed_s), at.x > 50
    title = f"The gradients' journey, {units.seconds(r.communication_s)} alone"
    marks = [
        text(
            "journey-title", 0, at.y - 14, title + (": what hides, and what shows" if wide else ""), bold=True
        )
    ]
    cut = x(hidden)
    marks += [
        rect("hidden", at.x, at.y, max(0, cut - at.x), at.h, "useful", f"hidden: {units.seconds(hidden)}"),
        *about(
            "shows",
            rect("shown", cut, at.y, at.right - cut, at.h, "waste", f"shows: {units.seconds(r.exposed_s)}"),
        ),
    ]
    words = f"{units.percent(r.hidden_share)} hidden"
    inside = cut - at.x > text_width(words, bold=True) + 12
    marks.append(text("hidden-name", at.x + 10 if inside else at.x, at.y + (20 if inside else 48), words,
                      "inverse" if inside else "useful", bold=True))  # fmt: skip
    marks.append(
        text(
            "shown-name",
            at.right,
            at.y + 48,
            f"shows: {units.seconds(r.exposed_s)}",
            "waste",
            anchor="end",
            bold=True,
        )
    )
    return marks


def _takeaway(r: Result) -> str:
    if r.communication_s > r.backward_s:
        return "The link needs longer than the backward pass: no overlap can hide what does not fit."
    if r.exposed_s > 0.5 * r.communication_s:
        return "A bucket leaves when it is full: the larger the bucket, the later the first one starts."
    if r.interference_s > r.exposed_s:
        return "What hides is not free: SMs that move bytes are missing from the arithmetic."
    if r.exposed_s > 0.1 * r.communication_s:
        return "Buckets between too large (a late start) and too small (a launch for each) hide the most."
    return (
        "Sent while the backward pass runs, the gradients cost next to nothing: only the last bucket shows."
    )


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    lanes_at, journey_at, height = PLACES[width == WIDE]
    turn = figure("in turn", r.serial_s, units.seconds)
    over = figure("overlapped", r.step_s, units.seconds, "primary")
    gain = figure("gain", r.speedup, units.times)
    shows = figure("of the communication shows", r.exposed_s, units.seconds, "waste", "shows")
    ring = units.number(r.ring_factor)
    same = {
        "summary": f"{units.si_bytes(r.gradient_bytes)} of gradients over {r.gpus} GPUs at {units.si_bytes(r.link_byte_s)}/s "
        f"take {units.seconds(r.communication_s)}: in turn the step is {turn.text}, sent in {units.count(r.buckets)} "
        f"buckets during the backward pass {over.text}, a gain of {gain.text}; {shows.text} of it show.",
        "takeaway": _takeaway(r),
        "figures": (turn, over, gain, shows),
        "table": table(
            ("part of the step", Column("time", "s", units.seconds)),
            [
                ("forward", r.forward_s), ("backward", r.backward_s), ("all-reduce alone", r.communication_s),
                ("shows", r.exposed_s), ("SMs lent to the link", r.interference_s), ("step in turn", r.serial_s),
                ("step overlapped", r.step_s), ("if all that fits were hidden", r.hidden_step_s),
                ("small all-reduce: launch", r.message_launch_s), ("small all-reduce: transfer", r.message_transfer_s),
            ],
        ),
        "height": height,
        "width": width,
        "formula": (
            (
                "{all_reduce:all-reduce} = 2(N − 1)/N · bytes / {link_gb_s:link}",
                f"{ring} · {units.si_bytes(r.gradient_bytes)} / {{link_gb_s:{units.si_bytes(r.link_byte_s)}/s}} = "
                f"{{all_reduce:{units.seconds(r.communication_s)}}}",
            ),
            ("{shows} = last bucket's end − backward", f"{{shows:{units.seconds(r.exposed_s)}}}"),
            ("decoding, {batch}: its all-reduce of one 70B layer", f"{units.si_bytes(r.message_bytes)}: launch "
             f"{units.seconds(r.message_launch_s)}, transfer {units.seconds(r.message_transfer_s)}"),
        ),
    }  # fmt: skip
    rest = _journey(r, journey_at)
    times = [r.forward_s + (r.step_s - r.forward_s) * (i + 1) / FRAMES for i in range(FRAMES)]
    return [Scene(marks=_lanes(r, now, lanes_at) + rest, caption=_caption(r, now), **same) for now in times]


def _caption(r: Result, now: float) -> str:
    sent = sum(one.buckets for one in r.sent if r.forward_s + one.end_s <= now + 1e-12)
    left = f"{units.count(sent)} of {units.count(r.buckets)} buckets have arrived"
    if now <= r.forward_s + r.backward_s + r.interference_s:
        return f"After {units.seconds(now)} the backward pass still runs, and {left}."
    return f"After {units.seconds(now)} the pass is over and the GPUs wait for the link: {left}."


SIMULATOR = Declaration(
    title="Communication overlap",
    question="How much of the gradients' journey can the backward pass hide?",
    controls=(
        BUCKET,
        steps("link_gb_s", "Link, one direction", 450, (25, 50, 64, 150, 300, 450, 900), unit="GB/s",
              help="NVLink 450, PCIe 64, network 50."),
        powers_of_two("gpus", "GPUs in the ring", 8, 2, 1024),
        powers_of_two("batch", "Batch of a decoding all-reduce", 1, 1, 256, more=True,
                      help="Tensor-parallel decoding sends little: the last formula."),
        number("parameters_b", "Parameters, billions", 8.03, 0.1, 70.0, step=0.01, more=True,
               help="8.03 billion are the source's 16.1 GB of gradients in 16 bits."),
        powers_of_two("tokens", "Tokens a GPU a step", 2048, 512, 16384, more=True),
        slider("mfu", "MFU of forward and backward", 40, 10, 80, unit="%", more=True),
        slider("sms", "SMs that the link takes", 0, 0, 16, more=True, help="A heavy collective holds 4 to 8 of 132."),
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
        "A step computes 83 ms forward and 166 ms backward; then 16.1 GB of gradients cross NVLink in 62 ms, 312 in all. "
        "If each bucket of 25 MB leaves as soon as it is full, how many milliseconds does the step take?",
        "step_ms",
        "ms",
        0.04,
    ),
    source="Performance Engineering",
)  # fmt: skip

"""Gradients that leave while the backward pass still runs: what of the communication shows at the end."""

import math
from dataclasses import dataclass

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, Scale, Series, axis_x, axis_y, linear, lines, log, text_width
from widgets.controls import number, powers_of_two, slider, steps
from widgets.declare import Declaration, Prediction
from widgets.scene import Column, Scene, circle, figure, line, rect, table, text

HIDDEN, NVLINK = 8192, 900e9  # a 70B model's, and both directions together, as the source counts
SHOWN = 48  # buckets drawn apart; more are drawn in groups
LANES = Box(96, 22, 548, 138)
MESSAGE = Box(96, 258, 220, 96)
SCALE = Box(440, 258, 196, 96)


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
        2 * parameters, gpus, link, cost.ring_factor(gpus), step.forward_s, step.backward_s,
        step.communication_s, step.serial_s, step.overlapped_s, len(timeline), _groups(timeline),
        step.interference_s, exposed_s, total_s, total_s * 1e3, step.serial_s / total_s,
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


def _lanes(r: Result) -> list[dict]:
    x = linear(0, max(r.serial_s, r.step_s), LANES.x, LANES.right)
    y1, y2, y3 = LANES.y, LANES.y + 52, LANES.y + 84
    marks = [
        text("lane1", LANES.x - 10, y1 + 18, "in turn", "muted", anchor="end"),
        text("lane2", LANES.x - 10, y2 + 18, "overlapped", "primary", anchor="end", bold=True),
        text("lane3", LANES.x - 10, y3 + 18, "its link", "network", anchor="end"),
    ]
    marks += axis_x("time", x, LANES.bottom - 4, show=units.seconds)
    for id, y in (("turn", y1), ("over", y2)):
        marks += _block(f"{id}-f", x, y, 0, r.forward_s, "forward", "secondary")
        longer = r.interference_s if id == "over" else 0
        marks += _block(f"{id}-b", x, y, r.forward_s, r.backward_s + longer, "backward", "compute")
    marks += _block("turn-c", x, y1, r.forward_s + r.backward_s, r.communication_s, "all-reduce", "network")
    marks.append(text("turn-end", x(r.serial_s) + 8, y1 + 18, units.seconds(r.serial_s), bold=True))
    late = r.forward_s + r.backward_s + r.interference_s
    for i, one in enumerate(r.sent):
        left, wide = x(r.forward_s + one.start_s), x(one.busy_s) - x(0)
        tip = f"{units.count(one.buckets)} of {units.count(r.buckets)} buckets, sent by {units.seconds(one.end_s)} of backward"
        marks.append(
            rect(f"sent{i}", left, y3, max(0.6, wide - (0.8 if wide > 2 else 0)), 26, "network", tip)
        )
    if x(r.step_s) - x(late) > 1:
        tip = f"shows: {units.seconds(r.exposed_s)}"
        marks.append(rect("shows", x(late), y2, x(r.step_s) - x(late), 26, "waste", tip))
        if x(r.step_s) - x(late) > text_width("waits", bold=True) + 8:
            marks.append(
                text(
                    "shows-name",
                    (x(late) + x(r.step_s)) / 2,
                    y2 + 18,
                    "waits",
                    "ink",
                    anchor="middle",
                    bold=True,
                )
            )
    marks.append(text("over-end", x(r.step_s) + 8, y2 + 18, units.seconds(r.step_s), "primary", bold=True))
    return marks


def _message(r: Result) -> list[dict]:
    """A tensor-parallel all-reduce: the launch and the bytes, on one log scale."""
    x = log(1e-8, 1e-4, MESSAGE.x, MESSAGE.right)
    title = f"one all-reduce of a 70B layer, batch {r.batch}: {units.si_bytes(r.message_bytes)}"
    marks = [text("message-title", 0, MESSAGE.y - 28, title, "muted", "small")]
    marks += axis_x("message", x, MESSAGE.bottom, show=units.seconds, top=MESSAGE.y, ticks=(1e-8, 1e-6, 1e-4))
    more = r.launch_over_transfer
    words = (
        f"the launch is {units.times(more)} the transfer"
        if more > 1
        else f"the transfer is {units.times(1 / more)} the launch"
    )
    marks.append(
        text("message-ratio", 0, MESSAGE.y - 11, words, "overhead" if more > 1 else "network", bold=True)
    )
    for i, (name, time_s, role) in enumerate(
        (("launch", r.message_launch_s, "overhead"), ("transfer", r.message_transfer_s, "network"))
    ):
        y = MESSAGE.y + 26 + 40 * i
        marks += [
            text(f"message{i}-name", MESSAGE.x - 10, y + 4, name, anchor="end"),
            line(f"message{i}-line", MESSAGE.x, y, x(time_s), y, role),
            circle(f"message{i}", x(time_s), y, 6, role, f"{name}: {units.seconds(time_s)}"),
            text(f"message{i}-time", x(time_s) + 11, y + 4, units.seconds(time_s), role, bold=True),
        ]
    return marks


def _by_scale(r: Result) -> list[dict]:
    x, y = log(2, 1024, SCALE.x, SCALE.right), linear(0, 1, SCALE.bottom, SCALE.y)
    marks = [
        text("scale-title", SCALE.x - 40, SCALE.y - 28, "useful share of the step, by GPUs", "muted", "small")
    ]
    marks += axis_y(
        "share", y, SCALE.x, show=lambda v: units.percent(v, 0), right=SCALE.right, ticks=(0, 0.5, 1)
    )
    marks += axis_x("gpus", x, SCALE.bottom, show=units.count, ticks=(2, 8, 64, 1024))
    points = [(one.gpus, one.efficiency) for one in r.reported]
    marks += lines("reported", [Series("reported", points, "secondary")], x, y)
    shown = units.percent(r.efficiency)
    marks.append(
        circle("here", x(r.gpus), y(r.efficiency), 6, "primary", f"This step on {r.gpus} GPUs: {shown}")
    )
    at_right = x(r.gpus) > SCALE.right - 70
    side, shift = ("end", -2) if at_right else ("start", 0)
    up = y(r.efficiency) + (20 if at_right and r.efficiency > 0.7 else -24 if at_right else -10)
    return [*marks, text("here-name", x(r.gpus) + shift, up, f"here {shown}", "primary", "body", side, True)]


def _takeaway(r: Result) -> str:
    if r.communication_s > r.backward_s:
        return "The link needs longer than the backward pass: no overlap can hide what does not fit."
    if r.exposed_s > 0.5 * r.communication_s:
        return "A bucket leaves when it is full: the larger the bucket, the later the first one starts."
    if r.exposed_s > 0.1 * r.communication_s:
        return "Buckets between too large (a late start) and too small (a launch for each) hide the most."
    return (
        "Sent while the backward pass runs, the gradients cost next to nothing: only the last bucket shows."
    )


def scene(r: Result, measured: dict | None = None) -> Scene:
    turn = figure("in turn", r.serial_s, units.seconds)
    over = figure("overlapped", r.step_s, units.seconds, "primary")
    gain = figure("gain", r.speedup, units.times)
    shows = figure("of the communication shows", r.exposed_s, units.seconds, "waste")
    ring = units.number(r.ring_factor)
    return Scene(
        summary=f"{units.si_bytes(r.gradient_bytes)} of gradients over {r.gpus} GPUs at {units.si_bytes(r.link_byte_s)}/s "
        f"take {units.seconds(r.communication_s)}: in turn the step is {turn.text}, sent in {units.count(r.buckets)} "
        f"buckets during the backward pass {over.text}, a gain of {gain.text}; {shows.text} of it show.",
        takeaway=_takeaway(r),
        marks=_lanes(r) + _message(r) + _by_scale(r),
        figures=(turn, over, gain, shows),
        table=table(
            ("part of the step", Column("time", "s", units.seconds)),
            [
                ("forward", r.forward_s), ("backward", r.backward_s), ("all-reduce alone", r.communication_s),
                ("shows", r.exposed_s), ("SMs lent to the link", r.interference_s), ("step in turn", r.serial_s),
                ("step overlapped", r.step_s), ("if all that fits were hidden", r.hidden_step_s),
                ("small all-reduce: launch", r.message_launch_s), ("small all-reduce: transfer", r.message_transfer_s),
            ],
        ),
        height=394,
        formula=(
            (
                "all-reduce = 2(N − 1)/N · bytes / link",
                f"{ring} · {units.si_bytes(r.gradient_bytes)} / {units.si_bytes(r.link_byte_s)}/s = "
                f"{units.seconds(r.communication_s)}",
            ),
            ("shows = last bucket's end − backward", f"{units.seconds(r.exposed_s)}"),
        ),
    )  # fmt: skip


def _mega(value) -> str:
    return units.si_bytes(value * 1e6)


SIMULATOR = Declaration(
    title="Communication overlap",
    question="How much of the gradients' journey can the backward pass hide?",
    controls=(
        steps("bucket_mb", "Size of a bucket", 25, (1, 5, 25, 100, 400, 1600, 6400, 25600), _mega,
              help="25 MB is what DDP starts with."),
        steps("link_gb_s", "Link, one direction", 450, (25, 50, 64, 150, 300, 450, 900), unit="GB/s",
              help="NVLink 450, PCIe 64, network 50."),
        powers_of_two("gpus", "GPUs in the ring", 8, 2, 1024),
        powers_of_two("batch", "Batch of the small all-reduce", 1, 1, 256, help="Tensor-parallel decoding, below left."),
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
        "Decode batch of 64": {"batch": 64, "sms": 8},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "A step computes 83 ms forward and 166 ms backward; then 16.1 GB of gradients cross NVLink in 62 ms, 312 in all. "
        "If each bucket of 25 MB leaves as soon as it is full, how many milliseconds does the step take?",
        "step_ms",
        "ms",
        0.04,
    ),
    source="Performance Engineering",
)  # fmt: skip

"""From what a profile shows to what to do: rule out every wait before judging the work."""

from dataclasses import dataclass

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box
from widgets.controls import log_slider, select, slider
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import Scene, figure, line, rect, table, text

OWN = "your own numbers"
CASES = {case.name: case for case in cost.CASES}
TRACE, LANE = Box(96, 58, 616, 4 * 34), 34
FLOW = Box(0, 254, 720, 74)
KERNELS = 12
QUESTIONS = ("input late?", "gaps between?", "a slow rank?", "NCCL alone?", "near its roof?")
NAMES = {
    "input": "the input",
    "launches": "launch overhead",
    "stragglers": "a straggler",
    "communication": "communication",
    "memory": "memory bandwidth",
    "compute": "arithmetic",
    "implementation": "the way it is written",
}
ANSWERS = ("input", "launches", "stragglers", "communication")  # a yes to the first four questions
LIMITS = (cost.WAIT_SHARE, cost.WAIT_SHARE, cost.SKEW, cost.WAIT_SHARE, cost.NEAR_ROOF)


@dataclass(frozen=True)
class Asked:
    question: str
    value: float
    limit: float
    hit: bool


@dataclass(frozen=True)
class Result:
    case: str
    story: str
    input_wait_share: float
    launch_gap_share: float
    exposed_communication_share: float
    rank_skew: float
    rank_wait_share: float
    work_share: float  # of the wall clock: kernels that run
    intensity: float
    ridge: float
    compute_share: float
    bandwidth_share: float
    roof_share: float
    roof_percent: float
    bound: str
    limits: tuple[float, ...]  # of the five questions
    asked: tuple[Asked, ...]
    bottleneck: str
    path: tuple[str, ...]
    at_roof_ratio: float  # what the step would gain with all kernels at their roof


def run(
    case, input_wait, launch_gaps, communication, rank_skew, intensity, compute_share, bandwidth_share
) -> Result:
    ridge = machine("H100").ridge("fp16")
    if case == OWN:
        story = "Your own profile, on an H100."
        seen = cost.Symptoms(
            input_wait / 100, launch_gaps / 100, communication / 100, rank_skew, intensity, ridge,
            compute_share / 100, bandwidth_share / 100,
        )  # fmt: skip
    else:
        story, seen = CASES[case].story, CASES[case].seen
    waits = seen.input_wait_share + seen.launch_gap_share + seen.exposed_communication_share
    if waits > 0.95:
        raise ValueError(
            f"The three waits must be at most 95% together, got {units.percent(waits, 0)}; leave some time for work"
        )
    found = cost.diagnose(seen)
    bound = "memory" if seen.intensity < seen.ridge else "compute"
    roof = seen.bandwidth_share if bound == "memory" else seen.compute_share
    work = 1 - waits
    return Result(
        case, story, seen.input_wait_share, seen.launch_gap_share, seen.exposed_communication_share,
        seen.rank_skew, 1 - 1 / max(1.0, seen.rank_skew), work, seen.intensity, seen.ridge, seen.compute_share,
        seen.bandwidth_share, roof, 100 * roof, bound, LIMITS,
        tuple(Asked(c.question, c.value, c.limit, c.hit) for c in found.checks),
        found.bottleneck, found.path, cost.amdahl(work, 1 / roof),
    )  # fmt: skip


def _lane(name: str, row: int) -> list[dict]:
    y = TRACE.y + LANE * row
    return [
        text(f"lane{row}", TRACE.x - 10, y + 18, name, "muted", anchor="end"),
        line(f"lane{row}-line", TRACE.x, y + 26, TRACE.right, y + 26, "grid"),
    ]


def _trace(r: Result) -> list[dict]:
    """One step as a profiler's timeline: what runs, and what it waits for."""
    marks = [
        text("story", 0, 16, r.story, bold=True),
        text("trace-title", TRACE.x, 42, "one step, left to right", "muted", "small"),
    ]
    for row, name in enumerate(("input", "kernels", "NCCL", "other ranks")):
        marks += _lane(name, row)
    start = TRACE.x + TRACE.w * r.input_wait_share
    end = TRACE.right - TRACE.w * r.exposed_communication_share
    pitch = (end - start) / KERNELS
    busy = r.work_share / (r.work_share + r.launch_gap_share)
    if r.input_wait_share:
        share = units.percent(r.input_wait_share, 0)
        marks.append(
            rect("input", TRACE.x, TRACE.y + 2, start - TRACE.x, 22, "overhead", f"Loading: {share}")
        )
    role = "memory" if r.bound == "memory" else "compute"
    tip = f"Kernels run {units.percent(r.work_share, 0)} of the time, gaps {units.percent(r.launch_gap_share, 0)}"
    for k in range(KERNELS):
        wide = max(1, pitch * busy - (1 if r.launch_gap_share < 0.02 else 0))
        marks.append(rect(f"kernel{k}", start + pitch * k, TRACE.y + LANE + 2, wide, 22, role, tip))
    if r.exposed_communication_share:
        share = units.percent(r.exposed_communication_share, 0)
        tip = f"NCCL while no kernel runs: {share}"
        marks.append(rect("nccl", end, TRACE.y + 2 * LANE + 2, TRACE.right - end, 22, "network", tip))
    done = TRACE.x + TRACE.w / max(1.0, r.rank_skew)
    skewed = r.rank_skew > 1
    tip = f"The slowest rank takes {units.times(r.rank_skew)} the mean"
    marks.append(rect("ranks", TRACE.x, TRACE.y + 3 * LANE + 2, done - TRACE.x, 22, role, tip))
    if skewed:
        marks.append(rect("ranks-wait", done, TRACE.y + 3 * LANE + 2, TRACE.right - done, 22, "idle", tip))
        if TRACE.right - done > 50:
            marks.append(
                text(
                    "ranks-wait-name",
                    (done + TRACE.right) / 2,
                    TRACE.y + 3 * LANE + 18,
                    "wait",
                    "muted",
                    "small",
                    "middle",
                )
            )
    return marks


def _shown(i: int, value: float) -> str:
    return units.times(value) if i == 2 else units.percent(value, 0)


def _flow(r: Result, step: int) -> list[dict]:
    """The flowchart: five questions from left to right, the first yes decides."""
    pitch = FLOW.w / 5
    marks = [text("flow-title", 0, FLOW.y - 12, "ask in this order; the first yes decides", "muted", "small")]
    for i, words in enumerate(QUESTIONS):
        x, wide = FLOW.x + pitch * i, pitch - 14
        reached = i < min(step, len(r.asked))
        middle = x + wide / 2
        rule = f"{'at least' if i == 4 else 'more than'} {_shown(i, LIMITS[i])}"
        asked = r.asked[i] if reached else None
        role = "hot" if asked and asked.hit and i < 4 else "useful"
        if asked and i == min(step, len(r.asked)) - 1 and not asked.hit:
            role = "now"
        tip = f"{words} {rule}" + (f": {_shown(i, asked.value)}" if asked else "")
        marks += [
            rect(f"box{i}", x, FLOW.y, wide, FLOW.h, "idle", tip),
            rect(f"box{i}-bar", x, FLOW.y, wide if asked else 0, 5, role),
            text(f"box{i}-q", middle, FLOW.y + 25, words, "ink" if reached else "muted", "small", "middle"),
            text(f"box{i}-rule", middle, FLOW.y + 42, rule, "muted", "small", "middle"),
        ]  # fmt: skip
        if i < 4:
            marks.append(
                line(f"arrow{i}", x + wide + 1, FLOW.y + FLOW.h / 2, x + pitch - 1, FLOW.y + FLOW.h / 2)
            )
        if asked:
            said = "yes" if asked.hit else "no"
            marks.append(
                text(f"box{i}-a", middle, FLOW.y + 63, f"{_shown(i, asked.value)}: {said}",
                     "hot" if asked.hit and i < 4 else "useful" if asked.hit else "ink", "body", "middle", True)
            )  # fmt: skip
    return marks


def _verdict(r: Result, step: int) -> list[dict]:
    y = FLOW.bottom + 34
    if step < len(r.asked):
        return [text("verdict", 0, y, "What holds it up? Decide before you step on.", "now", "big")]
    tries = ", then ".join(r.path[:3])
    return [
        text("verdict", 0, y, f"It is {NAMES[r.bottleneck]}.", "hot", "big", bold=True),
        text("path", 0, y + 22, f"Try: {tries}.", "ink"),
    ]


def _takeaway(r: Result, step: int) -> str:
    if step < len(r.asked):
        return "Rule out the waits first: a faster kernel cannot shorten them."
    if r.bottleneck in ANSWERS:
        return "The kernels are not to blame: whatever waits decides, however fast they are."
    if r.bottleneck == "implementation":
        return "Nothing waits and neither roof is near: look at instructions, access and occupancy."
    levers = {"memory": "bytes", "compute": "FLOPs"}
    return f"Near the {r.bottleneck} roof: only fewer {levers[r.bottleneck]} can help."


def _caption(r: Result, step: int) -> str:
    if step == 0:
        return "The profile lies before you, and no question has been asked yet."
    asked = r.asked[step - 1]
    i = step - 1
    said = "yes" if asked.hit else "no"
    rest = f", so it is {NAMES[r.bottleneck]}" if step == len(r.asked) else ", so on to the next"
    return (
        f"{asked.question} {_shown(i, asked.value)} beside a limit of {_shown(i, asked.limit)}: {said}{rest}."
    )


def _table(r: Result):
    rows = [
        ("waits for input", r.input_wait_share, LIMITS[0]),
        ("gaps between kernels", r.launch_gap_share, LIMITS[1]),
        ("slowest rank over the mean", r.rank_skew, LIMITS[2]),
        ("communication that shows", r.exposed_communication_share, LIMITS[3]),
        (f"of its roof ({r.bound})", r.roof_share, LIMITS[4]),
        ("of the FLOP/s", r.compute_share, "not asked"),
        ("of the bandwidth", r.bandwidth_share, "not asked"),
        ("FLOP per byte", r.intensity, "not asked"),
    ]
    return table(("seen", "value", "limit"), rows)


def frames(r: Result, measured: dict | None = None) -> list[Scene]:
    work = figure("of the time kernels run", r.work_share, units.percent)
    intensity = figure("FLOP per byte", r.intensity)
    roof = figure(
        f"of the {r.bound} roof", r.roof_share, units.percent, "memory" if r.bound == "memory" else "compute"
    )
    gain = figure("with every kernel at its roof", r.at_roof_ratio, units.times)
    near = f"{units.number(r.intensity)} < {units.number(r.ridge)}" if r.bound == "memory" else (
        f"{units.number(r.intensity)} ≥ {units.number(r.ridge)}")  # fmt: skip
    return [
        Scene(
            summary=f"{r.case}: kernels run {work.text} of the time, at {intensity.text} FLOP per byte and "
            f"{roof.text} of the {r.bound} roof; with every kernel at its roof the step would be {gain.text} as fast.",
            takeaway=_takeaway(r, step),
            marks=_trace(r) + _flow(r, step) + _verdict(r, step),
            figures=(work, intensity, roof, gain),
            table=_table(r),
            height=FLOW.bottom + 64,
            formula=(
                ("FLOP per byte against the ridge", f"{near}: the {r.bound} roof is the one that counts"),
            ),
            caption=_caption(r, step),
        )
        for step in range(len(r.asked) + 1)
    ]


SIMULATOR = Declaration(
    title="Profiler detective",
    question="A profile lies before you: what holds the step up?",
    controls=(
        select("case", "Case", "a LayerNorm", [*CASES, OWN], help="The settings below make your own."),
        slider("input_wait", "Waits for input", 0, 0, 90, unit="%", more=True),
        slider("launch_gaps", "Gaps between kernels", 0, 0, 90, unit="%", more=True),
        slider("communication", "Communication that shows", 0, 0, 90, unit="%", more=True),
        slider("rank_skew", "Slowest rank over the mean", 1.0, 1.0, 3.0, step=0.05, unit="×", more=True),
        log_slider("intensity", "FLOP per byte", 5.4, 0.1, 10_000, more=True),
        slider("compute_share", "Of the FLOP/s", 2, 1, 100, unit="%", more=True),
        slider("bandwidth_share", "Of the bandwidth", 84, 1, 100, unit="%", more=True),
    ),
    presets={
        "A LayerNorm": {},
        "Many thin bars": {"case": "many thin bars"},
        "Two weeks of work": {"case": "two weeks on the wrong kernel"},
        "One hot expert": {"case": "one hot expert"},
        "Width 4097": {"case": "a GEMM of width 4097"},
    },
    run=run,
    stepper=Stepper("question", frames),
    prediction=Prediction(
        "A LayerNorm on an H100 reaches 15 TFLOP/s, 1.5% of the peak, at 2.8 TB/s. How near is it, in percent, to the "
        "ceiling that limits it?",
        "roof_percent",
        "%",
    ),
    source="Performance Engineering",
)  # fmt: skip

"""From what a profile shows to what to do: rule out every wait before judging the work."""

from dataclasses import dataclass

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, text_width, wrap
from widgets.controls import log_slider, select, slider
from widgets.declare import Declaration, Prediction, Stepper
from widgets.scene import WIDE, Scene, about, drag, figure, handle, line, rect, table, text

OWN = "your own numbers"
CASES = {case.name: case for case in cost.CASES}
OWN_KERNELS = 12  # bars in the trace of one's own numbers
OF_ONES_OWN = {"more": True, "help": "Counts when the case is your own numbers; the cases keep theirs."}
STEPS = 6  # five looks and all of them; or a guess and five questions
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
UNDECIDED = "not yet"
DIAGNOSIS = select(
    "diagnosis",
    "Your diagnosis",
    UNDECIDED,
    {UNDECIDED: "not yet", **NAMES},
    help="The questions are answered once you have named a suspect.",
)
# (the trace and its lanes' pitch, the counters, the suspects, the questions, height)
PLACES = {
    True: (
        Box(96, 40, 410, 4 * 32),
        32,
        Box(530, 46, 190, 112),
        Box(20, 214, 250, 172),
        Box(330, 214, 390, 150),
        428,
    ),
    False: (
        Box(0, 40, 336, 4 * 44),
        44,
        Box(0, 234, 336, 88),
        Box(20, 372, 300, 172),
        Box(0, 584, 340, 126),
        756,
    ),
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
    title: str
    diagnosis: str
    right: bool
    story: str
    kernels: int
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
    gap_percent: float
    bound: str
    limits: tuple[float, ...]  # of the five questions
    asked: tuple[Asked, ...]
    bottleneck: str
    path: tuple[str, ...]
    at_roof_ratio: float  # what the step would gain with all kernels at their roof


def run(
    case,
    diagnosis,
    input_wait,
    launch_gaps,
    communication,
    rank_skew,
    intensity,
    compute_share,
    bandwidth_share,
) -> Result:
    ridge = machine("H100").ridge("fp16")
    if case == OWN:
        title, story, kernels = OWN, "Your own profile, on an H100.", OWN_KERNELS
        seen = cost.Symptoms(
            input_wait / 100, launch_gaps / 100, communication / 100, rank_skew, intensity, ridge,
            compute_share / 100, bandwidth_share / 100,
        )  # fmt: skip
    else:
        found = CASES[case]
        title, story, kernels, seen = found.title, found.story, found.kernels, found.seen
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
        case, title, diagnosis, diagnosis == found.bottleneck, story, kernels, seen.input_wait_share, seen.launch_gap_share, seen.exposed_communication_share,
        seen.rank_skew, 1 - 1 / max(1.0, seen.rank_skew), work, seen.intensity, seen.ridge, seen.compute_share,
        seen.bandwidth_share, roof, 100 * seen.launch_gap_share, bound, LIMITS,
        tuple(Asked(c.question, c.value, c.limit, c.hit) for c in found.checks),
        found.bottleneck, found.path, cost.amdahl(work, 1 / roof),
    )  # fmt: skip


def _trace(r: Result, at: Box, pitch: float, looked: int) -> list[dict]:
    """One step as a profiler's timeline: what runs, and what it waits for. The lane looked at is named in bold."""
    wide = at.x > 50
    guessed = r.diagnosis != UNDECIDED
    words = r.story if guessed else f"The profile: {r.title}"
    lines = [words] if wide else wrap(words, 300, "body")
    marks = [text(f"story{i}", 0, 16 + 16 * i, words, bold=True) for i, words in enumerate(lines)]
    for row, name in enumerate(("input", "kernels", "NCCL", "other ranks")):
        y, now = at.y + pitch * row + (0 if wide else 16), looked == row
        label = (at.x - 10, y + 16, "end") if wide else (at.x, y - 4, "start")
        marks += [
            text(
                f"lane{row}", label[0], label[1], name, "now" if now else "muted", "small", label[2], bold=now
            ),
            line(f"lane{row}-line", at.x, y + 24, at.right, y + 24, "grid"),
        ]
    tops = [at.y + pitch * row + (0 if wide else 16) for row in range(4)]
    start = at.x + at.w * r.input_wait_share
    end = at.right - at.w * r.exposed_communication_share
    step = (end - start) / r.kernels
    busy = r.work_share / (r.work_share + r.launch_gap_share)
    if r.input_wait_share:
        share = units.percent(r.input_wait_share, 0)
        marks += about(
            "input", rect("input", at.x, tops[0], start - at.x, 22, "overhead", f"Loading: {share}")
        )
    role = "primary" if r.diagnosis == UNDECIDED else "memory" if r.bound == "memory" else "compute"
    tip = f"Kernels run {units.percent(r.work_share, 0)} of the time, gaps {units.percent(r.launch_gap_share, 0)}"
    # gaps are drawn as what they are; without any, kernels stand against each other with a hairline between
    wide_k = max(1, step * busy - (0 if r.launch_gap_share else 0.6))
    for k in range(r.kernels):
        left = start + step * k
        marks += about("launches", rect(f"kernel{k}", left, tops[1], wide_k, 22, role, tip))
        if r.launch_gap_share:
            gap = rect(f"gap{k}", left + wide_k, tops[1] + 11, step - wide_k, 11, "overhead", tip)
            marks += about("launches", gap)
    for row, some in ((0, r.input_wait_share), (2, r.exposed_communication_share)):
        if not some:
            marks.append(text(f"lane{row}-none", at.x + 6, tops[row] + 15, "none", "muted", "small"))
    if r.exposed_communication_share:
        share = units.percent(r.exposed_communication_share, 0)
        nccl = rect(
            "nccl", end, tops[2], at.right - end, 22, "network", f"NCCL while no kernel runs: {share}"
        )
        marks += about("communication", nccl)
    done = at.x + at.w / max(1.0, r.rank_skew)
    tip = f"The slowest rank takes {units.times(r.rank_skew)} the mean"
    marks += about("stragglers", rect("ranks", at.x, tops[3], done - at.x, 22, role, tip))
    if r.rank_skew > 1:
        marks += about("stragglers", rect("ranks-wait", done, tops[3], at.right - done, 22, "idle", tip))
        if at.right - done > 50:
            marks.append(
                text(
                    "ranks-wait-name",
                    (done + at.right) / 2,
                    tops[3] + 15,
                    "wait",
                    "muted",
                    "small",
                    "middle",
                    on="idle",
                )
            )
    return marks


def _counters(r: Result, at: Box, looked: bool) -> list[dict]:
    """How near each roof is: both gauges look alike until a diagnosis says which of the two counts."""
    undecided, near = r.diagnosis == UNDECIDED, at.x + at.w * cost.NEAR_ROOF
    pitch = at.h / 2 - 10
    marks = []
    for i, (name, share, role) in enumerate(
        (("FLOP/s", r.compute_share, "compute"), ("bandwidth", r.bandwidth_share, "memory"))
    ):
        counts = not undecided and role == r.bound
        y, term = at.y + pitch * i, f"{role if role == 'compute' else 'bandwidth'}_share"
        words = f"{name} {units.percent(share)}" + (": counts" if counts else "")
        ink, strong = ("now" if looked else role if counts else "muted"), looked or counts
        fill = role if undecided or counts else "idle"
        marks += about(
            term,
            text(f"gauge{i}-name", at.x, y + 9, words, ink, "small", bold=strong),
            rect(f"gauge{i}-all", at.x, y + 17, at.w, 14, "idle", f"{name}: all that the machine has"),
            rect(f"gauge{i}", at.x, y + 17, at.w * share, 14, fill, f"{units.percent(share)} of the {name}"),
        )
        marks.append(line(f"gauge{i}-near", near, y + 15, near, y + 34, "limit", "near its roof"))
    words = f"near a roof: {units.percent(cost.NEAR_ROOF, 0)}"
    return [*marks, text("gauge-near", near, at.y + pitch + 47, words, "muted", "small", "middle")]


def _suspects(r: Result, at: Box) -> list[dict]:
    """Who holds the step up: the knob is pulled to a suspect, and only then the questions are answered."""
    pitch = at.h / 8
    places = {name: at.y + pitch * i + 8 for i, name in enumerate((UNDECIDED, *NAMES))}
    marks = [text("suspects-title", 0, at.y - 20, "Pull the knob to your suspect", bold=True)]
    marks.append(line("suspects-line", at.x, places[UNDECIDED], at.x, at.y + pitch * 7 + 8, "axis"))
    for name, y in places.items():
        chosen = name == r.diagnosis
        words, role = NAMES.get(name, "not yet"), "muted"
        if chosen and name != UNDECIDED:
            role = "useful" if r.right else "hot"
            words += ": yes" if r.right else ": no"
        marks.append(text(f"suspect-{name}", at.x + 22, y + 4, words, role, bold=chosen))
    return [
        *marks,
        handle(
            "pull-suspect", at.x, places[r.diagnosis], "now", drag(DIAGNOSIS, "y", lambda name: places[name])
        ),
    ]


def _shown(i: int, value: float) -> str:
    return units.times(value) if i == 2 else units.percent(value, 0)


def _flow(r: Result, step: int, at: Box) -> list[dict]:
    """The flowchart: five questions from top to bottom, the first yes decides."""
    pitch, open_ = at.h / 5, r.diagnosis != UNDECIDED
    marks = [text("flow-title", at.x, at.y - 20, "Ask in this order; the first yes decides", bold=True)]
    for i, words in enumerate(QUESTIONS):
        y, reached = at.y + pitch * i, open_ and i < min(step, len(r.asked))
        rule = f"{'at least' if i == 4 else 'more than'} {_shown(i, LIMITS[i])}"
        asked = r.asked[i] if reached else None
        tip = f"{words} {rule}" + (f": {_shown(i, asked.value)}" if asked else "")
        hit = asked and asked.hit
        role = "hot" if hit and i < 4 else "useful" if hit else "idle"
        marks += [
            rect(f"box{i}", at.x, y, 7, pitch - 6, role, tip),
            text(f"box{i}-q", at.x + 16, y + 16, words, "ink" if reached else "muted", bold=bool(asked)),
            text(f"box{i}-rule", at.x + 134, y + 16, rule, "muted", "small"),
        ]
        if asked:
            said = f"{_shown(i, asked.value)}: {'yes' if asked.hit else 'no'}"
            ink = "hot" if hit and i < 4 else "useful" if hit else "ink"
            marks.append(text(f"box{i}-a", at.right, y + 16, said, ink, "body", "end", True))
    return marks


def _verdict(r: Result, step: int, at: Box) -> list[dict]:
    y = at.bottom + 24
    if r.diagnosis == UNDECIDED or step < len(r.asked):
        return []
    first, rest = f"It is {NAMES[r.bottleneck]}.", f"Try: {', then '.join(r.path[: 2 if at.x else 3])}."
    marks = [text("verdict", at.x, y, first, "useful" if r.right else "hot", bold=True)]
    if text_width(rest, "small") < at.w:
        return [*marks, text("path", at.x, y + 20, rest, "ink", "small")]
    return [*marks, text("path", at.x, y + 20, f"Try: {r.path[0]}.", "ink", "small")]


LOOKS = (
    "The input's lane: waiting for data stands {input}.",
    "The kernels' lane: they run {work} of the time, and gaps between them take {gaps}.",
    "NCCL's lane: communication that no kernel hides takes {nccl}.",
    "The other ranks: the slowest takes {skew} the mean.",
    "The counters: {flops} of the FLOP/s and {bytes} of the bandwidth, at {intensity} FLOP per byte.",
    "All of it lies before you: the lanes say what waits, the counters how hard the kernels work. Name a suspect.",
)


def _look(r: Result, step: int) -> str:
    """What a step of an undecided reader says: the evidence, and no verdict."""
    return LOOKS[step].format(
        input=f"at {units.percent(r.input_wait_share, 0)}",
        work=units.percent(r.work_share, 0),
        gaps=units.percent(r.launch_gap_share, 0),
        nccl=units.percent(r.exposed_communication_share, 0),
        skew=units.times(r.rank_skew),
        flops=units.percent(r.compute_share),
        bytes=units.percent(r.bandwidth_share),
        intensity=units.number(r.intensity),
    )


def _takeaway(r: Result, step: int) -> str:
    if r.diagnosis == UNDECIDED:
        return "Look first, then say who holds it up: a guess that is written down teaches more."
    if step < len(r.asked):
        return "Rule out the waits first: a faster kernel cannot shorten them."
    if r.bottleneck in ANSWERS:
        return "The kernels are not to blame: whatever waits decides, however fast they are."
    if r.bottleneck == "implementation":
        return "Nothing waits and neither roof is near: look at instructions, access and occupancy."
    levers = {"memory": "bytes", "compute": "FLOPs"}
    return f"Near the {r.bottleneck} roof: only fewer {levers[r.bottleneck]} can help."


def _caption(r: Result, step: int) -> str:
    if r.diagnosis == UNDECIDED:
        return _look(r, step)
    if step == 0:
        return "You have named a suspect; now the questions, one after the other."
    n = len(r.asked)
    if step > n:
        return f"Question {n} of five has decided: {NAMES[r.bottleneck]}. The later ones are not asked."
    asked = r.asked[step - 1]
    said = "yes" if asked.hit else "no"
    rest = f", so it is {NAMES[r.bottleneck]}" if step == n else ", so on to the next"
    shown, limit = _shown(step - 1, asked.value), _shown(step - 1, asked.limit)
    return f"{asked.question} {shown} beside a limit of {limit}: {said}{rest}."


def _table(r: Result):
    rows = [
        ("waits for input", r.input_wait_share, LIMITS[0]),
        ("gaps between kernels", r.launch_gap_share, LIMITS[1]),
        ("slowest rank over the mean", r.rank_skew, LIMITS[2]),
        ("communication that shows", r.exposed_communication_share, LIMITS[3]),
        ("of the FLOP/s", r.compute_share, "not asked"),
        ("of the bandwidth", r.bandwidth_share, "not asked"),
        ("FLOP per byte", r.intensity, "not asked"),
    ]
    if r.diagnosis != UNDECIDED:
        rows.append((f"of its roof ({r.bound})", r.roof_share, LIMITS[4]))
    return table(("seen", "value", "limit"), rows)


def _figures(r: Result) -> tuple:
    """Before a diagnosis what a profiler counts; after it what follows from it."""
    if r.diagnosis == UNDECIDED:
        return (
            figure("of the FLOP/s", r.compute_share, units.percent, term="compute_share"),
            figure("of the bandwidth", r.bandwidth_share, units.percent, term="bandwidth_share"),
        )
    role = "memory" if r.bound == "memory" else "compute"
    return (
        figure("of the time kernels run", r.work_share, units.percent, term="launches"),
        figure("FLOP per byte", r.intensity, term="intensity"),
        figure(f"of the {r.bound} roof", r.roof_share, units.percent, role),
        figure("with every kernel at its roof", r.at_roof_ratio, units.times),
    )


def _summary(r: Result, told: tuple) -> str:
    if r.diagnosis == UNDECIDED:
        return (
            f"The profile of {r.title}, with {told[0].text} of the FLOP/s and {told[1].text} of the bandwidth; the input, "
            "the gaps, the ranks and the network stand in its lanes. Nothing is diagnosed yet."
        )
    work, intensity, roof, gain = (one.text for one in told)
    said = "right" if r.right else f"not right: it is {NAMES[r.bottleneck]}"
    return (
        f"{r.case}: kernels run {work} of the time, at {intensity} FLOP per byte and {roof} of the {r.bound} roof; "
        f"with every kernel at its roof the step would be {gain} as fast. Your diagnosis is {said}."
    )


def frames(r: Result, measured: dict | None = None, width: int = WIDE) -> list[Scene]:
    trace_at, pitch, counters_at, suspects_at, flow_at, height = PLACES[width == WIDE]
    undecided, told = r.diagnosis == UNDECIDED, _figures(r)
    known = "?" if undecided else f"the {r.bound} roof is the one that counts"
    sign = "<" if r.intensity < r.ridge else "≥"
    return [
        Scene(
            summary=_summary(r, told),
            takeaway=_takeaway(r, step),
            marks=_trace(r, trace_at, pitch, step if undecided else -1)
            + _counters(r, counters_at, undecided and step == 4)
            + _suspects(r, suspects_at)
            + _flow(r, step, flow_at)
            + _verdict(r, step, flow_at),
            figures=told,
            table=_table(r),
            height=height,
            width=width,
            formula=(
                (
                    "{intensity:FLOP per byte} against the ridge",
                    f"{{intensity:{units.number(r.intensity)}}} {sign} {units.number(r.ridge)}: {known}",
                ),
            ),
            caption=_caption(r, step),
        )
        for step in range(STEPS)
    ]


SIMULATOR = Declaration(
    title="Profiler detective",
    question="A profile lies before you: what holds the step up?",
    controls=(
        select(
            "case",
            "Case",
            "many thin bars",
            {**{name: one.title for name, one in CASES.items()}, OWN: OWN},
            help="More settings make your own.",
        ),
        DIAGNOSIS,
        slider("input_wait", "Waits for input", 0, 0, 90, unit="%", **OF_ONES_OWN),
        slider("launch_gaps", "Gaps between kernels", 0, 0, 90, unit="%", **OF_ONES_OWN),
        slider("communication", "Communication that shows", 0, 0, 90, unit="%", **OF_ONES_OWN),
        slider("rank_skew", "Slowest rank over the mean", 1.0, 1.0, 3.0, step=0.05, unit="×", **OF_ONES_OWN),
        log_slider("intensity", "FLOP per byte", 5.4, 0.1, 10_000, **OF_ONES_OWN),
        slider("compute_share", "Of the FLOP/s", 2, 1, 100, unit="%", **OF_ONES_OWN),
        slider("bandwidth_share", "Of the bandwidth", 84, 1, 100, unit="%", **OF_ONES_OWN),
    ),
    presets={
        "A layer of a decoder": {},
        "A LayerNorm": {"case": "a LayerNorm"},
        "Two weeks later": {"case": "two weeks on the wrong kernel"},
        "Experts on 8 GPUs": {"case": "one hot expert"},
        "Width 4097, solved": {"case": "a GEMM of width 4097", "diagnosis": "implementation"},
    },
    run=run,
    stepper=Stepper("look", frames, lambda r: STEPS - 1),
    prediction=Prediction(
        "A layer launches 50 kernels, and at each launch the GPU stands idle for 10 µs. Its kernels work 2 ms in all. "
        "How much of the layer's time, in percent, is lost between kernels?",
        "gap_percent",
        "%",
    ),
    source="Performance Engineering",
)

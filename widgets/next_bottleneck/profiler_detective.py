"""Judge six profiles: rule out every wait before blaming a kernel."""

from dataclasses import dataclass

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, wrap
from widgets.controls import log_slider, select, slider
from widgets.declare import Declaration, Prediction
from widgets.scene import WIDE, Column, Scene, about, drag, figure, handle, line, rect, table, text

ALL = "all six"
OWN = "your own numbers"
CASES = {case.name: case for case in cost.CASES}
BARS = 6  # of a trace with gaps, each for many kernels; without gaps it is one
OF_ONES_OWN = {"more": True, "help": "Counts when the case is your own numbers."}
UNDECIDED = "not yet"
NAMES = {
    "input": "late input",
    "launches": "launch gaps",
    "stragglers": "slow rank",
    "communication": "NCCL alone",
    "memory": "bytes: the memory roof",
    "compute": "math: the compute roof",
    "implementation": "own code",
}
STOPS = dict(
    zip((UNDECIDED, *NAMES), ("?", "input", "gaps", "rank", "NCCL", "bytes", "math", "code"), strict=True)
)
ANSWERS = {UNDECIDED: UNDECIDED, **NAMES}
QUESTIONS = ("late input?", "launch gaps?", "slow rank?", "NCCL alone?", "near its roof?")
LIMITS = (cost.WAIT_SHARE, cost.WAIT_SHARE, cost.SKEW, cost.WAIT_SHARE, cost.NEAR_ROOF)
WAITS = ("input", "launches", "stragglers", "communication")
GAME = {  # the input that holds one's answer -> its case, each with another culprit
    "decoder": "many thin bars",
    "layernorm": "a LayerNorm",
    "training": "gradients at the end",
    "experts": "one hot expert",
    "two_weeks": "two weeks on the wrong kernel",
    "wide_gemm": "a GEMM of width 4097",
}
PULLS = {
    name: select(
        name,
        CASES[case].title[0].upper() + CASES[case].title[1:],
        UNDECIDED,
        ANSWERS,
        more=True,
        help="Your suspect among the six.",
    )
    for name, case in GAME.items()
}
DIAGNOSIS = select(
    "diagnosis",
    "Your suspect",
    UNDECIDED,
    ANSWERS,
    more=True,
    help="Counts when one case is open. Each of the six has its own.",
)
HEIGHT = {True: 420, False: 756}


@dataclass(frozen=True)
class Asked:
    question: str
    value: float
    limit: float
    hit: bool


@dataclass(frozen=True)
class Profile:
    id: str  # of its marks
    name: str  # the input that its knob is bound to
    title: str
    story: str
    diagnosis: str
    right: bool
    input_wait_share: float
    launch_gap_share: float
    exposed_communication_share: float
    rank_skew: float
    work_share: float  # of the wall clock, when kernels run
    intensity: float
    ridge: float
    compute_share: float
    bandwidth_share: float
    roof_share: float
    gap_percent: float
    bound: str
    asked: tuple[Asked, ...]
    bottleneck: str
    path: tuple[str, ...]
    at_roof_ratio: float  # what the step would gain with all kernels at their roof


@dataclass(frozen=True)
class Result:
    case: str
    profiles: tuple[Profile, ...]  # six, or the one that is open
    right: int
    wrong: int
    still_open: int
    limits: tuple[float, ...]  # of the five questions
    waiting: int  # profiles in which a wait or a slow rank decides, and no kernel


def run(
    case, diagnosis, decoder, layernorm, training, experts, two_weeks, wide_gemm,
    input_wait, launch_gaps, communication, rank_skew, intensity, compute_share, bandwidth_share,
) -> Result:  # fmt: skip
    if case == ALL:
        said = (decoder, layernorm, training, experts, two_weeks, wide_gemm)
        profiles = tuple(
            _known(i, name, GAME[name], one) for i, (name, one) in enumerate(zip(GAME, said, strict=True))
        )
    elif case == OWN:
        seen = cost.Symptoms(
            input_wait / 100, launch_gaps / 100, communication / 100, rank_skew, intensity,
            machine("H100").ridge("fp16"), compute_share / 100, bandwidth_share / 100,
        )  # fmt: skip
        words = "Your own profile, on an H100."
        profiles = (_profile(0, "diagnosis", OWN, words, seen, diagnosis),)
    else:
        profiles = (_known(0, "diagnosis", case, diagnosis),)
    judged = [one for one in profiles if one.diagnosis != UNDECIDED]
    right = sum(one.right for one in judged)
    return Result(
        case, profiles, right, len(judged) - right, len(profiles) - len(judged), LIMITS,
        sum(one.bottleneck in WAITS for one in profiles),
    )  # fmt: skip


def _known(place: int, name: str, case: str, diagnosis: str) -> Profile:
    found = CASES[case]
    return _profile(place, name, found.title, found.story, found.seen, diagnosis)


def _profile(place: int, name: str, title: str, story: str, seen: cost.Symptoms, diagnosis: str) -> Profile:
    waits = seen.input_wait_share + seen.launch_gap_share + seen.exposed_communication_share
    if waits > 0.95:
        raise ValueError(
            f"The three waits must be at most 95% together, got {units.percent(waits, 0)}; leave some time for work"
        )
    found = cost.diagnose(seen)
    bound = "memory" if seen.intensity < seen.ridge else "compute"
    roof = seen.bandwidth_share if bound == "memory" else seen.compute_share
    return Profile(
        f"p{place}", name, title, story, diagnosis, diagnosis == found.bottleneck, seen.input_wait_share,
        seen.launch_gap_share, seen.exposed_communication_share, seen.rank_skew, 1 - waits, seen.intensity, seen.ridge,
        seen.compute_share, seen.bandwidth_share, roof, 100 * seen.launch_gap_share, bound,
        tuple(Asked(c.question, c.value, c.limit, c.hit) for c in found.checks),
        found.bottleneck, found.path, cost.amdahl(1 - waits, 1 / roof),
    )  # fmt: skip


def _trace(p: Profile, at: Box) -> list[dict]:
    """Draw one step on one clock: late input, kernels with their gaps, NCCL alone, and below it how long ranks work."""
    id, high = p.id, at.h * 0.7
    start = at.x + at.w * p.input_wait_share
    end = at.right - at.w * p.exposed_communication_share
    marks = [rect(f"{id}-step", at.x, at.y, at.w, high, "idle", "one step of this GPU")]
    if p.input_wait_share:
        tip = f"waiting for input: {units.percent(p.input_wait_share, 0)}"
        marks.append(rect(f"{id}-input", at.x, at.y, start - at.x, high, "hot", tip))
    bars = BARS if p.launch_gap_share else 1
    step = (end - start) / bars
    busy = p.work_share / (p.work_share + p.launch_gap_share)
    work = f"kernels: {units.percent(p.work_share, 0)}"
    if p.launch_gap_share:
        gaps = f"gaps: {units.percent(p.launch_gap_share, 0)}"
        marks += [
            rect(f"{id}-gap{k}", start + step * (k + busy), at.y, step * (1 - busy), high, "idle", gaps)
            for k in range(bars)
        ]
    marks += [
        rect(f"{id}-kernel{k}", start + step * k, at.y, step * busy, high, "primary", work)
        for k in range(bars)
    ]
    if p.exposed_communication_share:
        tip = f"NCCL while no kernel runs: {units.percent(p.exposed_communication_share, 0)}"
        marks.append(rect(f"{id}-nccl", end, at.y, at.right - end, high, "network", tip))
    done, low = at.x + at.w / max(1.0, p.rank_skew), at.y + high + 3
    if p.rank_skew > 1:  # without a slow rank there is nothing to compare
        tip = f"the slowest rank takes {units.times(p.rank_skew)} the mean"
        marks.append(rect(f"{id}-ranks", at.x, low, done - at.x, at.h - high - 3, "secondary", tip))
        marks.append(rect(f"{id}-ranks-wait", done, low, at.right - done, at.h - high - 3, "waste", tip))
    return about("waits", marks)


def _gauges(p: Profile, left: float, y: float, wide: float, apart: float, named: bool) -> list[dict]:
    """Draw how near both roofs are, without saying which one counts before a suspect is named."""
    marks = []
    for i, (name, share, role) in enumerate(
        (("FLOP/s", p.compute_share, "useful"), ("memory", p.bandwidth_share, "useful"))
    ):
        x, id = left + i * apart, f"{p.id}-gauge{i}"
        words = f"{name} {units.percent(share, 0)}" if named else units.percent(share, 0)
        marks += [
            text(f"{id}-name", x, y, words, "muted", "small"),
            rect(f"{id}-all", x, y + 8, wide, 12, "idle", f"{name}: all that the machine has"),
            rect(
                f"{id}", x, y + 8, wide * share, 12, role, f"{units.percent(share)} of the machine's {name}"
            ),
            line(
                f"{id}-near",
                x + wide * cost.NEAR_ROOF,
                y + 5,
                x + wide * cost.NEAR_ROOF,
                y + 23,
                "limit",
                "70%",
            ),
        ]
    return about("roofs", marks)


def _verdict(p: Profile) -> tuple[str, str]:
    """Return (words, role): whether the suspect is the right one, with the number that decides."""
    if p.diagnosis == UNDECIDED:
        return "", "muted"
    if p.right:
        return f"Yes, {NAMES[p.bottleneck]}.", "useful"
    if p.bottleneck in WAITS:
        return "No. Something else waits: read the trace again.", "hot"
    return "No. No wait decides here: look at the roofs.", "hot"


def _said(p: Profile, x: float, y: float) -> list[dict]:
    words, role = _verdict(p)
    return [text(f"{p.id}-said", x, y, words, role, "small", bold=True)] if words else []


def _shown(i: int, value: float) -> str:
    return units.times(value) if i == 2 else units.percent(value, 0)


def _track(p: Profile, x: float, y: float, pitch: float, control) -> list[dict]:
    """Draw the line of suspects and the knob on it."""
    places = {name: x + pitch * i for i, name in enumerate(ANSWERS)}
    role = "now" if p.diagnosis == UNDECIDED else "useful" if p.right else "hot"
    pull = drag(control, "x", lambda name: places[name])
    return [
        line(f"{p.id}-track", x, y, x + 7 * pitch, y, "axis"),
        *(line(f"{p.id}-stop{i}", at, y - 4, at, y + 4, "axis") for i, at in enumerate(places.values())),
        handle(f"{p.id}-pull", places[p.diagnosis], y, role, pull, late=True),
    ]


def _names(id: str, x: float, y: float, pitch: float, chosen: str = "") -> list[dict]:
    return [
        text(f"{id}-n{i}", x + pitch * i, y, words, "ink", "small", "middle", bold=name == chosen)
        for i, (name, words) in enumerate(STOPS.items())
    ]


def _row(p: Profile, i: int, wide: bool) -> list[dict]:
    """Draw one of the six: its trace, its two roofs, its suspects."""
    control = PULLS[p.name]
    if wide:
        y = 34 + 64 * i
        return [
            text(f"{p.id}-title", 0, y + 12, f"{i + 1}  {p.title}", bold=True),
            *_trace(p, Box(0, y + 20, 186, 32)),
            *_gauges(p, 206, y + 20, 50, 62, False),
            *_said(p, 348, y + 14),
            *_track(p, 356, y + 32, 49, control),
            *_names(p.id, 356, y + 56, 49, p.diagnosis),
        ]
    y = 36 + 119 * i
    return [
        text(f"{p.id}-title", 0, y + 12, f"{i + 1}  {p.title}", bold=True),
        *_trace(p, Box(0, y + 20, 164, 32)),
        *_gauges(p, 178, y + 28, 70, 82, True),
        *_said(p, 0, y + 68),
        *_track(p, 14, y + 86, 44, control),
        *_names(p.id, 14, y + 114, 44, p.diagnosis),
    ]


def _heads() -> list[str]:
    """Return the limit of each suspect, in the order in which they are asked."""
    waits = [f"> {_shown(i, limit)}" for i, limit in enumerate(LIMITS[:4])]
    roof = f"≥ {_shown(4, LIMITS[4])}"
    return [*waits, roof, roof, "else"]


def _board(r: Result, wide: bool) -> list[dict]:
    rows = [_row(p, i, wide) for i, p in enumerate(r.profiles)]
    marks = [mark for row in rows for mark in row]
    if not wide:
        waits, skew, roof = (_shown(i, LIMITS[i]) for i in (0, 2, 4))
        rules = f"input, gaps, NCCL > {waits}; rank > {skew}; roof ≥ {roof}"
        head = text("head-pull", 0, 13, "The first yes from the left decides", bold=True)
        return [head, text("head-limits", 0, 30, rules, "muted", "small"), *marks]
    return [
        text("head-step", 0, 18, "one step of the GPU", "muted", "small"),
        text("head-pull", 348, 10, "The first yes from the left decides", bold=True),
        *(
            text(f"head-limit{i}", 356 + 49 * (i + 1), 26, words, "muted", "small", "middle")
            for i, words in enumerate(_heads())
        ),
        text("head-flops", 256, 18, "FLOP/s", "muted", "small", "end"),
        text("head-memory", 268, 18, "memory", "muted", "small"),
        *marks,
    ]


def _alone(p: Profile, wide: bool) -> list[dict]:
    """Draw one profile large, and the five questions, answered once a suspect is named."""
    judged, right = p.diagnosis != UNDECIDED, 720 if wide else 340
    room = 720 if wide else 330
    marks = [
        text(f"story{i}", 0, 16 + 17 * i, words, bold=True)
        for i, words in enumerate(wrap(p.story if judged else f"The profile: {p.title}", room, "body"))
    ]
    top = 44 if wide else 60
    marks += _trace(p, Box(0, top, 440 if wide else 340, 66))
    marks += _gauges(
        p, 480 if wide else 0, top + 14 if wide else 152, 110 if wide else 150, 130 if wide else 170, True
    )
    said, ink = _verdict(p)
    y = 178 if wide else 250
    marks.append(
        text("said", 0, y - 34, said or "Pull the knob to your suspect", ink if judged else "ink", bold=True)
    )
    x, pitch = (40, 90) if wide else (14, 44)
    marks += [*_track(p, x, y, pitch, DIAGNOSIS), *_names("suspect", x, y + 30, pitch, p.diagnosis)]
    y = 244 if wide else 330
    marks.append(text("flow-title", 0, y, "Ask in this order. The first yes decides.", bold=True))
    for i, words in enumerate(QUESTIONS):
        y += 30
        asked = p.asked[i] if judged and i < len(p.asked) else None
        role = "idle" if not asked or not asked.hit else "hot" if i < 4 else "useful"
        rule = f"{'at least' if i == 4 else 'more than'} {_shown(i, LIMITS[i])}"
        marks += [
            rect(f"box{i}", 0, y - 16, 7, 24, role, f"{words} {rule}"),
            text(f"box{i}-q", 18, y, words, "ink" if asked else "muted", bold=bool(asked)),
            text(f"box{i}-rule", 126, y, rule, "muted", "small"),
        ]
        if asked:
            answer = f"{_shown(i, asked.value)}: {'yes' if asked.hit else 'no'}"
            marks.append(text(f"box{i}-a", 250, y, answer, "ink" if role == "idle" else role, bold=True))
    if judged:
        words = f"Try {', then '.join(p.path)}."
        lines = wrap(words, right - (380 if wide else 0))
        marks += [
            text(f"path{i}", 380 if wide else 0, (274 if wide else 520) + 18 * i, one, "ink", "small")
            for i, one in enumerate(lines)
        ]
    return marks


def _takeaway(r: Result) -> str:
    if r.still_open == 1 == len(r.profiles):
        return "Read the trace from left to right, then the roofs, then name a suspect."
    if r.still_open == len(r.profiles):
        return "Name a suspect before you read on: a guess on record teaches more."
    if r.case == ALL:
        if r.right == len(r.profiles):
            return "All solved. Four of the six were waits or ranks, where faster kernels don't help."
        if r.wrong:
            return "Ask in order: input, gaps, slow ranks, NCCL. Judge the kernels last."
        return "Good so far. Keep asking about waits before you blame a kernel."
    p = r.profiles[0]
    return {
        "input": "The GPU waits for data, so fix the data loader before any kernel.",
        "launches": "The gaps between kernels cost more than a faster kernel could save.",
        "stragglers": "Everybody waits for one slow rank. Balance the work before you tune it.",
        "communication": "The network runs while no kernel does. Overlap it, or send fewer bytes.",
        "memory": "This kernel is near the memory roof, so only fewer bytes can speed it up.",
        "compute": "This kernel is near the compute roof, so only less arithmetic can speed it up.",
        "implementation": "Nothing waits and neither roof is near, so look at the kernel's own code.",
    }[p.bottleneck]


def _table(r: Result):
    share = Column("", "", units.percent)
    heads = ("late input", "launch gaps", "NCCL alone", "FLOP/s used", "memory used")
    columns = (
        "profile",
        *(Column(one, "", share.show) for one in heads),
        "slowest rank ÷ mean",
        "FLOP per byte",
        "suspect",
    )
    return table(
        columns,
        [
            (
                p.title, p.input_wait_share, p.launch_gap_share, p.exposed_communication_share, p.compute_share,
                p.bandwidth_share, p.rank_skew, p.intensity, ANSWERS[p.diagnosis],
            )
            for p in r.profiles
        ],
    )  # fmt: skip


def _figures(r: Result) -> tuple:
    """Return the score of the six, or of one profile its counters and the consequence of its diagnosis."""
    if r.case == ALL:
        of_six = lambda value: f"{value:.0f} of {len(r.profiles)}"  # noqa: E731
        return (
            figure("solved", r.right, of_six, "useful" if r.right else "ink"),
            figure(
                "wrong suspect" if r.wrong == 1 else "wrong suspects",
                r.wrong,
                units.count,
                "hot" if r.wrong else "ink",
            ),
            figure("still open", r.still_open, units.count),
            *(
                []
                if r.still_open
                else [figure("cases that wait, where kernels aren't the cause", r.waiting, units.count)]
            ),
        )
    p = r.profiles[0]
    if p.diagnosis == UNDECIDED:
        return (
            figure("of the FLOP/s used", p.compute_share, units.percent),
            figure("of the memory's rate used", p.bandwidth_share, units.percent),
        )
    return (
        figure("of the time kernels run", p.work_share, units.percent),
        figure("FLOP per byte", p.intensity, term="intensity"),
        figure(f"of the {p.bound} roof", p.roof_share, units.percent, p.bound),
        figure("faster with every kernel at its roof", p.at_roof_ratio, units.times),
    )


def _summary(r: Result, told: tuple) -> str:
    if r.case == ALL:
        return (
            f"Six profiles: {told[0].text} solved, {told[1].text} with the wrong suspect, {told[2].text} still open."
            + ("" if r.still_open else f" In {told[3].text} of them a wait decides, not a kernel.")
        )
    p = r.profiles[0]
    if p.diagnosis == UNDECIDED:
        return f"The profile of {p.title} uses {told[0].text} of the FLOP/s and {told[1].text} of the memory's rate. Nothing is diagnosed yet."
    work, intensity, roof, gain = (one.text for one in told)
    said = "right" if p.right else f"wrong: it is {NAMES[p.bottleneck]}"
    return (
        f"{p.title}: kernels run {work} of the time, at {intensity} FLOP per byte and {roof} of the {p.bound} roof; with "
        f"every kernel at its roof the step would run {gain} as fast. Your suspect is {said}."
    )


def _legend(r: Result) -> tuple:
    """Name the kinds of time that are drawn."""

    def some(share: str) -> bool:
        return any(getattr(p, share) > 0 for p in r.profiles)

    skewed = any(p.rank_skew > 1 for p in r.profiles)
    return (
        ("primary", "kernels"),
        *((("hot", "waiting for input"),) * some("input_wait_share")),
        *((("idle", "launch gaps"),) * some("launch_gap_share")),
        *((("network", "NCCL alone"),) * some("exposed_communication_share")),
        *((("secondary", "other GPUs, on average"), ("waste", "their wait for the slow one")) * skewed),
        ("useful", "share of a roof that is used"),
        ("limit", "70% of it"),
    )


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    wide, told, p = width == WIDE, _figures(r), r.profiles[0]
    waits = (p.input_wait_share, p.launch_gap_share, p.exposed_communication_share)
    formula = (
        (
            "kernels run = 1 − {waits:input − gaps − NCCL alone}",
            f"first case: 1 − {' − '.join(units.number(one) for one in waits)} = {units.number(p.work_share)}",
        ),
    )
    if r.case != ALL:
        known = "?" if p.diagnosis == UNDECIDED else f"the {p.bound} roof counts"
        sign = "<" if p.intensity < p.ridge else "≥"
        formula = (
            (
                "{intensity:FLOP per byte} against the ridge",
                f"{units.number(p.intensity)} {sign} {units.number(p.ridge)}: {known}",
            ),
        )
    return Scene(
        summary=_summary(r, told),
        takeaway=_takeaway(r),
        marks=_board(r, wide) if r.case == ALL else _alone(p, wide),
        figures=told,
        table=_table(r),
        height=HEIGHT[wide],
        width=width,
        formula=formula,
        legend=_legend(r),
    )


SIMULATOR = Declaration(
    title="Profiler detective",
    question="Six slow steps: what holds each one up?",
    controls=(
        select(
            "case", "Case", ALL, {ALL: "all six", **{name: one.title for name, one in CASES.items()}, OWN: OWN},
            help="Open one case for its numbers and its cure.",
        ),
        DIAGNOSIS,
        *PULLS.values(),
        slider("input_wait", "Waits for input", 0, 0, 90, unit="%", **OF_ONES_OWN),
        slider("launch_gaps", "Gaps between kernels", 0, 0, 90, unit="%", **OF_ONES_OWN),
        slider("communication", "NCCL alone", 0, 0, 90, unit="%", **OF_ONES_OWN),
        slider("rank_skew", "Slowest rank ÷ mean", 1.0, 1.0, 3.0, step=0.05, unit="×", **OF_ONES_OWN),
        log_slider("intensity", "FLOP per byte", 5.4, 0.1, 10_000, **OF_ONES_OWN),
        slider("compute_share", "FLOP/s used", 2, 1, 100, unit="%", **OF_ONES_OWN),
        slider("bandwidth_share", "Memory rate used", 84, 1, 100, unit="%", **OF_ONES_OWN),
    ),
    presets={
        "Six cases": {},
        "First guesses": {"decoder": "launches", "layernorm": "memory", "experts": "communication"},
        "Experts on 8 GPUs": {"case": "one hot expert"},
        "Width 4097, solved": {"case": "a GEMM of width 4097", "diagnosis": "implementation"},
        "Show the solutions": {name: CASES[case].answer for name, case in GAME.items()},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "Six programs are slow. Some spend their time in a kernel, others wait: for input, for launches, for a slow GPU or "
        "for the network. How many of the six would a faster kernel hardly help?",
        "waiting",
        "of the six",
        0.05,
        units.count,
    ),
    source="Performance Engineering",
)  # fmt: skip

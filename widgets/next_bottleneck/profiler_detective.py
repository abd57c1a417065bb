"""Solve six profiles. Read the trace, rule out every wait, and only then blame a kernel."""

from dataclasses import dataclass

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, wrap
from widgets.controls import log_slider, select, slider
from widgets.declare import Declaration, Prediction
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

OWN = "your own numbers"
CASES = {case.name: case for case in cost.CASES}
BARS = 6  # of a trace with gaps, each for many kernels (one bar without gaps)
OF_ONES_OWN = {"more": True, "help": "Counts when the case is your own numbers."}
UNDECIDED = "not yet"
NAMES = {
    "input": "late input",
    "launches": "launch gaps",
    "stragglers": "slow rank",
    "communication": "NCCL alone",
    "memory": "memory roof",
    "compute": "compute roof",
    "implementation": "own code",
}
SHORT = dict(zip(NAMES, ("input", "gaps", "rank", "NCCL", "memory", "compute", "code"), strict=True))
ANSWERS = {UNDECIDED: UNDECIDED, **NAMES}
WAITS = ("input", "launches", "stragglers", "communication")
GAME = {  # the input that holds one's answer -> its case, each with another culprit
    "decoder": "many thin bars",
    "layernorm": "a LayerNorm",
    "training": "gradients at the end",
    "experts": "one hot expert",
    "two_weeks": "two weeks on the wrong kernel",
    "wide_gemm": "a GEMM of width 4097",
}
PLACES = {case: i for i, case in enumerate(GAME.values())}
TITLES = dict(zip(PLACES, ("decoder", "LayerNorm", "training", "experts", "two weeks", "GEMM"), strict=True))
PULLS = {
    name: select(
        name, f"Suspect in case {i}", CASES[case].answer if i == 1 else UNDECIDED, ANSWERS, more=True, help=f"Case {i}: {CASES[case].title}."
    )
    for i, (name, case) in enumerate(GAME.items(), 1)
}  # fmt: skip
DIAGNOSIS = select(
    "diagnosis", "Suspect in another case", UNDECIDED, ANSWERS, more=True, help="Counts in a case beyond the six."
)  # fmt: skip
CASE = select(
    "case",
    "Case",
    next(iter(PLACES)),
    {
        **{case: f"{i + 1}. {CASES[case].title}" for case, i in PLACES.items()},
        **{name: one.title for name, one in CASES.items() if name not in PLACES},
        OWN: OWN,
    },
    help="Or click one of the six small traces.",
)
RULE = "From the top, the first lane over its dashed line is to blame."
HEIGHT = {True: 376, False: 486}


@dataclass(frozen=True)
class Asked:
    question: str
    suspect: str
    value: float
    limit: float
    hit: bool


@dataclass(frozen=True)
class Profile:
    name: str  # the input that its knob is bound to
    title: str
    story: str
    worked: str  # how its deciding figure comes about
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
    asked: tuple[Asked, ...]  # up to the one that decides
    suspected: Asked | None  # the question that one's suspect answers, if it is one
    bottleneck: str
    path: tuple[str, ...]
    at_roof_ratio: float  # what the step would gain with all kernels at their roof


@dataclass(frozen=True)
class Result:
    case: str
    profile: Profile  # the one that is open
    game: tuple[Profile, ...]
    right: int  # of the six
    wrong: int
    still_open: int
    waiting: int  # of the six, those in which a wait or a slow rank decides, and no kernel


def run(
    case, diagnosis, decoder, layernorm, training, experts, two_weeks, wide_gemm,
    input_wait, launch_gaps, communication, rank_skew, intensity, compute_share, bandwidth_share,
) -> Result:  # fmt: skip
    said = (decoder, layernorm, training, experts, two_weeks, wide_gemm)
    game = tuple(_known(name, known, one) for (name, known), one in zip(GAME.items(), said, strict=True))
    if case in PLACES:
        profile = game[PLACES[case]]
    elif case == OWN:
        seen = cost.Symptoms(
            input_wait / 100, launch_gaps / 100, communication / 100, rank_skew, intensity,
            machine("H100").ridge("fp16"), compute_share / 100, bandwidth_share / 100,
        )  # fmt: skip
        profile = _profile("diagnosis", OWN, "Your own profile, on an H100.", "", seen, diagnosis)
    else:
        profile = _known("diagnosis", case, diagnosis)
    judged = [one for one in game if one.diagnosis != UNDECIDED]
    right = sum(one.right for one in judged)
    return Result(
        case, profile, game, right, len(judged) - right, len(game) - len(judged),
        sum(one.bottleneck in WAITS for one in game),
    )  # fmt: skip


def _known(name: str, case: str, diagnosis: str) -> Profile:
    found = CASES[case]
    return _profile(name, found.title, found.story, found.worked, found.seen, diagnosis)


def _profile(name: str, title: str, story: str, worked: str, seen: cost.Symptoms, diagnosis: str) -> Profile:
    waits = seen.input_wait_share + seen.launch_gap_share + seen.exposed_communication_share
    if waits > 0.95:
        raise ValueError(
            f"The three waits must be at most 95% together, got {units.percent(waits, 0)}; leave some time for work"
        )
    found = cost.diagnose(seen)
    bound = "memory" if seen.intensity < seen.ridge else "compute"
    roof = seen.bandwidth_share if bound == "memory" else seen.compute_share
    of_suspects = (*WAITS, bound)
    checks = tuple(
        Asked(c.question, suspect, c.value, c.limit, c.hit)
        for suspect, c in zip(of_suspects, found.checks, strict=False)
    )
    return Profile(
        name, title, story, worked, diagnosis, diagnosis == found.bottleneck, seen.input_wait_share,
        seen.launch_gap_share, seen.exposed_communication_share, seen.rank_skew, 1 - waits, seen.intensity, seen.ridge,
        seen.compute_share, seen.bandwidth_share, roof, 100 * seen.launch_gap_share, bound,
        checks, _suspected(seen, diagnosis), found.bottleneck, found.path, cost.amdahl(1 - waits, 1 / roof),
    )  # fmt: skip


def _suspected(seen, suspect: str) -> Asked | None:
    """Return the figure and the limit that speak for or against a suspect, whatever the earlier questions were."""
    known = {
        "input": (seen.input_wait_share, cost.WAIT_SHARE),
        "launches": (seen.launch_gap_share, cost.WAIT_SHARE),
        "stragglers": (seen.rank_skew, cost.SKEW),
        "communication": (seen.exposed_communication_share, cost.WAIT_SHARE),
        "memory": (seen.bandwidth_share, cost.NEAR_ROOF),
        "compute": (seen.compute_share, cost.NEAR_ROOF),
    }
    if suspect not in known:
        return None
    value, limit = known[suspect]
    return Asked(NAMES[suspect], suspect, value, limit, value > limit if suspect in WAITS else value >= limit)


def _shown(suspect: str, value: float) -> str:
    return units.times(value) if suspect == "stragglers" else units.percent(value, 0)


def _limit(suspect: str) -> str:
    if suspect == "implementation":
        return "else"
    if suspect in ("memory", "compute"):
        return f"≥ {_shown(suspect, cost.NEAR_ROOF)}"
    return f"> {_shown(suspect, cost.SKEW if suspect == 'stragglers' else cost.WAIT_SHARE)}"


def _against(one: Asked) -> str:
    """Return a figure next to its limit, such as 20% > 10%."""
    sign = {("wait", True): ">", ("wait", False): "≤", ("roof", True): "≥", ("roof", False): "<"}
    kind = "wait" if one.suspect in WAITS else "roof"
    return f"{_shown(one.suspect, one.value)} {sign[kind, one.hit]} {_shown(one.suspect, one.limit)}"


def _spans(p: Profile, left: float, wide: float) -> tuple[float, float, list[tuple[float, float]]]:
    """Return where the input has come, where the kernels end, and (start, width) of each kernel between."""
    start = left + wide * p.input_wait_share
    end = left + wide * (1 - p.exposed_communication_share)
    bars = BARS if p.launch_gap_share else 1
    pitch = (end - start) / bars
    busy = pitch * p.work_share / (p.work_share + p.launch_gap_share)
    return start, end, [(start + pitch * k, busy) for k in range(bars)]


def _small(id: str, p: Profile, at: Box, decides: str) -> list[dict]:
    """Draw one step in little: late input, kernels and their gaps, NCCL alone; below the wait of a rank, and the roof."""
    start, end, kernels = _spans(p, at.x, at.w)
    high = at.h - 10
    tip = f"{p.title}: click to open it"

    def role(suspect: str, usual: str) -> str:
        return "hot" if suspect == decides else usual

    marks = [rect(f"{id}-step", at.x, at.y, at.w, high, role("launches", "idle"), tip)]
    if p.input_wait_share:
        marks.append(rect(f"{id}-input", at.x, at.y, start - at.x, high, role("input", "overhead"), tip))
    if p.rank_skew > 1:
        done = start + (end - start) / p.rank_skew
        marks.append(
            rect(f"{id}-wait", done, at.y + high - 7, end - done, 7, role("stragglers", "waste"), tip)
        )
        high -= 7
    own = role("implementation", "primary")
    marks += [rect(f"{id}-kernel{k}", x, at.y, w, high, own, tip) for k, (x, w) in enumerate(kernels)]
    if p.exposed_communication_share:
        marks.append(
            rect(f"{id}-nccl", end, at.y, at.right - end, at.h - 10, role("communication", "network"), tip)
        )
    used, near = (at.bottom - 8 * share for share in (p.roof_share, cost.NEAR_ROOF))
    fill = "hot" if decides in ("memory", "compute") else "useful"
    return [
        *marks,
        rect(f"{id}-roof", at.x, at.bottom - 8, at.w, 8, "idle", tip),
        rect(f"{id}-used", at.x, used, at.w, at.bottom - used, fill, tip),
        line(f"{id}-limit", at.x, near, at.right, near, "limit"),
    ]


def _strip(r: Result, wide: bool) -> list[dict]:
    """Draw the six small, each with its name or one's suspect above it. A click opens one."""
    each, apart = (112, 121.6) if wide else (50, 58)
    marks = []
    for i, (p, (case, short)) in enumerate(zip(r.game, TITLES.items(), strict=True)):
        x, opened = apart * i + each / 2, r.case == case
        words, ink = f"{i + 1} {short}" if wide else str(i + 1), "ink"
        if p.diagnosis != UNDECIDED:
            words = f"{'✓' if p.right else '✗'} {NAMES[p.diagnosis] if wide else i + 1}"
            ink = "useful" if p.right else "hot"
        decides = p.bottleneck if p.right else ""
        marks += sets(
            {CASE.name: case},
            text(f"stamp{i}", x, 11, words, ink, "small", "middle", bold=opened or p.diagnosis != UNDECIDED),
            *_small(f"t{i}", p, Box(x - each / 2, 17, each, 30), decides),
        )
        if opened:
            marks.append(path("opened", [(x - each / 2, 51), (x + each / 2, 51)], "now"))
    return marks


def _lane(suspect: str, p: Profile, at: Box, lit: bool) -> list[dict]:
    """Draw what one suspect does in the step, and the dashed line that it may not cross."""
    start, end, kernels = _spans(p, at.x, at.w)
    allowed, top, low = at.w * cost.WAIT_SHARE, at.y - 3, at.bottom + 3

    def role(usual: str) -> str:
        return "hot" if lit else usual

    def limit(x: float, k: int = 0) -> dict:
        return line(f"line-{suspect}{k}", x, top, x, low, "limit", f"its limit: {_limit(suspect)}")

    if suspect == "input":
        tip = f"the GPU waits for its input: {units.percent(p.input_wait_share, 0)} of the step"
        return [
            rect("p-input", at.x, at.y, start - at.x, at.h, role("overhead"), tip),
            limit(at.x + allowed),
        ]
    if suspect == "launches":
        gaps = f"no kernel between two launches: {units.percent(p.launch_gap_share, 0)} of the step"
        ends = [*(x for x, _ in kernels[1:]), end]
        marks = [
            rect(f"p-kernel{k}", x, at.y, w, at.h, "primary", f"kernels: {units.percent(p.work_share, 0)}")
            for k, (x, w) in enumerate(kernels)
        ]
        if not p.launch_gap_share:
            return [*marks, limit(end - allowed)]
        for k, ((x, w), until) in enumerate(zip(kernels, ends, strict=True)):
            gap = rect(f"p-gap{k}", x + w, at.y, until - x - w, at.h, role("idle"), gaps)
            marks += [gap, limit(x + w + allowed / len(kernels), k)]
        return marks
    if suspect == "stragglers":
        done, latest = (start + (end - start) / ratio for ratio in (p.rank_skew, cost.SKEW))
        tip = f"the slowest rank takes {units.times(p.rank_skew)} the mean of all"
        marks = [
            rect("p-ranks", start, at.y, done - start, at.h, "secondary", tip),
            rect("p-ranks-wait", done, at.y, end - done, at.h, role("waste"), tip),
        ]
        words = "the others wait"
        if end - done > text_width(words, "small") + 16:
            fill, ink = ("hot", "inverse") if lit else ("waste", "ink")
            marks.append(
                text(
                    "rank-words",
                    (done + end) / 2,
                    at.y + at.h / 2 + 4,
                    words,
                    ink,
                    "small",
                    "middle",
                    on=fill,
                )
            )
        return [*marks, limit(latest)]
    if suspect == "communication":
        tip = f"NCCL while no kernel runs: {units.percent(p.exposed_communication_share, 0)} of the step"
        return [
            rect("p-nccl", end, at.y, at.right - end, at.h, role("network"), tip),
            limit(at.right - allowed),
        ]
    if suspect == "implementation":
        tip = "the kernels themselves: theirs is the blame when no lane above is over its line"
        return [rect(f"p-own{k}", x, at.y, w, at.h, role("primary"), tip) for k, (x, w) in enumerate(kernels)]
    share = p.bandwidth_share if suspect == "memory" else p.compute_share
    name = "memory rate" if suspect == "memory" else "FLOP/s"
    tip = f"{units.percent(share)} of the machine's {name} while a kernel runs"
    near = at.bottom - at.h * cost.NEAR_ROOF
    return [
        *(
            rect(f"p-{suspect}{k}", x, at.bottom - at.h * share, w, at.h * share, role("useful"), tip)
            for k, (x, w) in enumerate(kernels)
        ),
        line(f"line-{suspect}0", at.x, near, at.right, near, "limit", f"near the roof: {_limit(suspect)}"),
    ]


def _lanes(p: Profile, wide: bool) -> list[dict]:
    """Draw a lane for each suspect, in the order of the questions. A click on a lane accuses it, as the knob does."""
    control = PULLS.get(p.name, DIAGNOSIS)
    rail, names, left, width, top, pitch, high = (
        (12, 28, 136, 470, 102, 32, 24) if wide else (12, 28, 101, 163, 122, 36, 26)
    )
    role = "now" if p.diagnosis == UNDECIDED else "useful" if p.right else "hot"
    before = list(NAMES)[: list(NAMES).index(p.bottleneck)]
    told = {name: _suspected(p, name) for name in before} if p.right else {}
    if p.suspected:
        told[p.diagnosis] = p.suspected
    places = {UNDECIDED: top - 16} | {suspect: top + pitch * i + high / 2 for i, suspect in enumerate(NAMES)}
    marks = [
        line("track", rail, places[UNDECIDED], rail, places["implementation"], "axis"),
        *(line(f"stop{i}", rail - 4, y, rail + 4, y, "axis") for i, y in enumerate(places.values())),
        text("name-open", names, places[UNDECIDED] + 4, "?", "muted", "small"),
    ]
    for i, (suspect, name) in enumerate((NAMES if wide else SHORT).items()):
        at, chosen = Box(left, top + pitch * i, width, high), suspect == p.diagnosis
        decided = p.right and chosen
        words, ink = _limit(suspect), "muted"
        if suspect in told:
            one, ink = told[suspect], "hot" if told[suspect].hit else "ink"
            words = _against(one) if wide else _shown(suspect, one.value)
            if p.right and not decided:
                words = f"{'' if one.hit else '✓ '}{_shown(suspect, one.value)}"
                ink = "muted" if one.hit else "useful"
        elif decided:
            words, ink = "none crossed" if wide else "the rest", "hot"
        term = "waits" if suspect in WAITS else "roofs"
        rule = text(
            f"rule{i}", at.right + 10, at.y + high / 2 + 4, words, ink, "small", bold=ink == "hot" or chosen
        )
        lane = [
            rect(f"lane-{suspect}", at.x, at.y, at.w, at.h, "idle", f"{NAMES[suspect]}: click to accuse it"),
            *_lane(suspect, p, at, decided),
            text(
                f"name{i}",
                names,
                at.y + high / 2 + 4,
                f"{i + 1} {name}",
                role if chosen else "ink",
                "small",
                bold=chosen,
            ),
            *about(term, rule),  # not the lane, or all others would fade under a hand that is about to accuse
        ]
        marks += sets({control.name: suspect}, *lane)
        if chosen:
            x, y, far, low = at.x - 3, at.y - 5, at.right + 3, at.bottom + 5
            marks.append(path("accused", [(x, y), (far, y), (far, low), (x, low), (x, y)], role))
    knob = drag(control, "y", lambda name: places[name])
    return [*marks, handle("pull", rail, places[p.diagnosis], role, knob, late=True)]


def _verdict(r: Result) -> tuple[str, str]:
    """Return (words, role), which say whether the suspect is the right one, and the figure for or against this suspect."""
    p = r.profile
    if p.diagnosis == UNDECIDED:
        return "From 1 down: click the first lane over its line.", "ink"
    name, own = NAMES[p.diagnosis], p.suspected
    if p.right:
        others = [i for i, one in enumerate(r.game, 1) if not one.right]
        more = f" Now click case {others[0]}." if others else " That was the last of the six."
        return f"Solved: {name}.{more}", "useful"
    if own is None:
        return "No. A lane above is over its line.", "hot"
    if own.hit:
        return f"Not yet, {_against(own)}: a lane above is over its line, too.", "hot"
    return f"No, {_against(own)}: this lane is within its line.", "hot"


def _marks(r: Result, wide: bool) -> list[dict]:
    p = r.profile
    place = PLACES.get(r.case)
    head = p.story if p.right else p.title if place is None else f"Case {place + 1}: {p.title}"
    lines = wrap(head, 640 if wide else 268, "body")
    marks = [
        *_strip(r, wide),
        *(text(f"head{i}", 28, 74 + 17 * i, words, bold=True) for i, words in enumerate(lines)),
        *_lanes(p, wide),
    ]
    said, ink = _verdict(r)
    room, y = (690, 348) if wide else (310, 392)
    marks += [
        text("said" if not i else f"said{i}", 0, y + 20 * i, words, ink, "big", bold=True)
        for i, words in enumerate(wrap(said, room / 1.12, "big"))
    ]
    words = f"Cure: {', then '.join(p.path)}." if p.right else RULE
    if p.diagnosis == UNDECIDED:
        words = "If none is over its line, the kernel's own code is to blame."
    low = y + 21 * len(wrap(said, room / 1.12, "big"))
    return marks + [
        text(f"{'path' if p.right else 'order'}{i}", 0, low + 16 * i, one, "muted", "small")
        for i, one in enumerate(wrap(words, 716 if wide else 336, "small"))
    ]


def _takeaway(r: Result) -> str:
    p = r.profile
    if r.right == len(r.game):
        return "All solved. In four of the six a wait or a slow rank decided, not a kernel."
    if p.diagnosis == UNDECIDED:
        return "Look for waits first. Blame a kernel only when the GPU never waits."
    if not p.right:
        return "Ask in order: input, gaps, slow rank, NCCL. Judge the kernels last."
    return {
        "input": "The GPU waits for data, so fix the data loader before any kernel.",
        "launches": "The GPU idles between its kernels. Close the gaps before you tune any of them.",
        "stragglers": "Everybody waits for one slow rank. Balance the work before you tune it.",
        "communication": "The network runs while no kernel does. Overlap it, or send fewer bytes.",
        "memory": "This kernel is near the memory roof, so only fewer bytes can speed it up.",
        "compute": "This kernel is near the compute roof, so only less arithmetic can speed it up.",
        "implementation": "Nothing waits and neither roof is near, so look at the kernel's own code.",
    }[p.bottleneck]


def _table(r: Result):
    heads = ("late input", "launch gaps", "NCCL alone", "FLOP/s used", "memory used")
    columns = (
        "profile",
        *(Column(one, "", units.percent) for one in heads),
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
            for p in (*r.game, *([r.profile] if r.case not in PLACES else []))
        ],
    )  # fmt: skip


def _figures(r: Result) -> tuple:
    """Return the score, and what its roof would bring where a kernel itself was the cause."""
    p, six = r.profile, len(r.game)
    score = (
        figure("solved", r.right, lambda value: f"{value:.0f} of {six}", "useful" if r.right else "ink"),
        figure(
            "wrong suspect" if r.wrong == 1 else "wrong suspects", r.wrong, units.count, "hot" if r.wrong else "ink"
        ),
    )  # fmt: skip
    if p.right and p.bottleneck not in WAITS:
        score += (figure("speed of this kernel at its roof", p.at_roof_ratio, units.times),)
    if r.right == six:
        return (*score, figure("cases with no kernel at fault", r.waiting, units.count))
    return (*score, figure("still open", r.still_open, units.count))


def _summary(r: Result, told: tuple) -> str:
    p = r.profile
    score = f"{told[0].text} solved, {told[1].text} with the wrong suspect"
    rest = f"{told[-1].text} of them wait" if r.right == len(r.game) else f"{told[-1].text} still open"
    seen = (
        f"{p.title}: input waits {units.percent(p.input_wait_share, 0)}, gaps {units.percent(p.launch_gap_share, 0)}, slowest "
        f"rank {units.times(p.rank_skew)} the mean, NCCL alone {units.percent(p.exposed_communication_share, 0)}, FLOP/s "
        f"{units.percent(p.compute_share, 0)}, memory {units.percent(p.bandwidth_share, 0)}"
    )
    said = ""
    if p.diagnosis != UNDECIDED:
        said = f"; your suspect is {'right' if p.right else 'wrong'}"
    if p.right and p.bottleneck not in WAITS:
        said += f", and at its roof it would run at {told[2].text}"
    return f"{score}, {rest}. {seen}{said}."


def _formula(p: Profile) -> tuple:
    """Return how the deciding figure of a solved case comes about, and before it the order of the questions."""
    if not p.right:
        return (
            (
                "the first over its line: {waits}, then {roofs}",
                f"waits {_limit('input')}, rank {_limit('stragglers')}, roof {_limit('memory')}",
            ),
        )
    asked, term = p.asked[-1], "waits" if p.bottleneck in WAITS else "roofs"
    words = {
        "input": "late input / step",
        "launches": "gaps / (gaps + work)",
        "stragglers": "slowest rank / mean",
        "communication": "NCCL alone / step",
        "memory": "memory rate / peak",
        "compute": "FLOP/s / peak",
    }[asked.suspect]
    came = f"{p.worked} = " if p.worked else ""
    return ((f"{{{term}:{words}}}", f"{came}{_against(asked)}"),)


LEGEND = (  # the last once a case is solved
    ("primary", "kernels"),
    ("secondary", "the mean rank's kernels"),
    ("useful", "part of the roof used"),
    ("limit line", "its limit"),
    ("hot", "what decided"),
)


def scene(r: Result, measured: dict | None = None, width: int = WIDE) -> Scene:
    wide, told = width == WIDE, _figures(r)
    return Scene(
        summary=_summary(r, told),
        takeaway=_takeaway(r),
        marks=_marks(r, wide),
        figures=told,
        table=_table(r),
        height=HEIGHT[wide],
        width=width,
        formula=_formula(r.profile),
        legend=LEGEND if r.profile.right else LEGEND[:-1],
    )


SIMULATOR = Declaration(
    title="Profiler detective",
    question="Six slow steps: what holds each one up?",
    controls=(
        CASE,
        *PULLS.values(),
        DIAGNOSIS,
        slider("input_wait", "Waits for input", 0, 0, 90, unit="%", **OF_ONES_OWN),
        slider("launch_gaps", "Gaps between kernels", 0, 0, 90, unit="%", **OF_ONES_OWN),
        slider("communication", "NCCL alone", 0, 0, 90, unit="%", **OF_ONES_OWN),
        slider("rank_skew", "Slowest rank ÷ mean", 1.0, 1.0, 3.0, step=0.05, unit="×", **OF_ONES_OWN),
        log_slider("intensity", "FLOP per byte", 5.4, 0.1, 10_000, **OF_ONES_OWN),
        slider("compute_share", "FLOP/s used", 2, 1, 100, unit="%", **OF_ONES_OWN),
        slider("bandwidth_share", "Memory rate used", 84, 1, 100, unit="%", **OF_ONES_OWN),
    ),
    presets={
        "Case 1, solved": {},
        "Case 2": {"case": "a LayerNorm"},
        "A tempting suspect": {"case": "one hot expert", "experts": "communication"},
        "No wait at all": {"case": "a GEMM of width 4097", "wide_gemm": "implementation"},
        "All six solved": {"case": "one hot expert", **{name: CASES[case].answer for name, case in GAME.items()}},
    },
    run=run,
    scene=scene,
    prediction=Prediction(
        "Six programs are slow. In some a kernel decides, others wait first: for input, for launches, for a slow GPU or "
        "for the network. In how many of the six does a wait decide?",
        "waiting",
        "of the six",
        0.05,
        units.count,
    ),
    source="Performance Engineering",
)  # fmt: skip

"""Solve six profiles. Read the trace, rule out every wait, and only then blame a kernel."""

from dataclasses import dataclass

from kernels.machines import machine
from kernels.next_bottleneck import cost
from widgets import units
from widgets.charts import Box, spread, wrap
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
PULLS = {
    name: select(
        name, f"Suspect in case {i}", UNDECIDED, ANSWERS, more=True, help=f"Case {i}: {CASES[case].title}."
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
    help="Or pull the knob under the six small traces.",
)
HEIGHT = {True: 408, False: 512}


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


def _suspected(seen: cost.Symptoms, suspect: str) -> Asked | None:
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


def _gpu(id: str, p: Profile, at: Box, decides: str = "") -> list[dict]:
    """Draw one step of this GPU, with late input, kernels with their gaps, and NCCL without a kernel."""
    start, end, kernels = _spans(p, at.x, at.w)

    def role(suspect: str, usual: str) -> str:
        return "hot" if suspect == decides else usual

    marks = [rect(f"{id}-step", at.x, at.y, at.w, at.h, "idle", "one step of this GPU")]
    if p.input_wait_share:
        tip = f"waiting for input: {units.percent(p.input_wait_share, 0)}"
        marks.append(rect(f"{id}-input", at.x, at.y, start - at.x, at.h, role("input", "overhead"), tip))
    work = f"kernels: {units.percent(p.work_share, 0)}"
    if p.launch_gap_share:
        gaps = f"gaps: {units.percent(p.launch_gap_share, 0)}"
        ends = [*(x for x, _ in kernels[1:]), end]
        marks += [
            rect(f"{id}-gap{k}", x + w, at.y, until - x - w, at.h, role("launches", "idle"), gaps)
            for k, ((x, w), until) in enumerate(zip(kernels, ends, strict=True))
        ]
    marks += [rect(f"{id}-kernel{k}", x, at.y, w, at.h, "primary", work) for k, (x, w) in enumerate(kernels)]
    if p.exposed_communication_share:
        tip = f"NCCL while no kernel runs: {units.percent(p.exposed_communication_share, 0)}"
        marks.append(
            rect(f"{id}-nccl", end, at.y, at.right - end, at.h, role("communication", "network"), tip)
        )
    return marks


def _ranks(p: Profile, at: Box, decides: str) -> list[dict]:
    """Draw how long the GPUs work on average, how long they wait for this GPU, the slowest, and NCCL of all GPUs."""
    start, end, _ = _spans(p, at.x, at.w)
    done = start + (end - start) / p.rank_skew
    tip = f"the slowest rank takes {units.times(p.rank_skew)} the mean"
    role = "hot" if decides == "stragglers" else "waste"
    return [
        rect("p-ranks-step", at.x, at.y, at.w, at.h, "idle", "one step"),
        rect("p-ranks", start, at.y, done - start, at.h, "secondary", tip),
        rect("p-ranks-wait", done, at.y, end - done, at.h, role, tip),
        rect("p-ranks-nccl", end, at.y, at.right - end, at.h, "network", "NCCL of all"),
    ]


def _counter(id: str, name: str, p: Profile, share: float, at: Box, hot: bool) -> list[dict]:
    """Draw a counter over the step as profilers do, as high as its share while a kernel runs, with 70% across."""
    tip = f"{units.percent(share)} of the machine's {name} while a kernel runs"
    near = at.bottom - at.h * cost.NEAR_ROOF
    return [
        rect(f"p-{id}-all", at.x, at.y, at.w, at.h, "idle", f"{name}: all that the machine has"),
        *(
            rect(f"p-{id}{k}", x, at.bottom - at.h * share, w, at.h * share, "hot" if hot else "useful", tip)
            for k, (x, w) in enumerate(_spans(p, at.x, at.w)[2])
        ),
        line(f"p-{id}-near", at.x, near, at.right, near, "limit", "70%: near the roof"),
    ]


def _proof(p: Profile, gpu: Box, ranks: Box, roof: Box) -> list[dict]:
    """Say on the trace what decides, where it is seen."""
    start, end, _ = _spans(p, gpu.x, gpu.w)
    value = _shown(p.asked[-1].suspect, p.asked[-1].value)
    waits = {
        "input": (gpu.x, start, f"{value} of the step waits for data"),
        "launches": (start, end, f"{value} of the step, no kernel runs"),
        "communication": (end, gpu.right, f"{value} of the step, NCCL runs alone"),
    }
    if p.bottleneck in waits:
        left, right, words = waits[p.bottleneck]
        y, room = gpu.y - 5, text_width(words, "body", True) / 2
        middle = min(max((left + right) / 2, gpu.x + room), gpu.right - room)
        return [
            path("proof", [(left, y + 4), (left, y), (right, y), (right, y + 4)], "hot"),
            text("proof-words", middle, y - 6, words, "hot", "body", "middle", bold=True),
        ]
    if p.bottleneck == "stragglers":
        start, end, _ = _spans(p, ranks.x, ranks.w)
        left = start + (end - start) / p.rank_skew
        y, middle, on, room = ranks.bottom - 5.5, (left + end) / 2, "hot", end - left
        options = (f"all wait for one: it takes {value} their mean", f"wait for one: {value}", value)
    else:
        y, middle, room = roof.bottom - 9, roof.x + roof.w / 2, roof.w
        on = "hot" if p.roof_share > 0.5 else "idle"
        near = "near its roof" if p.asked[-1].hit else "far from its roof"
        options = (f"a kernel all the time, at {value}: {near}", f"{value}: {near}")
    words = next((one for one in options if text_width(one, "body", True) < room - 8), "")
    ink = "inverse" if on == "hot" else "hot"
    return [text("proof-words", middle, y, words, ink, "body", "middle", bold=True, on=on)] if words else []


def _verdict(r: Result) -> tuple[str, str]:
    """Return (words, role), which say whether the suspect is the right one, and the figure for or against this suspect."""
    p = r.profile
    if p.diagnosis == UNDECIDED:
        return "What do you suspect? Pull the knob. The first yes from the left decides.", "ink"
    name, own = NAMES[p.diagnosis], p.suspected
    if p.right:
        others = [i for i, one in enumerate(r.game, 1) if not one.right]
        more = f" Next: case {others[0]}." if others else " That was the last of the six."
        return f"Solved: {name}.{more}", "useful"
    if own is None:
        return "No. A question further left says yes.", "hot"
    if own.hit:
        return f"Not yet: {_against(own)} is true, but another question comes first.", "hot"
    return (
        f"No: {name} is at {_shown(own.suspect, own.value)}. A yes needs {_limit(own.suspect)}.",
        "hot",
    )


def _suspects(p: Profile, places: dict[str, float], y: float, wide: bool) -> list[dict]:
    """Draw the line of suspects, under each its limit, and its figure after the question about it."""
    control = PULLS.get(p.name, DIAGNOSIS)
    role = "now" if p.diagnosis == UNDECIDED else "useful" if p.right else "hot"
    told = {one.suspect: one for one in p.asked} if p.right else {}
    if p.suspected:
        told[p.diagnosis] = p.suspected
    ends = list(places.values())
    marks = [
        line("track", ends[0], y, ends[-1], y, "axis"),
        *(line(f"stop{i}", at, y - 4, at, y + 4, "axis") for i, at in enumerate(ends)),
        handle(
            "pull", places[p.diagnosis], y, role, drag(control, "x", lambda name: places[name]), late=True
        ),
        text("name-open", places[UNDECIDED], y + 26, "?", "muted", "small", "middle"),
    ]
    for i, (suspect, name) in enumerate((NAMES if wide else SHORT).items()):
        x, chosen = places[suspect], suspect == p.diagnosis
        low = y + 43 + (0 if wide or i % 2 else 16)
        words, ink = _limit(suspect), "muted"
        if suspect in told:
            words, ink = _against(told[suspect]), "hot" if told[suspect].hit and p.right else "ink"
            if not wide and ink != "hot" and not chosen:
                words = f"{_shown(suspect, told[suspect].value)}: no"
        elif p.right and suspect == p.bottleneck:
            words, ink = "the rest" if wide else "rest", "hot"
        marks += [
            text(f"name{i}", x, y + 26, name, "ink", "small", "middle", bold=chosen),
            text(f"rule{i}", x, low, words, ink, "small", "middle", bold=ink == "hot"),
        ]
    return marks


def _near(id: str, p: Profile, at: Box) -> list[dict]:
    """Draw how much of its roof a small trace's kernels use, to tell kernels near it from others."""
    used, limit = at.bottom - at.h * p.roof_share, at.bottom - at.h * cost.NEAR_ROOF
    tip = f"{units.percent(p.roof_share, 0)} of its roof, {p.bound}"
    return [
        rect(f"{id}-roof", at.x, at.y, at.w, at.h, "idle", tip),
        rect(f"{id}-used", at.x, used, at.w, at.bottom - used, "useful", tip),
        line(f"{id}-limit", at.x, limit, at.right, limit, "limit"),
    ]


def _strip(r: Result, wide: bool) -> list[dict]:
    """Draw the six small, each with its use of the roof and its suspect as a stamp, and the knob that opens one."""
    each, apart = (112, 121.6) if wide else (50, 58)
    middles = [apart * i + each / 2 for i in range(len(r.game))]
    y = 60 if wide else 56
    marks = [line("strip", middles[0], y, middles[-1], y, "axis")]
    for i, (p, x) in enumerate(zip(r.game, middles, strict=True)):
        stamp, ink = str(i + 1), "ink"
        if p.diagnosis != UNDECIDED:
            stamp = f"{'✓' if p.right else '✗'} {NAMES[p.diagnosis] if wide else i + 1}"
            ink = "useful" if p.right else "hot"
        opened = PLACES.get(r.case) == i
        marks += [
            text(f"stamp{i}", x, 11, stamp, ink, "small", "middle", bold=opened and p.diagnosis == UNDECIDED),
            *_gpu(f"t{i}", p, Box(x - each / 2, 17, each, 13)),
            *_near(f"t{i}", p, Box(x - each / 2, 32, each, 10)),
            line(f"strip-stop{i}", x, y - 4, x, y + 4, "axis"),
        ]
    if r.case in PLACES:
        at = middles[PLACES[r.case]]
        pull = {"input": CASE.name, "axis": "x", "at": [round(x, 2) for x in middles], "to": list(PLACES)}
        marks += [
            path("opened", [(at - each / 2, 45), (at + each / 2, 45)], "now"),
            handle("pull-case", at, y, "now", pull),
        ]
    return marks


def _marks(r: Result, wide: bool) -> list[dict]:
    p = r.profile
    place = PLACES.get(r.case)
    head = p.story if p.right else p.title if place is None else f"Case {place + 1}: {p.title}"
    decides = p.bottleneck if p.right else ""
    left, width, top = (82, 552, 128) if wide else (60, 232, 136)
    high, lane = (66, 40) if wide else (64, 38)
    both = p.rank_skew > 1
    gpu = Box(left, top, width, high - 26 if both else high)
    ranks = Box(left, gpu.bottom + 6, width, 20)
    flops, memory = (Box(left, top + high + 10 + (lane + 8) * i, width, lane) for i in (0, 1))
    counted = {"FLOP/s": p.compute_share, "memory": p.bandwidth_share}
    names = [
        (
            "this GPU",
            gpu,
            f"{units.percent(p.work_share, 0)} busy" if wide else units.percent(p.work_share, 0),
        )
    ]
    names += [("all, mean", ranks, units.times(p.rank_skew))] if both else []
    names += [
        ("FLOP/s", flops, units.percent(p.compute_share, 0)),
        ("memory", memory, units.percent(p.bandwidth_share, 0)),
    ]
    marks = [
        *_strip(r, wide),
        *(
            text(f"head{i}", 0, 92 + 17 * i, words, bold=True)
            for i, words in enumerate(wrap(head, 640 if wide else 300, "body"))
        ),
        *about("waits", _gpu("p", p, gpu, decides)),
        *(about("waits", _ranks(p, ranks, decides)) if both else []),
        *about(
            "roofs",
            _counter("flops", "FLOP/s", p, p.compute_share, flops, decides == "compute" or decides == "implementation" and p.bound == "compute"),
            _counter("memory", "memory rate", p, p.bandwidth_share, memory, decides == "memory" or decides == "implementation" and p.bound == "memory"),
        ),
    ]  # fmt: skip
    for name, box, value in names:
        middle = box.y + box.h / 2 + 4
        short = name if wide else {"this GPU": "GPU", "all, mean": "mean"}.get(name, name)
        marks.append(text(f"lane-{name}", left - 8, middle, short, "ink", "small", "end"))
        at, limit = middle, ""
        if name in counted:  # the share next to the height of its fill, the limit next to its line
            limit = units.percent(cost.NEAR_ROOF, 0)
            ends = [box.bottom - box.h * share for share in (counted[name], cost.NEAR_ROOF)]
            if wide:  # side by side, each at its own height
                at, low = (min(y + 4, box.bottom - 2) for y in ends)
            else:
                at, low = (min(y + 4, box.bottom - 2) for y in spread(ends, 13))
        elif box is ranks:
            limit, at, low = f"{'max ' if wide else ''}{units.times(cost.SKEW)}", middle - 6, middle + 7
        marks.append(text(f"value-{name}", box.right + 8, at, value, "ink", "small", bold=True))
        if limit:
            beside = 40 if wide and name in counted else 8
            marks.append(text(f"limit-{name}", box.right + beside, low, limit, "muted", "small"))
    if p.right:
        marks += _proof(p, gpu, ranks, memory if p.bound == "memory" else flops)
    said, ink = _verdict(r)
    y = memory.bottom + 26
    room = 716 if wide else 336
    lines = wrap(said, room / 1.12, "body")
    marks += [
        text("said" if not i else f"said{i}", 0, y + 17 * i, words, ink, bold=True)
        for i, words in enumerate(lines)
    ]
    ends = (20, 92, 194, 294, 394, 494, 596, 684) if wide else (10, 48, 88, 124, 164, 212, 266, 318)
    track = y + (24 if wide else 44)
    marks += _suspects(p, dict(zip(ANSWERS, ends, strict=True)), track, wide)
    if p.right:
        words = f"Cure: {', then '.join(p.path)}."
        low = track + (62 if wide else 80)
        marks += [
            text(f"path{i}", 0, low + 16 * i, one, "muted", "small")
            for i, one in enumerate(wrap(words, room, "small"))
        ]
    return marks


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
                "first yes: {waits:input, gaps, rank, NCCL}, then the {roofs}",
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
    ("overhead", "waiting for input"),
    ("idle", "no kernel"),
    ("network", "NCCL alone"),
    ("useful", "roof used"),
    ("limit line", "70% of it: near"),
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
        "Case 1": {},
        "Case 1, solved": {"decoder": "launches"},
        "A tempting suspect": {"case": "one hot expert", "decoder": "launches", "experts": "communication"},
        "No wait at all": {"case": "a GEMM of width 4097", "decoder": "launches", "wide_gemm": "implementation"},
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

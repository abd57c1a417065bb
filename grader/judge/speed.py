"""Judge speed on a GPU, paired with the baseline, in a process that only ever sees IR."""

import time

from grader.bench import calibration, gpu
from grader.bench.host import Broken
from grader.bench.protocol import Timed, TimeRequest
from grader.judge import statistics
from grader.judge.diagnose import differs
from grader.judge.failed import Failed, Unclear
from grader.judge.kernel_evidence import TIMED, KernelEvidence
from grader.judge.on_gpu import TILES, OnGpu, misbehaves, outputs
from grader.judge.record import PartResult
from grader.questions import Part, samples
from kernels.machines import MACHINES

ROUNDS, AGREE = 3, 2
PAUSES = (0, 2, 10)  # seconds before a further round, by how many were too unsteady
BEATS_PHYSICS = 0.9
SAMPLED = 501


def judge(evidence: KernelEvidence, part: Part, result: PartResult) -> None:
    bar = evidence.question.speed
    result.evidence = f"paired timing on {gpu.name()} against {bar.bar}"
    ladder = "".join(f"; {share:.0%} of them to {limit:.3f}" for limit, share in bar.steps)
    last = bar.steps[-1][0] if bar.steps else bar.none
    result.asked = f"at most {bar.full:.3f} times the time of {bar.bar} on the same GPU{ladder}; no points from {last:.3f}"
    evidence.settle()
    try:
        _timed(evidence, evidence.on_gpu, part, result)
    except Broken as broken:
        raise Failed(f"the kernel {broken}", TILES) from None


def _timed(evidence: KernelEvidence, side: OnGpu, part: Part, result: PartResult) -> None:
    bar = evidence.question.speed
    inputs, placed = side.timed_inputs()
    rounds, unsteady = [], 0
    for number in range(ROUNDS):
        if number:
            side.bench.stop()  # a fresh process, and the GPU to others meanwhile
            time.sleep(PAUSES[unsteady])
        evidence.say(f"timing on {gpu.name()} against {bar.bar}" + f", again ({number + 1})" * bool(number))
        named = {"bar": bar.bar, "bars": f"grader.topics.{evidence.question.slug}.bar"}
        timed, found = side.ask(TimeRequest, TIMED, placed, **named, quads=statistics.QUADS, repeat=2)
        trouble = misbehaves(timed, evidence.question) or sampled(evidence, inputs, outputs(placed, found))
        if trouble:
            raise Failed(f"at the timed size: {trouble}", "the sizes of the timed case")
        measured = statistics.ratio(timed.quads)
        result.facts = measurement(timed, measured, bar)
        if not measured.usable:
            unsteady += 1
            continue
        if result.facts["beats_physics"]:
            raise Unclear(f"{result.facts['beats_physics']}; a person should look")
        rounds.append((measured, result.facts))
        if decided([m for m, _ in rounds], bar.full):
            break
    _score(part, bar, rounds, result)


def decided(rounds: list[statistics.Ratio], full: float) -> bool:
    """Return whether the answer was clearly fast enough once, or clearly too slow in two processes."""
    return rounds[-1].high <= full or sum(m.low > full for m in rounds) >= AGREE


def sampled(evidence: KernelEvidence, inputs: dict, got: dict) -> str:
    """Return an empty text where the timed case's outputs equal the reference in every drawn row."""
    question = evidence.question
    picked = samples.of(question)(question, inputs, question.speed.case, evidence.rng(SAMPLED))
    for some, case, places in picked:
        want = question.reference(some, case)
        there = {name: got[name][place] for name, place in places.items()}
        if trouble := differs(question, some, case, there, want)[0]:
            return f"among the rows drawn, {trouble}"
    return ""


def _score(part: Part, bar, rounds: list, result: PartResult) -> None:
    """Score a speed. It is too slow only if two rounds agree, by the better round's median. A limit inside the
    interval loses no points."""
    slow = [(m, known) for m, known in rounds if m.low > bar.full]
    if not rounds or len(slow) == len(rounds) < AGREE:
        raise Unclear("this GPU was too unsteady to time on; run the check again")
    agreed = len(slow) >= AGREE
    measured, result.facts = min(slow if agreed else rounds, key=lambda one: one[0].median)
    sentence = (
        f"{measured.median:.3f} times the bar's time (99% interval {measured.low:.3f} to {measured.high:.3f}, {measured.quads} quads"
        f"{', agreed by a second run' if agreed else ''}); full points at {bar.full:.3f}, none from {bar.none:.3f}"
    )
    if not agreed:
        result.came = sentence
        return
    points = round(
        part.points * statistics.share_of_points(measured.median, bar.full, bar.none, bar.steps), 2
    )
    raise Failed(
        sentence,
        "tile sizes, num_warps, num_stages and the order of the programs",
        points=points,
        **result.facts,
    )


def measurement(timed: Timed, measured, bar) -> dict:
    answers = sorted((a1 + a2) / 2 for a1, a2, *_ in timed.quads)
    peers = sorted((b1 + b2) / 2 for *_, b1, b2 in timed.quads)
    mine, theirs = answers[len(answers) // 2], peers[len(peers) // 2]
    found = {
        "seconds": mine,
        "bar_seconds": theirs,
        "bar": bar.bar,
        "ratio": measured.median,
        "low": measured.low,
        "high": measured.high,
        "gpu": timed.gpu,
        "torch": timed.torch,
        "triton": timed.triton,
        "sizes": dict(bar.case.sizes),
        "beats_physics": "",
    }
    if bar.bound:
        flops, moved = bar.bound(bar.case)
        found |= {"flops": flops, "bytes": moved}
        floor, source = fastest_possible(timed.gpu, bar.case.dtype, flops, moved)
        if mine < BEATS_PHYSICS * floor:
            found["beats_physics"] = (
                f"{mine * 1e6:.1f} us is below the {floor * 1e6:.1f} us that {source} allows"
            )
    return found


def fastest_possible(name: str, dtype: str, flops: float, moved: float) -> tuple[float, str]:
    """Return a time in seconds that nothing can beat, from the datasheet if the chip is known, else from calibration."""
    known = next((m for m in MACHINES.values() if m.name in name and dtype in m.flops), None)
    if known:
        return known.time(flops, moved, dtype), f"{known.name}'s datasheet"
    measured = calibration.load(name)
    if measured and dtype in measured["ceilings"]:
        ceilings = measured["ceilings"]
        return max(flops / ceilings[dtype], moved / ceilings["copy"]), "this machine's calibration"
    return 0.0, ""

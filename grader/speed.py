"""Speed on a GPU: paired against the bar, in a process that only ever sees IR."""

import fcntl
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from grader import calibrate, gpu, statistics
from grader.compare import difference
from grader.evidence import COMPILE_LIMITS, Evidence
from grader.jail import frames
from grader.jailer import JailTrouble, jail
from grader.questions import Case, Part
from grader.record import INCONCLUSIVE, PartResult
from grader.sentences import fail, tell
from kernels.machines import MACHINES

BENCH_S = 240
ROUNDS = 3
PAUSES = (0, 2, 10)
TIMED = 500
BEATS_PHYSICS = 0.9


@contextmanager
def gpu_lock():
    """One bench at a time on this machine."""
    with open(Path(tempfile.gettempdir()) / f"tile-by-tile-gpu-{os.getuid()}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def request(evidence: Evidence, case: Case, purpose: int, **more) -> tuple[dict, dict, dict, list]:
    """The compiled answer on one case as the bench wants it, with its input bytes."""
    inputs, placed = evidence.draw(case, purpose)
    target = gpu_target()
    task = {**evidence.kernel_task(case, placed), "targets": [target], "sm_count": gpu_sms()}
    outcome = jail("compile", evidence.level).ask(task, {}, COMPILE_LIMITS)
    if outcome.error:
        raise Broken(f"does not compile for sm_{target}: {outcome.error['message']}")
    plan, compiled = outcome.header["plan"], outcome.header["compiled"]
    steps = [
        {
            "ir": text,
            "arguments": report["arguments"],
            "grid": step["grid"],
            "num_warps": step["num_warps"],
            "num_stages": step["num_stages"],
        }
        for step, report, text in zip(plan["steps"], compiled, outcome.header["ir"], strict=True)
    ]
    scalars = dict(case.sizes) | dict(case.scalars)
    tensors = [{**p.as_task(), "storage_bytes": int(p.storage.nbytes)} for p in placed]
    for t in tensors:
        scalars |= {f"stride_{t['name']}{axis}": s for axis, s in zip(t["axes"], t["strides"], strict=True)}
    for name, s in plan["scratch"].items():
        steps_of = np.cumprod([1, *reversed(s["shape"][1:])])[::-1]
        scalars |= {f"stride_{name}{i}": int(v) for i, v in enumerate(steps_of)}
    header = {"steps": steps, "scalars": scalars, "tensors": tensors, "scratch": plan["scratch"], **more}
    arrays = {p.spec.name: p.storage for p in placed if p.spec.role != "out"}
    return header, arrays, inputs, placed


class Broken(Exception):
    """The answer's own fault on the GPU, as a sentence."""


def ask(requests: list[tuple[dict, dict]]) -> Iterator[tuple[dict, dict]]:
    """One fresh bench process for all of an answer's cases; yields its answers in order.

    Its trouble is ours, unless it says that the answer could not run.
    """
    nonces = [secrets.token_hex(16) for _ in requests]
    blocks = [frames.pack({**header, "nonce": n}, a) for (header, a), n in zip(requests, nonces, strict=True)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    environment.pop("TRITON_INTERPRET", None)
    command = [sys.executable, "-m", "grader.bench.main"]
    everything = b"".join(frames.LENGTH.pack(len(block)) + block for block in blocks)
    try:
        with gpu_lock():
            run = subprocess.run(
                command, input=everything, capture_output=True, timeout=BENCH_S, env=environment
            )
    except subprocess.TimeoutExpired:
        raise Broken(f"was still running on the GPU after {BENCH_S} s and was stopped") from None
    answered = frames.split(run.stdout)
    for block, nonce in zip(answered, nonces, strict=False):
        report, found = frames.unpack(block)
        if report.get("nonce") != nonce:
            raise JailTrouble("the bench answered another request")
        if "failed" in report:
            raise Broken(f"does not run on this GPU: {report['failed']}")
        yield report, found
    if len(answered) < len(nonces):
        raise _broke_off(run.stderr.decode(errors="replace").strip()[-400:])


def _broke_off(said: str) -> Exception:
    if "illegal memory access" in said or "misaligned address" in said:
        return Broken("reached memory outside its tensors on the GPU (illegal memory access)")
    return JailTrouble(f"the bench broke off: {said}")


def check_values(
    evidence: Evidence, case: Case, report: dict, found: dict, inputs: dict, placed: list
) -> str:
    """Empty where what the GPU wrote equals the reference."""
    if report["changed"]:
        return f"{report['changed'][0]} was written"
    if report.get("repeats") is False and evidence.question.repeatable:
        return "the same inputs gave other bits on a repeat: two programs race"
    if report.get("differing"):
        return "a timed launch gave other results than the judged one"
    want = evidence.question.reference(inputs, case)
    if evidence.question.agree:
        views = {
            p.spec.name: p.view(found[p.spec.name].view(p.storage.dtype))
            for p in placed
            if p.spec.name in want
        }
        return evidence.question.agree(inputs, case, views, want)
    allowed = evidence.question.tolerance(inputs, case, want)
    for name, target in want.items():
        spot = next(p for p in placed if p.spec.name == name)
        got = spot.view(found[name].view(spot.storage.dtype)).astype(np.float64)
        worst = difference(name, got, target, allowed[name])
        if worst:
            return worst.sentence()
    return ""


def judge(evidence: Evidence, part: Part, result: PartResult) -> PartResult:
    result.evidence = f"paired timing on {gpu.name()} against {evidence.question.speed.bar}"
    if not _right_on_gpu(evidence, result):
        return result
    try:
        return _timed(evidence, part, result)
    except Broken as broken:
        return fail(result, f"the kernel {broken}", TILES)


TILES = "the sizes of its tiles, num_warps and num_stages"


def _right_on_gpu(evidence: Evidence, result: PartResult) -> bool:
    """Every case once more, on the GPU; False with what went wrong in `result`."""
    public = len(evidence.question.public)
    cases, asked, at = [*evidence.question.public, *evidence.hidden_cases()], [], 0
    try:
        for at, case in enumerate(cases):
            asked.append(request(evidence, case, TIMED + 1 + at, repeat=3))
        at, answers = 0, ask([(header, arrays) for header, arrays, _, _ in asked])
        for at in range(len(cases)):
            _, _, inputs, placed = asked[at]
            trouble = check_values(evidence, cases[at], *next(answers), inputs, placed)
            if trouble:
                fail(result, f"on the GPU: {trouble}", "what the interpreter does in order and a GPU at once")
                break
        else:
            return True
    except Broken as broken:
        fail(result, f"the kernel {broken}", TILES, sort="it does not run")
    if at >= public:
        tell(result, cases[at].kind)
    return False


def _timed(evidence: Evidence, part: Part, result: PartResult) -> PartResult:
    bar = evidence.question.speed
    for pause in PAUSES[:ROUNDS]:
        time.sleep(pause)
        header, arrays, inputs, placed = request(
            evidence, bar.case, TIMED, bar=bar.bar, quads=statistics.QUADS, repeat=2
        )
        ((report, found),) = ask([(header, arrays)])
        trouble = check_values(evidence, bar.case, report, found, inputs, placed)
        if trouble:
            return fail(result, f"at the timed size: {trouble}", "the sizes of the timed case")
        measured = statistics.ratio(report["quads"])
        result.facts = facts(report, measured, bar)
        if not measured.usable:
            continue
        if result.facts["beats_physics"]:
            result.state, result.points = INCONCLUSIVE, 0.0
            result.came = f"{result.facts['beats_physics']}; a person should look"
            return result
        return _score(part, bar, measured, result)
    result.state, result.points, result.came = (
        INCONCLUSIVE,
        0.0,
        "this GPU was too unsteady to time on; run the check again",
    )
    return result


def _score(part: Part, bar, measured, result: PartResult) -> PartResult:
    """Full points when even the slow end of the interval is fast enough; the ramp uses the median."""
    share = (
        1.0 if measured.low <= bar.full else statistics.share_of_points(measured.median, bar.full, bar.none)
    )
    sentence = (
        f"{measured.median:.3f} times the bar's time (99% interval {measured.low:.3f} to {measured.high:.3f}, {measured.quads} quads); "
        f"full points at {bar.full:.3f}, none from {bar.none:.3f}"
    )
    if share == 1.0:
        result.came = sentence
        return result
    result = fail(
        result, sentence, "tile sizes, num_warps, num_stages and the order of the programs", **result.facts
    )
    result.points = round(part.points * share, 2)
    return result


def facts(report: dict, measured, bar) -> dict:
    answers = sorted((a1 + a2) / 2 for a1, a2, *_ in report["quads"])
    peers = sorted((b1 + b2) / 2 for *_, b1, b2 in report["quads"])
    mine, theirs = answers[len(answers) // 2], peers[len(peers) // 2]
    found = {
        "seconds": mine, "bar_seconds": theirs, "bar": bar.bar, "ratio": measured.median, "low": measured.low, "high": measured.high,
        "gpu": report["gpu"], "torch": report["torch"], "triton": report["triton"], "sizes": dict(bar.case.sizes), "beats_physics": "",
    }  # fmt: skip
    if bar.bound:
        flops, moved = bar.bound(bar.case)
        found |= {"flops": flops, "bytes": moved}
        floor, source = fastest_possible(report["gpu"], bar.case.dtype, flops, moved)
        if mine < BEATS_PHYSICS * floor:
            found["beats_physics"] = (
                f"{mine * 1e6:.1f} us is below the {floor * 1e6:.1f} us that {source} allows"
            )
    return found


def fastest_possible(name: str, dtype: str, flops: float, moved: float) -> tuple[float, str]:
    """Seconds that nothing can beat: by the datasheet where it is known, else by what calibration reached."""
    known = next((m for m in MACHINES.values() if m.name in name and dtype in m.flops), None)
    if known:
        return known.time(flops, moved, dtype), f"{known.name}'s datasheet"
    measured = calibrate.load(name)
    if measured and dtype in measured["ceilings"]:
        ceilings = measured["ceilings"]
        return max(flops / ceilings[dtype], moved / ceilings["copy"]), "this machine's calibration"
    return 0.0, ""


def gpu_facts() -> tuple[int, int]:
    """Capability and multiprocessors of the first GPU, asked of a process of its own."""
    global _facts
    if _facts is None:
        code = "import torch; p = torch.cuda.get_device_properties(0); print(p.major * 10 + p.minor, p.multi_processor_count)"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        if run.returncode:
            raise JailTrouble(
                "gpu mode needs an NVIDIA GPU that torch can see; `python -m grader doctor` says what is missing"
            )
        capability, sms = map(int, run.stdout.split())
        _facts = capability, sms
    return _facts


_facts: tuple[int, int] | None = None


def gpu_target() -> int:
    return gpu_facts()[0]


def gpu_sms() -> int:
    return gpu_facts()[1]

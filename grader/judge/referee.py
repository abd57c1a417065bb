"""Turn (answer, question, mode, seed) into a Record (grade_one). Every grade comes through here."""

import hashlib
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from grader import box
from grader.bench import gpu
from grader.box.warm import JailTrouble
from grader.judge import answer, fingerprint, parts, record
from grader.judge.evidence import Evidence, say_nothing
from grader.judge.failed import Refusal
from grader.judge.record import FAIL, INCONCLUSIVE, OPEN, PASS, REFUSED, PartResult, Record
from grader.questions import Question

MODES = ("cpu", "gpu")


def grade_one(
    source: str,
    question: Question,
    *,
    mode: str = "cpu",
    seed: int | None = None,
    epoch: str = "",
    eager: bool = True,
    say: Callable[[str], None] = say_nothing,
) -> Record:
    """Judge one answer. A wrong answer fails, a forbidden one is refused, trouble of our own is inconclusive.

    `eager` compiles while the machine runs, which is quicker if the answer is right. `say` receives progress.
    """
    if mode not in MODES:
        raise ValueError(f"mode must be cpu or gpu, got {mode!r}")
    started = time.monotonic()
    verdict = Record(
        question.id, PASS, 0.0, question.points, mode, versions=record.versions(), machine=machine(mode)
    )
    verdict.date = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        text = answer.normalise(source)
        verdict.answer = answer.digest(text)
        verdict.key = record.key(verdict.answer, specification(question), mode, verdict.machine, epoch)
        answer.require_parses(text)
        seed = secrets.randbits(128) if seed is None else seed  # drawn only now that the answer is fixed
        if epoch:  # what feedback says of one answer's cases tells nothing of another's
            seed = salted(seed, verdict.answer)
        verdict.seed = f"{seed:032x}"
        verdict.level = int(box.best_level())
        _judge(verdict, parts.gather(question, text, seed, mode, say=say, eager=eager))
    except (answer.Refused, Refusal) as refusal:
        verdict.points, verdict.parts = 0.0, []
        verdict.verdict, verdict.message, verdict.line = REFUSED, str(refusal), refusal.line
    except (JailTrouble, gpu.NoGpu) as trouble:
        verdict.verdict, verdict.message = INCONCLUSIVE, str(trouble)
    except Exception as error:  # our own mistake must never cost a learner points in silence
        verdict.verdict, verdict.message = (
            INCONCLUSIVE,
            f"the grader itself stumbled: {type(error).__name__}: {error}",
        )
    verdict.seconds = round(time.monotonic() - started, 3)
    return verdict


def salted(seed: int, digest: str) -> int:
    """Return the seed of one answer in a round. Equal answers meet the same hidden cases, others their own."""
    drawn = hashlib.sha256(f"{seed:032x} {digest}".encode()).digest()
    return int.from_bytes(drawn[:16], "big")


def _judge(verdict: Record, evidence: Evidence) -> None:
    try:
        if evidence.eager:
            evidence.begin()
        _part_by_part(verdict, evidence)
    finally:
        evidence.end()
    verdict.printed = evidence.printed
    verdict.points = sum(min(max(float(p.points), 0.0), p.of) for p in verdict.parts)
    states = [p.state for p in verdict.parts]
    verdict.verdict = next((one for one in (FAIL, INCONCLUSIVE, OPEN) if one in states), PASS)


def _part_by_part(verdict: Record, evidence: Evidence) -> None:
    """Judge part by part, and stop once values are wrong, because nothing after them is worth looking at."""
    stopped = False
    for part in evidence.question.parts:
        if stopped:
            later = "judged once the values are right"
            verdict.parts.append(PartResult(part.name, 0.0, part.points, state="not reached", asked=later))
            continue
        result = parts.judge(evidence, part)
        verdict.parts.append(result)
        stopped = result.state != PASS and part.judge in parts.OF_VALUES


def specification(question: Question) -> str:
    """Return the basis of a question's verdict, its parts without their points and all code that judges them."""
    parts = tuple(replace(part, points=0) for part in question.parts)
    return repr((question.id, parts, fingerprint.code_of(question.id)))


def default_mode() -> str:
    """Return "gpu" where an NVIDIA GPU that Triton supports is there, unless GRADER_MODE says otherwise."""
    asked = os.environ.get("GRADER_MODE")
    if asked:
        return asked
    return "gpu" if gpu.name() else "cpu"


def machine(mode: str) -> str:
    if mode == "cpu":
        return "cpu"
    return gpu.name() or "no gpu"

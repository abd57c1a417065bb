"""Choose the judge of each part. An error that the judge raises becomes the part's result."""

from collections.abc import Callable
from dataclasses import dataclass

from grader.judge import (
    budgets_at_scale,
    compiled,
    every_case,
    gap,
    kernel_values,
    numpy_values,
    on_gpu,
    rank_values,
    speed,
    traffic,
)
from grader.judge.evidence import Evidence
from grader.judge.failed import Failed, Unclear, Waits
from grader.judge.kernel_evidence import KernelEvidence
from grader.judge.numpy_evidence import NumpyEvidence
from grader.judge.ranks_evidence import RanksEvidence
from grader.judge.record import FAIL, INCONCLUSIVE, OPEN, PartResult
from grader.questions import KernelQuestion, NumpyQuestion, Part, Question, RanksQuestion


def traffic_everywhere(evidence: KernelEvidence, part: Part, result: PartResult) -> None:
    """The metered case, where everything is counted, what drawn programs of the compiled one spend, and all other cases."""
    traffic.judge(evidence, part, result)
    budgets_at_scale.judge(evidence, part)
    every_case.judge(evidence, part)


def speed_everywhere(evidence: KernelEvidence, part: Part, result: PartResult) -> None:
    """Judge the clock at one size, and in all cases the counts of a machine without a clock."""
    if part.name in evidence.question.budgets:
        every_case.judge(evidence, part)
    speed.judge(evidence, part, result)


JUDGES = {
    "values": kernel_values.judge,
    "traffic": traffic_everywhere,
    "compiled": compiled.judge,
    "speed": speed_everywhere,
    "gap": gap.judge,
    "calls": numpy_values.judge,
    "ranks": rank_values.judge_values,
    "bytes sent": rank_values.judge_bytes,
    "exchanges": rank_values.judge_exchanges,
    "busiest": rank_values.judge_busiest,
}
OF_VALUES = ("values", "calls", "ranks")  # once such a part is lost, the later parts aren't judged


@dataclass(frozen=True)
class Kind:
    """Describe a kind of question, by the way its evidence is gathered and the judge that a GPU adds."""

    evidence: type[Evidence]
    on_gpu: Callable | None = None


KINDS = {
    NumpyQuestion: Kind(NumpyEvidence),
    KernelQuestion: Kind(KernelEvidence, on_gpu.OnGpu),
    RanksQuestion: Kind(RanksEvidence),
}


def gather(question: Question, source: str, seed: int, mode: str = "cpu", **more) -> Evidence:
    kind = KINDS[type(question)]
    evidence = kind.evidence(question, source, seed, mode, **more)
    if mode == "gpu" and kind.on_gpu:
        evidence.on_gpu = kind.on_gpu(evidence)
    return evidence


def judge(evidence: Evidence, part: Part) -> PartResult:
    question = evidence.question
    result = PartResult(part.name, part.points, part.points, asked=question.asks, look=question.where)
    try:
        JUDGES[part.judged_by(evidence.mode)](evidence, part, result)
    except Failed as failed:
        result.state, result.points, result.came = FAIL, failed.points, failed.came
        result.look, result.told = failed.look or result.look, failed.told
        result.asked = failed.asked or result.asked
        result.facts |= failed.facts
    except Unclear as unclear:
        result.state, result.points, result.came = INCONCLUSIVE, 0.0, str(unclear)
    except Waits as waits:
        result.state, result.points, result.came = OPEN, 0.0, str(waits)
    return result

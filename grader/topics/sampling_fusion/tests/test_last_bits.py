"""A search for a threshold that leaves out a bit is wrong in the rows of neighbouring logits, in every check."""

import pytest

from grader import questions
from grader.judge.diagnose import judge_case
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import HIDDEN, KernelEvidence
from grader.proofs.right import edited, right
from grader.topics.sampling_fusion.shared_rows import A_BIT_APART

QUESTION = questions.find("sampling_fusion.filtered_draw")
OF_ALL = "    for _ in range(32):\n        middle{} ="


def judge(answer: str, seed: int) -> None:
    evidence = KernelEvidence(QUESTION, answer, seed)
    case = next(case for case in evidence.known.values() if case.values == A_BIT_APART and not case.crossed)
    evidence.cases = {HIDDEN: case}
    judge_case(QUESTION, evidence.run(HIDDEN))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "edits",
    [
        [(OF_ALL.format(""), OF_ALL.format("").replace("32", "31"))],
        [(OF_ALL.format(2), OF_ALL.format(2).replace("32", "31"))],
        [
            (OF_ALL.format(2), OF_ALL.format(2).replace("32", "31")),
            ("edge = keep & (key == high2)", "edge = keep & (key <= high2) & (key >= low2)"),
        ],
    ],
    ids=["top-k", "top-p", "top-p, with all that is left as equals"],
)
def test_a_search_without_its_last_bit_fails(edits, seed):
    with pytest.raises(Failed, match="wanted"):
        judge(edited(right(QUESTION.id), edits), seed)


def test_a_search_of_all_bits_passes():
    judge(right(QUESTION.id), 1)

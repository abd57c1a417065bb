"""Loads and stores that move few bytes by one instruction although their lanes are neighbours."""

import pytest

from grader import questions
from grader.judge import narrow
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import KernelEvidence
from grader.proofs.right import edited, right

NORM, MOVED = "next_bottleneck.residual_norm", "roofline.differences"


def evidence(question: str, *changes: tuple[str, str]) -> KernelEvidence:
    return KernelEvidence(questions.find(question), edited(right(question), changes), 5)


@pytest.mark.parametrize(
    "was, becomes, said",
    [
        ("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK) ^ 1", "line 9 loads x 2 bytes at a time"),
        ("tl.arange(0, BLOCK)", "BLOCK - 1 - tl.arange(0, BLOCK)", "line 9 loads x 2 bytes at a time"),
        ("offs < N", "(offs ^ 1) < N", "line 9 loads x 2 bytes at a time"),
        ("offs * stride_yn, y", "(offs + (N >> 31)) * stride_yn, y", "line 16 stores y 2 bytes at a time"),
    ],
)
def test_neighbours_that_the_compiler_does_not_see_fail(was, becomes, said):
    with pytest.raises(Failed, match=f"{said}, though its lanes are neighbours in memory") as failed:
        narrow.judge(evidence(NORM, (was, becomes)))
    assert "N = " not in failed.value.came  # the case is hidden


def test_neighbours_that_the_compiler_sees_pass():
    narrow.judge(evidence(NORM))


def test_addresses_that_begin_at_an_odd_place_pass():
    """The number before each can't be loaded in twos or fours."""
    asked = evidence(MOVED)
    assert [one.line for step in asked.steps(narrow.ALIGNED) for one in narrow.narrow(asked, step)] == [7]
    narrow.judge(asked)


@pytest.mark.parametrize("how", ["volatile=True", 'cache_modifier=".cv"', "volatile=BLOCK > 8192"])
def test_an_input_that_is_loaded_past_the_caches_fails(how):
    with pytest.raises(Failed, match="line 9 loads x past the caches"):
        narrow.judge_uncached(
            evidence(NORM, ("offs * stride_xn, mask=mask", f"offs * stride_xn, {how}, mask=mask"))
        )
    narrow.judge_uncached(evidence(NORM))

"""What honest answers of plain numpy may return, and what a wrong one is told: nothing of kernels, and no chance."""

import re

import pytest

from grader import questions
from grader.judge import referee
from grader.judge.record import FAIL
from grader.judge.where import tells
from grader.proofs.right import edited, right
from grader.questions import Call

DISPATCH = "quantization_layouts.dispatch"
FASTEST = """
def dispatch(rows, measured, gemv_rows, dense_kept):
    known = sorted({{m for m, _, _ in measured}})
    at = {at}
    may = [r for r in measured if r[0] == at and (r[1] != "gemv" or rows <= gemv_rows) and (r[1] != "dense" or dense_kept)]
    return {found}
"""
AT = "next((m for m in known if m >= rows), known[-1])"


def judge(question: str, source: str):
    return referee.grade_one(source, questions.find(question), seed=2026, eager=False)


def test_a_name_out_of_an_array_is_a_name():
    found = "np.array([r[1] for r in may])[np.argmin([r[2] for r in may])]"
    assert judge(DISPATCH, FASTEST.format(at=AT, found=found)).passed


SAID = {
    "a pair": (AT, "min((r[2], r[1]) for r in may)", "dispatch must be the text 'gemv', got a sequence of 2"),
    "no number": (AT, "0", "dispatch must be the text 'gemv', got a single number"),
    "nothing found": (
        "next(m for m in known if m >= rows)",
        "min(may, key=lambda r: r[2])[1]",
        "StopIteration: next() found nothing",
    ),
    "an assert": (
        AT + "; assert at >= rows",
        "min(may, key=lambda r: r[2])[1]",
        "AssertionError: what the assert",
    ),
}


@pytest.mark.parametrize("what", SAID)
def test_plain_python_is_told_in_its_own_words(what):
    at, found, said = SAID[what]
    verdict = judge(DISPATCH, FASTEST.format(at=at, found=found))
    assert verdict.verdict == FAIL and said in str(verdict), str(verdict)
    assert "Triton" not in str(verdict) and "kernel" not in verdict.parts[0].look


def test_a_case_of_nothing_is_no_contrast():
    assert not tells(Call(([], [], []))) and tells(Call(([], [1]))) and tells(Call((3, "gemv")))
    source = "def combine(rows, inv_permuted_idx, topk_weights):\n    return rows[inv_permuted_idx].sum(1)\n"
    assert "combine([], [], []) is right" not in str(judge("moe_routing.combine", source))


def test_words_of_bits_are_whole_numbers():
    question = "quantization_layouts.pack_words"
    source = (
        "def pack_words(codes):\n    c = np.asarray(codes).reshape(codes.shape[0], -1, 8).astype({kind})\n"
        "    return sum(c[:, :, i] * {kind}(16) ** i for i in range(8))\n"
    )
    assert judge(question, source.format(kind="np.int64")).passed
    verdict = judge(question, source.format(kind="np.float64"))
    assert verdict.verdict == FAIL and "must be whole numbers" in str(verdict), str(verdict)


GROUP = ("tl.minimum(tiles_m - first, GROUP_M)", "GROUP_M")


def test_a_grid_that_is_large_enough_is_not_blamed():
    source = edited(right("gemm_tiling.tiled_gemm"), [GROUP])
    verdict = judge("gemm_tiling.tiled_gemm", source)
    assert "never written" in verdict.parts[0].came and "in place of" not in verdict.parts[0].look, str(
        verdict
    )


OF_KERNELS = ("mask", "program", "tile", "lane", "block")


@pytest.mark.parametrize(
    "question", [one for one in questions.load().values() if one.kind != "kernel"], ids=lambda one: one.id
)
def test_plain_python_hears_a_kernels_word_only_if_the_question_says_it(question):
    """A question about tiles speaks of tiles; nothing else does."""
    own = f"{question.asks} {' '.join(question.hints)}".lower()
    for mistake in question.mistakes:
        words = set(re.findall(r"[a-z]+", mistake.sentence.lower()))
        strange = {word for word in OF_KERNELS if word not in own and {word, f"{word}s", f"{word}ed"} & words}
        assert not strange, f"{mistake.name}: {mistake.sentence}"

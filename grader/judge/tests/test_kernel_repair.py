"""A kernel's slip is named by its line and its part, once a change of it was tried; a change by chance is not."""

import pytest

from grader import questions
from grader.judge import kernel_repair, referee
from grader.judge.kernel_changes import changes
from grader.proofs.right import edited, right

TURNED, MINUS, OUTER = (f"roofline.{name}" for name in ("turned", "subtracted", "outer_difference"))
OWN = "quantization_layouts.own_layout"
SEED = 2026
SLIPS = {
    "a size for another": (TURNED, ("offs_n * M", "offs_n * N"), "another name than `N` in `offs_n * N`"),
    "a mask of the other axis": (
        OUTER,
        ("mask=offs_n < N", "mask=offs_n < M, other=0.0"),
        "another name than `M` in",
    ),
    "or for and": (MINUS, ("(offs_m < M) & (", "(offs_m < M) | ("), "another operator in `(offs_m < M) | "),
}


ALL_CHANGES = 150


@pytest.fixture(autouse=True)
def all_changes(monkeypatch):
    monkeypatch.setattr(kernel_repair, "MOST_CHANGES", ALL_CHANGES)


def answer(question: str, *edits: tuple[str, str]) -> str:
    """Return the right answer with edits, without the marks of a solution."""
    lines = edited(right(question), list(edits)).splitlines()
    return "\n".join(line for line in lines if "### " not in line)


def said(question: str, source: str) -> str:
    verdict = referee.grade_one(source, questions.find(question), mode="cpu", seed=SEED)
    return next(part.look for part in verdict.parts if part.state == "FAIL")


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_named_but_not_its_cure(slip):
    question, edit, words = SLIPS[slip]
    source = answer(question, edit)
    line = next(n for n, text in enumerate(source.splitlines(), 1) if edit[1] in text)
    look = said(question, source)
    assert look.startswith(f"line {line} of the cell: {words}") and "cases right that were tried" in look
    assert edit[0] not in look


BY_CHANCE = [
    ("tl.program_id(0) * BLOCK_M + tl", "tl.program_id(0) // tl.cdiv(M, BLOCK_M) * BLOCK_M + tl"),
    ("tl.program_id(1) * BLOCK_N + tl", "tl.program_id(0) % tl.cdiv(M, BLOCK_M) * BLOCK_N + tl"),
    ("(triton.cdiv(p.M, 16), triton.cdiv(p.N, 32))", "(triton.cdiv(p.M, 16) * triton.cdiv(p.N, 32),)"),
]


def test_a_change_that_cures_the_public_cases_alone_is_not_named():
    """With a lesser number of tiles across than down, a wider block happens to cover the few public cases."""
    source = answer(MINUS, *BY_CHANCE)
    assert "makes all" not in said(MINUS, source)


def test_names_of_a_sort_come_before_operators_and_a_blamed_line_before_its_sources():
    found = [(one.line, one.words) for one in changes(answer(TURNED), {7})]
    assert found[0][0] == 7 and found[0][1].startswith("another name than")
    assert found.index((3, "another number than 0 in `tl.program_id(0)`")) > found.index(found[0])
    for line, words in found:
        assert "stride" not in words and line >= 3


STEPS = """@triton.jit
def outer_difference(a_ptr, b_ptr, y_ptr, M, N, ROWS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    b = tl.load(b_ptr + cols, mask=cols < N, other=0.0)
    first = tl.program_id(1) * ROWS
    for top in range(first, tl.minimum(first + ROWS, M), BLOCK_N):
        rows = top + tl.arange(0, BLOCK_M)
        a = tl.load(a_ptr + rows, mask=rows < M, other=0.0)
        y = a[:, None] - b[None, :]
        tl.store(y_ptr + rows[:, None] * N + cols[None, :], y, mask=(rows < M)[:, None] & (cols < N)[None, :])


def launch_outer_difference(p):
    constants = {"ROWS": 64, "BLOCK_M": 16, "BLOCK_N": 128}
    return {"steps": [{"kernel": outer_difference, "grid": (triton.cdiv(p.N, 128), triton.cdiv(p.M, 64)), "constexprs": constants}]}
"""


def test_a_step_is_to_blame_rather_than_the_only_use_of_a_width():
    assert said(OUTER, STEPS).startswith("line 6 of the cell: another name than `BLOCK_N` in `range(")


def test_a_launch_that_rounds_down_is_told_even_if_it_plans_no_program():
    source = answer(TURNED, ("triton.cdiv(p.M, 32)", "p.M // 32"))
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "p.M // 32" in text)
    told = said(TURNED, source)
    assert told.startswith(f"line {line} of the cell: another rounding of `p.M // 32`")
    assert told.endswith("so look there first if the plan is meant"), "a plan may keep away from it"


KERNEL = """@triton.jit
def k(x_ptr, part_ptr, y_ptr, N, K, stride_xn, stride_xk, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    l = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, K, GROUP):
        x = tl.load(x_ptr + n * stride_xn + start * stride_xk, mask=n < N, other=0)
        code = x >> 4 - start & 15
        new = tl.exp2(code.to(tl.float32))
        acc = (acc + code) * new
        l = l + tl.load(part_ptr + start // GROUP)
        l += tl.sum(code, 0)
    tl.store(y_ptr + n, acc / l, mask=n < N)
"""
LIKELY = {
    "sums scaled with their earlier part": (10, "other parentheses in `(acc + code) * new`"),
    "bits and sums without parentheses": (8, "other parentheses in `x >> 4 - start & 15`"),
    "a factor that the sum beside it has": (11, "a factor more beside `tl.load(part_ptr + start // GROUP)`"),
}


@pytest.mark.parametrize("slip", LIKELY)
def test_likely_slips_come_before_what_looks_right(slip):
    found = [(one.line, one.words) for one in changes(KERNEL, {13}, nearly_all=True)]
    own = found.index((7, "another name than `stride_xn` in `n * stride_xn`"))
    assert found.index(LIKELY[slip]) < min(50, own), found[:60]


def test_weights_that_are_packed_wrongly_are_told_by_the_line_that_packs(monkeypatch):
    monkeypatch.setattr(kernel_repair, "MOST_CHANGES", 0)
    monkeypatch.setattr(kernel_repair, "MOST_PACKINGS", 600)
    edit = ("(codes >> low, 1)", "(codes >> 2 & 1, 1)")
    look = said(OWN, answer(OWN, edit))
    assert look.startswith("line 4 of the cell: a name in place of 2"), look


def test_trying_ends_in_time(monkeypatch):
    monkeypatch.setattr(kernel_repair, "MOST_S", 0.05)
    assert "makes all" not in said(TURNED, answer(TURNED, SLIPS["a size for another"][1]))

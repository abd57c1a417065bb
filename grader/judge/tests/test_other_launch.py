"""What stands wrong in launch(p) is named by the launch that would be right; what stands wrong in a kernel never is."""

import pytest

from grader import questions, trial
from grader.judge import referee
from grader.judge.record import FAIL
from grader.proofs.right import edited, right

GEMM, SCALED, NORM = (
    "gemm_tiling.tiled_gemm",
    "gemm_tiling.block_scaled_gemm",
    "roofline.layernorm_gelu",
)
DECODE, GROUPED = "flash_attention.split_decode", "moe_routing.grouped_gemm"
SEED = 2026  # the same hidden cases every time: a red test is a change
SETTINGS, MINUS, OUTER, DOUBLED = (
    f"roofline.{name}" for name in ("tile_settings", "subtracted", "outer_difference", "doubled")
)
TWO_AXES = "(triton.cdiv(p.M, 16), triton.cdiv(p.N, 32))"

IN_LAUNCH = {
    "axes exchanged": (
        SETTINGS,
        ("(p.M // 128, p.N // 256)", "(p.N // 256, p.M // 128)"),
        "the grid in launch_tile_settings: the kernel asks for tl.program_id(0) and tl.program_id(1); with (2, 1) instead "
        "of (1, 2) this case is right",
    ),
    "an axis too many": (
        GEMM,
        ('"grid": (grid,)', '"grid": (triton.cdiv(p.M, BLOCK_M), triton.cdiv(p.N, BLOCK_N))'),
        "the grid in launch: the kernel asks for tl.program_id(0) alone; with (",
    ),
    "rows along an axis that nobody asks for": (
        NORM,
        ('"grid": (p.M,)', '"grid": (1, p.M)'),
        "the kernel asks for tl.program_id(0) alone; with (4,) instead of (1, 4) this case is right",
    ),
    "all tiles along one axis": (
        MINUS,
        (TWO_AXES, "(triton.cdiv(p.M, 16) * triton.cdiv(p.N, 32),)"),
        "with (2, 2) instead of (4, 1) this case is right",
    ),
    "an axis too few": (
        OUTER,
        (TWO_AXES, "(triton.cdiv(p.M, 16),)"),
        "but with (2, 1) there is one program along axis 1; with more of them this case is right",
    ),
    "one program too many": (
        DOUBLED,
        ("(p.N // 64,)", "(p.N // 64 + 1,)"),
        "with (1,) instead of (2,) this case is right",
    ),
    "rows that nothing is stored to": (
        GROUPED,
        ("(max(1, most_tiles(p)), ", "(p.E, "),
        "the grid in launch_gemm: the kernel asks for tl.program_id(0) and tl.program_id(1); with (",
    ),
    "a batch forgotten": (
        DECODE,
        ('"grid": (rows,)', '"grid": (p.H,)'),
        "with (16,) instead of (8,) this case is right",
    ),
    "a step shorter than a scale reaches": (
        SCALED,
        ('"BLOCK_K": 128', '"BLOCK_K": 64'),
        "the constants in launch_block_scaled: with BLOCK_K = 128 instead of 64 all public cases and 4 more are right",
    ),
    "a block that the grid was not made for": (
        DOUBLED,
        ('{"BLOCK": 64}', '{"BLOCK": 128}'),
        "the constants in launch_doubled: with BLOCK = 64 instead of 128 all public cases and 4 more are right",
    ),
}


def look(question: str, source: str) -> str:
    verdict = referee.grade_one(source, questions.find(question), seed=SEED, eager=False)
    assert verdict.verdict == FAIL and verdict.points == 0, str(verdict)
    return verdict.parts[0].look


@pytest.mark.parametrize("name", IN_LAUNCH)
def test_the_launch_that_would_be_right_is_said(name):
    question, edit, said = IN_LAUNCH[name]
    assert said in look(question, edited(right(question), [edit]))


def test_run_says_it_too():
    question, edit, said = IN_LAUNCH["an axis too few"]
    assert said in trial.run(edited(right(question), [edit]), 0, question=question).look


def test_an_id_that_is_never_used_is_said_and_no_constant_is_blamed():
    cell = right(DOUBLED).replace(
        "offs = tl.program_id(0) * BLOCK + tl.arange", "pid = tl.program_id(0)\n    offs = tl.arange"
    )
    tried = trial.run(cell, 1, question=DOUBLED)
    assert tried.look.startswith(
        "kernel doubled asks for tl.program_id(0) and never uses it, so that its "
    ), tried
    assert "with BLOCK" not in tried.look


def test_missing_parentheses_of_a_mask_are_said():
    cell = edited(right(MINUS), [("mask = (offs_m < M) & (offs_n < N)", "mask = (offs_m < M) & offs_n < N")])
    tried = trial.run(cell, 1, question=MINUS)
    assert "`(offs_m < M) & offs_n < N` compares the result of & or |" in tried.look, tried


def test_a_last_group_that_is_not_cut_off_is_said():
    """Its tiles are numbered as if it were full, so that some are never written."""
    cell = edited(right(GEMM), [("tl.minimum(tiles_m - first, GROUP_M)", "GROUP_M")])
    tried = trial.run(cell, {"M": 640, "N": 384, "K": 32}, question=GEMM)
    assert "were never written" in tried.error and tried.look.startswith("the last group may have fewer"), (
        tried
    )


EXCHANGED = {
    "weight and bias": (
        NORM,
        [("w_ptr + offs", "?"), ("b_ptr + offs", "w_ptr + offs"), ("?", "b_ptr + offs")],
        "w and b",
    ),
}


@pytest.mark.parametrize("name", EXCHANGED)
def test_two_inputs_that_changed_places_are_named(name):
    question, edits, said = EXCHANGED[name]
    found = look(question, edited(right(question), edits))
    assert (
        found == f"with {said} exchanged this case is right: which of the two is used in the other's place?"
    ), found


STRIDES = {  # an answer that is right without strides -> the tensors whose layout lets it fail
    "another tensor's": (
        MINUS,
        [("offs_m * stride_zm + offs_n * stride_zn", "offs_m * stride_xm + offs_n * stride_xn")],
        "with z laid out row by row this case is right",
    ),
    "one left out at the store": (
        NORM,
        [("y_ptr + row * stride_ym + offs * stride_yn", "y_ptr + row * stride_ym + offs")],
        "with y laid out row by row this case is right",
    ),
}


@pytest.mark.parametrize("name", STRIDES)
def test_a_case_that_only_strides_spoil_says_whose(name):
    question, edits, said = STRIDES[name]
    found = look(question, edited(right(question), edits))
    assert said in found and "program id" not in found, found


def test_a_grid_that_would_do_without_ragged_tiles_is_said():
    """Two whole tiles hold more elements than C has, and yet its four ragged tiles take four programs."""
    edits = [("= 64, 128, 32, 8", "= 64, 64, 32, 8"), ("triton.cdiv(p.M, BLOCK_M) *", "(p.M // BLOCK_M) *")]
    tried = trial.run(edited(right(GEMM), edits), {"M": 100, "N": 70, "K": 32}, question=GEMM)
    assert tried.look.endswith("with (4,) instead of (2,) this case is right"), tried


IN_THE_KERNEL = {
    "no mask": (MINUS, [("mask = (offs_m < M) & (offs_n < N)", "mask = (offs_m < M) & (offs_m < M)")]),
    "a store that leaves some out": (OUTER, [("(offs_n[None, :] < N)", "(offs_n[None, :] < N - 1)")]),
    "another tensor's strides": (
        MINUS,
        [("offs_m * stride_zm + offs_n * stride_zn", "offs_m * stride_xm + offs_n * stride_xm")],
    ),
    "a mask that does not move": (
        GEMM,
        [
            ("mask_k = offs_k + k < K", "mask_k = offs_k < K"),
            ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 64, 64, 64, 8"),
        ],
    ),
    "another formula": (OUTER, [("a[:, None] - b[None, :]", "a[:, None] + b[None, :]")]),
    "a table's -1 taken for an index": (GROUPED, [("if expert >= 0:", "if expert >= -1:")]),
    "a row further": (NORM, [("x_ptr + row * stride_xm", "x_ptr + (row + 1) * stride_xm")]),
}


@pytest.mark.parametrize("name", IN_THE_KERNEL)
def test_a_mistake_of_the_kernel_is_not_laid_to_the_launch(name):
    question, edits = IN_THE_KERNEL[name]
    found = look(question, edited(right(question), edits))
    assert found and "in launch" not in found and "program_id" not in found


@pytest.mark.parametrize(
    "seed", [79, 105]
)  # a single row of 129, odd sizes beyond one tile: few draws fail there
def test_where_a_kind_fails_with_rare_numbers_alone_a_later_kind_speaks(seed):
    question, edit, said = IN_LAUNCH["an axis too many"]
    found = referee.grade_one(
        edited(right(question), [edit]), questions.find(question), seed=seed, eager=False
    )
    assert said in found.parts[0].look and "one more than whole tiles" in found.parts[0].came, str(found)

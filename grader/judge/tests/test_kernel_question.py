"""The tiled GEMM judged from end to end: what passes, and what each broken kernel is told."""

from pathlib import Path

import pytest

from grader import questions
from grader.judge import referee
from grader.judge.record import FAIL, PASS, REFUSED

QUESTION = "gemm_tiling.tiled_gemm"
ANSWER = Path(__file__).parent / "answers/tiled_gemm.py"
RIGHT = ANSWER.read_text().replace("GROUP_M = 64, 64, 32, 8", "GROUP_M = 64, 128, 32, 8")


def judge(source):
    return referee.grade_one(source, questions.find(QUESTION))


def test_the_right_kernel_has_all_points_and_its_traffic_is_the_models():
    verdict = judge(RIGHT)
    assert (verdict.verdict, verdict.points) == (PASS, 15), str(verdict)
    facts = next(p for p in verdict.parts if p.name == "traffic").facts
    rows = {row["what"]: row["moved"] for row in facts["budgets"]}
    m, n, k = 1024, 4096, 64
    assert rows == {
        "read of A": 2 * m * k * (n // 128),
        "read of B": 2 * k * n * (m // 64),
        "write of C": 2 * m * n,
    }
    assert {"loads:a", "loads:b", "stores:c"} <= set(facts["touched"])
    html = verdict._repr_html_()
    assert "<svg" in html and "without duplicates" in html


BROKEN = {
    "unmasked tail in K": ("mask=mask_k[:, None] & (offs_n < N)[None, :]", "mask=(offs_n < N)[None, :]", FAIL, "load outside b"),
    "masked lanes without other": (", other=0.0", "", FAIL, "is every load masked"),
    "bf16 accumulator": ("acc = tl.dot(a, b, acc)", "acc = (acc + tl.dot(a, b)).to(tl.bfloat16).to(tl.float32)", FAIL, "accumulator fp32"),
    "transposed stride": ("[:, None] * stride_bk + offs_n[None, :] * stride_bn", "[:, None] * stride_bn + offs_n[None, :] * stride_bk", FAIL, "right way round"),
    "one block of K": ("range(0, K, BLOCK_K)", "range(0, BLOCK_K, BLOCK_K)", FAIL, "part of K"),
    "group not cut off": ("tl.minimum(tiles_m - first, GROUP_M)", "GROUP_M", FAIL, "never written"),
    "no launch": ("def launch(p)", "def lunch(p)", FAIL, "no function launch"),
    "wrong key": ('"num_warps": 4', '"warps": 4', FAIL, "a step may hold"),
    "unknown parameter": ("b_ptr, c_ptr, M", "b_ptr, c_ptr, alpha, M", FAIL, "takes alpha"),
    "the tuned kernel": ("BLOCK_M, BLOCK_N", "import kernels.gemm_tiling.tiled_gemm\nBLOCK_M, BLOCK_N", REFUSED, "own kernel"),
    "inline assembly": ("acc.to(c_ptr.dtype.element_ty)", "tl.inline_asm_elementwise(acc)", REFUSED, "inline assembly"),
    "eval": ("def launch(p):", "def launch(p):\n    eval('1')", REFUSED, "'eval'"),
    "writes its input": ("tl.store(c_ptr", "tl.store(a_ptr + offs_m * 0, 0.0, mask=offs_m < M)\n    tl.store(c_ptr", FAIL, "wrote into its input a"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_kernel_is_told_what_and_where(name):
    before, after, verdict, words = BROKEN[name]
    assert before in RIGHT
    got = judge(RIGHT.replace(before, after, 1 if "import" in after else -1))
    assert got.verdict == verdict and got.points < got.of
    assert words in str(got), str(got)


def test_no_grouping_costs_its_part_and_no_other():
    got = judge(RIGHT.replace('"GROUP_M": GROUP_M', '"GROUP_M": 1'))
    assert [p.name for p in got.parts if p.state == FAIL] == ["grouping"]
    assert got.points == 13


def test_a_wide_tile_does_not_hide_a_missing_grouping():
    wide = RIGHT.replace("GROUP_M = 64, 128, 32, 8", "GROUP_M = 128, 256, 64, 8").replace(
        '"num_warps": 4', '"num_warps": 8'
    )
    assert judge(wide).verdict == PASS
    got = judge(wide.replace('"GROUP_M": GROUP_M', '"GROUP_M": 1'))
    assert [p.name for p in got.parts if p.state == FAIL] == ["grouping"]


def test_an_impossible_tile_fails_without_a_gpu():
    got = judge(RIGHT.replace("GROUP_M = 64, 128, 32, 8", "GROUP_M = 512, 512, 64, 8"))
    assert "2048 registers a thread" in str(got)


def test_the_bytes_of_a_wrong_result_win_nothing():
    special = 'if p.N == 4096 and p.K == 64:\n        return {"steps": [{"kernel": other, "grid": (p.M // 64 * p.N // 128,)}]}\n    grid ='
    other = "@triton.jit\ndef other(a_ptr, b_ptr, c_ptr, M, N, K):\n    tl.store(c_ptr + tl.program_id(0), 0.0)\n\n\n"
    got = judge(other + RIGHT.replace("grid =", special, 1))
    assert [p.name for p in got.parts if p.state == PASS] == ["values", "compiled"], str(got)
    assert "were never written" in str(got)


def test_a_product_near_zero_may_be_rounded_to_a_step_of_fp16():
    import numpy as np

    from grader.checks import gemm_tiling
    from grader.questions import Case

    inputs = {"a": np.array([[3e-3]], np.float16), "b": np.array([[2.9e-3]], np.float16)}
    case = Case({"M": 1, "N": 1, "K": 1})
    want = gemm_tiling.product(inputs, case)
    rounded = want["c"].astype(np.float16).astype(np.float64)
    assert rounded != want["c"]
    assert np.abs(rounded - want["c"]) <= gemm_tiling.within(inputs, case, want)["c"]

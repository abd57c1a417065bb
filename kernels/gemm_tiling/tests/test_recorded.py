"""What lesson 01 says about the recorded run, held to that run. A new run that breaks a sentence names it."""

import json
from pathlib import Path

import pytest

RUN = json.loads((Path(__file__).parents[1] / "results" / "h200.json").read_text())
ROWS = {(row["op"], row["case"]): row for row in RUN["rows"]}
DATASHEET = 989  # TFLOP/s in bf16
CUBES = "4096 x 4096 x 4096 {}", "8192 x 8192 x 8192 {}"


def row(case, op="gemm"):
    return next(row for (name, what), row in ROWS.items() if name == op and what.startswith(case))


def cublas(case, op="gemm"):
    return row(case, op)["peers"]["cuBLAS"]["ratio"]


def squares():
    return [r for (op, case), r in ROWS.items() if op == "gemm" and case.startswith(("4096 x 4096", "8192"))]


def datasheet_shares():
    return [r["tflop_s"] / DATASHEET for r in squares()]


def per_flop(small, large):
    return row(small)["tflop_s"] / row(large)["tflop_s"]


def fp8_gain(cube):
    return row(cube.format("bf16"))["us"] / row(cube.format("fp8"), "block_scaled_gemm")["us"]


CLAIMS = {  # sentence: (what the run says, from, to)
    "large squares: within 2% of cuBLAS, behind": (lambda: min(r["peers"]["cuBLAS"]["ratio"] for r in squares()), 0.98, 1),
    "large squares: within 2% of cuBLAS, ahead": (lambda: max(r["peers"]["cuBLAS"]["ratio"] for r in squares()), 1, 1.025),
    "70% of the datasheet": (lambda: min(datasheet_shares()), 0.695, 0.71),
    "74% of the datasheet": (lambda: max(datasheet_shares()), 0.73, 0.745),
    "the larger product is the slower one per FLOP": (lambda: per_flop("4096 x 4096", "8192"), 1.01, 1.2),
    "512 x 14336 x 4096: level with cuBLAS": (lambda: cublas("512"), 0.98, 1.02),
    "86% of the limit": (lambda: row("512")["share"], 0.85, 0.87),
    "1024: cuBLAS is ahead by 11%": (lambda: cublas("1024"), 0.875, 0.9),
    "1024: three to four times its arithmetic": (lambda: 1 / row("1024")["share"], 3, 4),
    "odd sizes: 27% of the limit": (lambda: row("2047")["share"], 0.265, 0.285),
    "odd sizes: twice as fast as cuBLAS": (lambda: cublas("2047"), 1.9, 2.1),
    "M = 16: 94% of what a copy reaches": (lambda: row("16 x")["share"], 0.93, 0.945),
    "M = 1: 96% of what a copy reaches": (lambda: row("1 x", "gemv")["share"], 0.955, 0.97),
    "M = 16: 4% ahead": (lambda: cublas("16 x"), 1.03, 1.045),
    "M = 1: 7% ahead": (lambda: cublas("1 x", "gemv"), 1.065, 1.075),
    "FP8: cuBLAS 6% ahead at 4096": (lambda: cublas("4096 x 4096", "block_scaled_gemm"), 0.93, 0.945),
    "FP8: cuBLAS behind by 4% at 8192": (lambda: cublas("8192", "block_scaled_gemm"), 1.035, 1.05),
    "FP8: level at 4096 x 7168 x 2048": (lambda: cublas("4096 x 7168", "block_scaled_gemm"), 0.98, 1.01),
    "FP8 is 1.5 times as fast": (lambda: fp8_gain(CUBES[0]), 1.45, 1.55),
    "FP8 is 1.7 times as fast": (lambda: fp8_gain(CUBES[1]), 1.65, 1.75),
    "plain FP8: 1.74 times": (lambda: RUN["ceilings"]["fp8"] / RUN["ceilings"]["bf16"], 1.735, 1.745),
}  # fmt: skip


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_was_measured(sentence):
    measured, low, high = CLAIMS[sentence]
    assert low <= measured() <= high


def test_every_peer_that_is_said_to_be_absent_was():
    absent = {peer for r in RUN["rows"] for peer, it in r["peers"].items() if "ratio" not in it}
    assert absent == {"quack", "DeepGEMM"}

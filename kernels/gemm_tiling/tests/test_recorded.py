"""What lesson 01 says about the recorded run, held to that run. A new run that breaks a sentence names it."""

import json
from pathlib import Path

import pytest

RUN = json.loads((Path(__file__).parents[1] / "results" / "h200.json").read_text())
ROWS = {(row["op"], row["case"]): row for row in RUN["rows"]}
DATASHEET = 989  # TFLOP/s in bf16
OF_4096, OF_8192 = ([f"{n} x {n} x {n} bf16 rows/{b}" for b in ("rows", "columns")] for n in (4096, 8192))
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
    "4096: cuBLAS is ahead by 1%": (lambda: [cublas(c) for c in OF_4096], 0.985, 0.995),
    "8192: the course's kernel is, by 2%": (lambda: [cublas(c) for c in OF_8192], 1.015, 1.03),
    "70% of the datasheet": (lambda: min(datasheet_shares()), 0.695, 0.71),
    "75% of the datasheet": (lambda: max(datasheet_shares()), 0.74, 0.755),
    "4096 stands at 106% of its limit": (lambda: [row(c)["share"] for c in OF_4096], 1.055, 1.07),
    "the larger product is the slower one per FLOP": (lambda: per_flop("4096 x 4096", "8192"), 1.01, 1.2),
    "512 x 14336 x 4096: level with cuBLAS": (lambda: cublas("512"), 0.985, 1.01),
    "96% of the limit": (lambda: row("512")["share"], 0.95, 0.965),
    "nine tenths of what 4096 does a second": (lambda: per_flop("512", "4096 x 4096"), 0.89, 0.915),
    "1024: cuBLAS is ahead by 8%": (lambda: cublas("1024"), 0.915, 0.93),
    "1024: about three times its arithmetic": (lambda: 1 / row("1024")["share"], 2.9, 3.1),
    "1024: cuBLAS about three times it, too": (lambda: cublas("1024") / row("1024")["share"], 2.75, 3.1),
    "odd sizes: 32% of the limit": (lambda: row("2047")["share"], 0.31, 0.325),
    "odd sizes: in less than half of cuBLAS's time": (lambda: cublas("2047"), 2.05, 2.2),
    "1023: 14% of the limit": (lambda: row("1023")["share"], 0.135, 0.145),
    "1023: cuBLAS takes 1.3 times our time": (lambda: cublas("1023"), 1.28, 1.34),
    "M = 16: 99% of what a copy reaches": (lambda: row("16 x")["share"], 0.98, 0.995),
    "M = 1: 102% of what a copy reaches": (lambda: row("1 x", "gemv")["share"], 1.01, 1.025),
    "M = 16: 4% ahead": (lambda: cublas("16 x"), 1.03, 1.045),
    "M = 1: 7% ahead": (lambda: cublas("1 x", "gemv"), 1.065, 1.075),
    "FP8: cuBLAS 4% ahead at 4096": (lambda: cublas("4096 x 4096", "block_scaled_gemm"), 0.955, 0.97),
    "FP8: cuBLAS 10% ahead for 64 rows": (lambda: cublas("64 x", "block_scaled_gemm"), 0.89, 0.905),
    "FP8: cuBLAS behind by 12% at 8192": (lambda: cublas("8192", "block_scaled_gemm"), 1.11, 1.13),
    "FP8: cuBLAS behind by 4% at 4096 x 7168 x 2048": (
        lambda: cublas("4096 x 7168", "block_scaled_gemm"),
        1.03,
        1.045,
    ),
    "FP8 is 1.6 times as fast": (lambda: fp8_gain(CUBES[0]), 1.55, 1.62),
    "FP8 is 1.8 times as fast": (lambda: fp8_gain(CUBES[1]), 1.75, 1.82),
    "plain FP8: 1.86 times": (lambda: RUN["ceilings"]["fp8"] / RUN["ceilings"]["bf16"], 1.855, 1.869),
    "3.1 us at the measured rate": (lambda: 2e6 * 1024**3 / RUN["ceilings"]["bf16"], 3.05, 3.15),
    "a copy moves 4.3 TB/s": (lambda: RUN["ceilings"]["copy"] / 1e12, 4.25, 4.35),
}


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_was_measured(sentence):
    measured, low, high = CLAIMS[sentence]
    got = measured()
    assert all(low <= one <= high for one in (got if isinstance(got, list) else [got])), got


def test_the_run_is_the_one_that_the_lesson_describes():
    assert RUN["date"] == "2026-11-22" and RUN["state"] == "sustained" and "H200" in RUN["machine"]["gpu"]


def test_every_peer_that_is_said_to_be_absent_was():
    absent = {peer for r in RUN["rows"] for peer, it in r["peers"].items() if "ratio" not in it}
    assert absent == {"quack", "DeepGEMM"}

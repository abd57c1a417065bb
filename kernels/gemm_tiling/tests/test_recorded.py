"""Words of the lesson that no number fills in, held to the recorded run: ahead, half, about three times. A new run that
breaks one names it."""

import json
from pathlib import Path

import pytest

RUN = json.loads((Path(__file__).parents[1] / "results" / "h200.json").read_text())


def rows(case, op="gemm"):
    return [row for row in RUN["rows"] if row["op"] == op and row["case"].startswith(case)]


def row(case, op="gemm"):
    return rows(case, op)[0]


def fp8(case):
    return row(case, "block_scaled_gemm")


def cublas(one):
    """Return how many times as long cuBLAS takes: above 1, ours is ahead."""
    return one["peers"]["cuBLAS"]["ratio"]


SMALL, LARGE = "4096 x 4096 x 4096", "8192 x 8192 x 8192"
TINY, ODD = row("1024 x"), row("2047 x")

WORDS = {
    "4096: a draw with cuBLAS": lambda: all(abs(1 - cublas(one)) < 0.003 for one in rows(SMALL)),
    "8192: our kernel leads": lambda: all(one > 1 for one in map(cublas, rows(LARGE))),
    "the larger matmul is the slower one per FLOP": lambda: (
        max(one["tflop_s"] for one in rows(LARGE)) < min(one["tflop_s"] for one in rows(SMALL))
    ),
    "16 rows and one row: near a copy": lambda: all(
        0.95 < one["share"] < 1.05 for one in (row("16 x"), row("1 x", "gemv"))
    ),
    "16 rows: as long as cuBLAS, and one row ahead": lambda: (
        0.99 < cublas(row("16 x")) < 1.01 and cublas(row("1 x", "gemv")) > 1.02
    ),
    "1024: both take about three times its arithmetic, and cuBLAS less": lambda: (
        2.7 < TINY["us"] / TINY["limit_us"] < 3.3 and 2.7 < cublas(TINY) * TINY["us"] / TINY["limit_us"] < 3.3
    ),
    "1024: cuBLAS is ahead": lambda: cublas(TINY) < 0.98,
    "odd sizes: less than half of cuBLAS's time": lambda: cublas(ODD) > 2,
    "FP8 gains less than 2x, and so does plain FP8": lambda: (
        max(row(cube)["us"] / fp8(cube)["us"] for cube in (SMALL, LARGE)) < 1.95
        and RUN["ceilings"]["fp8"] / RUN["ceilings"]["bf16"] < 1.95
    ),
    "FP8: ours is ahead of cuBLAS at 4096, at 8192 and for 64 rows": lambda: (
        min(cublas(fp8(case)) for case in (SMALL, LARGE, "64 x")) > 1.05
    ),
    "4096 is above its limit": lambda: min(one["share"] for one in rows(SMALL)) > 1.02,
    "512 x 14336 x 4096: nine tenths of the rate of 4096": lambda: (
        0.87 < row("512")["tflop_s"] / row(SMALL)["tflop_s"] < 0.95
    ),
    "quack and DeepGEMM took part, and both are ahead in some rows": lambda: (
        {one["alone"]["peer"] for one in RUN["rows"] if one.get("alone", {}).get("ratio", 1) < 0.98}
        >= {"quack", "DeepGEMM"}
    ),
    "quack leads at 8192, DeepGEMM where the appendix says so": lambda: all(
        rows(case, op)[0]["alone"]["peer"] == peer and rows(case, op)[0]["alone"]["ratio"] < 1
        for case, op, peer in (
            (LARGE, "gemm", "quack"),
            ("512", "gemm", "DeepGEMM"),
            (SMALL, "block_scaled_gemm", "DeepGEMM"),
            (LARGE, "block_scaled_gemm", "DeepGEMM"),
            ("64 x", "block_scaled_gemm", "DeepGEMM"),
        )
    ),
    "the clock had settled under load": lambda: RUN["state"] == "sustained",
}


@pytest.mark.parametrize("words", WORDS)
def test_the_words_hold_for_the_recorded_run(words):
    assert WORDS[words]()

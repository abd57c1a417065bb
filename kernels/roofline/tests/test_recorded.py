"""What lesson 00 says about the recorded runs, held to those runs."""

import json
from pathlib import Path

import pytest

from kernels.machines import machine
from kernels.roofline import cost

KERNELS = Path(__file__).parents[2]
RUN = json.loads((KERNELS / "roofline" / "results" / "h200.json").read_text())
ROWS = {int(row["case"].split()[2]): row for row in RUN["rows"]}
NAMED, LONG = (1024, 4096, 8192, 14336), (4096, 8192, 14336)
GEMM = json.loads((KERNELS / "gemm_tiling" / "results" / "h200.json").read_text())
ODD = next(row for row in GEMM["rows"] if row["case"].startswith("2047 x 2049 x 2051"))
H200 = machine("H200")


def peers(name, columns=NAMED):
    return [ROWS[cols]["peers"][name]["ratio"] for cols in columns]


def numbers(row):
    rows, cols = (int(part) for part in row["case"].split()[0:3:2])
    return rows * cols


def two_kernels_tb_s():
    return [8e-6 * numbers(ROWS[cols]) / ROWS[cols]["peers"]["two kernels"]["us"] for cols in NAMED]


def instructions_of_compiled():
    took = {cols: 1e-6 * ROWS[cols]["peers"]["torch.compile"]["us"] for cols in LONG}
    return [cost.instructions_per_element(numbers(ROWS[cols]), took[cols], H200) for cols in LONG]


CLAIMS = {  # sentence: (what the run says, from, to)
    "two kernels take 2.4 times, at least": (lambda: min(peers("two kernels")), 2.3, 2.5),
    "two kernels take 3.3 times, at most": (lambda: max(peers("two kernels")), 3.2, 3.4),
    "they run at 2.2 TB/s, at least": (lambda: min(two_kernels_tb_s()), 2.15, 2.3),
    "they run at 2.8 TB/s, at most": (lambda: max(two_kernels_tb_s()), 2.7, 2.85),
    "torch.compile takes 1.5 times, at least": (lambda: min(peers("torch.compile")), 1.45, 1.65),
    "torch.compile takes 3.3 times, at most": (lambda: max(peers("torch.compile")), 3.2, 3.4),
    "in its time over a hundred instructions fit": (lambda: min(instructions_of_compiled()), 100, 140),
    "a copy makes 4.2 TB/s": (lambda: RUN["ceilings"]["copy"], 4.15e12, 4.25e12),
    "no row touches 100%": (lambda: max(row["share"] for row in RUN["rows"]), 0.5, 0.97),
    "rows of 1024 and 4096 come nearest": (
        lambda: min(ROWS[c]["share"] for c in (1024, 4096)) - max(ROWS[c]["share"] for c in (8192, 14336)),
        0,
        0.5,
    ),
    "cuBLAS needs 165 us for the odd product": (lambda: ODD["peers"]["cuBLAS"]["us"], 164.5, 166),
    "lanes would need 257": (lambda: 2e6 * 2047 * 2049 * 2051 / H200.rate("fp32"), 256.5, 257.5),
    "more than six times the limit": (lambda: ODD["peers"]["cuBLAS"]["us"] / ODD["limit_us"], 6, 8),
}


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_was_measured(sentence):
    measured, low, high = CLAIMS[sentence]
    assert low <= measured() <= high


def test_compiling_is_slower_than_two_kernels_for_long_rows():
    for cols in LONG:
        assert ROWS[cols]["peers"]["torch.compile"]["us"] > ROWS[cols]["peers"]["two kernels"]["us"]

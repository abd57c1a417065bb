"""What lesson 00 says about the recorded runs, held to those runs."""

import json
from pathlib import Path

import pytest

from kernels.machines import machine
from kernels.roofline import cost

KERNELS = Path(__file__).parents[2]
RUN = json.loads((KERNELS / "roofline" / "results" / "h200.json").read_text())
ROWS = {int(row["case"].split()[2]): row for row in RUN["rows"]}
LONG = tuple(sorted(set(ROWS) - {1024}))
GEMM = json.loads((KERNELS / "gemm_tiling" / "results" / "h200.json").read_text())
ODD = next(row for row in GEMM["rows"] if row["case"].startswith("2047 x 2049 x 2051"))
H200 = machine("H200")


def peers(name):
    return [row["peers"][name]["ratio"] for row in RUN["rows"]]


def numbers(row):
    rows, cols = (int(part) for part in row["case"].split()[0:3:2])
    return rows * cols


def two_kernels_tb_s():
    return [8e-6 * numbers(row) / row["peers"]["two kernels"]["us"] for row in RUN["rows"]]


def shares(*but):
    return [row["share"] for cols, row in ROWS.items() if cols not in but]


def instructions_of_compiled():
    took = {cols: 1e-6 * ROWS[cols]["peers"]["torch.compile"]["us"] for cols in LONG}
    return [cost.instructions_per_element(numbers(ROWS[cols]), took[cols], H200) for cols in LONG]


CLAIMS = {  # sentence: (what the run says, from, to)
    "two kernels take 2.6 times, at least": (lambda: min(peers("two kernels")), 2.55, 2.65),
    "two kernels take 3.4 times, at most": (lambda: max(peers("two kernels")), 3.35, 3.45),
    "they run at 2.2 TB/s, at least": (lambda: min(two_kernels_tb_s()), 2.15, 2.3),
    "they run at 2.8 TB/s, at most": (lambda: max(two_kernels_tb_s()), 2.7, 2.85),
    "torch.compile takes 1.6 times, at least": (lambda: min(peers("torch.compile")), 1.55, 1.65),
    "torch.compile takes 5 times, at most": (lambda: max(peers("torch.compile")), 4.95, 5.05),
    "in its time over a hundred instructions fit": (lambda: min(instructions_of_compiled()), 100, 140),
    "a copy makes 4.3 TB/s": (lambda: RUN["ceilings"]["copy"], 4.25e12, 4.35e12),
    "89% of what is promised": (lambda: RUN["ceilings"]["copy"] / H200.bandwidth, 0.885, 0.895),
    "694 TFLOP/s": (lambda: RUN["ceilings"]["bf16"] / 1e12, 693.5, 694.5),
    "268 MB take 63 us": (lambda: 1e6 * 4 * 16384 * 4096 / RUN["ceilings"]["copy"], 62.5, 63.5),
    "no row touches 100%: 92 at most": (lambda: max(shares()), 0.5, 0.925),
    "five of six stand at 87%, at least": (lambda: min(shares(14336)), 0.865, 0.88),
    "rows of 14,336 at 77%": (lambda: ROWS[14336]["share"], 0.765, 0.775),
    "some 70 us, at least": (lambda: min(row["us"] for row in RUN["rows"]), 67, 73),
    "some 70 us, at most": (lambda: max(row["us"] for row in RUN["rows"]), 67, 73),
    "cuBLAS needs 165 us for the odd product": (lambda: ODD["peers"]["cuBLAS"]["us"], 164.5, 166),
    "lanes would need 257": (lambda: 2e6 * 2047 * 2049 * 2051 / H200.rate("fp32"), 256.5, 257.5),
    "more than six times the limit": (lambda: ODD["peers"]["cuBLAS"]["us"] / ODD["limit_us"], 6, 8),
}


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_was_measured(sentence):
    measured, low, high = CLAIMS[sentence]
    assert low <= measured() <= high


def test_compiling_is_slower_than_two_kernels_for_all_rows_but_the_shortest():
    assert len(LONG) == 5
    for cols in LONG:
        assert ROWS[cols]["peers"]["torch.compile"]["us"] > ROWS[cols]["peers"]["two kernels"]["us"]


SHARED = {"roofline", "gemm_tiling", "flash_attention", "sampling_fusion"}


def test_four_topics_share_one_run_and_its_ceilings_and_those_recorded_since_are_near():
    runs = {path.parts[-3]: json.loads(path.read_text()) for path in KERNELS.glob("*/results/h200.json")}
    first, since = (
        [run for slug, run in runs.items() if (slug in SHARED) is there] for there in (True, False)
    )
    assert len(first) == 4 and all(run["ceilings"] == RUN["ceilings"] for run in first)
    assert all((run["date"], run["state"]) == ("2026-11-22", "sustained") for run in first)
    for run in since:
        assert (
            run["date"] >= RUN["date"] and run["state"] == "sustained" and run["ceilings"] != RUN["ceilings"]
        )
        assert all(
            run["ceilings"][name] == pytest.approx(rate, rel=0.04) for name, rate in RUN["ceilings"].items()
        )

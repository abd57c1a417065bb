"""Words of lesson 00 that no number fills in, held to the recorded runs."""

import json
from pathlib import Path

import pytest

from kernels.machines import machine
from kernels.roofline import cost
from kernels.roofline.spread_rows import spread_for

KERNELS = Path(__file__).parents[2]
RUN = json.loads((KERNELS / "roofline" / "results" / "h200.json").read_text())
ROWS = {int(row["case"].split()[2]): row for row in RUN["rows"]}
LONG = tuple(sorted(cols for cols in ROWS if cols >= 4096))
SPREAD = json.loads((KERNELS / "roofline" / "results" / "spread" / "h200.json").read_text())["rows"]
GEMM = json.loads((KERNELS / "gemm_tiling" / "results" / "h200.json").read_text())
ODD = next(row for row in GEMM["rows"] if row["case"].startswith("2047 x 2049 x 2051"))
H200 = machine("H200")


def peers(name):
    return [row["peers"][name]["ratio"] for row in RUN["rows"]]


def numbers(row):
    rows, cols = (int(part) for part in row["case"].split()[0:3:2])
    return rows * cols


def two_kernels_byte_s():
    return [8 * numbers(row) / (1e-6 * row["peers"]["two kernels"]["us"]) for row in RUN["rows"]]


def shares(*but):
    return [row["share"] for cols, row in ROWS.items() if cols not in but]


def instructions_of_compiled():
    took = {cols: 1e-6 * ROWS[cols]["peers"]["torch.compile"]["us"] for cols in LONG}
    return [cost.instructions_per_element(numbers(ROWS[cols]), took[cols], H200) for cols in LONG]


def lanes_us():
    return 2e6 * 2047 * 2049 * 2051 / H200.rate("fp32")


WORDS = {
    "two kernels lose more time than their bytes explain, and none runs at a copy's speed": lambda: (
        min(peers("two kernels")) > 2.2 and max(two_kernels_byte_s()) < 0.7 * RUN["ceilings"]["copy"]
    ),
    "compiling is slower than two kernels from 4096 columns on": lambda: (
        [
            cols
            for cols, row in ROWS.items()
            if row["peers"]["torch.compile"]["us"] > row["peers"]["two kernels"]["us"]
        ]
        == [cols for cols in ROWS if cols in LONG]
    ),
    "in its time a hundred instructions for each element fit": lambda: min(instructions_of_compiled()) > 100,
    "rows of 28,672, alone on their SMs, are behind all others": lambda: (
        ROWS[28672]["share"] < min(shares(28672)) - 0.02
    ),
    "rows in parts are read once: faster than by one program, wherever they are spread": lambda: (
        all(row["parts_us"] < 0.97 * row["one_program_us"] for row in SPREAD)
        and all(row["parts_us"] < 0.7 * row["one_program_us"] for row in SPREAD if row["cols"] > 28672)
        and {row["cols"]: row["parts"] for row in SPREAD}
        == {row["cols"]: spread_for(row["cols"], 2).parts for row in SPREAD}
        and spread_for(32768, 2).parts == 8
    ),
    "no row touches 100%": lambda: max(shares()) < 0.95,
    "memory is more honest than the tensor cores": lambda: (
        RUN["ceilings"]["copy"] / H200.bandwidth > 0.85 > 0.75 > RUN["ceilings"]["bf16"] / H200.rate("bf16")
    ),
    "the odd product ran on the tensor cores, in more than six times its limit": lambda: (
        6 * ODD["limit_us"] < ODD["peers"]["cuBLAS"]["us"] < 0.8 * lanes_us()
    ),
}


@pytest.mark.parametrize("words", WORDS)
def test_the_words_hold_for_the_recorded_run(words):
    assert WORDS[words]()


FIRST = json.loads((KERNELS / "flash_attention" / "results" / "h200.json").read_text())


def test_the_ceilings_of_all_runs_are_near():
    runs = {path.parts[-3]: json.loads(path.read_text()) for path in KERNELS.glob("*/results/h200.json")}
    assert len(runs) > 6 and len({run["date"] for run in runs.values()}) > 2
    for run in runs.values():
        assert run["date"] >= FIRST["date"] and run["state"] == "sustained"
        for name in ("copy", "bf16", "fp8"):
            assert run["ceilings"][name] == pytest.approx(FIRST["ceilings"][name], rel=0.055), "by up to 5%"

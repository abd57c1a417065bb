"""Words of lesson 01 about the ladder that no number fills in, held to the recorded run. A new run that breaks one names it."""

import json
from pathlib import Path

import pytest

from kernels.gemm_tiling.ladder import rungs
from kernels.machines import machine

RUN = json.loads((Path(__file__).parents[2] / "results" / "ladder" / "h200.json").read_text())
ROWS = {row["case"]: row for row in RUN["rows"]}
ORDER = [row["case"] for row in RUN["rows"] if not row["aside"]]


def us(case):
    return ROWS[case]["us"]


def step(case):
    """Return how many times faster this rung is than the one before it."""
    return us(ORDER[ORDER.index(case) - 1]) / us(case)


def fewer(one, other, what):
    return ROWS[one][what] / ROWS[other][what]


def cublas(*cases):
    return [ROWS[case]["peers"]["cuBLAS"]["us"] for case in cases]


def overlap(one, other):
    """Return the width that two rungs' intervals against cuBLAS share; above 0, the run can't tell them apart."""
    (a, b), (c, d) = (ROWS[case]["peers"]["cuBLAS"]["interval"] for case in (one, other))
    return min(b, d) - max(a, c)


H200 = machine("H200")
WORDS = {
    "coalesced is the largest step of all": lambda: (
        step("coalesced") == max(step(case) for case in ORDER[1:])
    ),
    "the measured factor is smaller than the sectors'": lambda: (
        step("coalesced") < fewer("naive", "coalesced", "sectors")
    ),
    "the three largest steps: neighbouring lanes, tiles, tensor cores": lambda: (
        sorted(ORDER[1:], key=step)[-3:] == ["tiles", "tensor cores", "coalesced"]
    ),
    "grouped takes the same time": lambda: 0.99 < step("grouped") < 1.01,
    "the arithmetic became fifteen times faster": lambda: 14.5 < H200.rate("bf16") / H200.rate("fp32") < 15.5,
    "larger tile: three quarters of the bytes, one tenth of the time": lambda: (
        0.74 < fewer("larger tile", "TMA", "bytes_asked") < 0.76 and 1.09 < step("larger tile") < 1.11
    ),
    "warp specialised gains nothing": lambda: (
        step("warp specialised") < 1 and overlap("larger tile", "warp specialised") > 0
    ),
    "tuned takes cuBLAS's time": lambda: 0.99 < ROWS["tuned"]["peers"]["cuBLAS"]["ratio"] < 1.01,
    "groups at 8192: a third fewer bytes from HBM": lambda: (
        0.65 < fewer("groups at 8192", "row by row at 8192", "bytes_hbm") < 0.68
    ),
    "row by row at 8192 is past the ridge": lambda: (
        2 * 8192**3 / ROWS["row by row at 8192"]["bytes_hbm"] > H200.ridge("bf16")
    ),
    "all that follow the tensor cores: a factor of two": lambda: 2 <= us("tensor cores") / us("tuned") < 2.2,
    "cuBLAS is faster next to the four slow rungs": lambda: (
        max(cublas("coalesced", "tiles", "grouped", "tensor cores")) < min(cublas(*ORDER[5:]))
    ),
    "nobody reaches the datasheet's time": lambda: (
        min(*map(us, ORDER), *cublas(*ORDER)) > 2e6 * 4096**3 / H200.rate("bf16")
    ),
}


@pytest.mark.parametrize("words", WORDS)
def test_the_words_hold_for_the_recorded_run(words):
    assert WORDS[words]()


def test_the_run_is_the_whole_ladder_sustained_on_an_h200():
    assert [row["case"] for row in RUN["rows"]] == [rung.name for rung in rungs.RUNGS]
    assert RUN["state"] == "sustained" and "H200" in RUN["machine"]["gpu"]
    assert RUN["absent"] == {} and all("us" in row for row in RUN["rows"])


def test_the_naive_model_lies_between_the_two_first_rungs():
    """Two loads of 2 bytes for each multiply-add, none of them from a cache."""
    model_us = 1e6 * 2 * 2 * 4096**3 / machine("H200").bandwidth
    assert us("coalesced") < model_us < us("naive")

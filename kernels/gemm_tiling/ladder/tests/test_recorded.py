"""What lesson 01 says about the ladder's recorded run, held to that run. A new run that breaks a sentence names it."""

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
    """How many times faster this rung is than the one before it."""
    return us(ORDER[ORDER.index(case) - 1]) / us(case)


def walk(what):
    return ROWS["row by row at 8192"][what] / ROWS["groups at 8192"][what]


def cublas(*cases):
    return [ROWS[case]["peers"]["cuBLAS"]["us"] for case in cases]


def overlap(one, other):
    """Width that two rungs' intervals against cuBLAS share; above 0, the run can't tell them apart."""
    (a, b), (c, d) = (ROWS[case]["peers"]["cuBLAS"]["interval"] for case in (one, other))
    return min(b, d) - max(a, c)


CLAIMS = {  # sentence: (what the run says, from, to)
    "naive: 273 ms": (lambda: us("naive") / 1e3, 272.5, 273.5),
    "coalesced: 25.7": (lambda: us("coalesced") / 1e3, 25.65, 25.75),
    "10.6 times": (lambda: step("coalesced"), 10.55, 10.65),
    "the largest step of all": (lambda: step("coalesced") / max(step(case) for case in ORDER[1:]), 1, 1),
    "a factor of 16 in sectors": (lambda: ROWS["naive"]["sectors"] / ROWS["coalesced"]["sectors"], 16, 16),
    "tiles: 3.48 ms": (lambda: us("tiles") / 1e3, 3.475, 3.485),
    "7.4 times": (lambda: step("tiles"), 7.35, 7.45),
    "32 times fewer bytes": (
        lambda: ROWS["coalesced"]["bytes_asked"] / ROWS["tiles"]["bytes_asked"],
        31.5,
        32.5,
    ),
    "59% of the ordinary cores' best": (
        lambda: 1e12 * ROWS["tiles"]["tflop_s"] / machine("H200").rate("fp32"),
        0.58,
        0.6,
    ),
    "grouped takes the same 3.49 ms": (lambda: us("grouped") / 1e3, 3.483, 3.495),
    "grouped gains nothing": (lambda: step("grouped"), 0.995, 1.005),
    "tensor cores: 386 us": (lambda: us("tensor cores"), 385.5, 386.5),
    "tensor cores: 9 times": (lambda: step("tensor cores"), 8.9, 9.1),
    "stages: 222 us": (lambda: us("stages"), 221.5, 222.5),
    "stages: 1.74 times": (lambda: step("stages"), 1.735, 1.745),
    "TMA: 205 us": (lambda: us("TMA"), 204.5, 205.5),
    "TMA: 8% more": (lambda: step("TMA"), 1.075, 1.085),
    "larger tile: 187 us": (lambda: us("larger tile"), 186.5, 187.5),
    "three quarters of the bytes": (
        lambda: ROWS["larger tile"]["bytes_asked"] / ROWS["TMA"]["bytes_asked"],
        0.74,
        0.76,
    ),
    "one tenth": (lambda: step("larger tile"), 1.09, 1.11),
    "warp specialised: 189 us": (lambda: us("warp specialised"), 188.5, 189.5),
    "nothing gained": (lambda: step("warp specialised"), 0.975, 1),
    "the two intervals overlap": (lambda: overlap("larger tile", "warp specialised"), 0.005, 0.02),
    "tuned: 183 us": (lambda: us("tuned"), 182.5, 183.5),
    "that is cuBLAS's time": (lambda: ROWS["tuned"]["peers"]["cuBLAS"]["ratio"], 0.995, 1.005),
    "row by row 1612 us": (lambda: us("row by row at 8192"), 1611.5, 1612.5),
    "in groups 1576": (lambda: us("groups at 8192"), 1575.5, 1576.5),
    "2% of the time": (lambda: walk("us"), 1.015, 1.025),
    "for 1.5 times fewer bytes": (lambda: walk("bytes_hbm"), 1.45, 1.55),
    "row by row at 97% of what cuBLAS sustains": (lambda: ROWS["row by row at 8192"]["share"], 0.96, 0.975),
    "the three largest steps: a factor of 700": (
        lambda: step("coalesced") * step("tiles") * step("tensor cores"),
        690,
        715,
    ),
    "all that follows: two": (lambda: us("tensor cores") / us("tuned"), 2, 2.2),
    "cuBLAS beside four slow rungs, least": (
        lambda: min(cublas("coalesced", "tiles", "grouped", "tensor cores")),
        173.5,
        175.5,
    ),
    "cuBLAS beside four slow rungs, most": (
        lambda: max(cublas("coalesced", "tiles", "grouped", "tensor cores")),
        173.5,
        175.5,
    ),
    "cuBLAS beside the faster, least": (lambda: min(cublas(*ORDER[5:])), 180.5, 181.5),
    "cuBLAS beside the faster, most": (lambda: max(cublas(*ORDER[5:])), 185.5, 186.5),
    "cuBLAS beside naive: 188": (lambda: cublas("naive")[0], 187.5, 188.5),
    "no rung reaches the datasheet's 139 us": (lambda: min(us(case) for case in ORDER), 139, 200),
}


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_was_measured(sentence):
    measured, low, high = CLAIMS[sentence]
    assert low <= measured() <= high


def test_the_run_is_the_whole_ladder_sustained_on_an_h200():
    assert [row["case"] for row in RUN["rows"]] == [rung.name for rung in rungs.RUNGS]
    assert RUN["date"] == "2026-11-22" and RUN["state"] == "sustained" and "H200" in RUN["machine"]["gpu"]
    assert RUN["absent"] == {} and all("us" in row for row in RUN["rows"])


def test_the_naive_model_lies_between_the_two_first_rungs():
    """Two loads of 2 bytes for each multiply-add, none of them from a cache."""
    model_us = 1e6 * 2 * 2 * 4096**3 / machine("H200").bandwidth
    assert round(model_us / 1e3) == 57 and us("coalesced") < model_us < us("naive")

"""Words of the lesson that no number fills in, held to the recorded run: twice, a quarter, level. A new run that breaks
one names it."""

import json
from pathlib import Path

import pytest

RUN = json.loads((Path(__file__).parents[1] / "results" / "h200.json").read_text())
ROWS = {(row["op"], row["case"]): row for row in RUN["rows"]}
LONG, SHORT = "4 x 32/32 4096 x 4096 d 128 bf16", "16 x 16/16 1024 x 1024 d 64 bf16"
MANY, ONE = "32 x 32/8 keys 4096 d 128 bf16", "1 x 32/8 keys 32768 d 128 bf16"
WIDE, WINDOW = "4 x 16/16 4096 x 4096 d 256 bf16 causal", "4 x 32/8 8192 x 8192 d 128 bf16 window (1024, 0)"


def row(case, op="attention"):
    return ROWS[op, case]


def ratio(case, peer, op="attention"):
    return row(case, op)["peers"][peer]["ratio"]


def timed(case, op="attention"):
    return {name for name, peer in row(case, op)["peers"].items() if "us" in peer}


def decode(case):
    return row(case, "decode")


WORDS = {
    "a kernel for Hopper runs 2x faster than version 2": lambda: 1.8 < ratio(LONG, "SDPA flash") < 2.2,
    "cuDNN's kernel is near": lambda: 0.97 < ratio(LONG, "SDPA cuDNN") < 1.04,
    "exponentials cost a quarter at d = 64": lambda: (
        0.72 < row(LONG.replace("d 128", "d 64"))["tflop_s"] / row(LONG)["tflop_s"] < 0.79
    ),
    "exponentials barely matter at d = 256": lambda: row(WIDE)["share"] > row(LONG + " causal")["share"],
    "causal takes more than half the time": lambda: row(LONG + " causal")["us"] > 0.52 * row(LONG)["us"],
    "a long causal row is back at the limit, a short one is not": lambda: (
        row("1 x 32/32 16384 x 16384 d 128 bf16 causal")["share"]
        > 0.95
        > 0.6
        > row(SHORT + " causal")["share"]
    ),
    "cuDNN takes a little longer in every decode step": lambda: all(
        1 < ratio(case, "SDPA cuDNN", op) < 1.08
        for op, case in ROWS
        if op == "decode" and "SDPA cuDNN" in timed(case, op)
    ),
    # a run's ceiling is one measurement, and those of other runs are up to 5% away
    "many sequences decode at the full rate of a copy": lambda: 0.98 < decode(MANY)["share"] < 1.03,
    "all cases were measured on one day": lambda: {one["date"] for one in RUN["rows"]} == {row(LONG)["date"]},
    "one sequence takes longer than its bytes, four times the bytes less than four times": lambda: (
        decode(MANY)["us"] < 3.5 * decode(ONE)["us"] and decode(ONE)["share"] < 0.85
    ),
    "cuDNN leads at d = 64 with 1024 tokens": lambda: (
        ratio(SHORT + " causal", "SDPA cuDNN") < 0.98 and ratio(SHORT, "SDPA cuDNN") < 1
    ),
    "ours leads cuDNN in every backward": lambda: (
        min(ratio(case, "SDPA cuDNN", op) for op, case in ROWS if op == "attention backward") > 1.01
    ),
    "an 8-bit cache takes more than half the time": lambda: (
        0.5 < decode(MANY + " fp8")["us"] / decode(MANY)["us"] < 1
    ),
    "no backend of SDPA takes the window": lambda: timed(WINDOW) == {"FlexAttention", "FlashAttention 4"},
    "FlashAttention 2, 3 and FlashInfer were absent": lambda: (
        not {"FlashAttention 2", "FlashAttention 3", "FlashInfer"}
        & {name for op, case in ROWS for name in timed(case, op)}
    ),
    "FlashAttention 4 took part in all but decode, and leads in the backward": lambda: all(
        "FlashAttention 4" in timed(case, op)
        and (op == "attention" or ROWS[op, case]["alone"]["peer"] == "FlashAttention 4")
        and (op == "attention" or ROWS[op, case]["alone"]["ratio"] < 0.95)
        for op, case in ROWS
        if op != "decode"
    ),
    "16,384 tokens: FlashAttention 4 leads in the row, and ours alone": lambda: (
        ratio("1 x 32/32 16384 x 16384 d 128 bf16 causal", "FlashAttention 4")
        < 0.98
        < 1
        < row("1 x 32/32 16384 x 16384 d 128 bf16 causal")["alone"]["ratio"]
    ),
    "the clock had settled under load": lambda: RUN["state"] == "sustained",
}


@pytest.mark.parametrize("words", WORDS)
def test_the_words_hold_for_the_recorded_run(words):
    assert WORDS[words]()

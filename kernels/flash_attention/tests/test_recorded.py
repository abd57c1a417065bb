"""What the lesson says about the recorded run, held to that run."""

import json
from pathlib import Path

import pytest

RUN = json.loads((Path(__file__).parents[1] / "results" / "h200.json").read_text())
ROWS = {(row["op"], row["case"]): row for row in RUN["rows"]}
LONG, SHORT = "4 x 32/32 4096 x 4096 d 128 bf16", "16 x 16/16 1024 x 1024 d 64 bf16"
MANY, ONE = "32 x 32/8 keys 4096 d 128 bf16", "1 x 32/8 keys 32768 d 128 bf16"


def us(case, op="decode"):
    return ROWS[op, case]["us"]


def ratio(case, peer, op="attention"):
    return ROWS[op, case]["peers"][peer]["ratio"]


def rate(case):
    return ROWS["attention", case]["tflop_s"]


def share(case):
    return ROWS["attention", case]["share"]


def timed_sdpa(case):
    return [
        n for n, peer in ROWS["attention", case]["peers"].items() if n.startswith("SDPA") and "us" in peer
    ]


def flex():
    cases = [c for op, c in ROWS if op == "attention" and ("d 64" in c or "d 128" in c) and "window" not in c]
    return [ratio(c, "FlexAttention") for c in cases]


def backward():
    return [ratio(case, "SDPA cuDNN", op) for op, case in ROWS if op == "attention backward"]


CLAIMS = {  # sentence: (what the run says, from, to)
    "version 2 takes about twice the time": (lambda: ratio(LONG, "SDPA flash"), 1.8, 2.2),
    "cuDNN's and this course's kernels are within 3% of each other": (
        lambda: ratio(LONG, "SDPA cuDNN"),
        0.97,
        1.035,
    ),
    "FlexAttention 1.1 to 1.9 times, at least": (lambda: min(flex()), 1.05, 1.2),
    "FlexAttention 1.1 to 1.9 times, at most": (lambda: max(flex()), 1.8, 1.95),
    "some 690 TFLOP/s at d = 128": (lambda: rate(LONG), 680, 700),
    "three quarters of it are left at d = 64": (
        lambda: rate(LONG.replace("d 128", "d 64")) / rate(LONG),
        0.72,
        0.79,
    ),
    "d = 256: 93% of the limit": (lambda: share("4 x 16/16 4096 x 4096 d 256 bf16 causal"), 0.92, 0.935),
    "d = 128, causal, as many key heads: 91": (lambda: share(LONG + " causal"), 0.905, 0.915),
    "FlashAttention 2 at d = 256: 2.3": (
        lambda: ratio("4 x 16/16 4096 x 4096 d 256 bf16 causal", "SDPA flash"),
        2.25,
        2.35,
    ),
    "FlexAttention at d = 256: 2.4": (
        lambda: ratio("4 x 16/16 4096 x 4096 d 256 bf16 causal", "FlexAttention"),
        2.35,
        2.45,
    ),
    "causal: more than half the time": (
        lambda: us(LONG + " causal", "attention") / us(LONG, "attention"),
        0.52,
        0.6,
    ),
    "16,384 tokens: 99%": (lambda: share("1 x 32/32 16384 x 16384 d 128 bf16 causal"), 0.98, 0.995),
    "1024 tokens, causal: 40%": (lambda: share(SHORT + " causal"), 0.395, 0.41),
    "the window: 80%": (lambda: share("4 x 32/8 8192 x 8192 d 128 bf16 window (1024, 0)"), 0.79, 0.81),
    "no backend of SDPA takes the window": (
        lambda: len(timed_sdpa("4 x 32/8 8192 x 8192 d 128 bf16 window (1024, 0)")),
        0,
        0,
    ),
    "FlexAttention decodes one sequence in 27 times the time": (
        lambda: ratio(ONE, "FlexAttention", "decode"),
        26,
        27.5,
    ),
    "cuDNN is ahead at d = 64 with 1024 tokens, by some 4%": (lambda: ratio(SHORT, "SDPA cuDNN"), 0.95, 0.97),
    "or, causal, some 13%": (lambda: ratio(SHORT + " causal", "SDPA cuDNN"), 0.86, 0.885),
    "level in decoding one sequence": (lambda: ratio(ONE, "SDPA cuDNN", "decode"), 0.98, 1.02),
    "level in decoding many": (lambda: ratio(MANY, "SDPA cuDNN", "decode"), 0.98, 1.02),
    "one sequence of 32,768 keys: 41 us": (lambda: us(ONE), 40.5, 41.5),
    "cuDNN's 41": (lambda: ROWS["decode", ONE]["peers"]["SDPA cuDNN"]["us"], 40.5, 41.5),
    "32 sequences of 4096 keys: 126 us": (lambda: us(MANY), 125.5, 126.5),
    "all that a copy reaches": (lambda: ROWS["decode", MANY]["share"], 0.99, 1.005),
    "each further 134 MB costs 28 us": (lambda: (us(MANY) - us(ONE)) / 3, 27.5, 28.5),
    "some 12 us whatever the cache": (lambda: us(ONE) - (us(MANY) - us(ONE)) / 3, 11.5, 12.5),
    "pages cost 3%": (lambda: us(MANY + " pages of 16") / us(MANY), 1.02, 1.03),
    "pages cost 13% of one sequence": (lambda: us(ONE + " pages of 16") / us(ONE), 1.125, 1.135),
    "the backward is ahead by 3%, at least": (lambda: min(backward()), 1.025, 1.04),
    "the backward is ahead by 10%, at most": (lambda: max(backward()), 1.095, 1.105),
    "an 8-bit cache of one sequence: 34 us": (lambda: us(ONE + " fp8"), 33.5, 34.5),
    "an 8-bit cache: 88 us": (lambda: us(MANY + " fp8"), 87.5, 88.5),
    "version 2, made for the A100, takes longer for the backward": (
        lambda: ratio(LONG, "SDPA flash", "attention backward"),
        1.1,
        2.5,
    ),
}


def test_the_run_is_the_one_that_the_lesson_dates():
    assert RUN["date"] == "2026-11-22" and RUN["state"] == "sustained" and "H200" in RUN["machine"]["gpu"]


def test_every_peer_that_is_said_to_be_absent_was():
    said = {"FlashAttention 2", "FlashAttention 3", "FlashAttention 4", "FlashInfer"}
    timed = {name for row in RUN["rows"] for name, peer in row["peers"].items() if "us" in peer}
    assert not said & timed


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_was_measured(sentence):
    measured, low, high = CLAIMS[sentence]
    assert low <= measured() <= high

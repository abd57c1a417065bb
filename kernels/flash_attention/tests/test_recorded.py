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


def best_share():
    return max(row["share"] for (op, _), row in ROWS.items() if op == "attention")


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
    "cuDNN's and this course's kernels are level": (lambda: ratio(LONG, "SDPA cuDNN"), 0.95, 1.1),
    "FlexAttention 1.1 to 1.7 times, at least": (lambda: min(flex()), 1.05, 1.2),
    "FlexAttention 1.1 to 1.7 times, at most": (lambda: max(flex()), 1.6, 1.78),
    "some 670 TFLOP/s at d = 128": (lambda: rate(LONG), 660, 685),
    "three quarters of it are left at d = 64": (
        lambda: rate(LONG.replace("d 128", "d 64")) / rate(LONG),
        0.72,
        0.79,
    ),
    "the share is the best at d = 256": (
        lambda: share("4 x 16/16 4096 x 4096 d 256 bf16 causal") / best_share(),
        1,
        1,
    ),
    "FlashAttention 2 at d = 256: 2.4": (
        lambda: ratio("4 x 16/16 4096 x 4096 d 256 bf16 causal", "SDPA flash"),
        2.3,
        2.45,
    ),
    "FlexAttention at d = 256: 2.5": (
        lambda: ratio("4 x 16/16 4096 x 4096 d 256 bf16 causal", "FlexAttention"),
        2.45,
        2.55,
    ),
    "causal: more than half the time": (
        lambda: us(LONG + " causal", "attention") / us(LONG, "attention"),
        0.52,
        0.6,
    ),
    "16,384 tokens: 95%": (lambda: share("1 x 32/32 16384 x 16384 d 128 bf16 causal"), 0.94, 0.96),
    "1024 tokens, causal: 37%": (lambda: share(SHORT + " causal"), 0.36, 0.38),
    "the window: 68%": (lambda: share("4 x 32/8 8192 x 8192 d 128 bf16 window (1024, 0)"), 0.67, 0.69),
    "no backend of SDPA takes the window": (
        lambda: len(timed_sdpa("4 x 32/8 8192 x 8192 d 128 bf16 window (1024, 0)")),
        0,
        0,
    ),
    "FlexAttention decodes one sequence in 24 times the time": (
        lambda: ratio(ONE, "FlexAttention", "decode"),
        23.5,
        25,
    ),
    "cuDNN is ahead at d = 64 with 1024 tokens, by some 5%": (lambda: ratio(SHORT, "SDPA cuDNN"), 0.93, 0.96),
    "or, causal, some 15%": (lambda: ratio(SHORT + " causal", "SDPA cuDNN"), 0.83, 0.87),
    "level in decoding one sequence": (lambda: ratio(ONE, "SDPA cuDNN", "decode"), 0.98, 1.02),
    "level in decoding many": (lambda: ratio(MANY, "SDPA cuDNN", "decode"), 0.98, 1.02),
    "one sequence of 32,768 keys: 50 us": (lambda: us(ONE), 49.5, 50.5),
    "cuDNN's 50": (lambda: ROWS["decode", ONE]["peers"]["SDPA cuDNN"]["us"], 49.4, 50.5),
    "32 sequences of 4096 keys: 134 us": (lambda: us(MANY), 133.5, 134.5),
    "95% of what a copy reaches": (lambda: ROWS["decode", MANY]["share"], 0.945, 0.955),
    "each further 134 MB costs 28 us": (lambda: (us(MANY) - us(ONE)) / 3, 27.5, 28.5),
    "pages cost 2%": (lambda: us(MANY + " pages of 16") / us(MANY), 1.015, 1.025),
    "pages cost 5% of one sequence": (lambda: us(ONE + " pages of 16") / us(ONE), 1.045, 1.055),
    "the backward is ahead by 3%, at least": (lambda: min(backward()), 1.025, 1.04),
    "the backward is ahead by 11%, at most": (lambda: max(backward()), 1.1, 1.115),
    "an 8-bit cache of one sequence: 36 us": (lambda: us(ONE + " fp8"), 35.5, 36.5),
    "an 8-bit cache: 91 us": (lambda: us(MANY + " fp8"), 90.5, 91.5),
    "version 2, made for the A100, takes longer for the backward": (
        lambda: ratio(LONG, "SDPA flash", "attention backward"),
        1.1,
        2.5,
    ),
}


def test_the_run_is_the_one_that_the_lesson_dates():
    assert RUN["date"] == "2026-11-20" and "H200" in RUN["machine"]["gpu"]


def test_every_peer_that_is_said_to_be_absent_was():
    said = {"FlashAttention 2", "FlashAttention 3", "FlashAttention 4", "FlashInfer"}
    timed = {name for row in RUN["rows"] for name, peer in row["peers"].items() if "us" in peer}
    assert not said & timed


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_was_measured(sentence):
    measured, low, high = CLAIMS[sentence]
    assert low <= measured() <= high

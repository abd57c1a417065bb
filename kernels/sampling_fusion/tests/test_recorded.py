"""What the lesson says about the recorded run, held to that run. A new run that breaks a sentence names it."""

import json
from pathlib import Path

import pytest

RUN = json.loads((Path(__file__).parents[1] / "results" / "h200.json").read_text())
ROWS = {row["case"]: row for row in RUN["rows"]}
USUAL = "top-k 50, top-p 0.9 B{} {}"


def us(case):
    return ROWS[case]["us"]


def chain(batch):
    return ROWS[USUAL.format(batch, "fp32")]["peers"]["naive chain"]


def noise_per_filtered():
    return us("plain B256 fp32") / us(USUAL.format(256, "fp32"))


def unsorted_share(batch):
    """Of the chain's time, what a chain that never sorts the whole row does without."""
    peers = ROWS[USUAL.format(batch, "fp32")]["peers"]
    return 1 - peers["torch topk"]["us"] / peers["naive chain"]["us"]


def unsorted(batch):
    return ROWS[USUAL.format(batch, "fp32")]["peers"]["torch topk"]["us"]


def others_of(case):
    return [peer["ratio"] for peer in ROWS[case]["peers"].values() if "ratio" in peer]


def others(batch):
    return others_of(USUAL.format(batch, "fp32"))


def test_the_run_is_the_one_that_the_lesson_describes():
    assert RUN["date"] == "2026-11-22" and RUN["state"] == "sustained" and "H200" in RUN["machine"]["gpu"]


CLAIMS = {  # sentence: (what the run says, from, to)
    "for one request the chain takes over 100 us": (lambda: chain(1)["us"], 100, 200),
    "32 rows: 640 us": (lambda: chain(32)["us"], 635, 645),
    "256 rows: over 3000 us": (lambda: chain(256)["us"], 3000, 3500),
    "some 80% of it is the sort": (lambda: unsorted_share(32), 0.77, 0.83),
    "and 85% at 256 rows": (lambda: unsorted_share(256), 0.83, 0.88),
    "at batch 256, both in graphs, some 60 times as fast": (lambda: chain(256)["ratio"], 58, 62),
    "and over 30 times at 32 rows": (lambda: chain(32)["ratio"], 30, 32),
    "one row: 5 to 11 times, at least": (lambda: min(others(1)), 4.8, 5.2),
    "one row: 16 us": (lambda: us(USUAL.format(1, "fp32")), 15.5, 16.5),
    "one row: 5 to 11 times, at most": (lambda: max(others(1)), 10.6, 11.2),
    "without a sort 127 us": (lambda: unsorted(32), 126.5, 127.5),
    "and 474 at 256 rows": (lambda: unsorted(256), 473.5, 474.5),
    "5.6 times faster than without a sort": (lambda: min(others(32)), 5.5, 5.65),
    "8.8 times at 256 rows": (lambda: min(others(256)), 8.7, 8.85),
    "57% of the limit at 256 rows": (lambda: ROWS[USUAL.format(256, "fp32")]["share"], 0.56, 0.58),
    "few rows never see the bandwidth": (lambda: ROWS["plain B1 fp32"]["share"], 0, 0.1),
    "none of these rows comes near its limit": (lambda: max(row["share"] for row in ROWS.values()), 0, 0.6),
    "a plain draw takes twice the filtered one's time": (noise_per_filtered, 1.95, 2.15),
    "bf16: 0.72 of the time": (
        lambda: us(USUAL.format(256, "bf16")) / us(USUAL.format(256, "fp32")),
        0.71,
        0.73,
    ),
    "greedy: little over a quarter of argmax's time": (
        lambda: ROWS["greedy B32 fp32"]["peers"]["torch argmax"]["ratio"],
        3.6,
        3.9,
    ),
    "greedy: argmax takes 41 us": (
        lambda: ROWS["greedy B32 fp32"]["peers"]["torch argmax"]["us"],
        40.5,
        41.5,
    ),
    "greedy: 30 us to win": (
        lambda: ROWS["greedy B32 fp32"]["peers"]["torch argmax"]["us"] - us("greedy B32 fp32"),
        28,
        32,
    ),
    "top-p alone: 90 us": (lambda: us("top-p 0.9 B32 fp32"), 89.5, 90.5),
    "top-p alone: 4% of its limit": (lambda: ROWS["top-p 0.9 B32 fp32"]["share"], 0.035, 0.045),
    "min-p alone: 38 us": (lambda: us("min-p 0.05 B32 fp32"), 37.5, 38.5),
    "min-p alone at 256: 150 us": (lambda: us("min-p 0.05 B256 fp32"), 149.5, 150.5),
    "compiled comes nearest there, 1.9 times": (
        lambda: min(r for case in ROWS for r in others_of(case)),
        1.9,
        1.93,
    ),
    "everything: 36 us": (lambda: us("everything B32 fp32"), 35.5, 36.5),
    "beside 20 without": (lambda: us(USUAL.format(32, "fp32")), 19.5, 20.5),
    "the chain with everything: 639": (
        lambda: ROWS["everything B32 fp32"]["peers"]["naive chain"]["us"],
        638.5,
        639.5,
    ),
    "the chain hardly notices": (
        lambda: ROWS["everything B32 fp32"]["peers"]["naive chain"]["us"] / chain(32)["us"],
        0.99,
        1.02,
    ),
}


def test_flashinfer_was_absent_as_the_lesson_says():
    assert all("us" not in row["peers"].get("FlashInfer", {}) for row in ROWS.values())


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_was_measured(sentence):
    measured, low, high = CLAIMS[sentence]
    assert low < measured() < high

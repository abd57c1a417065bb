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


def others(batch):
    peers = ROWS[USUAL.format(batch, "fp32")]["peers"].values()
    return [peer["ratio"] for peer in peers if "ratio" in peer]


CLAIMS = {  # sentence: (what the run says, from, to)
    "for one request the chain takes over 100 us": (lambda: chain(1)["us"], 100, 200),
    "32 rows: 640 us": (lambda: chain(32)["us"], 635, 645),
    "256 rows: over 3000 us": (lambda: chain(256)["us"], 3000, 3500),
    "some 80% of it is the sort": (lambda: unsorted_share(32), 0.77, 0.83),
    "and 85% at 256 rows": (lambda: unsorted_share(256), 0.83, 0.88),
    "at batch 256, both in graphs, over fifty times as fast": (lambda: chain(256)["ratio"], 50, 60),
    "and 30 times at 32 rows": (lambda: chain(32)["ratio"], 29, 31),
    "one row: 5 to 11 times, at least": (lambda: min(others(1)), 4.8, 5.2),
    "one row: 5 to 11 times, at most": (lambda: max(others(1)), 10.8, 11.4),
    "6 times faster than without a sort": (lambda: min(others(32)), 5.3, 6.2),
    "8 times at 256 rows": (lambda: min(others(256)), 7.4, 8.2),
    "half the limit at 256 rows": (lambda: ROWS[USUAL.format(256, "fp32")]["share"], 0.48, 0.53),
    "few rows never see the bandwidth": (lambda: ROWS["plain B1 fp32"]["share"], 0, 0.1),
    "none of these rows comes near its limit": (lambda: max(row["share"] for row in ROWS.values()), 0, 0.6),
    "a plain draw takes nearly twice the filtered one's time": (noise_per_filtered, 1.75, 2),
    "bf16: 0.72 of the time": (lambda: us(USUAL.format(256, "bf16")) / us(USUAL.format(256, "fp32")), 0.71, 0.73),
    "greedy: a third of argmax's time": (lambda: ROWS["greedy B32 fp32"]["peers"]["torch argmax"]["ratio"], 3.2, 3.6),
    "greedy: 30 us to win": (lambda: ROWS["greedy B32 fp32"]["peers"]["torch argmax"]["us"] - us("greedy B32 fp32"), 28, 32),
    "top-p alone: 94 us": (lambda: us("top-p 0.9 B32 fp32"), 93, 95),
    "top-p alone: 4% of its limit": (lambda: ROWS["top-p 0.9 B32 fp32"]["share"], 0.035, 0.045),
    "everything: 37 us": (lambda: us("everything B32 fp32"), 36.4, 37.4),
    "beside 21 without": (lambda: us(USUAL.format(32, "fp32")), 21, 22),
    "the chain hardly notices": (lambda: ROWS["everything B32 fp32"]["peers"]["naive chain"]["us"] / chain(32)["us"], 0.99, 1.02),
}  # fmt: skip


def test_flashinfer_was_absent_as_the_lesson_says():
    assert all("us" not in row["peers"].get("FlashInfer", {}) for row in ROWS.values())


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_was_measured(sentence):
    measured, low, high = CLAIMS[sentence]
    assert low < measured() < high

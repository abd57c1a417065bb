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


CLAIMS = {  # sentence: (what the run says, from, to)
    "for one request the chain takes over 100 us": (lambda: chain(1)["us"], 100, 200),
    "at batch 256, both in graphs, over thirty times as fast": (lambda: chain(256)["ratio"], 30, 200),
    "few rows never see the bandwidth": (lambda: ROWS["plain B1 fp32"]["share"], 0, 0.1),
    "none of these rows comes near its limit": (lambda: max(row["share"] for row in ROWS.values()), 0, 0.6),
    "the richer request can be the faster one": (noise_per_filtered, 1, 10),
    "bf16 is not half the time": (lambda: us(USUAL.format(256, "bf16")) / us(USUAL.format(256, "fp32")), 0.6, 9),
}  # fmt: skip


@pytest.mark.parametrize("sentence", CLAIMS)
def test_the_lesson_says_what_was_measured(sentence):
    measured, low, high = CLAIMS[sentence]
    assert low < measured() < high

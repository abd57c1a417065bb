"""Words of the lesson that no number fills in, held to the recorded run: twice, nearest, hardly. A new run that breaks one
names it."""

import json
from pathlib import Path

import pytest

RUN = json.loads((Path(__file__).parents[1] / "results" / "h200.json").read_text())
ROWS = {row["case"]: row for row in RUN["rows"]}
USUAL = "top-k 50, top-p 0.9 B{} {}"


def us(case):
    return ROWS[case]["us"]


def usual(batch, dtype="fp32"):
    return ROWS[USUAL.format(batch, dtype)]


def chain(batch):
    return usual(batch)["peers"]["naive chain"]["us"]


def ratios(row):
    """(how many times as long, which) of every other sampler of a row."""
    return [(peer["ratio"], name) for name, peer in row["peers"].items() if "ratio" in peer]


def nearest():
    """The case and the sampler that comes nearest to ours, over all cases."""
    return min((ratio, case, name) for case, row in ROWS.items() for ratio, name in ratios(row))[1:]


WORDS = {
    "measured, a chain in a graph takes far longer than 9, 142 and 1,099 us": lambda: all(
        chain(batch) > 2 * model for batch, model in ((1, 9), (32, 142), (256, 1099))
    ),
    "the sort takes more of the time than of the bytes, 60%": lambda: all(
        1 - usual(batch)["peers"]["torch topk"]["us"] / chain(batch) > 0.65 for batch in (32, 256)
    ),
    "one row: under 1% of the limit": lambda: usual(1)["share"] < 0.01,
    "one row: faster than every other sampler": lambda: min(ratios(usual(1)))[0] > 1,
    "256 rows: the best share of all rows": lambda: (
        usual(256)["share"] == max(r["share"] for r in ROWS.values())
    ),
    "no row comes near its limit": lambda: max(row["share"] for row in ROWS.values()) < 0.7,
    "a plain draw takes more than half as long again as the filtered one": lambda: (
        1.5 < us("plain B256 fp32") / usual(256)["us"] < 1.8
    ),
    "bf16 saves less than half": lambda: 0.5 < usual(256, "bf16")["us"] / usual(256)["us"] < 0.9,
    "top-p alone is the weak case": lambda: us("top-p 0.9 B32 fp32") > 3 * usual(32)["us"],
    "min-p alone takes less than top-p alone": lambda: us("min-p 0.05 B32 fp32") < us("top-p 0.9 B32 fp32"),
    "the chain hardly notices masks and penalties": lambda: (
        0.97 < ROWS["everything B32 fp32"]["peers"]["naive chain"]["us"] / chain(32) < 1.03
    ),
    "another sampler, FlashInfer, comes nearest in a plain draw of 256 rows, and none wins": lambda: (
        nearest() == ("plain B256 fp32", "FlashInfer")
        and min(min(ratios(row)) for row in ROWS.values())[0] > 1
    ),
    "FlashInfer took part, without its top-k": lambda: all(
        ("FlashInfer, softmax first" in {name for _, name in ratios(row)})
        == case.startswith(("plain", "top-p", "min-p"))
        for case, row in ROWS.items()
    ),
    "the clock had settled under load": lambda: RUN["state"] == "sustained",
}


@pytest.mark.parametrize("words", WORDS)
def test_the_words_hold_for_the_recorded_run(words):
    assert WORDS[words]()

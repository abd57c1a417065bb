"""What the benchmark asks before it times a sampler: every row, against the same noise; and it can say no."""

import math

import numpy as np
import pytest
import torch

from kernels.bench.row import Absent
from kernels.sampling_fusion import bench, cases, fused, peers
from kernels.sampling_fusion.state import State

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = (
    cases.Case("usual", 6, 3000),
    cases.Case("plain", 6, 3000, ask={}),
    cases.Case("min-p", 6, 3000, ask={"min_p": 0.05}),
    cases.Case("nucleus bf16", 6, 3000, "bf16", ask={"top_p": 0.9}),
    cases.Case("everything", 6, 3000, ask=cases.EVERYTHING, tables=("history", "bias", "banned", "grammar")),
)


def drawn(case, seed=0):
    x = bench.draw(case, seed, DEVICE)
    return x, fused.sample(x["logits"], x["state"]).tokens


@pytest.mark.parametrize("case", SMALL, ids=lambda c: c.name)
def test_our_tokens_pass_and_no_row_is_left_out(case):
    x, tokens = drawn(case)
    assert bench.check(x, tokens) == 0 == bench.check_peer(x, tokens)
    for row in range(case.batch):
        wrong = tokens.clone()
        wrong[row] = (wrong[row] + 1) % case.vocabulary
        assert bench.check(x, wrong) == pytest.approx(1 / case.batch), f"row {row} was not looked at"


def test_a_token_that_may_come_but_was_not_drawn_is_wrong_for_us_and_right_for_a_peer():
    """Another seed gives tokens that the filters keep, from noise that is not the reference's."""
    x, tokens = drawn(SMALL[0])
    requests = x["requests"]
    requests.seed[:] = np.roll(requests.seed, 1) + np.uint64(2)
    other = fused.sample(x["logits"], State.of(requests, DEVICE)).tokens
    assert not torch.equal(other, tokens)
    assert bench.check_peer(x, other) == 0
    x = bench.draw(SMALL[0], 0, DEVICE)
    assert bench.check(x, other) > 0.5


def test_too_few_tokens_are_wrong():
    x, tokens = drawn(SMALL[0])
    assert bench.check(x, tokens[:-1]) == math.inf


@pytest.mark.parametrize("timed", cases.TIMED, ids=lambda t: f"{t.name} B{t.batch} {t.dtype}")
def test_every_timed_case_has_somebody_to_compare_with(timed):
    assert peers.of(timed)


@pytest.mark.parametrize("ask", ({"top_k": 50, "top_p": 0.9}, {"top_p": 0.5}, {"min_p": 0.05}, {}))
def test_torchs_chains_keep_the_rules(ask):
    case = cases.Case("chain", 6, 3000, ask=ask)
    x = bench.draw(case, 0, DEVICE)
    timed = cases.Timed("chain", 6, 3000, ask=ask)
    met = 0
    for name, factory in peers.of(timed).items():
        if name == "compiled":
            continue
        try:
            call = factory(x)
        except Absent as why:
            assert "flashinfer" in str(why) or "probabilities" in str(why)
            continue
        assert bench.check_peer(x, call()) == 0, name
        met += 1
    assert met

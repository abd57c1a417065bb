"""What a placement may be: every good one, and no other; and that the lab's traces are those that were recorded."""

import json

import numpy as np
import pytest

from grader.paths import ROOT
from grader.topics.expert_load_balance.place_experts.cases import place_experts
from grader.topics.expert_load_balance.place_experts.question import QUESTION
from grader.topics.expert_load_balance.shared import good_placement
from kernels.expert_load_balance import cost_search
from kernels.tiny_model import kept

LOADS = np.array([9.0, 8.0, 1.0, 2.0])
WRONG = {
    "a device too many": ([0, 2, 0, 1], "expert 1 must be on a device from 0 to 1, got 2"),
    "no number": ([0, float("nan"), 0, 1], "expert 1 must be on a device from 0 to 1, got nan"),
    "a half": ([0.5, 1, 0, 1], "expert 0 must be on a device from 0 to 1, got 0.5"),
    "full": ([0, 1, 1, 1], "device 0 must hold 2 experts, its slots, got 1"),
    "busy": ([0, 0, 1, 1], "device 0 runs 17 tokens, at most 13.333 are allowed: 4/3 of the 10"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_placement_that_is_not_good_is_told_why(kind):
    device_of, said = WRONG[kind]
    assert said in good_placement(LOADS, 2, np.array(device_of, float))


@pytest.mark.parametrize("seed", range(20))
def test_heaviest_first_and_whatever_is_better_are_good(seed):
    for call in QUESTION.hidden(np.random.default_rng(seed)):
        loads, devices = call.args
        found = [place_experts(loads, devices)]
        if len(loads) <= 32:
            better = cost_search.searched(loads.tolist(), devices)
            found.append(np.array([copies[0] for copies in better]))
        for device_of in found:
            assert good_placement(loads, devices, device_of.astype(float)) == "", call.kind


def test_the_labs_traces_are_every_fourth_token_of_what_the_model_chose():
    text = (ROOT / "solutions/04_expert_load_balance/traces.json").read_text(encoding="utf-8")
    shown = {
        way: np.array([[int(one) for one in row] for row in rows]) for way, rows in json.loads(text).items()
    }
    recorded = kept.traces()
    assert set(shown) == set(recorded)
    for way, layers in recorded.items():
        assert np.array_equal(shown[way], layers[1][::4]), way

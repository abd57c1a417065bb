"""Calls with arguments that nobody chose: all are drawn again by their number, and a fault is told as one."""

import json
import random
from pathlib import Path

from kernels.bench import random_calls

RECORDED = json.loads((Path(random_calls.__file__).parent / "results" / "random_calls_h200.json").read_text())


def test_every_kind_draws_calls_that_are_allowed_and_the_same_again():
    for kind in dict.fromkeys(random_calls.KINDS):
        names = [kind(random.Random(i)).name for i in range(40)]
        assert names == [kind(random.Random(i)).name for i in range(40)] and len(set(names)) > 30
        assert 0 <= kind(random.Random(0)).tolerance <= 2e-2


def test_an_error_is_told_and_so_is_an_exception():
    def call(ours):
        return random_calls.Call(
            "double", lambda seed, device: seed, ours, lambda x, out: abs(out - 2 * x), 0.5
        )

    assert random_calls.made(call(lambda x: lambda: 2 * x), 3, None) == 0
    assert random_calls.made(call(lambda x: lambda: 2 * x + 1), 3, None) == 1
    assert random_calls.made(call(lambda x: lambda: 1 / 0), 3, None) == "ZeroDivisionError: division by zero"


def test_the_recorded_calls_were_right_but_for_one_gradient_of_a_single_query_with_two_keys():
    """Its own outputs' rounding to 16 bits explains the error, so gradients are drawn with 16 keys since."""
    assert RECORDED["calls"] == 1000 and sum(RECORDED["right"].values()) == 999
    (one,) = RECORDED["rows"]
    assert one["call"] == "attention backward 1 x 2/2 1 x 2 d 32 bf16" and one["error"] < 0.12

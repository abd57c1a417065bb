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


def test_the_recorded_calls_were_all_right():
    assert RECORDED["calls"] == 1000 and sum(RECORDED["right"].values()) == RECORDED["calls"]
    assert RECORDED["rows"] == [] and RECORDED["worst"] < 1

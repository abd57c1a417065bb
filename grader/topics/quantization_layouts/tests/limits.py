"""Whether an answer computed in numpy stays within every case's limits."""

from collections.abc import Callable

import numpy as np

from grader.judge.compare import difference
from grader.proofs.necessity import Drawn


def assert_right(question, computed: Callable[[dict, object], dict], seeds: int) -> None:
    """computed(inputs, case) gives y, for every case of so many checks."""
    for seed in range(seeds):
        drawn = Drawn(question, seed)
        for i in range(len(drawn.cases)):
            inputs, case, want, allowed = drawn.prepared(i)
            with np.errstate(all="ignore"):
                got = computed(inputs, case)
            worst = difference("y", got["y"], want["y"], allowed["y"])
            assert worst is None, f"seed {seed}, {case}: {worst.sentence()}"

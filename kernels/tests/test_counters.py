"""Counters that captured launches keep: a store that is half used up is renewed, and nobody's counters go with it."""

import torch

from kernels.counters import STORED, Counters


def test_a_store_is_renewed_before_captures_have_used_it_up():
    counters = Counters(torch.device("cpu"))
    counters.take(1)
    held = [counters.take(STORED // 4, capturing=True) for _ in range(2)]
    first = held[0].data_ptr()
    counters.take(1)
    held.append(counters.take(8, capturing=True))
    assert held[2].data_ptr() == first + 4 * (STORED // 2), "half used is not more than half used"
    counters.take(1)
    held += [counters.take(STORED, capturing=True), counters.take(8, capturing=True)]
    assert not any(one.any() for one in held)
    assert held[3].data_ptr() != first, "a store of its own size came"
    assert counters.former[0].data_ptr() == first, "graphs go on counting where they were captured"
    counters.take(1)
    again = counters.take(8, capturing=True)
    assert again.data_ptr() == counters.store.data_ptr() and len(counters.former) == 2

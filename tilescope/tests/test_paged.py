"""A tensor larger than memory has room for the pages that programs touch alone."""

import numpy as np
import pytest

from tilescope.machine.errors import OverLimit
from tilescope.machine.storage import PAGE, Paged

SHAPE = (20_000, 30_000)


def offsets(tensor, elements) -> np.ndarray:
    return np.asarray(elements, np.int64) * tensor.itemsize


def test_an_input_repeats_its_pool_at_every_element():
    pool = np.arange(101, dtype=np.float32)
    tensor = Paged("x", 0, pool, "in", SHAPE, (30_000, 1))
    elements = np.array([0, 1, PAGE, 599_999_999, 101 * 7 + 3, 5 * 30_000 + 17])
    place = tensor.in_room(offsets(tensor, elements)) // tensor.itemsize
    assert np.array_equal(tensor.elements[place], pool[elements % 101])
    assert np.array_equal(tensor.numbered(place), elements)
    assert tensor.whole == 600_000_000 and tensor.used == len(np.unique(elements // PAGE))


def test_neighbours_stay_neighbours_and_a_page_keeps_its_place():
    tensor = Paged("y", 1, np.empty(0, np.float16), "out", SHAPE, (30_000, 1))
    first = tensor.in_room(offsets(tensor, [PAGE * 9 + 3, PAGE * 9 + 4, PAGE * 2]))
    again = tensor.in_room(offsets(tensor, [PAGE * 9 + 3, PAGE * 700, PAGE * 2]))
    assert first[1] - first[0] == 2 and again[0] == first[0] and again[2] == first[2]


def test_what_touches_too_much_ends():
    tensor = Paged("y", 1, np.empty(0, np.float16), "out", SHAPE, (30_000, 1))
    with pytest.raises(OverLimit, match="touch more of y than fits"):
        tensor.in_room(offsets(tensor, np.arange(0, 400_000_000, PAGE)))

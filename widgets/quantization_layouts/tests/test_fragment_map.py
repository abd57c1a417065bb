"""The simulator's orders against numpy: what a warp multiplies if the packer's order is another than the kernel's."""

import numpy as np
import pytest

from kernels.quantization_layouts import cost_fragments as fragments
from widgets.quantization_layouts import fragment_map


def multiplied(order: str) -> np.ndarray:
    """Pack the tile into words in the order, and take it apart as the kernel does: an AND, an OR and a shift for each pair."""
    codes = np.array(fragment_map.codes(), np.uint32)
    tile = np.zeros((16, 16), int)
    for lane in range(32):
        word = 0
        for nibble in range(8):
            word |= int(codes[fragment_map.held_in(order, lane, nibble)]) << 4 * nibble
        for register in range(4):
            both = word >> 4 * fragments.nibble_of(2 * register) & 0x000F000F | 0x64006400
            pair = np.array([both], np.uint32).view(np.float16) - np.float16(1024)
            for half in (0, 1):
                tile[fragments.fragment_element(lane, 2 * register + half)] = pair[half]
    return tile


@pytest.mark.parametrize("order", fragment_map.ORDERS)
def test_the_result_is_what_the_kernels_own_steps_multiply(order):
    found, codes, got = fragment_map.run(5, 1, order), np.array(fragment_map.codes()), multiplied(order)
    wanted = codes - 8.0
    assert found.error_share == pytest.approx(np.linalg.norm(got - codes) / np.linalg.norm(wanted))
    assert found.same_codes and sorted(got.ravel()) == sorted(codes.ravel())
    assert found.said == fragment_map.speak(got.tolist())
    assert found.in_place + found.misplaced == 256


def test_the_kernels_own_order_is_right_and_says_the_sentence():
    found = fragment_map.run(5, 1, "fragment")
    assert (found.in_place, found.error_share) == (256, 0)
    assert found.said == found.meant == tuple(fragment_map.WORDS)
    assert found.rows_of_lane == 2


def test_other_orders_move_weights_and_keep_every_word():
    places = {order: fragment_map.run(5, 1, order).in_place for order in fragment_map.ORDERS}
    assert places["plain"] == 128, "half of the numbers from 0 to 7 read the same with their bits reversed"
    assert places["neighbours"] == 0
    assert places["columns"] == 16 * sum(a == b for a, b in enumerate(fragment_map.SORTED))
    for order in ("plain", "neighbours", "rows", "columns"):
        found = fragment_map.run(5, 1, order)
        assert found.said != found.meant and sorted(found.said) == sorted(found.meant)


@pytest.mark.parametrize("order", fragment_map.ORDERS)
def test_every_weight_is_packed_once(order):
    places = {fragment_map.held_in(order, lane, nibble) for lane in range(32) for nibble in range(8)}
    assert len(places) == 256


@pytest.mark.parametrize("order", fragment_map.ORDERS)
def test_the_large_weights_drawn_are_those_of_the_tile_that_is_multiplied(order):
    """Green only where the large weight is at home, and every cell's click names the lane that multiplies it."""
    scene = fragment_map.scene(fragment_map.run(5, 1, order))
    marks = {mark["id"]: mark for mark in scene.marks}
    large = [mark for id, mark in marks.items() if id.startswith("large-")]
    left, top, cell, *_ = fragment_map.PLACES[True]
    drawn = {(round((m["y"] - 1 - top) / cell), round((m["x"] - 1 - left) / cell)): m for m in large}
    homes = {int(id[5:]) for id in marks if id.startswith("home-")}
    assert homes == {int(m["id"][6:]) for m in large if m["role"] == "hot"}, (
        "a home stands empty where one moved"
    )
    tile = multiplied(order)
    assert sorted(drawn) == [tuple(at) for at in np.argwhere(tile == 15).tolist()]
    assert all((m["role"] == "useful") == (row == column + 1) for (row, column), m in drawn.items())
    to = marks["tile"]["set"]
    for row in range(16):
        for column in range(16):
            lane, nibble = to["lane"][16 * row + column], to["nibble"][16 * row + column]
            taken = next(
                slot for slot in fragment_map.run(lane, nibble, order).slots if slot.nibble == nibble
            )
            assert taken.wanted == (row, column)


def test_the_arrow_leads_from_the_weights_place_to_where_it_is_multiplied():
    r = fragment_map.run(5, 5, "rows", True)
    marks = {mark["id"]: mark for mark in fragment_map.scene(r).marks}
    middle = {
        id: (m["x"] + m["w"] / 2, m["y"] + m["h"] / 2) for id, m in marks.items() if id in ("stored", "asked")
    }
    assert tuple(marks["way"]["p"][:4]) == (*middle["stored"], *middle["asked"])
    assert "way" not in {
        mark["id"] for mark in fragment_map.scene(fragment_map.run(5, 5, "fragment", True)).marks
    }


@pytest.mark.parametrize("order", fragment_map.ORDERS)
def test_each_word_has_a_line_from_where_it_is_meant_to_where_it_is_said(order):
    r = fragment_map.run(5, 1, order)
    marks = {mark["id"]: mark for mark in fragment_map.scene(r).marks}
    rows = {marks[f"meant-{n}"]["y"]: n for n in range(16)}
    for n, word in enumerate(r.meant):
        way, said = marks[f"way-{n}"], marks[f"said-{n}"]
        assert said["s"] == marks[f"meant-{n}"]["s"] == word
        assert (way["y"], way["y2"]) == (marks[f"meant-{n}"]["y"] - 6, said["y"] - 6)
        assert r.said[rows[said["y"]]] == word
        assert (way["role"] == "useful") == (way["y"] == way["y2"])
    assert r.words_in_place == sum(marks[f"way-{n}"]["role"] == "useful" for n in range(16))


@pytest.mark.parametrize("order", fragment_map.ORDERS)
def test_the_knob_stands_on_its_weight_and_home_is_the_kernels_order(order):
    marks = {mark["id"]: mark for mark in fragment_map.scene(fragment_map.run(5, 1, order)).marks}
    knob, weight = marks["pull-home"], marks[f"large-{fragment_map.PULLED}"]
    assert (knob["x"], knob["y"]) == (weight["x"] + weight["w"] / 2, weight["y"] + weight["h"] / 2)
    (way,) = knob["drag"]
    assert way["at"] == sorted(set(way["at"])) and way["at"][way["to"].index(order)] == knob["x"]
    left, _, cell, *_ = fragment_map.PLACES[True]
    assert way["at"][way["to"].index("fragment")] == left + (fragment_map.PULLED - 0.5) * cell


def test_a_lanes_details_come_with_a_click():
    def ids(r):
        return {mark["id"] for mark in fragment_map.scene(r).marks}

    shut, opened = (ids(fragment_map.run(5, 1, "rows", details)) for details in (False, True))
    assert not any(id.startswith(("own-", "nibble-", "asked")) for id in shut)
    assert {"own-0", "nibble-7", "asked", "stored"} <= opened
    tile = next(m for m in fragment_map.scene(fragment_map.run(5, 1, "rows")).marks if m["id"] == "tile")
    assert set(tile["set"]["details"]) == {True}

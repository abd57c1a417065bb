"""The rounding model against numpy's own narrow types, and what promotion is worth."""

from decimal import Decimal

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.gemm_tiling import cost
from widgets import scene
from widgets.registry import find

ACCUMULATOR = find("fp8_accumulator")
NARROW = {
    3: ml_dtypes.float8_e4m3fn,
    2: ml_dtypes.float8_e5m2,
    7: ml_dtypes.bfloat16,
    10: np.float16,
    23: np.float32,
}
TERMS = st.lists(st.floats(0.5, 1.5), min_size=1, max_size=150)


@pytest.mark.parametrize("bits", sorted(NARROW))
@given(x=st.floats(0.02, 400))
def test_rounding_is_that_of_the_real_type(bits, x):
    """Inside the range where none of them is subnormal or full; ties go to even, as theirs do."""
    assert cost.round_to_mantissa(x, bits) == float(np.float64(x).astype(NARROW[bits]))


@pytest.mark.parametrize("bits", sorted(NARROW))
@given(terms=TERMS)
def test_a_running_sum_is_that_of_the_real_type(bits, terms):
    dtype, total = NARROW[bits], 0.0
    for term in terms:
        total = float(np.float64(total + term).astype(dtype))
    assert cost.running_sums(terms, bits)[-1] == total


@given(TERMS, st.integers(2, 23), st.sampled_from([1, 4, 16]))
def test_promotion_after_every_term_is_the_wide_sum(terms, bits, every):
    sums = cost.running_sums(terms, bits, every)
    assert len(sums) == len(terms) and sums == sorted(sums)
    if every == 1:
        rounded = [cost.round_to_mantissa(term, bits) for term in terms]
        assert sums == cost.running_sums(rounded, 23)


@given(st.integers(2, 10), st.sampled_from([16, 64, 256, 1024]))
def test_equal_terms_stall_at_two_to_the_bits_plus_one(bits, terms):
    """1 is half the gap at 2^(bits+1), and the tie goes back to the even sum."""
    r = ACCUMULATOR.run(bits, 0, terms, 0.0)
    assert r.narrow.final_sum == min(terms, 2 ** (bits + 1))
    assert r.lost_from == (2 ** (bits + 1) + 1 if terms > 2 ** (bits + 1) else 0)


def test_a_lost_term_changes_nothing_ever_after():
    r = ACCUMULATOR.run(**ACCUMULATOR.inputs())
    assert r.lost_from and len({*r.narrow.sums[r.lost_from - 2 :]}) == 1
    assert r.narrow.sums[r.lost_from - 3] != r.narrow.sums[r.lost_from - 2]


def test_promotion_pays_in_the_state_it_opens_in():
    r = ACCUMULATOR.run(**ACCUMULATOR.inputs())
    assert r.promoted.error_share < 0.01 < 0.4 < r.narrow.error_share


def test_it_opens_at_the_end_where_the_last_term_is_lost():
    r = ACCUMULATOR.run(**ACCUMULATOR.inputs())
    opening = ACCUMULATOR.scenes(r)[ACCUMULATOR.stepper.start(r)]
    assert opening.caption.startswith("Term 64 of 64") and "lost" in opening.caption


@pytest.mark.parametrize("width", [scene.NARROW, scene.WIDE])
def test_a_step_draws_and_says_the_sums_so_far_and_nothing_of_the_end(width):
    r = ACCUMULATOR.run(**ACCUMULATOR.inputs({}))
    for i, step in enumerate(ACCUMULATOR.scenes(r, width=width), start=1):
        marks = {mark["id"]: mark for mark in step.marks}
        for role, sums in (("hot", r.narrow.sums), ("primary", r.promoted.sums)):
            pieces = [m for id, m in marks.items() if id.startswith(f"run-{role}-") and m["t"] != "text"]
            assert len(pieces) == i and {one["clock"] for one in pieces} == {"cursor"}
            assert scene.extent(pieces[-1])[2] == marks["cursor"]["x"]
            assert marks[f"run-{role}-name"]["s"].endswith(f": {scene.units.number(sums[i - 1], 4)}")
        values = [one.value for one in step.figures]
        exact, narrow = r.exact_sums[i - 1], r.narrow.sums[i - 1]
        assert values == [exact, narrow, abs(narrow - exact) / exact, r.promoted.sums[i - 1]]


@pytest.mark.parametrize("width", [scene.NARROW, scene.WIDE])
def test_no_line_covers_a_word_or_the_exact_sum(width):
    result = ACCUMULATOR.run(**ACCUMULATOR.inputs({}))
    step = ACCUMULATOR.scenes(result, width=width)[-1]
    ids = [mark["id"] for mark in step.marks]
    words = [ids.index(mark["id"]) for mark in step.marks if mark["t"] == "text"]
    assert ids.index("cursor") < min(words), "a word's halo parts the line below it"
    assert ids.index("run-secondary-0") > ids.index("run-primary-63")


@given(st.sampled_from([0, 1, 2, 3, 4]), st.sampled_from([4, 16, 64, 128]))
def test_a_promoted_sum_climbs_in_steps_and_its_partial_sum_starts_anew(preset, every):
    """Each step of the stair is as high as the tooth that ends there, and together they are the promoted sum."""
    given = {**list(ACCUMULATOR.presets.values())[preset], "promote_every": every}
    r = ACCUMULATOR.run(**ACCUMULATOR.inputs(given))
    marks = {mark["id"]: mark for mark in ACCUMULATOR.scenes(r)[-1].marks}
    floor = marks["terms-line"]["y"]
    ends = {
        kind: [m for id, m in marks.items() if id.startswith(kind)] for kind in ("run-primary-", "partial-")
    }
    stairs = [m for m in ends["run-primary-"] if m["t"] == "path"]
    teeth = [m for m in ends["partial-"] if m["t"] == "path"]
    assert len(stairs) == len(teeth) == len(ACCUMULATOR.scenes(r))
    scale = marks["sum-grid4"]["y"] - floor
    for n, (stair, tooth) in enumerate(zip(stairs, teeth, strict=True), 1):
        height = (stair["p"][-1] - floor) + (tooth["p"][-1] - floor)
        after = r.promoted.sums[n * len(r.terms) // len(stairs) - 1]
        assert height / scale * len(r.terms) == pytest.approx(after, abs=len(r.terms) / 100)
        drops = [y for y in tooth["p"][1::2] if y == floor]
        assert len(drops) >= len(range(every, len(r.terms) + 1, every)) // len(stairs)


@pytest.mark.parametrize("preset", ACCUMULATOR.presets)
def test_a_printed_addition_is_right_to_its_last_digit(preset):
    r = ACCUMULATOR.run(**ACCUMULATOR.inputs(ACCUMULATOR.presets[preset]))
    for step in ACCUMULATOR.scenes(r):
        said = step.caption.split(": ", 1)[1].split(", rounded")[0].split(", and")[0].replace(",", "")
        added, total = said.split(" = ")
        assert sum(map(Decimal, added.split(" + "))) == Decimal(total)


@pytest.mark.parametrize("width", [scene.WIDE, scene.NARROW])
def test_each_promotion_is_a_dot_on_its_line_while_they_can_be_told_apart(width):
    def dots(**inputs):
        r = ACCUMULATOR.run(**ACCUMULATOR.inputs(inputs))
        marks = ACCUMULATOR.scenes(r, width=width)[-1].marks
        return [m for m in marks if m["id"].startswith("promotion")]

    assert [m["tip"] for m in dots()] == [f"promoted after term {i}" for i in (16, 32, 48, 64)]
    assert len(dots(promote_every=4)) == 16
    assert dots(promote_every=0) == dots(terms=4096) == []


@pytest.mark.parametrize("width", [scene.WIDE, scene.NARROW])
def test_where_sums_stand_too_close_to_draw_their_number_is_said(width):
    def lens(bits):
        marks = ACCUMULATOR.scenes(ACCUMULATOR.run(**ACCUMULATOR.inputs({"bits": bits})), width=width)[
            -1
        ].marks
        title = next(m["s"] for m in marks if m["id"] == "lens-title")
        return title, sum(m["t"] == "line" and m["id"].removeprefix("lens-").isdigit() for m in marks)

    few, many = lens(3), lens(23)
    assert few[1] > 2 and "ticks" in few[0]
    assert many[1] == 0 and "ticks" not in many[0] and "sums" in many[0] and "," in many[0].split("sums")[0]

"""A model's time and memory from measured kernels: the source's figures, and the same of any calibration."""

from itertools import product

import pytest

from kernels.quantization_layouts import cost
from kernels.quantization_layouts import kbit_tables as tables
from kernels.tests.figures import KBIT, REFUSAL, hold, table
from kernels.tests.properties import given, st

FIGURES = [
    (
        KBIT,
        "memory of 70B by k",
        lambda: [b / 1e9 for b in cost.memory_by_bits(70e9).values()],
        [17.5, 26.2, 35.0, 43.7, 140],
        "0.5%",
    ),
    (
        KBIT,
        "a block, M = 1",
        lambda: [cost.block_us(b, 1) for b in (2, 3, 4, 5, 16)],
        [57.8, 65.7, 75.1, 82.3, 100.4],
        "0.5%",
    ),
    (
        KBIT,
        "a block, M = 4",
        lambda: [cost.block_us(b, 4) for b in (2, 3, 4, 5, 16)],
        [69.2, 77.7, 86.4, 94.7, 126.6],
        "0.5%",
    ),
    (KBIT, "pure decode of one user, k = 4", lambda: cost.workload_ratio(4, {1: 100}), 75.1 / 100.4, "0.5%"),
]


@table(FIGURES)
def test_figures_of_the_source(source, given, formula, expect, tolerance):
    hold(formula, expect, tolerance)


def calibration(rows=(1, 4, 16, 64, 512), cost_us=lambda form, m, n, k: 1.0):
    """A run as calibrate.py writes it, with times of our own."""
    found = []
    for form, (shape, (n, k)), m in product(("int4", "k2", "k3", "k4", "k5"), tables.SHAPES.items(), rows):
        us = {"MMA": cost_us(form, m, n, k), "16 bits": 10.0}
        key = {
            "n": n,
            "k": k,
            "experts": tables.MOE_EXPERTS if shape in tables.MOE else 1,
            "form": form,
            "m": m,
        }
        found.append(key | {"us": us, "best": min(us, key=us.get), "best_packed": "MMA"})
    return {"rows": found}


def test_a_calibration_becomes_a_table_of_the_seven_shapes():
    run = calibration(cost_us=lambda form, m, n, k: 2.0 * m)
    of = cost.from_calibration(run)
    assert list(of) == [1, 4, 16, 64, 512]
    assert all(set(of[m]) == set(tables.SHAPES) for m in of)
    assert cost.block_us(4, 16, of) == 7 * 32 and cost.block_us(16, 16, of) == 70
    assert cost.block_speedup(2, 1, of) == 5
    kept = cost.from_calibration(run, packed_only=False)
    assert cost.block_us(4, 16, kept) == 70, "with a 16-bit copy kept, 16 bits answer where they are faster"


def test_a_calibration_cut_short_gives_whole_rows_alone():
    run = calibration()
    run["rows"] = [row for row in run["rows"] if (row["form"], row["m"]) != ("k5", 4)]
    assert list(cost.from_calibration(run)) == [1, 16, 64, 512]


@given(
    us=st.lists(st.floats(1, 100), min_size=3, max_size=3),
    steps=st.lists(st.integers(1, 64), min_size=1, max_size=4),
    bits=st.sampled_from(tables.BITS),
)
def test_a_workload_lies_between_its_steps(us, steps, bits):
    by_m = dict(zip((1, 16, 64), us, strict=True))
    of = cost.from_calibration(calibration(tuple(by_m), lambda form, m, n, k: by_m[m]))
    alone = [cost.workload_ratio(bits, {m: 1}, of) for m in steps]
    whole = cost.workload_ratio(bits, {m: i + 1.0 for i, m in enumerate(steps)}, of)
    assert min(alone) * (1 - 1e-9) <= whole <= max(alone) * (1 + 1e-9)


def test_more_users_lose_what_few_had_won():
    """Decode alone wins at any number of users measured; prefill beside it takes the win away."""
    of = cost.from_calibration(calibration(cost_us=lambda form, m, n, k: 4.0 if m <= 16 else 13.0))
    ratios = cost.concurrency_ratios(4, (1, 4, 16, 64), 256, 0.2, of)
    assert ratios[1] == pytest.approx(0.8 * 0.4 + 0.2 * 1.3) == ratios[16] < 1 < ratios[64]
    assert cost.concurrency_ratios(4, (16,), 256, 0.0, of) == {16: 0.4}


@given(share=st.floats(0, 1), bits=st.sampled_from(tables.BITS))
def test_steps_filled_up_by_a_prompt_move_towards_the_largest_measured_one(share, bits):
    of = cost.from_calibration(calibration((1, 4, 16), cost_us=lambda form, m, n, k: 4.0 * m))
    ratios = cost.filled_ratios(bits, (1, 2, 4, 16), share, of)
    assert ratios[1] == pytest.approx((1 - share) * 0.4 + share * 6.4)
    assert ratios[2] == ratios[4] and ratios[16] == pytest.approx(6.4), (
        "a step that is full has no room for a prompt"
    )
    assert cost.filled_ratios(bits, (1, 2, 4, 16), 0.0, of) == cost.concurrency_ratios(
        bits, (1, 2, 4, 16), 64, 0.0, of
    )


def test_the_first_without_a_win_is_the_fewest_users():
    assert cost.first_without_a_win({8: 1.2, 4: 1.0, 2: 0.9}) == 4
    assert cost.first_without_a_win({1: 0.5, 64: 0.99}) is None


def test_each_shape_has_the_family_of_its_fastest_packed_kernel():
    run = calibration((1, 4))
    run["rows"] = [row for row in run["rows"] if (row["form"], row["m"]) != ("k5", 4)]
    for row in run["rows"]:
        row["best"] = "16 bits"
        row["best_packed"] = "scalar GEMV 16 rows" if row["form"] == "k2" else "MMA ring 4 x 64 rows, early"
        row["us"][row["best_packed"]] = 1.0
    assert cost.fastest_families(run, 2) == {1: dict.fromkeys(tables.SHAPES, "scalar GEMV")}
    assert cost.fastest_families(run, 5) == {1: dict.fromkeys(tables.SHAPES, "MMA")}


def test_every_candidate_s_name_begins_with_its_family():
    """Tables are read where there is no PyTorch, so the family is read off the name."""
    pytest.importorskip("triton")
    from kernels.quantization_layouts.candidates import CANDIDATES

    assert {cost.kernel_family(one.name) == one.family for one in CANDIDATES.values()} == {True}


def test_scales_are_memory_too():
    plain, grouped = cost.memory_by_bits(1e9), cost.memory_by_bits(1e9, group=32)
    assert grouped[4] == pytest.approx(1e9 * 4.5 / 8) and grouped[16] == plain[16] == 2e9


@pytest.mark.parametrize(
    "refused",
    [
        lambda: cost.measured("H1000"),
        lambda: cost.block_us(4, 7),
        lambda: cost.block_us(4, 1, shapes=("V",)),
        lambda: cost.workload_ratio(4, {}),
        lambda: cost.workload_ratio(4, {5: 1}),
        lambda: cost.workload_ratio(4, {1: 0}),
        lambda: cost.workload_ratio(4, {1: -1}),
        lambda: cost.concurrency_ratios(4, (1,), 0, 0.5),
        lambda: cost.concurrency_ratios(4, (1,), 2, 1.5),
        lambda: cost.calibration("H1000"),
        lambda: cost.kernel_family("Marlin"),
        lambda: cost.fastest_families(calibration(), 16),
        lambda: cost.filled_ratios(4, (1,), 1.5),
        lambda: cost.filled_ratios(4, (5,), 0.5),
        lambda: cost.filled_ratios(4, (1,), 0.5, {}),
        lambda: cost.first_without_a_win({}),
        lambda: cost.memory_by_bits(0),
        lambda: cost.memory_by_bits(1, 0),
        lambda: cost.measured_m(0),
    ],
)
def test_nonsense_is_refused(refused):
    with pytest.raises(ValueError, match=REFUSAL):
        refused()

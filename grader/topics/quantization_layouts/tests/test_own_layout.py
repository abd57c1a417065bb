"""A layout of one's own: caps that honest layouts keep and wide ones do not, and cases that right 16-bit answers pass."""

import math
from functools import partial

import numpy as np
import pytest

from grader import questions
from grader.questions import Case
from grader.topics.quantization_layouts.own_layout.cases import most_packed
from grader.topics.quantization_layouts.own_layout.mistakes import turned
from grader.topics.quantization_layouts.tests import spent
from grader.topics.quantization_layouts.tests.limits import assert_right
from grader.topics.quantization_layouts.tests.test_kbit import in_16_bits

OWN = questions.find("quantization_layouts.own_layout")
METERED = [OWN.metered(np.random.default_rng([7, seed])) for seed in range(20)]


def made(case, bits_a_code: float, copies: int = 1) -> float:
    """Bytes of codes in so many bits each, with their scales as they come."""
    n, k = case.sizes["N"], case.sizes["K"]
    return n * math.ceil(k * bits_a_code / 8) * copies + 2 * n * k // 32


def spent_by(
    case,
    bits_a_code: float,
    rows: int = 32,
    integers: float = 8.5,
    scales: int = 1,
    dots: int = 1,
    used: float = 1.0,
    programs: int = 0,
) -> dict:
    """`used` is the share of a sector of codes that a load wants; of a sector of scales it is half."""
    n, k, m = (case.sizes[s] for s in "NKM")
    codes, of_blocks = math.ceil(n * k * bits_a_code / 8), 2 * n * k // 32
    return {
        ("packed", "load", "sectors"): codes / used + 2 * of_blocks,
        ("packed", "load", "dedup"): made(case, bits_a_code) + (scales - 1) * 2 * n * k // 32,
        ("x", "load", "dedup"): 2 * m * k * math.ceil(n / rows),
        ("y", "store", "dedup"): 2 * m * n,
        ("y", "store", "programs"): programs or math.ceil(n / rows),
        ("scratch", "any", "dedup"): 0,
        ("all", "load", "dot"): 2 * 16 * n * k * dots,
        ("all", "load", "operations"): 3.1 * n * k,
        ("all", "load", "integers"): integers * n * k,
    }


def over(case, part: str, form: dict) -> list[str]:
    return spent.over(OWN.budgets[part](case), form)


@pytest.mark.parametrize("gaps", (1.0, 32 / 30, 1.07))
def test_whole_codes_with_small_gaps_keep_every_budget_and_the_cap(gaps):
    for case in METERED:
        bits = case.sizes["BITS"] * gaps
        assert all(over(case, part, spent_by(case, bits, scales=2)) == [] for part in OWN.budgets), case
        assert made(case, min(bits, case.sizes["BITS"] * 32 / 30)) <= most_packed(case), case


def test_waste_is_over_its_budget():
    for case in METERED:
        bits = case.sizes["BITS"]
        assert over(case, "traffic", spent_by(case, 2 * bits)) == ["read of what pack made"], "twice"
        assert over(case, "traffic", spent_by(case, bits, rows=16)) == ["read of X"]
        assert over(case, "traffic", spent_by(case, bits, dots=0)) == ["FLOP in tl.dot"]
        assert over(case, "sectors", spent_by(case, bits, used=1 / 2)) == ["sectors of what pack made"]
        assert over(case, "unpacking", spent_by(case, bits, integers=4 * bits)) == [
            "operations on whole numbers"
        ]
        assert over(case, "unpacking", spent_by(case, bits, programs=2)) == ["programs that store Y"]


@pytest.mark.parametrize("bits, wide", [(3, 4), (4, 8), (5, 8), (2, 4), (3, 16)])
def test_wider_codes_and_copies_are_over_the_cap_where_it_is_counted(bits, wide):
    for case in METERED:
        case = Case({**case.sizes, "BITS": bits})
        assert made(case, bits) <= most_packed(case) < made(case, wide), case
        assert most_packed(case) < made(case, bits, copies=2)


@pytest.mark.parametrize("bits", (3, 5))
def test_whole_codes_in_words_fit_at_every_size(bits):
    """Ten codes of three bits in a word, six of five, and a last word that is part full."""
    for n, k in ((256, 256), (1, 32), (7, 1056), (129, 96)):
        words = n * -(-k // (32 // bits))
        assert 4 * words + 2 * n * k // 32 <= most_packed(Case({"BITS": bits, "N": n, "K": k})), (n, k)


def test_codes_are_of_their_bits_and_know_nothing_of_what_they_meet():
    for case in OWN.hidden(np.random.default_rng(3)):
        weights = OWN.prepare.weights(case, np.random.default_rng(1))
        assert list(weights) == ["codes", "scales", "bits"] and weights["bits"] == case.sizes["BITS"]
        assert weights["codes"].max() < 2 ** weights["bits"]
        assert set(OWN.inputs(case, np.random.default_rng(1))) == {"c", "x"}


@pytest.mark.parametrize("step", (32, 512))
def test_what_16_bits_and_fp32_sums_give_is_right(step):
    assert_right(OWN, partial(in_16_bits, step=step), seeds=2)


def test_neighbours_turned_round_twice_are_where_they_were():
    codes = np.random.default_rng(2).integers(0, 8, (3, 75)).astype(np.uint8)
    for size in (8, 16, 32):
        turn = turned(size)
        assert (turn(turn(codes)) == codes).all() and (turn(codes) != codes).any()

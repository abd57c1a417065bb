"""The schedule of two halves against bounds that hold for any order, and the pieces against sums by hand."""

import itertools

import pytest

from kernels.expert_load_balance import cost_batches as cost
from kernels.machines import machine
from kernels.tests.figures import REFUSAL

H200, LAYER = machine("H200"), cost.Layer()


def test_pieces_are_the_longer_of_bytes_and_arithmetic():
    few, many = (cost.pieces(LAYER, H200, tokens, 4096, 50e9) for tokens in (32, 512))
    cache = 2 * 576 * 4096 * 32
    assert few.attention_s == pytest.approx((187e6 + cache) / 4.8e12)
    assert few.experts_s == pytest.approx(5 * 3 * 7168 * 2048 / 4.8e12), "weights, at few tokens"
    assert many.experts_s == pytest.approx(2 * 9 * 3 * 7168 * 2048 * 512 / H200.rate("fp8"))
    assert few.dispatch_s == pytest.approx(32 * 8 * 63 / 64 * 7168 / 50e9)
    assert few.combine_s == 2 * few.dispatch_s


PIECES = (
    cost.Pieces(3, 1, 2, 2),
    cost.Pieces(1, 4, 1, 3),  # the link is busier
    cost.Pieces(5, 1, 1, 1),
    cost.Pieces(2, 2, 2, 2),
)


@pytest.mark.parametrize("share", [0, 0.25])
@pytest.mark.parametrize("one", PIECES)
def test_no_two_pieces_share_the_sms_or_the_link(one, share):
    events = cost.schedule([one, one], share)
    for where in ("SMs", "link"):
        mine = sorted((e.start_s, e.end_s) for e in events if cost.PIECES[e.piece] == where)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(mine))
    for batch in (0, 1):
        mine = [e for e in events if e.batch == batch]
        assert [e.piece for e in mine] == list(cost.PIECES) * cost.LAYERS
        assert all(a.end_s <= b.start_s for a, b in itertools.pairwise(mine))
    computing = 2 * one.compute_s / (1 - share)
    least = max(computing, 2 * one.exchange_s, computing / 2 + one.exchange_s)
    assert least - 1e-9 <= cost.layer_s(events) <= computing + 2 * one.exchange_s


def test_even_pieces_leave_nothing_idle():
    assert cost.layer_s(cost.schedule([cost.Pieces(2, 2, 2, 2)] * 2)) == pytest.approx(8)
    assert cost.layer_s(cost.schedule([cost.Pieces(3, 1, 2, 2)] * 2)) == pytest.approx(10)


def test_one_batch_takes_the_sum_and_lends_no_sms():
    assert cost.layer_s(cost.schedule([PIECES[0]], 0.5)) == pytest.approx(sum(PIECES[0]))


def test_halves_lose_with_few_tokens_and_win_with_many():
    few, many = (cost.overlap(LAYER, H200, tokens, 4096, 50e9, 0).faster for tokens in (8, 256))
    assert few < 1 < many
    held = [cost.overlap(LAYER, H200, 32, 4096, 50e9, sms).faster for sms in (0, 5, 24)]
    assert held == sorted(held, reverse=True) and held[0] > 1 > held[2]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: cost.overlap(LAYER, H200, 1, 4096, 50e9, 0),
        lambda: cost.overlap(LAYER, H200, 32, 4096, 50e9, 132),
        lambda: cost.overlap(LAYER, H200, 32, 4096, 0, 0),
        lambda: cost.schedule([]),
        lambda: cost.schedule([PIECES[0]], 1.0),
        lambda: cost.layer_s(cost.schedule([PIECES[0]], layers=2)),
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValueError, match=REFUSAL):
        wrong()

"""The expert-parallel layer on four processes: one device's bits, the reference's values, and the bytes it says.

`make proofs` holds eight processes, an expert each, to the same bits and bytes.
"""

import functools

import numpy as np
import pytest
import torch

from kernels.compare import relative_error
from kernels.expert_load_balance import cases, cost, experts, measure_rank, reference
from kernels.expert_load_balance.layer import alone, expert_parallel, weighted_sum
from kernels.expert_load_balance.overlap import SPLITS
from kernels.expert_load_balance.ranks import Ranks
from kernels.expert_load_balance.tests import on_ranks
from kernels.tests.figures import REFUSAL

RANKS = 4


@pytest.fixture(scope="module")
def four():
    """Processes that all tests of this file share: starting them costs more than what they do."""
    with Ranks(RANKS) as ranks:
        yield ranks


def test_every_form_has_the_bits_of_one_device(four):
    assert four.run(measure_rank.same_bits) == [[]] * RANKS


def test_drawn_layers_have_the_bits_of_one_device(four):
    """Seeds 0 to 39: experts, copies, top-k and tokens of each rank are drawn, none among them."""
    assert four.run(on_ranks.drawn_layers, range(40)) == [[]] * RANKS


@pytest.mark.slow
def test_eight_processes_have_the_bits_of_one_device_and_send_what_the_formula_says():
    shape, ranks = cases.SMALL, 8
    with Ranks(ranks) as eight:
        assert eight.run(measure_rank.same_bits) == [[]] * ranks
        assert eight.run(on_ranks.drawn_layers, range(12)) == [[]] * ranks
        held = cost.contiguous(shape.experts, ranks)
        results = eight.run(on_ranks.bytes_of_layer, shape, "even", held, False)
    formula = cost.alltoall_bytes(32, shape.top_k, shape.hidden, ranks, element_bytes=4, combine=True)
    assert sum(one["sent"] for one in results) / ranks == pytest.approx(formula, rel=0.05)


def test_rows_arrive_by_sender_and_only_those_that_travel_count(four):
    table = [[1, 2, 0, 0], [0, 0, 0, 3], [0, 0, 5, 0], [1, 0, 0, 0]]
    results = four.run(on_ranks.all_to_all, table)
    assert [came for came, _, _ in results] == [[0, 300], [1, 1], [202] * 5, [103] * 3]
    assert [sent for _, sent, _ in results] == [24, 36, 0, 12]
    assert [received for _, _, received in results] == [12, 24, 0, 36]


@pytest.mark.parametrize("skew", cases.SKEWS)
@pytest.mark.parametrize("home_first", [False, True])
def test_counted_bytes_are_the_rows_that_leave(four, skew, home_first):
    shape = cases.SMALL
    loads = cases.loads_of_skew(skew, 32 * RANKS, shape.top_k, shape.experts)
    placement = cost.replicate(loads, RANKS, spare_slots=RANKS)
    results = four.run(on_ranks.bytes_of_layer, shape, skew, placement, home_first)
    row = 4 * shape.hidden
    for rank, one in enumerate(results):
        leave = sum(one["rows_to"]) - one["rows_to"][rank]
        come = sum(other["rows_to"][rank] for other in results) - one["rows_to"][rank]
        assert (
            one["sent"] == one["received"] == row * (leave + come)
        )  # out with the dispatch, back with the return


def test_an_even_layer_sends_what_the_formula_says(four):
    shape = cases.SMALL
    contiguous = cost.contiguous(shape.experts, RANKS)
    results = four.run(on_ranks.bytes_of_layer, shape, "even", contiguous, False)
    formula = cost.alltoall_bytes(32, shape.top_k, shape.hidden, RANKS, element_bytes=4, combine=True)
    assert sum(one["sent"] for one in results) / RANKS == pytest.approx(formula, rel=0.05)


def drawn(seed, tokens, shape):
    """x, topk_ids, topk_weights and the experts' stacks as tensors, and the reference's answer."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((tokens, shape.hidden)).astype(np.float32)
    topk_ids, topk_weights = cases.routing("Zipf", tokens, shape.top_k, shape.experts, seed)
    stack = experts.draw(
        shape.experts, shape.hidden, shape.intermediate, dtype=torch.float32, device="cpu", seed=seed
    )
    expected = reference.moe_of_experts(
        x, topk_ids, topk_weights, stack.gate.numpy(), stack.up.numpy(), stack.down.numpy()
    )
    return [torch.from_numpy(a) for a in (x, topk_ids, topk_weights)], stack, expected


@pytest.mark.parametrize("tokens", [0, 1, 37])
@pytest.mark.parametrize("make", [experts.in_fixed_tiles, experts.one_by_one])
def test_one_device_computes_the_reference(tokens, make):
    given, stack, expected = drawn(5, tokens, cases.SMALL)
    out = alone(*given, make(stack), cases.SMALL.experts)
    assert relative_error(out.numpy(), expected) < 1e-6


def test_the_grouped_product_is_the_same_layer_in_bf16():
    given, stack, expected = drawn(6, 40, cases.SMALL)
    stack = experts.Weights(*(w.bfloat16() for w in (stack.gate, stack.up, stack.down)))
    x, topk_ids, topk_weights = given
    for make in (experts.grouped, experts.one_by_one):
        out = alone(x.bfloat16(), topk_ids, topk_weights, make(stack), cases.SMALL.experts)
        assert relative_error(out.float().numpy(), expected) < 1.5e-2
    assert experts.grouped(stack)(x[:0].bfloat16(), [0] * 8).shape == (0, 64)


def test_a_row_in_a_fixed_tile_keeps_its_bits_in_any_company():
    """Seed 7: every row alone, and among others at every place of a tile."""
    stack = experts.draw(1, 128, 64, dtype=torch.float32, device="cpu", seed=7)
    run = experts.in_fixed_tiles(stack)
    rows = torch.randn(experts.TILE + 5, 128, generator=torch.Generator().manual_seed(7))
    whole = run(rows, [len(rows)])
    for i in range(len(rows)):
        assert torch.equal(run(rows[i : i + 1], [1])[0], whole[i])
        assert torch.equal(run(rows[i:], [len(rows) - i])[0], whole[i])


def test_the_sum_takes_first_choices_first():
    rows = torch.tensor([[[1e8], [-1e8], [1.0]]])
    assert weighted_sum(rows, torch.ones(1, 3)).item() == 1.0  # (1e8 - 1e8) + 1; another order loses the 1


X, IDS, WEIGHTS = torch.zeros(3, 4), torch.zeros(3, 2, dtype=torch.int64), torch.ones(3, 2)


@pytest.mark.parametrize(
    "given",
    [
        (X[0], IDS, WEIGHTS),
        (X, IDS[:2], WEIGHTS),
        (X, IDS.int(), WEIGHTS),
        (X, IDS[:, :0], WEIGHTS[:, :0]),
        (X, IDS, WEIGHTS[:, :1]),
        (X, IDS, IDS),
        (X, IDS + 8, WEIGHTS),
        (X, IDS - 1, WEIGHTS),
    ],
)
def test_nonsense_is_refused(given):
    slots = type("Slots", (), {"experts": 8})
    for call in (
        lambda: alone(*given, None, 8),
        lambda: expert_parallel(*given, experts=None, slots=slots, to=None),
        *(functools.partial(s, *given, parts=2, experts=None, slots=slots, to=None) for s in SPLITS.values()),
    ):
        with pytest.raises(ValueError, match=REFUSAL):
            call()


def test_unknown_skews_placements_and_no_parts_are_refused():
    for call in (
        lambda: cases.routing("wild", 4, 2, 8),
        lambda: cases.routing("traced", 4, 2, 16),
        lambda: cases.place("wild", (1, 2), 2),
        lambda: SPLITS["tokens"](X, IDS, WEIGHTS, parts=0, experts=None, slots=None, to=None),
        lambda: SPLITS["experts"](X, IDS, WEIGHTS, parts=0, experts=None, slots=None, to=None),
    ):
        with pytest.raises(ValueError, match=REFUSAL):
            call()

"""The formulas: the source's figures, the kernels' own traffic as it is counted without a GPU, and their limits."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernels.machines import machine
from kernels.sampling_fusion import cases, cost, fused, naive_chain
from kernels.sampling_fusion.requests import Requests
from kernels.sampling_fusion.state import State
from kernels.tensors import to_torch
from kernels.tests.figures import BEYOND, REFUSAL, hold, table

FLEET = cost.Fleet(200e-6, 100, 1000)


@table(
    [
        (BEYOND, "200 us at 100 tok/s: share of a replica", lambda: FLEET.share, 0.02, "exact"),
        (BEYOND, "1000 replicas: replicas' worth", lambda: FLEET.gpus, 20, "exact"),
        (BEYOND, "fused to 20 us gives back", lambda: FLEET.saved(20e-6), 18, "0.1%"),
    ]
)
def test_the_source(source, given, formula, expect, tolerance):
    hold(formula, expect, tolerance)


def test_a_dozen_small_kernels_a_step():
    """The source's naive chain, with every rule that it names."""
    steps = cost.naive_chain(1, 128256, grammar=True, bias=True, history=True)
    assert cost.launches(steps) >= 12
    assert len({s.name for s in steps}) >= 12
    assert cost.chain_bytes(steps) > 40 * cost.fused(1, 128256).total


BATCH, VOCABULARY = st.integers(1, 512), st.integers(1, 300000)


@given(BATCH, VOCABULARY, st.sampled_from([2, 4]), st.integers(1, 1024))
def test_fused_reads_the_logits_once_and_a_little(batch, vocabulary, elem, k):
    f = cost.fused(batch, vocabulary, elem, k)
    assert f.total >= cost.compulsory_bytes(batch, vocabulary, elem)
    assert 1 <= f.passes <= 2
    if vocabulary > 10**5 and k <= 50:
        assert f.passes < 1.04 and f.total < 1.1 * cost.compulsory_bytes(batch, vocabulary, elem)


@given(BATCH, VOCABULARY)
def test_every_rule_costs_and_nothing_comes_free(batch, vocabulary):
    plain = cost.naive_chain(batch, vocabulary)
    more = cost.naive_chain(batch, vocabulary, grammar=True, bias=True, history=True)
    assert cost.chain_bytes(more) > cost.chain_bytes(plain) > cost.fused(batch, vocabulary).total
    h200 = machine("H200")
    naive_s = cost.seconds(cost.chain_bytes(plain), cost.launches(plain), h200)
    assert naive_s > cost.seconds(cost.chain_bytes(plain), cost.launches(plain), h200, graph=True)
    assert naive_s > cost.seconds(cost.fused(batch, vocabulary).total, 1, h200)


def test_a_rule_that_nobody_asks_for_takes_its_kernel_along():
    def size(**off):
        steps = cost.naive_chain(1, 1000, **off)
        return cost.launches(steps), cost.chain_bytes(steps)

    launches, moved = size()
    assert size(top_k=False) == (launches - 1, moved - 4000)  # it wrote the row
    assert size(top_p=False) == (launches - 2, moved - 4 * 4000)  # three for the sum, one to cut by it
    assert size(min_p=False) == (launches - 1, moved - 2 * 4000)
    # clean 2, maximum 1, softmax 2, noise 2, argmax 1 rows of 4,000 bytes; the maximum and the token besides
    assert size(top_k=False, top_p=False, min_p=False) == (5, 8 * 4000 + 4 + 12)


def test_further_reads_of_the_row_are_counted():
    once, twice = cost.fused(3, 5000), cost.fused(3, 5000, reads=2)
    assert twice.total - once.total == 3 * 5000 * 4 and twice.passes == pytest.approx(once.passes + 1)


def test_limits_at_the_timed_sizes():
    """Half a megabyte, 16 and 131: what one read takes at the H200's 4.8 TB/s."""
    h200 = machine("H200")
    found = [cost.compulsory_bytes(b, 128256) / h200.bandwidth * 1e6 for b in (1, 32, 256)]
    assert found == pytest.approx([0.107, 3.42, 27.4], rel=0.01)


def test_reads_of_a_nucleus_by_trying():
    """Draw a place in the mass; while it is not below p, draw again below it. Each draw is one read more."""
    rng = np.random.default_rng(0)
    for p in (0.1, 0.5, 0.9):
        reads = []
        for _ in range(4000):
            above, n = rng.random(), 2
            while above >= p:
                above, n = above * rng.random(), n + 1
            reads.append(n)
        assert np.mean(reads) == pytest.approx(cost.reads_of_nucleus(p), rel=0.03)
    assert cost.reads_of_nucleus(1.0) == 1


def test_bisection_rounds_cover_all_keys():
    assert cost.bisection_rounds(4, 3) == 1 and cost.bisection_rounds(5, 3) == 2
    assert cost.bisection_rounds() == 16 and cost.bisection_rounds(pivots=1) == 32


@pytest.mark.parametrize(
    "call",
    (
        lambda: cost.compulsory_bytes(0, 10),
        lambda: cost.fused(1, 10, k=0),
        lambda: cost.reads_of_nucleus(0),
        lambda: cost.reads_of_nucleus(1.5),
        lambda: cost.Fleet(0, 1, 1),
        lambda: cost.seconds(-1, 1, machine("H200")),
    ),
)
def test_what_cannot_be_is_refused(call):
    with pytest.raises(ValueError, match=REFUSAL):
        call()


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU's loads cannot be counted one by one")
@pytest.mark.parametrize("k", (1, 50))
def test_the_kernel_reads_what_the_formula_says(watch, k):
    """All logits once, then at most k groups and those whose best ties or nearly so."""
    case = cases.Case("metered", 1, 32000, ask={"top_k": k, "top_p": 0.9})
    logits, requests = cases.logits_of(case), cases.requests_of(case)
    x, state = to_torch(logits), State.of(requests, "cpu")
    moved = watch(x)
    fused.sample(x, state)
    once, formula = logits.nbytes, cost.fused(1, 32000, 4, k)
    assert moved.distinct * 4 == once
    again = moved.loaded - once
    assert k * 4 <= again <= 1.5 * formula.chosen + 4 * fused.GROUP * 4


@pytest.mark.parametrize(
    "ask, options",
    (
        ({}, {}),
        ({"draw": "inverse"}, {"inverse": True}),
        ({"grammar": 1, "bias": 1, "history": 1}, {"grammar": True, "bias": True, "history": True}),
    ),
    ids=("plain", "inverse", "everything"),
)
def test_the_naive_chain_launches_what_the_formula_says(monkeypatch, ask, options):
    """Counted where they are launched; torch's sort, sums and argmax are one each to us."""
    tables = {"history": {"outputs": [[1]], "presence": 0.5}, "bias": {"bias": [{1: 1.0}]}}
    more = {k: v for name, table in tables.items() if name in ask for k, v in table.items()}
    if "grammar" in ask:
        more["allowed"] = np.full((1, 2), -1, np.int32)
    requests = Requests.of(1, 50, top_k=5, **more)
    launched = []
    for name in [n for n in vars(naive_chain) if n.endswith("_kernel")]:
        kernel = getattr(naive_chain, name)

        class Counted:
            def __init__(self, kernel, name):
                self.kernel, self.name = kernel, name

            def __getitem__(self, grid):
                launched.append(self.name)
                return self.kernel[grid]

        monkeypatch.setattr(naive_chain, name, Counted(kernel, name))
    naive_chain.sample(torch.zeros(1, 50), State.of(requests, "cpu"), draw=ask.get("draw", "gumbel"))
    ours = [s for s in cost.naive_chain(1, 50, **options) if s.name not in TORCH_STEPS]
    assert len(launched) == sum(s.launches for s in ours)


def test_timed_cases_count_the_masks_that_are_read():
    for timed in cases.TIMED:
        case = timed.case()
        state = State.of(cases.requests_of(replace(case, batch=1, vocabulary=500)), "cpu")
        assert timed.masks == sum(mask is not None for mask in (state.allowed, state.biased, state.seen))


TORCH_STEPS = ("sort", "running sum", "argmax", "gather")


def test_sizes_of_groups_agree():
    assert cost.GROUP == fused.GROUP
    assert math.log2(cost.GROUP).is_integer()

"""The benchmark's rows and rivals on a CPU: a rival that computes something else would be no rival."""

import pytest
import torch

from kernels.next_bottleneck import bench, peers, plain, reference
from kernels.next_bottleneck.cache import PagedCache
from kernels.next_bottleneck.shapes import Shape
from kernels.next_bottleneck.step import Step
from kernels.next_bottleneck.weights import drawn

SMALL = Shape(64, 2, 4, 2, 32, experts=4, top_k=2, intermediate=32, vocabulary=96, page=4)


@pytest.mark.parametrize("rows", [1, 3])
def test_the_rival_of_16_bits_computes_the_step(rows, monkeypatch):
    """Not compiled here; one row gathers its experts, more go through grouped_mm."""
    monkeypatch.setattr(peers, "compiled", lambda function: function)
    weights, keys = drawn(SMALL, seed=2), 7
    cache = PagedCache(SMALL, sequences=rows, most=8, dtype=weights.dtype)
    for sequence in range(rows):
        cache.grow(sequence, keys)
    for one in (*cache.keys, *cache.values):
        one.normal_(generator=torch.Generator().manual_seed(1))
    lens = torch.full((rows,), keys, dtype=torch.int32)
    tokens = torch.arange(rows, dtype=torch.int32) + 5
    turns = torch.from_numpy(reference.turns(8, SMALL.head_dim, SMALL.theta)).float()
    rival = peers.Rival(weights, cache, lens, cache.table, turns, 16)
    want = Step(weights, cache, plain.FILLINGS).logits(tokens, lens, cache.table)
    got = rival(tokens)
    assert (got - want).abs().max() < 0.1 * want.std()
    assert (rival(tokens + 1) - want).abs().max() > want.std()


def test_rows_name_each_case_once_and_their_bytes_grow_with_the_batch():
    found = list(bench.rows("cpu", plain.FILLINGS))
    names = [(row.op, row.case) for row in found]
    assert len(set(names)) == len(names) == 9
    steps = [row.bytes for row in found if row.op == "decode step"]
    assert steps[:3] == sorted(steps[:3])
    assert all(
        set(row.peers) == set(bench.RIVALS)
        for row in found
        if "8 layers" in row.case and row.op == "decode step"
    )


def test_a_wrong_token_is_no_answer():
    inputs = {"expected": torch.eye(2).numpy()}
    logits = torch.eye(2)
    assert bench.check(inputs, (logits, torch.tensor([0, 1]))) == 0
    assert bench.check(inputs, (logits, torch.tensor([0, 0]))) == float("inf")
    assert bench.check(inputs, (2 * logits, torch.tensor([0, 1]))) == 1

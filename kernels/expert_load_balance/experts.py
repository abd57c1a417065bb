"""Run the experts on rows grouped by expert: a gated MLP each, (silu(x @ gate) * (x @ up)) @ down.

A layer takes any callable `experts(rows, counts)`: of rows (n, hidden) the first counts[0] are for its first expert,
the next counts[1] for its second, and so on. It returns the same number of rows. Three are here: fixed tiles, so that
a row's bits do not depend on its neighbours, one matmul per expert, and torch's grouped matmul.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from kernels import torch_grouped

TILE = 16

Experts = Callable[[torch.Tensor, Sequence[int]], torch.Tensor]


@dataclass(frozen=True)
class Weights:
    gate: torch.Tensor  # (experts, hidden, intermediate)
    up: torch.Tensor
    down: torch.Tensor  # (experts, intermediate, hidden)

    def of(self, experts: Sequence[int]) -> "Weights":
        """Return the weights of some experts, in this order. Several ranks may hold the same expert."""
        index = torch.tensor(experts, dtype=torch.long, device=self.gate.device)
        return Weights(*(w.index_select(0, index) for w in (self.gate, self.up, self.down)))


def draw(experts: int, hidden: int, intermediate: int, *, dtype, device, seed: int = 0) -> Weights:
    """Draw random weights that keep the size of activations. They are the same on every rank."""
    rng = torch.Generator(device).manual_seed(seed)
    sizes = [(hidden, intermediate), (hidden, intermediate), (intermediate, hidden)]
    stacks = [torch.empty(experts, *size, dtype=dtype, device=device) for size in sizes]
    for stack in stacks:
        for one in stack:  # one expert at a time, because a float32 copy of all would not fit
            one.copy_(torch.randn(one.shape, generator=rng, device=device) * one.shape[0] ** -0.5)
    return Weights(*stacks)


def gated_mlp(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    return (F.silu(x @ gate) * (x @ up)) @ down


def spans(counts: Sequence[int]):
    """Yield (expert, its first row, the row after its last) of every expert that has rows."""
    start = 0
    for expert, count in enumerate(counts):
        if count:
            yield expert, start, start + count
        start += count


def in_fixed_tiles(weights: Weights, tile: int = TILE) -> Experts:
    """Run every matmul on `tile` rows, padded with zeros, so that the same row gives the same bits in whatever
    company.

    That is what lets a layer on many ranks equal the layer on one, bit for bit. It promises this in fp32 for widths
    that are multiples of 64, where no element falls to the tail of a vector loop.
    """

    def run(rows, counts):
        out = torch.empty_like(rows)
        for e, start, end in spans(counts):
            for at in range(start, end, tile):
                some = rows[at : min(at + tile, end)]
                padded = rows.new_zeros(tile, rows.shape[1])
                padded[: len(some)] = some
                done = gated_mlp(padded, weights.gate[e], weights.up[e], weights.down[e])
                out[at : at + len(some)] = done[: len(some)]
        return out

    return run


def one_by_one(weights: Weights) -> Experts:
    """Compute three products an expert, each over all of its rows."""

    def run(rows, counts):
        out = torch.empty_like(rows)
        for e, start, end in spans(counts):
            out[start:end] = gated_mlp(rows[start:end], weights.gate[e], weights.up[e], weights.down[e])
        return out

    return run


def grouped(weights: Weights) -> Experts:
    """Run three matmuls in all, because torch's grouped one takes every expert's rows in one launch."""
    product = torch_grouped.product()

    def run(rows, counts):
        if not len(rows):
            return torch.empty_like(rows)
        ends = torch.tensor(counts, device=rows.device).cumsum(0).to(torch.int32)
        inner = F.silu(product(rows, weights.gate, offs=ends)) * product(rows, weights.up, offs=ends)
        return product(inner, weights.down, offs=ends)

    return run

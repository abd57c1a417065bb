"""Build the work of a placement's busiest device: the experts that it holds, and the rows that reach it, in order.

Every rank plans its own dispatch, as in the layer, so counts and order are those of a real exchange, and only the
numbers in the rows are drawn. One GPU can play this device, because all others wait for its work between the two
exchanges.
"""

import functools
from dataclasses import dataclass

import numpy as np
import torch

from kernels.expert_load_balance import cases
from kernels.expert_load_balance.dispatch import Slots, plan


@dataclass(frozen=True)
class Busiest:
    rank: int
    held: tuple[int, ...]  # experts, by slot
    got: tuple[tuple[int, ...], ...]  # (senders, slots), rows by sender
    imbalance: float  # of the ranks' rows

    @property
    def rows(self) -> int:
        return sum(map(sum, self.got))

    @property
    def read(self) -> int:
        """Return the number of experts that have a row."""
        return sum(any(column) for column in zip(*self.got, strict=True))

    @property
    def slots(self) -> np.ndarray:
        """(rows,), the slot of each, by sender and then by slot"""
        senders, width = len(self.got), len(self.held)
        return np.repeat(np.tile(np.arange(width), senders), np.ravel(self.got))


@functools.cache
def busiest(setting: cases.Setting) -> Busiest:
    """Return the busiest device, the first among equals."""
    shape, total = setting.shape, setting.ranks * setting.tokens
    topk_ids, _ = cases.routing(setting.skew, total, shape.top_k, shape.experts, seed=total)
    slots = Slots(setting.placed, setting.ranks)
    each = torch.from_numpy(topk_ids).split(setting.tokens)
    sent = np.stack([plan(mine, slots, rank).counts.numpy() for rank, mine in enumerate(each)])
    by_rank = sent.sum((0, 2))
    rank = int(by_rank.argmax())
    held = tuple(slots.held[rank])
    got = tuple(tuple(line) for line in sent[:, rank, : len(held)].tolist())
    return Busiest(rank, held, got, float(by_rank.max() / by_rank.mean()))

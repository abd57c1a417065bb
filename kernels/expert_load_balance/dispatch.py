"""Decide which row goes to which rank. Each rank does so alone, without communication or a wait for a GPU."""

from dataclasses import dataclass

import torch

from kernels import require
from kernels.expert_load_balance.cost_placement import Placement


class Slots:
    """Hold where the copies of each expert are, by rank and by the rank's slot.

    `held[rank]` names the experts of a rank's slots, in rising order. All ranks count `width` slots, so that counts
    form a table, and missing slots stay empty.
    """

    def __init__(self, placement: Placement, ranks: int, device="cpu"):
        require.count(ranks=ranks)
        require.not_empty(placement=placement)
        for expert, copies in enumerate(placement):
            require.not_empty(**{f"copies of expert {expert}": copies})
            if len(set(copies)) < len(copies) or not all(0 <= rank < ranks for rank in copies):
                raise ValueError(
                    f"copies of expert {expert} must be different ranks below {ranks}, got {tuple(copies)}; "
                    "a rank holds an expert once"
                )
        self.experts, self.ranks = len(placement), ranks
        self.held = [[e for e, copies in enumerate(placement) if r in copies] for r in range(ranks)]
        self.width = max(len(held) for held in self.held)
        self.most_copies = max(len(copies) for copies in placement)
        places = [[r * self.width + self.held[r].index(e) for r in c] for e, c in enumerate(placement)]
        padded = [(line * self.most_copies)[: self.most_copies] for line in places]
        self.places = torch.tensor(padded, device=device)  # (experts, copies): rank x width + slot
        self.copies = torch.tensor([len(line) for line in places], device=device)


@dataclass(frozen=True)
class Plan:
    """Hold `order` (pairs,): pairs, numbered token x top_k + position, in the order of sending: by part, rank, slot, number.
    `counts` (ranks, width) says how many rows go to each slot of each rank.
    """

    order: torch.Tensor
    counts: torch.Tensor


def numbered(group: torch.Tensor, groups: int) -> torch.Tensor:
    """Return each element's rank within its group, in order of position."""
    order = torch.argsort(group, stable=True)
    in_order = group[order]
    first = torch.searchsorted(in_order, torch.arange(groups, device=group.device))
    number = torch.empty_like(group)
    number[order] = torch.arange(len(group), device=group.device) - first[in_order]
    return number


def edges(width: int, parts: int) -> list[int]:
    """Part p of the slots is edges[p] .. edges[p + 1]."""
    return [width * p // parts for p in range(parts + 1)]


def plan(topk_ids: torch.Tensor, slots: Slots, rank: int, home_first: bool = False, parts: int = 1) -> Plan:
    """`topk_ids` (tokens, top_k) are the experts of this rank's tokens. `parts` are made of each rank's slots, one
    after another.

    The copies of an expert take turns, and each rank starts at another copy. With `home_first` a copy on this very
    rank takes all the rank's own rows. Then nothing is sent, and loads are even only if the ranks' tokens are alike.
    """
    expert = topk_ids.reshape(-1)
    places = slots.places[expert]  # (pairs, copies)
    if slots.most_copies == 1:
        place = places[:, 0]
    else:
        turn = (numbered(expert, slots.experts) + rank) % slots.copies[expert]
        place = places.gather(1, turn[:, None])[:, 0]
        if home_first:
            here = places // slots.width == rank
            own = places.gather(1, here.int().argmax(1)[:, None])[:, 0]
            place = torch.where(here.any(1), own, place)
    key = place
    if parts > 1:
        begins = torch.tensor(edges(slots.width, parts)[1:-1], device=place.device)
        part = torch.bucketize(place % slots.width, begins, right=True)
        key = place + part * (slots.ranks * slots.width)
    counts = torch.zeros(slots.ranks * slots.width, dtype=torch.int64, device=place.device)
    counts.scatter_add_(0, place, torch.ones_like(place))
    return Plan(torch.argsort(key, stable=True), counts.view(slots.ranks, slots.width))


def by_slot(counts: list[list[int]], device) -> torch.Tensor:
    """Return the order that sorts received rows, which arrive by sender and then slot, by slot and then sender.

    `counts` (senders, slots) are whole numbers, known on the host because the exchange needed them.
    """
    slot = torch.arange(len(counts[0]), device=device).repeat(len(counts))
    each = torch.tensor(counts, device=device).reshape(-1)
    rows = sum(map(sum, counts))
    return torch.argsort(slot.repeat_interleave(each, output_size=rows), stable=True)

"""Run an MoE layer's experts on one device, and on many ranks: dispatch, experts, return, combine.

Which experts a token chooses, and with which weights, is the router's business and comes in as `topk_ids` and
`topk_weights`, both (tokens, top_k). A rank gives the layer its own tokens and gets their results.
"""

from collections.abc import Callable, Sequence

import torch

from kernels.expert_load_balance.communicator import Communicator
from kernels.expert_load_balance.dispatch import Plan, Slots, by_slot, plan
from kernels.expert_load_balance.experts import Experts

Stage = Callable[
    ..., None
]  # called with the name of each stage as it begins, and whether it waits for other ranks


def silent(name: str, waits: bool = False) -> None:
    """Report to no listener."""


def check(x: torch.Tensor, topk_ids: torch.Tensor, topk_weights: torch.Tensor, experts: int) -> None:
    """Check shapes always, and the experts' numbers only on a CPU, because reading them from a GPU would be a wait."""
    if x.ndim != 2:
        raise ValueError(f"x must be (tokens, hidden), got shape {tuple(x.shape)}; one row a token")
    if (
        topk_ids.ndim != 2
        or len(topk_ids) != len(x)
        or not topk_ids.shape[1]
        or topk_ids.dtype != torch.int64
    ):
        raise ValueError(
            f"topk_ids must be ({len(x)}, at least 1) of int64, got {tuple(topk_ids.shape)} of {topk_ids.dtype}; "
            "name each token's experts"
        )
    if topk_weights.shape != topk_ids.shape or not topk_weights.is_floating_point():
        raise ValueError(
            f"topk_weights must be a fraction for each of {tuple(topk_ids.shape)} choices, got {tuple(topk_weights.shape)} "
            f"of {topk_weights.dtype}; give one a chosen expert"
        )
    if (
        topk_ids.device.type == "cpu"
        and topk_ids.numel()
        and not 0 <= topk_ids.min() <= topk_ids.max() < experts
    ):
        raise ValueError(
            f"topk_ids must be from 0 to {experts - 1}, got {topk_ids.min()} to {topk_ids.max()}; number experts from 0"
        )


def weighted_sum(rows: torch.Tensor, topk_weights: torch.Tensor) -> torch.Tensor:
    """Combine (tokens, top_k, hidden) and (tokens, top_k) into (tokens, hidden), first choice first, always, in fp32.

    Sums taken in the order of arrival would differ from run to run.
    """
    total = rows[:, 0] * topk_weights[:, :1].float()
    for j in range(1, rows.shape[1]):
        total += rows[:, j] * topk_weights[:, j : j + 1].float()
    return total.to(rows.dtype)


def put_back(rows: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Put row i at index order[i], which undoes rows[order]."""
    back = torch.empty_like(order)
    back[order] = torch.arange(len(order), device=order.device)
    return rows.index_select(0, back)


def alone(x, topk_ids, topk_weights, experts: Experts, count: int) -> torch.Tensor:
    """Run all `count` experts on one device. Every other form of the layer must equal this one."""
    check(x, topk_ids, topk_weights, count)
    expert, top_k = topk_ids.reshape(-1), topk_ids.shape[1]
    order = torch.argsort(expert, stable=True)
    loads = torch.bincount(expert, minlength=count).tolist()
    rows = experts(x[order // top_k], loads)
    return weighted_sum(put_back(rows, order).view(len(x), top_k, rows.shape[1]), topk_weights)


def run_experts(rows: torch.Tensor, got: Sequence[Sequence[int]], experts: Experts) -> torch.Tensor:
    """Return the results of rows by sender, in the same order. got[sender][slot] counts the rows."""
    order = by_slot(got, rows.device)
    return put_back(experts(rows[order], [sum(column) for column in zip(*got, strict=True)]), order)


def finish(rows: torch.Tensor, one: Plan, topk_weights: torch.Tensor) -> torch.Tensor:
    """Results in the order of sending -> one row a token."""
    return weighted_sum(put_back(rows, one.order).view(*topk_weights.shape, rows.shape[1]), topk_weights)


def expert_parallel(
    x: torch.Tensor,
    topk_ids: torch.Tensor,
    topk_weights: torch.Tensor,
    *,
    experts: Experts,
    slots: Slots,
    to: Communicator,
    stage: Stage = silent,
    home_first: bool = False,
) -> torch.Tensor:
    """Run the layer. `experts` are those of this rank's slots, slots.held[rank], and all ranks call this together."""
    check(x, topk_ids, topk_weights, slots.experts)
    stage("plan")
    one = plan(topk_ids, slots, to.rank, home_first)
    rows = x[one.order // topk_ids.shape[1]]
    stage("counts", waits=True)
    sent, got = to.exchange_counts(one.counts)
    send, receive = [sum(line) for line in sent], [sum(line) for line in got]
    stage("dispatch", waits=True)
    rows = to.send_rows(rows, send, receive).wait()
    stage("experts")
    rows = run_experts(rows, got, experts)
    stage("return", waits=True)
    rows = to.send_rows(rows, receive, send).wait()
    stage("combine")
    out = finish(rows, one, topk_weights)
    stage("done")
    return out

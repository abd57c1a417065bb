"""Hide the layer's exchanges. While the experts work on one part, the next part is in flight.

    dispatch 0
    dispatch 1                 experts 0
    return 0, dispatch 2       experts 1
    return 1                   experts 2
    return 2

A part is some of every rank's experts, so that each expert's weights are read once and its matmul stays whole.
Or it is some of the tokens, as when tokens arrive in batches anyway. Then every part reads all weights again, and if
reading weights is most of the work, two parts cost twice the time of one.

The counts of all parts travel together, so the host waits once a layer. NCCL exchanges on a stream of its own, gloo
in a thread of its own, both one after the other.
"""

from collections.abc import Callable, Sequence

import torch

from kernels import require
from kernels.expert_load_balance.communicator import Communicator
from kernels.expert_load_balance.dispatch import Slots, edges, plan
from kernels.expert_load_balance.experts import Experts
from kernels.expert_load_balance.layer import Stage, check, finish, run_experts, silent

Table = Sequence[Sequence[int]]  # by rank, then slot


def _pipeline(
    rows_of: Callable[[int], torch.Tensor],
    sent: list[Table],
    got: list[Table],
    experts: Experts,
    to: Communicator,
) -> list[torch.Tensor]:
    """Run part after part. Send rows_of(p) by sent[p], compute the rows that arrive by got[p], and send them back."""
    send, receive = ([[sum(line) for line in part] for part in table] for table in (sent, got))
    arriving, returning = to.send_rows(rows_of(0), send[0], receive[0]), []
    for p in range(len(sent)):
        rows = arriving.wait()
        if p + 1 < len(sent):
            arriving = to.send_rows(rows_of(p + 1), send[p + 1], receive[p + 1])
        returning.append(to.send_rows(run_experts(rows, got[p], experts), receive[p], send[p]))
    return [one.wait() for one in returning]


def overlapped_by_experts(
    x: torch.Tensor,
    topk_ids: torch.Tensor,
    topk_weights: torch.Tensor,
    *,
    parts: int,
    experts: Experts,
    slots: Slots,
    to: Communicator,
    stage: Stage = silent,
    home_first: bool = False,
) -> torch.Tensor:
    """Like expert_parallel, the slots of every rank in `parts` parts."""
    require.count(parts=parts)
    check(x, topk_ids, topk_weights, slots.experts)
    stage("plan")
    one = plan(topk_ids, slots, to.rank, home_first, parts)
    rows = x[one.order // topk_ids.shape[1]]
    stage("counts", waits=True)
    sent, got = to.exchange_counts(one.counts)
    stage("overlapped", waits=True)
    cut = edges(slots.width, parts)
    sent, got = (
        [
            [[n * (a <= s < b) for s, n in enumerate(line)] for line in table]
            for a, b in zip(cut, cut[1:], strict=False)
        ]
        for table in (sent, got)
    )  # a part's table keeps its width, because the others' slots have no rows in it
    pieces = rows.split([sum(map(sum, part)) for part in sent])
    back = _pipeline(pieces.__getitem__, sent, got, experts, to)
    out = finish(torch.cat(back), one, topk_weights)
    stage("done")
    return out


def overlapped_by_tokens(
    x: torch.Tensor,
    topk_ids: torch.Tensor,
    topk_weights: torch.Tensor,
    *,
    parts: int,
    experts: Experts,
    slots: Slots,
    to: Communicator,
    stage: Stage = silent,
    home_first: bool = False,
) -> torch.Tensor:
    """Run expert_parallel with the tokens in `parts` parts, the same number of parts on every rank, however many tokens it has."""
    require.count(parts=parts)
    check(x, topk_ids, topk_weights, slots.experts)
    stage("plan")
    xs, choices, shares = (t.tensor_split(parts) for t in (x, topk_ids, topk_weights))
    plans = [plan(part, slots, to.rank, home_first) for part in choices]
    stage("counts", waits=True)
    sent, got = to.exchange_counts(torch.stack([one.counts for one in plans], dim=1))
    stage("overlapped", waits=True)
    sent, got = ([[line[p] for line in table] for p in range(parts)] for table in (sent, got))

    def rows_of(p):
        return xs[p][plans[p].order // topk_ids.shape[1]]

    back = _pipeline(rows_of, sent, got, experts, to)
    out = torch.cat([finish(*one) for one in zip(back, plans, shares, strict=True)])
    stage("done")
    return out


SPLITS = {"experts": overlapped_by_experts, "tokens": overlapped_by_tokens}

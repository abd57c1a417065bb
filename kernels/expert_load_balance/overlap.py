"""The same layer with its exchanges hidden: while the experts work on one part of the tokens, the next is on its way.

The parts' counts travel together, so the host still waits once. Rows then move in this order, each line at once:

    dispatch 0
    dispatch 1     experts 0
    return 0, dispatch 2     experts 1
    return 1       experts 2
    return 2

NCCL exchanges on a stream of its own, gloo in a thread of its own; both take them one after the other.
"""

import torch

from kernels import require
from kernels.expert_load_balance.communicator import Communicator
from kernels.expert_load_balance.dispatch import Slots, plan
from kernels.expert_load_balance.experts import Experts
from kernels.expert_load_balance.layer import Stage, check, finish, run_experts, silent


def overlapped(
    x: torch.Tensor,
    chosen: torch.Tensor,
    weights: torch.Tensor,
    *,
    parts: int,
    experts: Experts,
    slots: Slots,
    to: Communicator,
    stage: Stage = silent,
    home_first: bool = False,
) -> torch.Tensor:
    """Like expert_parallel, in `parts` parts: the same number on every rank, with whatever tokens each has."""
    require.count(parts=parts)
    check(x, chosen, weights, slots.experts)
    stage("plan")
    xs, choices, shares = (t.tensor_split(parts) for t in (x, chosen, weights))
    plans = [plan(part, slots, to.rank, home_first) for part in choices]
    stage("counts", waits=True)
    sent, got = to.exchange_counts(torch.stack([one.counts for one in plans], dim=1))
    sent, got = ([[line[p] for line in table] for p in range(parts)] for table in (sent, got))
    send, receive = ([[sum(line) for line in part] for part in table] for table in (sent, got))

    def dispatch(p):
        return to.send_rows(xs[p][plans[p].order // chosen.shape[1]], send[p], receive[p])

    stage("overlapped", waits=True)
    arriving, returning = dispatch(0), []
    for p in range(parts):
        rows = arriving.wait()
        arriving = dispatch(p + 1) if p + 1 < parts else None
        returning.append(to.send_rows(run_experts(rows, got[p], experts), receive[p], send[p]))
    done = [finish(returning[p].wait(), plans[p], shares[p]) for p in range(parts)]
    stage("done")
    return torch.cat(done)

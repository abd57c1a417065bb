"""What the tests let ranks do: compare layers, count bytes, and go wrong in every way a process can."""

import os
import signal
import time

import numpy as np
import torch
import torch.distributed as dist

from kernels.expert_load_balance import cases, experts
from kernels.expert_load_balance.communicator import Communicator
from kernels.expert_load_balance.dispatch import Slots, plan
from kernels.expert_load_balance.layer import alone, expert_parallel
from kernels.expert_load_balance.overlap import SPLITS


def is_there(pid: int) -> bool:
    """A process of this number, be it a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def who(here) -> tuple:
    return here.rank, here.ranks, os.getpid()


def all_to_all(here, table) -> list:
    """table[sender][receiver] rows of 100 x sender + receiver; what came, and the bytes counted."""
    to = Communicator()
    send, receive = table[here.rank], [line[here.rank] for line in table]
    rows = [torch.full((n, 3), 100.0 * here.rank + r) for r, n in enumerate(send)]
    came = to.send_rows(torch.cat(rows), send, receive).wait()
    return [came[:, 0].tolist(), to.sent_bytes, to.received_bytes]


def drawn_layers(here, seeds) -> list[str]:
    """Layers of drawn sizes, routings and placements, in every form; which of them are not one device's bit for bit."""
    return [why for seed in seeds for why in drawn_layer(here, seed)]


def drawn_layer(here, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    count, tokens = int(rng.integers(1, 11)), rng.integers(0, 30, here.ranks)
    top_k, home_first = int(rng.integers(1, min(count, 4) + 1)), bool(rng.integers(2))
    tokens[rng.integers(here.ranks)] *= rng.integers(2)
    placement = tuple(
        tuple(rng.permutation(here.ranks)[: rng.integers(1, here.ranks + 1)].tolist()) for _ in range(count)
    )
    topk_ids = np.array([rng.permutation(count)[:top_k] for _ in range(tokens.sum())], np.int64)
    topk_ids = torch.from_numpy(topk_ids.reshape(-1, top_k))
    topk_weights = torch.from_numpy(rng.random(topk_ids.shape, np.float32))
    x = torch.from_numpy(rng.standard_normal((tokens.sum(), 64), np.float32))
    stack = experts.draw(count, 64, 64, dtype=torch.float32, device="cpu", seed=seed)
    own = slice(tokens[: here.rank].sum(), tokens[: here.rank + 1].sum())
    wanted = alone(x, topk_ids, topk_weights, experts.in_fixed_tiles(stack), count)[own]
    slots = Slots(placement, here.ranks)
    local = experts.in_fixed_tiles(stack.of(slots.held[here.rank]))
    given = {"experts": local, "slots": slots, "to": Communicator(), "home_first": home_first}
    mine = (x[own], topk_ids[own], topk_weights[own])
    parts = int(rng.integers(1, 5))
    forms = {f"{parts} parts of {of}": split(*mine, parts=parts, **given) for of, split in SPLITS.items()}
    forms["whole"] = expert_parallel(*mine, **given)
    return [f"seed {seed}, {name}" for name, out in forms.items() if not torch.equal(out, wanted)]


def bytes_of_layer(here, shape, skew: str, placement, home_first: bool) -> dict:
    """Counted by the communicator in one layer, beside the rows that the plan sends elsewhere."""
    topk_ids, topk_weights = cases.routing(skew, 32 * here.ranks, shape.top_k, shape.experts)
    own = slice(32 * here.rank, 32 * (here.rank + 1))
    topk_ids, topk_weights = torch.from_numpy(topk_ids[own]), torch.from_numpy(topk_weights[own])
    slots, to = Slots(placement, here.ranks), Communicator()
    expert_parallel(
        torch.ones(32, shape.hidden),
        topk_ids,
        topk_weights,
        experts=lambda rows, counts: rows,
        slots=slots,
        to=to,
        home_first=home_first,
    )
    rows = plan(topk_ids, slots, here.rank, home_first).counts.sum(1).tolist()
    return {"sent": to.sent_bytes, "received": to.received_bytes, "rows_to": rows}


def nobody_waits(here, seconds: float) -> str:
    """Longer than the launcher's patience in all, but every rank moves."""
    for step in range(4):
        here.stage(f"step {step}")
        time.sleep(seconds / 4)
    return "done"


def trouble(here, what: str, whom: int) -> None:
    """Rank `whom` goes wrong in its experts while the others wait for it in an exchange."""
    here.stage("experts")
    if here.rank == whom:
        {
            "dies": lambda: os.kill(os.getpid(), signal.SIGKILL),
            "stops": lambda: os.kill(os.getpid(), signal.SIGSTOP),
            "hangs": lambda: time.sleep(3600),
            "fails": lambda: torch.ones(2) + torch.ones(3),
        }[what]()
    here.stage("return", waits=True)
    dist.all_reduce(torch.ones(1, device=here.device))
    here.stage("waiting for the launcher", waits=True)
    time.sleep(3600)


def all_wait(here) -> None:
    here.stage("a barrier that nobody opens", waits=True)
    time.sleep(3600)

"""Hold requests as tensors on a device, in small columns, and tables that a bit mask makes sparse to read."""

from dataclasses import dataclass

import numpy as np
import torch

from kernels.sampling_fusion.plan import MOST_K
from kernels.sampling_fusion.requests import NUMBERS, Requests, pack_bits
from kernels.sampling_fusion.rules import OURS, Rules
from kernels.tensors import to_torch


@dataclass
class State:
    """Hold what the kernels read. `position` and `counts` move on from step to step, on the device."""

    vocabulary: int
    numbers: torch.Tensor  # fp32 [B, 6], columns as in requests.NUMBERS
    top_k: torch.Tensor  # int32 [B]
    seed: torch.Tensor  # int64 [B], the bits of a uint64
    position: torch.Tensor  # int32 [B]
    allowed: torch.Tensor | None  # int32 [B, W]
    biased: torch.Tensor | None  # int32 [B, W], set where bias holds something
    bias: torch.Tensor | None  # fp32 [B, V]
    seen: torch.Tensor | None  # int32 [B, W], in prompt or output
    counts: torch.Tensor | None  # int32 [B, V], times in the output
    largest_k: int  # what the host knows, so that it need not ask the device
    ranked: bool  # some request is greedy or has a top-k
    free: bool  # some request that is not greedy has no top-k
    filtered: bool  # at least one row has a top-p or min-p
    rules: Rules

    @classmethod
    def of(cls, requests: Requests, device, rules: Rules = OURS) -> "State":
        q = requests
        _check(rules)
        greedy = q.temperature.astype(float) <= rules.greedy_below
        numbers = np.stack([getattr(q, name) for name in NUMBERS], axis=1)
        numbers[greedy, 0] = 0  # the kernels' word for greedy
        k = np.where(greedy, 1, q.top_k)
        ranked = (k > 0) & (k <= min(MOST_K, q.vocabulary))
        tables = _tables(q, device)
        return cls(
            q.vocabulary,
            to_torch(numbers, device),
            to_torch(q.top_k, device),
            to_torch(q.seed.view(np.int64), device),
            to_torch(q.position, device),
            **tables,
            largest_k=int(k[ranked].max(initial=1)),
            ranked=bool(ranked.any()),
            free=bool((~ranked).any()),
            filtered=bool(np.any(~ranked & ((q.top_p < 1) | (q.min_p > 0) | (k > 0)))),
            rules=rules,
        )

    @property
    def batch(self) -> int:
        return self.top_k.numel()

    @property
    def kind(self) -> str:
        """Return the key of plan.TABLES that decides how a launch is cut."""
        if any(table is not None for table in (self.allowed, self.bias, self.counts)):
            return "ruled"
        return "filtered" if self.filtered else "plain" if self.free else "ranked"


FOLLOWED = ("min_p_first", "top_p_of", "greedy_below")


def _check(rules: Rules):
    differ = {n: v for n, v in vars(rules).items() if n not in FOLLOWED and v != getattr(OURS, n)}
    if differ:
        raise ValueError(
            f"rules must differ from ours in {', '.join(FOLLOWED)} alone, got {differ}; "
            "reference.sample follows every switch"
        )


def _tables(q: Requests, device) -> dict:
    tables = dict.fromkeys(("allowed", "biased", "bias", "seen", "counts"))
    if q.allowed is not None:
        tables["allowed"] = to_torch(q.allowed, device)
    added = [q.added(i) for i in range(q.batch)]
    if any(add is not None for add in added):
        bias = np.stack([np.zeros(q.vocabulary, np.float32) if add is None else add for add in added])
        tables["bias"], tables["biased"] = to_torch(bias, device), to_torch(pack_bits(bias != 0), device)
    if q.penalised():
        seen, counts = zip(*(q.history(i) for i in range(q.batch)), strict=True)
        tables["seen"] = to_torch(pack_bits(np.stack(seen)), device)
        tables["counts"] = to_torch(np.stack(counts).astype(np.int32), device)
    return tables

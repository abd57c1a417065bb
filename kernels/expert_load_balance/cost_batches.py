"""Schedule a decode layer with experts in one piece, or in two halves, one computing while the other's rows travel."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from kernels import require
from kernels.machines import Machine

LAYERS = 8  # enough that the start is forgotten
LATENT, ROPE, HEADS = 512, 64, 128  # DeepSeek-V3's attention, a key's cached sizes and the heads that read it


@dataclass(frozen=True)
class Layer:
    """Hold a layer on one of many GPUs, with its parameters in 8 bits, each user's addition, and a row's experts."""

    attention_parameters: float = 187e6
    held_experts: float = 5  # routed and shared ones on this GPU
    hidden: int = 7168
    intermediate: int = 2048
    top_k: int = 8
    ranks: int = 64

    @property
    def expert_parameters(self) -> float:
        return 3.0 * self.hidden * self.intermediate


class Pieces(NamedTuple):
    """Hold the seconds of a layer's four pieces, in the order in which a batch meets them."""

    attention_s: float
    dispatch_s: float
    experts_s: float
    combine_s: float

    @property
    def compute_s(self) -> float:
        return self.attention_s + self.experts_s

    @property
    def exchange_s(self) -> float:
        return self.dispatch_s + self.combine_s


class Event(NamedTuple):
    batch: int
    layer: int
    piece: str  # as in PIECES
    start_s: float
    end_s: float


PIECES = {"attention": "SMs", "dispatch": "link", "experts": "SMs", "combine": "link"}


def pieces(layer: Layer, machine: Machine, tokens: int, keys: int, link_byte_s: float) -> Pieces:
    """Return the four times at best: each the longer of its bytes and its arithmetic. Loads are even."""
    require.count(tokens=tokens, keys=keys)
    require.positive(link_byte_s=link_byte_s)
    fp8, bf16 = machine.rate("fp8"), machine.rate("bf16")
    cache = 2.0 * (LATENT + ROPE) * keys * tokens
    scores = 2.0 * HEADS * (2 * LATENT + ROPE) * keys * tokens
    attention = max(
        (layer.attention_parameters + cache) / machine.bandwidth,
        2.0 * layer.attention_parameters * tokens / fp8 + scores / bf16,
    )
    work = 2.0 * layer.expert_parameters * (layer.top_k + 1) * tokens  # a shared expert has every row
    experts = max(layer.held_experts * layer.expert_parameters / machine.bandwidth, work / fp8)
    row = layer.hidden * layer.top_k * (1 - 1 / layer.ranks) * tokens / link_byte_s
    return Pieces(attention, row, experts, 2 * row)  # 8 bits out, 16 bits back


def schedule(batches: list[Pieces], sms_share: float = 0.0, layers: int = LAYERS) -> list[Event]:
    """Return when each piece runs. Both the SMs and the link take one piece at a time, first come, first served.

    Arithmetic takes longer by the share of the SMs that the exchange holds, if there is another batch to compute.
    """
    require.not_empty(batches=batches)
    require.count(layers=layers)
    require.must(
        0 <= sms_share < 1, "sms_share", "from 0 to below 1", f"{sms_share:g}", "leave SMs to compute"
    )
    slower = 1 / (1 - sms_share) if len(batches) > 1 else 1.0
    ready, free = [0.0] * len(batches), {"SMs": 0.0, "link": 0.0}
    waiting, found = [0] * len(batches), []  # how many pieces of each batch are done
    names = list(PIECES)
    while min(waiting) < layers * len(names):
        open_now = [b for b in range(len(batches)) if waiting[b] < layers * len(names)]
        starts = {b: max(ready[b], free[PIECES[names[waiting[b] % 4]]]) for b in open_now}
        batch = min(open_now, key=lambda b: (starts[b], ready[b], waiting[b], b))
        index = waiting[batch] % 4
        where = PIECES[names[index]]
        end = starts[batch] + batches[batch][index] * (slower if where == "SMs" else 1.0)
        found.append(Event(batch, waiting[batch] // 4, names[index], starts[batch], end))
        ready[batch] = free[where] = end
        waiting[batch] += 1
    return found


def layer_s(events: list[Event]) -> float:
    """Return the seconds that a layer takes once the start is forgotten."""
    last = max(event.layer for event in events)
    require.must(last >= 2, "events", "of three layers or more", last + 1, "schedule more layers")
    ends = [max(e.end_s for e in events if e.layer == n) for n in (last // 2, last)]
    return (ends[1] - ends[0]) / (last - last // 2)


@dataclass(frozen=True)
class Overlap:
    whole: Pieces
    half: Pieces
    whole_s: float  # of a layer in one piece
    halves_s: float
    events: tuple[Event, ...]  # of the halves

    @property
    def faster(self) -> float:
        return self.whole_s / self.halves_s


def overlap(
    layer: Layer, machine: Machine, tokens: int, keys: int, link_byte_s: float, exchange_sms: int
) -> Overlap:
    """Compare a layer in one piece with two halves of its tokens. In one piece nothing computes while rows travel."""
    require.at_most(machine.sms - 1, "SMs have to compute", exchange_sms=exchange_sms)
    require.not_negative(exchange_sms=exchange_sms)
    require.must(tokens >= 2, "tokens", "2 or more", tokens, "one token has no halves")
    whole = pieces(layer, machine, tokens, keys, link_byte_s)
    half = pieces(layer, machine, math.ceil(tokens / 2), keys, link_byte_s)
    events = schedule([half, half], exchange_sms / machine.sms)
    return Overlap(whole, half, sum(whole), layer_s(events), tuple(events))

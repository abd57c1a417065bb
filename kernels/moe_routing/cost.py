"""Count routing's costs, which are half-full tiles, dropped tokens, stragglers, and an MoE layer's bytes and FLOPs.

Sizes are counts, while names of bytes, FLOPs and seconds say so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernels import require
from kernels.moe_routing.cost_forward import Expert, MoeForward, direct_forward, example, moe_forward
from kernels.moe_routing.cost_traffic import Traffic, combine_traffic, grouped_traffic, most_tiles
from kernels.routing import assignments, capacity_limit, drops, expert_loads, hot_loads, imbalance

__all__ = [
    "FUSED_LAUNCHES",
    "STEPS",
    "Expert",
    "ExpertTiles",
    "LayerCost",
    "MoeForward",
    "TileUtilization",
    "Traffic",
    "assignments",
    "capacity_limit",
    "combine_traffic",
    "direct_forward",
    "drops",
    "example",
    "expected_experts",
    "expert_loads",
    "grouped_traffic",
    "hot_loads",
    "imbalance",
    "launches",
    "layer_cost",
    "moe_forward",
    "moe_parameters",
    "most_tiles",
    "route_tiles",
    "step_launches",
    "tile_utilization",
    "unfused_bytes",
]

STEPS = ("router", "top-k", "permute", "grouped GEMM", "un-permute", "combine")
# The steps that one launch runs once they are fused, by the first and the last of STEPS.
FUSED_LAUNCHES = {"router and top-k": (0, 1), "permute": (2, 2), "gate and up": (3, 3), "down": (3, 3),
                  "combine": (4, 5)}  # fmt: skip


@dataclass(frozen=True)
class ExpertTiles:
    """Hold one expert: the pairs sent to it, and the tiles that run."""

    routed: int
    dropped: int
    tile: int

    @property
    def kept(self) -> int:
        return self.routed - self.dropped

    @property
    def tiles(self) -> int:
        return math.ceil(self.kept / self.tile)

    @property
    def slots(self) -> int:
        return self.tiles * self.tile

    @property
    def padded(self) -> int:
        return self.slots - self.kept


@dataclass(frozen=True)
class TileUtilization:
    experts: tuple[ExpertTiles, ...]

    @property
    def routed(self) -> int:
        return sum(one.routed for one in self.experts)

    @property
    def kept(self) -> int:
        return sum(one.kept for one in self.experts)

    @property
    def dropped(self) -> int:
        return sum(one.dropped for one in self.experts)

    @property
    def tiles(self) -> int:
        return sum(one.tiles for one in self.experts)

    @property
    def slots(self) -> int:
        """Return the rows that the tensor cores run, real or not."""
        return sum(one.slots for one in self.experts)

    @property
    def padded(self) -> int:
        return sum(one.padded for one in self.experts)

    @property
    def useful_share(self) -> float:
        """Return the real rows as a share of the rows run."""
        return self.kept / self.slots

    @property
    def dropped_share(self) -> float:
        return self.dropped / self.routed

    @property
    def busiest(self) -> int:
        """Return the expert that keeps most tokens."""
        return max(range(len(self.experts)), key=lambda e: self.experts[e].kept)

    @property
    def straggler(self) -> float:
        """Return the busiest expert's kept tokens over the mean, which is how long all wait when each has its own
        unit."""
        return imbalance([one.kept for one in self.experts])

    @property
    def straggler_tiles(self) -> float:
        """Return the same in tiles, which are the work that a unit really runs."""
        return imbalance([one.tiles for one in self.experts])


def tile_utilization(loads: Sequence[int], tile: int, capacity: int | None = None) -> TileUtilization:
    """Count one grouped GEMM over experts with these loads, in tiles of `tile` rows."""
    require.count(tile=tile)
    lost = drops(loads, capacity)
    require.positive(**{"sum of loads": sum(loads)})
    return TileUtilization(tuple(ExpertTiles(n, out, tile) for n, out in zip(loads, lost, strict=True)))


def route_tiles(
    tokens: int,
    experts: int,
    top_k: int = 1,
    *,
    tile: int,
    skew: float = 0.0,
    capacity_factor: float | None = None,
) -> TileUtilization:
    """Route `tokens` with a given skew, then pack the tiles. A capacity factor of 1 is the balanced share."""
    capacity = None if capacity_factor is None else capacity_limit(tokens, top_k, experts, capacity_factor)
    return tile_utilization(expert_loads(tokens, top_k, experts, skew), tile, capacity)


def expected_experts(tokens: int, top_k: int, experts: int) -> float:
    """Return the expected number of experts hit by `tokens` tokens, if all are equally likely. Their weights must be read."""
    require.whole(tokens=tokens)
    require.count(top_k=top_k, experts=experts)
    require.at_most(experts, "a token picks different experts", top_k=top_k)
    return experts * (1 - (1 - top_k / experts) ** tokens)


def moe_parameters(
    experts: int, top_k: int, hidden: int, intermediate: int, matrices: int = 3
) -> tuple[int, int]:
    """Return the parameters of the experts of a layer, held, and used by one token."""
    require.count(experts=experts, top_k=top_k, hidden=hidden, intermediate=intermediate, matrices=matrices)
    require.at_most(experts, "a token picks different experts", top_k=top_k)
    one = matrices * hidden * intermediate
    return experts * one, top_k * one


def step_launches(active_experts: int, matrices: int = 3) -> tuple[int, ...]:
    """Count the kernels of each of STEPS by itself, where gather, GEMMs with their activation, and scatter run for
    each expert."""
    require.count(active_experts=active_experts, matrices=matrices)
    return 1, 1, active_experts, active_experts * (matrices + 1), active_experts, 1


def launches(active_experts: int, matrices: int = 3, *, fused: bool) -> int:
    """Count the kernels of a layer, each step by itself, or fused."""
    separate = sum(step_launches(active_experts, matrices))
    return len(FUSED_LAUNCHES) if fused else separate


@dataclass(frozen=True)
class LayerCost:
    """Count one MoE layer, each byte once: the experts' weights, the router's, the tokens in and out."""

    router_flops: float
    expert_flops: float
    weight_bytes: float
    router_bytes: float
    token_bytes: float

    @property
    def flops(self) -> float:
        return self.router_flops + self.expert_flops

    @property
    def bytes_moved(self) -> float:
        return self.weight_bytes + self.router_bytes + self.token_bytes

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes_moved


def layer_cost(
    tokens: int,
    top_k: int,
    experts: int,
    hidden: int,
    intermediate: int,
    *,
    active_experts: float | None = None,
    matrices: int = 3,
    weight_element_bytes: float = 2,
    element_bytes: float = 2,
) -> LayerCost:
    """Count a layer of gated MLPs (3 matrices), with the weights of `active_experts`, or by default of the expected
    ones."""
    require.count(tokens=tokens, hidden=hidden, intermediate=intermediate, matrices=matrices)
    require.positive(weight_element_bytes=weight_element_bytes, element_bytes=element_bytes)
    if active_experts is None:
        active_experts = expected_experts(tokens, top_k, experts)
    require.positive(active_experts=active_experts)
    require.at_most(experts, "no more experts can be active than there are", active_experts=active_experts)
    one = matrices * hidden * intermediate
    return LayerCost(
        router_flops=2.0 * tokens * hidden * experts,
        expert_flops=2.0 * tokens * top_k * one,
        weight_bytes=active_experts * one * weight_element_bytes,
        router_bytes=hidden * experts * element_bytes,
        token_bytes=2 * tokens * hidden * element_bytes,
    )


def unfused_bytes(
    tokens: int, top_k: int, hidden: int, intermediate: int, element_bytes: float = 2
) -> dict[str, float]:
    """Return the bytes that the steps write and read again when each is a kernel of its own, tokens only."""
    require.count(tokens=tokens, top_k=top_k, hidden=hidden, intermediate=intermediate)
    require.positive(element_bytes=element_bytes)
    rows = tokens * top_k * element_bytes
    return {
        "permute": tokens * hidden * element_bytes + rows * hidden,
        "gate and up": rows * (hidden + 2 * intermediate),
        "activation": rows * 3 * intermediate,
        "down": rows * (intermediate + hidden),
        "un-permute": 2 * rows * hidden,
        "combine": rows * hidden + tokens * hidden * element_bytes,
    }

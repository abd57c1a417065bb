"""Give tokens to experts, token by token, without a random generator."""

import math
from collections.abc import Sequence

from kernels import require


def _check(tokens: int, top_k: int, experts: int) -> None:
    require.count(tokens=tokens, top_k=top_k, experts=experts)
    require.at_most(experts, "a token picks different experts", top_k=top_k)


def expert_loads(tokens: int, top_k: int, experts: int, skew: float = 0.0) -> tuple[int, ...]:
    """Return the tokens of each expert, whose popularity falls as 1 / rank^skew (0 balanced, 1 Zipf).

    No expert gets more than `tokens`. Whole tokens go by largest remainder, among equals to the lower expert.
    """
    _check(tokens, top_k, experts)
    require.not_negative(skew=skew)
    popularity = [(rank + 1) ** -skew for rank in range(experts)]
    loads, left = [0] * experts, tokens * top_k
    open_experts = list(range(experts))
    while True:
        whole = sum(popularity[e] for e in open_experts)
        quota = {e: left * popularity[e] / whole for e in open_experts}
        full = [e for e in open_experts if quota[e] >= tokens]
        if not full:
            break
        for expert in full:
            loads[expert] = tokens
        left -= tokens * len(full)
        open_experts = [e for e in open_experts if e not in full]
        if not open_experts:
            return tuple(loads)
    for expert in open_experts:
        loads[expert] = math.floor(quota[expert])
    spare = left - sum(loads[e] for e in open_experts)
    for expert in sorted(open_experts, key=lambda e: (loads[e] - quota[e], e))[:spare]:
        loads[expert] += 1
    return tuple(loads)


def hot_loads(tokens: int, top_k: int, experts: int, hot_share: float) -> tuple[int, ...]:
    """Give expert 0 `hot_share` of the tokens, while the others share the rest evenly, for the same work in all."""
    _check(tokens, top_k, experts)
    require.share(hot_share=hot_share)
    if top_k == experts:
        return (tokens,) * experts  # every token picks every expert, whichever is hot
    hot = round(tokens * hot_share)
    base, extra = divmod(tokens * top_k - hot, experts - 1)
    return (hot, *(base + (i < extra) for i in range(experts - 1)))


def assignments(loads: Sequence[int], tokens: int, top_k: int) -> list[tuple[int, ...]]:
    """Return the experts of each token, so that the loads come out and no token gets an expert twice."""
    require.not_empty(loads=loads)
    _check(tokens, top_k, len(loads))
    require.whole(**{f"load of expert {i}": load for i, load in enumerate(loads)})
    require.at_most(tokens, "an expert sees a token once", **{"largest load": max(loads)})
    if sum(loads) != tokens * top_k:
        raise ValueError(
            f"loads must be tokens x top_k = {tokens * top_k} in all, got {sum(loads)}; count every pair"
        )
    pairs = [expert for expert, load in enumerate(loads) for _ in range(load)]
    return [tuple(pairs[token::tokens]) for token in range(tokens)]


def capacity_limit(tokens: int, top_k: int, experts: int, factor: float) -> int:
    """Return the tokens one expert accepts, `factor` times the balanced share, rounded up."""
    _check(tokens, top_k, experts)
    require.positive(factor=factor)
    return math.ceil(round(factor * tokens * top_k / experts, 9))


def drops(loads: Sequence[int], capacity: int | None) -> list[int]:
    """Return the tokens of each expert beyond its capacity. Without a capacity nothing drops."""
    require.not_empty(loads=loads)
    require.whole(**{f"load of expert {i}": load for i, load in enumerate(loads)})
    if capacity is None:
        return [0] * len(loads)
    require.count(capacity=capacity)
    return [max(0, load - capacity) for load in loads]


def imbalance(loads: Sequence[float]) -> float:
    """Return the busiest over the mean, where 1 is even, and the number of members is the worst."""
    require.not_empty(loads=loads)
    require.not_negative(**{f"load {i}": load for i, load in enumerate(loads)})
    require.positive(**{"sum of loads": sum(loads)})
    return max(1.0, max(loads) * len(loads) / sum(loads))  # never below 1 by rounding

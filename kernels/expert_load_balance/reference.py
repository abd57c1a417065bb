"""Define expert load balance in float64, written to be read, as the only reference of the topic.

`topk_ids` (tokens, top_k) names each token's experts, best first. `topk_weights` of the same shape weigh their results. A
placement gives, for each expert, the ranks that hold a copy. Copies share its tokens evenly.
"""

import numpy as np


def loads_of(topk_ids: np.ndarray, experts: int) -> np.ndarray:
    """Return (experts,), how many tokens each is given."""
    return np.bincount(np.asarray(topk_ids).reshape(-1), minlength=experts)


def imbalance(loads: np.ndarray) -> float:
    """Return the busiest over the mean, where 1 is even, and the number of members is the worst."""
    return float(np.max(loads) / np.mean(loads))


def rank_loads(loads: np.ndarray, placement, ranks: int) -> np.ndarray:
    """Return (ranks,), the rows each computes."""
    held = np.zeros(ranks)
    for load, copies in zip(loads, placement, strict=True):
        held[list(copies)] += load / len(copies)
    return held


def step_time(loads: np.ndarray, placement, ranks: int, row_s: float, exchange_s: float = 0.0) -> float:
    """Return the time of the layer, which is over when its busiest rank is. At equal total work, one hot expert makes
    all wait."""
    return float(rank_loads(loads, placement, ranks).max() * row_s + exchange_s)


def kept_by_capacity(topk_ids: np.ndarray, experts: int, capacity: int) -> np.ndarray:
    """Return (tokens, top_k), True where the expert still has room. First choices come before second ones, then
    earlier tokens."""
    kept, taken = np.zeros(topk_ids.shape, bool), np.zeros(experts, int)
    for j in range(topk_ids.shape[1]):
        for t in range(topk_ids.shape[0]):
            expert = topk_ids[t, j]
            kept[t, j] = taken[expert] < capacity
            taken[expert] += kept[t, j]
    return kept


def moe_of_experts(x, topk_ids, topk_weights, gate, up, down, kept=None) -> np.ndarray:
    """Run every token through its experts, one by one: sum of weight x ((silu(x @ gate) * (x @ up)) @ down).

    gate and up (experts, hidden, intermediate), down (experts, intermediate, hidden). A dropped choice adds nothing.
    """
    x, topk_weights, gate, up, down = (a.astype(np.float64) for a in (x, topk_weights, gate, up, down))
    out = np.zeros(x.shape)
    for t, row in enumerate(x):
        for j, e in enumerate(topk_ids[t]):
            if kept is None or kept[t, j]:
                g = row @ gate[e]
                out[t] += topk_weights[t, j] * ((g / (1 + np.exp(-g)) * (row @ up[e])) @ down[e])
    return out


def probabilities(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def auxiliary_loss(logits: np.ndarray, topk_ids: np.ndarray) -> tuple[float, np.ndarray]:
    """Return experts x sum of (share of pairs x mean probability), and its gradient by the logits.

    Return 1 when both are even. Shares are counts and have no gradient, so the loss pushes down the probability of
    whatever is busy, in proportion to how busy it is.
    """
    tokens, experts = logits.shape
    share = loads_of(topk_ids, experts) / topk_ids.size
    p = probabilities(logits.astype(np.float64))
    value = experts * float(share @ p.mean(axis=0))
    gradient = experts / tokens * p * (share - (p @ share)[:, None])
    return value, gradient


def choose(scores: np.ndarray, top_k: int, bias: np.ndarray | None = None) -> np.ndarray:
    """Return the best experts by score + bias, (tokens, top_k), of equals the lower. The bias chooses and weighs nothing."""
    wanted = scores if bias is None else scores + bias
    return np.argsort(-wanted, axis=1, kind="stable")[:, :top_k]


def bias_update(bias: np.ndarray, loads: np.ndarray, rate: float) -> np.ndarray:
    """Balance without a loss, down by `rate` where a load is above the mean, up where it is below."""
    return bias + rate * np.sign(np.mean(loads) - loads)

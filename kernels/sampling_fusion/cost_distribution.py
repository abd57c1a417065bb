"""Follow a row of logits to a draw, small enough to show: the tokens that each rule keeps, and the mass left."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernels import require


@dataclass(frozen=True)
class Ranked:
    """Hold one token, in the order of the ranking."""

    token: int
    logit: float
    plain: float  # its probability at temperature 1, before any rule
    tempered: float  # at this temperature, before any filter
    cut_by: str  # the first rule that drops it, "greedy", "top-k", "top-p" or "min-p", or "" if it is kept
    final: float  # the probability that it is drawn with


def _softmax(values: Sequence[float]) -> list[float]:
    powers = [math.exp(value - max(values)) for value in values]
    whole = math.fsum(powers)
    return [power / whole for power in powers]


def _cuts(tempered: Sequence[float], top_k: int, top_p: float, min_p: float) -> list[str]:
    """Cut by rank (top-k), by the mass that top-k kept (top-p, the crossing token stays), and by the best weight (min-p)."""
    mass, before, cuts = math.fsum(tempered[: top_k or None]), 0.0, []
    for rank, share in enumerate(tempered):
        if top_k and rank >= top_k:
            cuts.append("top-k")
        elif top_p < 1 and before >= top_p * mass:
            cuts.append("top-p")
        else:
            cuts.append("min-p" if share < min_p * tempered[0] else "")
        before += share
    return cuts


def distribution(
    logits: Sequence[float], temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0
) -> list[Ranked]:
    """Return the distribution, best token first, of equals the lower. Temperature 0 keeps the best, top_k 0 and top_p 1 all."""
    require.not_empty(logits=logits)
    require.not_negative(temperature=temperature)
    require.whole(top_k=top_k)
    require.positive(top_p=top_p)
    require.share(top_p=top_p, min_p=min_p)
    order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    ranked = [logits[token] for token in order]
    plain = _softmax(ranked)
    if temperature == 0:
        tempered = [1.0] + [0.0] * (len(ranked) - 1)
        cuts = [""] + ["greedy"] * (len(ranked) - 1)
    else:
        tempered = _softmax([logit / temperature for logit in ranked])
        cuts = _cuts(tempered, top_k, top_p, min_p)
    left = math.fsum(share for share, cut in zip(tempered, cuts, strict=True) if not cut)
    final = [0.0 if cut else share / left for share, cut in zip(tempered, cuts, strict=True)]
    return [Ranked(*one) for one in zip(order, ranked, plain, tempered, cuts, final, strict=True)]


def draw(ranking: Sequence[Ranked], u: float) -> int:
    """Return, by inverse CDF, the rank of the last kept token whose predecessors hold at most u."""
    require.share(u=u)
    before, found = 0.0, 0
    for rank, one in enumerate(ranking):
        if not one.cut_by and before <= u:
            found = rank
        before += one.final
    return found

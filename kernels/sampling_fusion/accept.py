"""Decide whether a float32 kernel's token is right. It may differ from the reference only where rounding may decide.

Borders move by `slack`, so a token near the k-th value, near the mass p or near the best noisy score may fall on
either side. `acceptable` returns every token that some placing of the doubtful ones would draw.
"""

import numpy as np

from kernels.sampling_fusion import philox
from kernels.sampling_fusion.reference import LARGEST, Ranking, is_greedy, kept, processed
from kernels.sampling_fusion.requests import Requests
from kernels.sampling_fusion.rules import OURS, Rules

SLACK = 2e-5  # of a logit's size and of a mass, for some 200 roundings of float32


def bounds(ranking: Ranking, requests: Requests, i: int, rules: Rules, slack: float):
    """(surely kept, possibly kept) by rank."""
    k, p, m = int(requests.top_k[i]), float(requests.top_p[i]), float(requests.min_p[i])
    if is_greedy(requests, i, rules):
        k, p, m = 1, 1.0, 0.0
    n = ranking.token.size
    exact = kept(ranking, k, p, m, rules)
    if not slack:
        return exact, exact
    sure = kept(ranking, k, p * (1 - slack), m * (1 + slack), rules)
    possible = kept(ranking, k, min(1.0, p * (1 + slack)), m * (1 - slack), rules)
    if 0 < k < n:
        last = ranking.x[k - 1]
        near = np.abs(ranking.x - last) <= slack * max(1.0, abs(last))
        # Exactly equal logits have no rounding between them, so their order is part of the meaning.
        if np.ptp(ranking.x[near]) > 0:
            sure, possible = sure & ~near, possible | near
    return sure, possible


def acceptable(
    logits, requests: Requests, i: int, rules: Rules = OURS, draw: str = "gumbel", slack: float = SLACK
) -> set[int]:
    """Return every token that row i may give."""
    x = processed(logits, requests, i)
    temperature = 1.0 if is_greedy(requests, i, rules) else float(requests.temperature[i])
    ranking = Ranking.of(x, temperature)
    if not ranking.token.size:
        return {-1}
    sure, possible = bounds(ranking, requests, i, rules, slack)
    seed, position = int(requests.seed[i]), int(requests.position[i])
    if is_greedy(requests, i, rules):
        return {int(t) for t in ranking.token[possible]}
    if draw == "inverse":
        return _inverse(ranking, sure, possible, seed, position, slack)
    size = np.minimum(np.abs(ranking.x), LARGEST) / temperature
    wobble = slack * (1 + np.minimum(size, abs(ranking.x[0]) / temperature + 50))
    score = (ranking.x - ranking.x[0]) / temperature + philox.gumbel(seed, position, ranking.token)
    floor = (score - wobble)[sure].max(initial=-np.inf)
    return {int(t) for t in ranking.token[possible & (score + wobble >= floor)]}


def _inverse(ranking, sure, possible, seed, position, slack) -> set[int]:
    u = float(philox.row_uniform(seed, position))
    masses = [ranking.weight[keep].sum() for keep in (sure, possible)]
    low, high = u * masses[0] * (1 - slack), u * masses[1] * (1 + slack)
    reach = ranking.before * (1 - slack) <= high
    passed = (ranking.before + ranking.weight) * (1 + slack) >= low
    chosen = possible & reach & passed
    last = np.flatnonzero(possible)[-1]
    chosen[last] |= ranking.before[last] <= high
    return {int(t) for t in ranking.token[chosen]}

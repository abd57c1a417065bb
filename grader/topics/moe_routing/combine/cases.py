"""Draw the inputs of *combine* and limit their cost."""

import numpy as np

from grader.topics.moe_routing.shared_concepts import drawn_ids
from kernels.moe_routing import reference


def combine(rows, inv_permuted_idx, topk_weights):
    return reference.combine_pairs(rows[inv_permuted_idx], topk_weights)


def back(rng, tokens, experts_, k, tile, padding=0.0, hidden=4):
    """Draw rows as experts leave them, their row numbers and the weights. `padding` fills padded rows."""
    found = reference.order(drawn_ids(rng, tokens, experts_, k), experts_, tile)
    rows = rng.standard_normal((found.rows, hidden))
    rows[found.sorted_token_ids == reference.EMPTY] = padding
    topk_weights = rng.dirichlet(np.ones(k), tokens).reshape(tokens, k) * rng.uniform(0.5, 2.5)
    return rows, found.inv_permuted_idx, topk_weights


def unbounded(rng):
    """Put infinities and a NaN into used rows, among which one has a weight of 0."""
    rows, inv_permuted_idx, topk_weights = back(rng, 12, 6, 2, 8, padding=np.nan)
    rows[inv_permuted_idx[0, 0], 0], rows[inv_permuted_idx[3, 1], 1], rows[inv_permuted_idx[5, 0], 2] = (
        np.inf,
        -np.inf,
        np.nan,
    )
    rows[inv_permuted_idx[7, 1]], topk_weights[7, 1] = np.inf, 0.0
    return rows, inv_permuted_idx, topk_weights

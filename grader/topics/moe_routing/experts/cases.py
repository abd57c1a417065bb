"""Draw the inputs of *experts* and limit their cost."""

import numpy as np

from grader.topics.moe_routing.shared_concepts import drawn_ids
from kernels.moe_routing import reference


def experts(rows, expert_offsets, gate_up, down):
    if expert_offsets[0] != 0 or expert_offsets[-1] != len(rows) or np.any(np.diff(expert_offsets) < 0):
        raise ValueError(f"expert_offsets must rise from 0 to {len(rows)}, got {expert_offsets}")
    out = np.zeros((len(rows), down.shape[1]))
    for e in range(len(down)):
        mine = slice(expert_offsets[e], expert_offsets[e + 1])
        with np.errstate(over="ignore"):  # exp(-g) of a gate far below 0 is infinite, and 1 over it 0
            out[mine] = reference.expert(rows[mine], gate_up[e], down[e])
    return out


def layer(rng, tokens, experts_, k, tile, hidden=5, intermediate=3, only=None, size=1.0):
    """Rows in order, with padding, and what the experts hold."""
    found = reference.order(drawn_ids(rng, tokens, experts_, k, only), experts_, tile)
    rows = reference.permute(size * rng.standard_normal((tokens, hidden)), found)
    gate_up = rng.standard_normal((experts_, 2 * intermediate, hidden))
    return rows, found.expert_offsets, gate_up, rng.standard_normal((experts_, hidden, intermediate))

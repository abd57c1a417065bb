"""Compute attention tile by tile in float64, in a kernel's order. The concepts lab asks for it, so students don't get this file."""

import numpy as np

from kernels.flash_attention.reference import scores


def tiled_attention(q, k, v, block: int, scale=None):
    """Compute one head, (length, head_dim) each, key tile by key tile, without ever holding a whole row of scores."""
    out, tops, totals = tiled_states(q, k, v, block, scale)
    return out, tops[-1] + np.log(totals[-1])


def tiled_states(q, k, v, block: int, scale=None):
    """Return the same output, with each query's running maximum and sum after every tile, (tiles, length) each."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    m, total, out = np.full(len(q), -np.inf), np.zeros(len(q)), np.zeros((len(q), v.shape[1]))
    tops, totals = [], []
    for start in range(0, len(k), block):
        s = scores(q, k[start : start + block], scale)
        m_new = np.maximum(m, s.max(axis=1))
        rescale = np.exp(m - m_new)
        p = np.exp(s - m_new[:, None])
        total = total * rescale + p.sum(axis=1)
        out = out * rescale[:, None] + p @ v[start : start + block]
        m = m_new
        tops.append(m)
        totals.append(total)
    return out / total[:, None], np.array(tops), np.array(totals)

"""Compute attention in float64, written to be read, as the only reference of the topic.

Axes: q (batch, heads, length, head_dim), k and v (batch, kv heads, keys, head_dim). Query i has the position of key i
+ keys - length, so the last query has the last key's. `window` = (left, right) limits how many keys to each side of
its own position a query sees (None: no limit). `causal` means a right side of 0. A row that sees no key gives zeros
and a log-sum-exp of -inf.
"""

from collections.abc import Iterator

import numpy as np


def visible(length: int, keys: int, causal: bool = False, window=None) -> np.ndarray:
    """Return (length, keys), whether query i may see key j."""
    left, right = window or (None, None)
    if causal:
        right = 0
    place = np.arange(length)[:, None] + keys - length
    key = np.arange(keys)[None, :]
    seen = np.ones((length, keys), bool)
    if left is not None:
        seen &= key >= place - left
    if right is not None:
        seen &= key <= place + right
    return seen


def softmax(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and log-sum-exp of each row, in two passes. -inf is a score that must not be seen."""
    top = s.max(axis=-1, keepdims=True, initial=-np.inf)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.where(np.isneginf(top), 0, top) + np.log(total))[..., 0]
    return e / np.where(total == 0, 1, total), lse


def for_each_query_head(kv: np.ndarray, q_heads: int) -> np.ndarray:
    """Repeat grouped heads. Key head h serves query heads h * group .. (h + 1) * group - 1."""
    return np.repeat(kv, q_heads // kv.shape[1], axis=1)


def heads(q: np.ndarray, k: np.ndarray) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the indices of each query head and of its key head. Scores of one head at a time take little memory."""
    group = q.shape[1] // k.shape[1]
    return (((b, h), (b, h // group)) for b, h in np.ndindex(*q.shape[:2]))


def scores(q, k, scale=None, softcap=0.0) -> np.ndarray:
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = scale * (q @ np.swapaxes(k, -1, -2))
    return softcap * np.tanh(s / softcap) if softcap else s


def attention(q, k, v, *, causal=False, scale=None, window=None, softcap=0.0):
    """-> output like q, log-sum-exp (batch, heads, length)."""
    q, k, v = (x.astype(np.float64, copy=False) for x in (q, k, v))
    seen = visible(q.shape[2], k.shape[2], causal, window)
    out, lse = np.zeros((*q.shape[:3], v.shape[3])), np.zeros(q.shape[:3])
    for one, kv in heads(q, k):
        p, lse[one] = softmax(np.where(seen, scores(q[one], k[kv], scale, softcap), -np.inf))
        out[one] = p @ v[kv]
    return out, lse


def attention_varlen(q, k, v, cu_q, cu_k, **options):
    """Compute packed q (tokens, heads, head_dim), k and v (keys, kv heads, head_dim). Sequence b has rows
    cu_q[b] .. cu_q[b + 1] of q and cu_k[b] .. cu_k[b + 1] of k. Return output like q, lse (heads, tokens).
    """
    out = np.zeros(q.shape)
    lse = np.full((q.shape[1], q.shape[0]), -np.inf)
    for q0, q1, k0, k1 in zip(cu_q[:-1], cu_q[1:], cu_k[:-1], cu_k[1:], strict=True):
        one = (x.swapaxes(0, 1)[None] for x in (q[q0:q1], k[k0:k1], v[k0:k1]))
        o, log = attention(*one, **options)
        out[q0:q1], lse[:, q0:q1] = o[0].swapaxes(0, 1), log[0]
    return out, lse


def attention_backward(dout, q, k, v, *, causal=False, scale=None, window=None, softcap=0.0):
    """Return dq, dk, dv, the gradients of sum(dout * output)."""
    dout, q, k, v = (x.astype(np.float64) for x in (dout, q, k, v))
    seen = visible(q.shape[2], k.shape[2], causal, window)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    dq, dk, dv = (np.zeros(x.shape) for x in (q, k, v))
    for one, kv in heads(q, k):
        s = scores(q[one], k[kv], scale, softcap)
        p, _ = softmax(np.where(seen, s, -np.inf))
        dp = dout[one] @ v[kv].T
        ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True))
        if softcap:
            ds = ds * (1 - (s / softcap) ** 2)
        dq[one] = scale * ds @ k[kv]
        dk[kv] += scale * ds.T @ q[one]
        dv[kv] += p.T @ dout[one]
    return dq, dk, dv


def gather_pages(pages: np.ndarray, table: np.ndarray) -> np.ndarray:
    """(pages, kv heads, page size, ...) and (batch, pages of a sequence) -> (batch, kv heads, keys, ...)."""
    found = np.swapaxes(pages[table], 1, 2)  # (batch, kv heads, pages of a sequence, page size, ...)
    return found.reshape(*found.shape[:2], -1, *found.shape[4:])


def dequantize(cache: np.ndarray, scale) -> np.ndarray:
    """Multiply a cache of narrow numbers by its scales, which broadcast to the cache's shape without the last axis."""
    return cache.astype(np.float64) * np.broadcast_to(scale, cache.shape[:3])[..., None]


def decode(
    q, k, v, lens=None, *, table=None, k_scale=None, v_scale=None, scale=None, window=None, softcap=0.0
):
    """Attend with q (batch, heads, head_dim), one new token a sequence. Return an output like q, lse (batch, heads).

    The cache is contiguous (batch, kv heads, keys, head_dim), or (pages, kv heads, page size, head_dim) with a table
    of page numbers. `lens` gives each sequence's number of keys, the newest being the query's own.
    """
    if k_scale is not None:
        k, v = dequantize(k, k_scale), dequantize(v, v_scale)
    if table is not None:
        k, v = gather_pages(k, table), gather_pages(v, table)
    out, lse = np.zeros(q.shape), np.full(q.shape[:2], -np.inf)
    for b, keys in enumerate([k.shape[2]] * len(q) if lens is None else lens):
        one = (q[b, None, :, None], k[b, None, :, :keys], v[b, None, :, :keys])
        o, log = attention(*one, scale=scale, window=(window, 0), softcap=softcap)
        out[b], lse[b] = o[0, :, 0], log[0, :, 0]
    return out, lse


def online_softmax(tiles, values=None):
    """Compute one row's softmax in a single pass over tiles of scores. Return the state after each tile.

    A state is (maximum, rescale factor of earlier tiles, sum, output). The output is the weighted mean of `values` so
    far, or None without values. After the last tile it equals the two-pass result.
    """
    m, total, weighted, states = -np.inf, 0.0, 0.0, []
    for i, s in enumerate(np.asarray(t, np.float64) for t in tiles):
        m_new = max(m, s.max())
        rescale = np.exp(m - m_new) if np.isfinite(m) else 0.0
        p = np.exp(s - m_new)
        total = total * rescale + p.sum()
        if values is not None:
            weighted = weighted * rescale + p @ np.asarray(values[i], np.float64)
        m = m_new
        states.append((m, rescale, total, None if values is None else weighted / total))
    return states


def combine(outs: np.ndarray, lses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merge results over disjoint sets of keys into the result over all, for split KV, and for ring attention across
    GPUs.

    outs (splits, ..., head_dim), lses (splits, ...)."""
    weights, lse = softmax(np.moveaxis(lses, 0, -1))
    return np.einsum("...s,s...d->...d", weights, outs), lse

"""Compute the decode step's own operations in float64, written to be read: the only reference of the topic."""

import numpy as np


def residual_norm(x, residual, weight, eps: float) -> tuple[np.ndarray, np.ndarray]:
    """Return (y, the new residual): the residual takes x up, in its own 16 bits, and y is its RMSNorm in float64."""
    if x is not None:
        residual = (x.astype(np.float64) + residual.astype(np.float64)).astype(residual.dtype)
    wide = residual.astype(np.float64)
    return wide / np.sqrt((wide**2).mean(-1, keepdims=True) + eps) * weight.astype(np.float64), residual


def quantized_rows(y) -> tuple[np.ndarray, np.ndarray]:
    """Return int8 codes and a scale for each row, its largest magnitude being 127 steps. A row of zeros has scale 1."""
    top = np.abs(y).max(-1)
    scale = np.where(top == 0, 1.0, top / 127)
    return np.rint(y / scale[:, None]).astype(np.int8), scale


def turns(positions: int, head_dim: int, theta: float) -> np.ndarray:
    """Return (positions, head_dim): the cosines of a position's angles, then the sines."""
    speed = theta ** (-np.arange(head_dim // 2) / (head_dim // 2))
    angle = np.arange(positions)[:, None] * speed
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)


def rotary(qkv, lens, q_norm, k_norm, turns, kv_heads: int, eps: float):
    """Return (q, k, v) by head, (rows, heads, head_dim): q and k normed and turned by position lens - 1."""
    head_dim = len(q_norm)
    heads = qkv.astype(np.float64).reshape(len(qkv), -1, head_dim)
    q, k, v = np.split(heads, [heads.shape[1] - 2 * kv_heads, heads.shape[1] - kv_heads], axis=1)
    cos, sin = np.split(turns[np.asarray(lens) - 1][:, None], 2, axis=-1)
    turned = []
    for x, weight in ((q, q_norm), (k, k_norm)):
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight.astype(np.float64)
        a, b = np.split(x, 2, axis=-1)
        turned.append(np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1))
    return *turned, v


def place(lens, table, page: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (page, token in the page) in which each row's own key belongs."""
    at = np.asarray(lens) - 1
    return np.asarray(table)[np.arange(len(at)), at // page], at % page

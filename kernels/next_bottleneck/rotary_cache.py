"""Fuse QK-norm, rotary and the cache's write in one launch. A program takes one head of one row from qkv to its page.

Apart they are some ten launches, and each reads and writes every head. Together each head is read once and
written once, a query's to q, a key's and a value's straight into their page. The table of cosines and sines is shared
by all layers, so its row is in the L2 after the first.
"""

import torch
import triton
import triton.language as tl

from kernels.overlap import can_overlap, let_next_begin, overlapped, wait_for_last
from kernels.require import must


@triton.jit
def rotary_cache_kernel(
    qkv_ptr,
    lens_ptr,
    table_ptr,
    turns_ptr,
    q_norm_ptr,
    k_norm_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    eps,
    stride_xm,
    stride_tm,
    stride_kp,
    stride_kh,
    stride_kn,
    stride_vp,
    stride_vh,
    stride_vn,
    Q_HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK: tl.constexpr,
    PAGE: tl.constexpr,
    EARLY: tl.constexpr,
):
    if EARLY:
        let_next_begin()
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    offs = tl.arange(0, BLOCK)
    mask = offs < HALF
    place = tl.load(lens_ptr + row) - 1
    page = tl.load(table_ptr + row * stride_tm + place // PAGE).to(tl.int64)
    is_v = head >= Q_HEADS + KV_HEADS
    mask_q = mask & (head < Q_HEADS)
    mask_k = mask & (head >= Q_HEADS) & (head < Q_HEADS + KV_HEADS)
    weight_a = tl.load(q_norm_ptr + offs, mask=mask_q, other=0.0).to(tl.float32)
    weight_a += tl.load(k_norm_ptr + offs, mask=mask_k, other=0.0).to(tl.float32)
    weight_b = tl.load(q_norm_ptr + HALF + offs, mask=mask_q, other=0.0).to(tl.float32)
    weight_b += tl.load(k_norm_ptr + HALF + offs, mask=mask_k, other=0.0).to(tl.float32)
    turn = turns_ptr + place.to(tl.int64) * (2 * HALF) + offs
    cos = tl.load(turn, mask=mask_q | mask_k, other=0.0)
    sin = tl.load(turn + HALF, mask=mask_q | mask_k, other=0.0)
    if EARLY:
        wait_for_last()
    at = qkv_ptr + row * stride_xm + head * (2 * HALF) + offs
    a = tl.load(at, mask=mask, other=0.0)  # (BLOCK,), a head's first half
    b = tl.load(at + HALF, mask=mask, other=0.0)
    if is_v:
        at_v = (
            v_ptr
            + page * stride_vp
            + (head - Q_HEADS - KV_HEADS) * stride_vh
            + place % PAGE * stride_vn
            + offs
        )
        tl.store(at_v, a, mask=mask)
        tl.store(at_v + HALF, b, mask=mask)
    else:
        x = a.to(tl.float32)
        y = b.to(tl.float32)
        rms = tl.rsqrt((tl.sum(x * x, 0) + tl.sum(y * y, 0)) / (2 * HALF) + eps)
        x = x * rms * weight_a
        y = y * rms * weight_b
        first = (x * cos - y * sin).to(q_ptr.dtype.element_ty)
        second = (y * cos + x * sin).to(q_ptr.dtype.element_ty)
        at_q = q_ptr + (row * Q_HEADS + head) * (2 * HALF) + offs
        tl.store(at_q, first, mask=mask_q)
        tl.store(at_q + HALF, second, mask=mask_q)
        at_k = k_ptr + page * stride_kp + (head - Q_HEADS) * stride_kh + place % PAGE * stride_kn + offs
        tl.store(at_k, first, mask=mask_k)
        tl.store(at_k + HALF, second, mask=mask_k)


def rotary_cache(
    qkv, lens, table, k_cache, v_cache, q_norm, k_norm, turns, eps: float, *, early: bool = False
):
    """Return q (rows, q heads, head dim), normed and rotated. Keys and values go into their pages.

    qkv (rows, all heads x head dim), lens int32 (rows,): keys of a row with its own, table int32 (rows, pages of a
    sequence), caches (pages, kv heads, page, head dim), turns fp32 (positions, head dim): cosines, then sines.
    `early` begins while the launch before runs (kernels/overlap.py): lens and table must be at rest.
    """
    rows, head_dim = len(qkv), len(q_norm)
    must(k_cache.ndim == 4 and k_cache.shape == v_cache.shape, "k_cache", "4-d and shaped as v_cache",
         f"{tuple(k_cache.shape)} and {tuple(v_cache.shape)}", "pages, kv heads, page, head dim")  # fmt: skip
    kv_heads, page = k_cache.shape[1:3]
    heads, rest = divmod(qkv.shape[1], head_dim)
    must(
        rest == 0 and heads > 2 * kv_heads and head_dim % 2 == 0,
        "qkv",
        f"of whole heads of {head_dim}, more than {2 * kv_heads} heads",
        qkv.shape[1],
        "q's columns, then k's and v's",
    )
    for name, given in (("qkv", qkv), ("k_cache", k_cache), ("v_cache", v_cache), ("turns", turns)):
        must(given.stride(-1) == 1, name, "dense along its last axis", given.stride(), "call .contiguous()")
    must(k_cache.shape[3] == head_dim, "k_cache", f"of head dim {head_dim}", k_cache.shape[3], "as q_norm")
    alike = len(table) == len(lens) == rows
    must(
        alike, "lens and table", f"of {rows} rows", f"{len(lens)} and {len(table)}", "one for each row of qkv"
    )
    q = torch.empty(rows, heads - 2 * kv_heads, head_dim, dtype=qkv.dtype, device=qkv.device)
    if rows:
        half = head_dim // 2
        early = early and can_overlap(qkv.device)
        rotary_cache_kernel[(rows, heads)](
            qkv,
            lens,
            table,
            turns,
            q_norm,
            k_norm,
            q,
            k_cache,
            v_cache,
            eps,
            qkv.stride(0),
            table.stride(0),
            *k_cache.stride()[:3],
            *v_cache.stride()[:3],
            Q_HEADS=heads - 2 * kv_heads,
            KV_HEADS=kv_heads,
            HALF=half,
            BLOCK=triton.next_power_of_2(half),
            PAGE=page,
            EARLY=early,
            num_warps=1,
            **overlapped(early),
        )
    return q

"""Compute attention backward on every GPU that Triton supports and in an interpreter of its IR, with the same bits each time.

A program of one kernel owns a block of keys and walks over the queries that see these keys. It covers all query heads
that share the key head, so grouped heads need no atomics. A program of the other kernel owns a block of queries and
walks over its keys. The pair computes S and dP twice, and in exchange every sum has a fixed order.
"""

import torch
import triton
import triton.language as tl

from . import arguments

# H200, 2026-11-20, two sweeps at head dims 64 and 128. (block_m, block_n, num_warps, num_stages) by head dim: for dK
# and dV, and for dQ
KV_CONFIGS = {
    16: (64, 64, 4, 2),
    32: (64, 64, 4, 2),
    64: (128, 64, 4, 2),
    128: (64, 64, 4, 2),
    256: (32, 64, 8, 1),
}
Q_CONFIGS = {
    16: (64, 64, 4, 2),
    32: (64, 64, 4, 2),
    64: (64, 64, 4, 3),
    128: (128, 64, 8, 3),
    256: (64, 32, 8, 1),
}
# fp32 tiles take twice the room, so these fit in the 99 KB of an sm_89 too, and spill next to nothing
FP32_KV = {64: (32, 64, 4, 2), 128: (32, 32, 4, 2), 256: (16, 16, 8, 1)}
FP32_Q = {64: (64, 32, 4, 2), 128: (32, 32, 4, 2), 256: (16, 16, 8, 1)}


def choose_configs(block_d: int, itemsize: int) -> tuple:
    """For dK and dV, and for dQ."""
    kv, q = (FP32_KV, FP32_Q) if itemsize == 4 else ({}, {})
    return kv.get(block_d, KV_CONFIGS[block_d]), q.get(block_d, Q_CONFIGS[block_d])


@triton.jit(do_not_specialize=["heads", "q_len"])
def _delta(out_ptr, do_ptr, delta_ptr, stride_ob, stride_oh, stride_om, stride_od, stride_dob, stride_doh, stride_dom,
           stride_dod, heads, q_len, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr):  # fmt: skip
    """Return D_i = sum_d dO_id O_id, which the normalisation of softmax gives back."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D)
    mask = (offs_m < q_len)[:, None] & (offs_d < HEAD_DIM)[None, :]
    rows = offs_m.to(tl.int64)[:, None]
    out_at = out_ptr + batch * stride_ob + head * stride_oh + rows * stride_om + offs_d[None, :] * stride_od
    do_at = do_ptr + batch * stride_dob + head * stride_doh + rows * stride_dom + offs_d[None, :] * stride_dod
    out = tl.load(out_at, mask=mask, other=0.0).to(tl.float32)
    do = tl.load(do_at, mask=mask, other=0.0).to(tl.float32)
    tl.store(
        delta_ptr + tl.program_id(1).to(tl.int64) * q_len + offs_m, tl.sum(out * do, 1), mask=offs_m < q_len
    )


@triton.jit
def _weights(
    s,
    lse,
    query,
    key,
    limits,
    MASKED: tl.constexpr,
    HAS_LEFT: tl.constexpr,
    HAS_RIGHT: tl.constexpr,
    SOFTCAP: tl.constexpr,
):
    """Return P from raw scores, and d(capped score) / d(raw score). `query` and `key` broadcast against s."""
    q_len, k_len, scale, softcap, left, right = limits
    slope = 1.0
    unit = scale
    if SOFTCAP:
        t = 1 - 2 / (tl.exp2(s * (2 * scale / softcap)) + 1)
        s = softcap * t
        slope = 1 - t * t
        unit = 1.4426950408889634
    p = tl.exp2(s * unit - lse * 1.4426950408889634)
    if MASKED:
        shift = k_len - q_len
        seen = (query < q_len) & (key < k_len) & (lse > float("-inf"))
        if HAS_RIGHT:
            seen = seen & (key <= query + shift + right)
        if HAS_LEFT:
            seen = seen & (key >= query + shift - left)
        p = tl.where(seen, p, 0.0)
    return p, slope


@triton.jit
def _walk_queries(dk, dv, k, v, at, strides, offs_n, offs_d, mask_d, limits, first, last, BLOCK_M: tl.constexpr,
                  HAS_LEFT: tl.constexpr, HAS_RIGHT: tl.constexpr, SOFTCAP: tl.constexpr):  # fmt: skip
    """Return dK and dV of one block of keys from queries first .. last. Everything is transposed, so keys are the
    rows.

    One loop, masked throughout where any mask is, because two loops would share accumulators, and then ptxas lets
    their matmuls wait for each other.
    """
    q_at, do_at, lse_at, delta_at = at
    stride_qm, stride_qd, stride_dom, stride_dod = strides
    for start in range(first, last, BLOCK_M):
        offs_m = start + tl.arange(0, BLOCK_M)
        rows = offs_m.to(tl.int64)[:, None]
        inside = offs_m < limits[0]
        mask = inside[:, None] & mask_d[None, :]
        q = tl.load(q_at + rows * stride_qm + offs_d[None, :] * stride_qd, mask=mask, other=0.0)  # (M, D)
        lse = tl.load(lse_at + offs_m, mask=inside, other=float("inf"))  # past the end every weight is 0
        s = tl.dot(k, tl.trans(q))  # (N, M)
        p, slope = _weights(
            s,
            lse[None, :],
            offs_m[None, :],
            offs_n[:, None],
            limits,
            HAS_LEFT or HAS_RIGHT,
            HAS_LEFT,
            HAS_RIGHT,
            SOFTCAP,
        )
        do = tl.load(do_at + rows * stride_dom + offs_d[None, :] * stride_dod, mask=mask, other=0.0)  # (M, D)
        dv = tl.dot(p.to(do.dtype), do, dv)
        delta = tl.load(delta_at + offs_m, mask=inside, other=0.0)
        dp = tl.dot(v, tl.trans(do))  # (N, M)
        ds = p * (dp - delta[None, :]) * slope
        dk = tl.dot(ds.to(q.dtype), q, dk)
    return dk, dv


@triton.jit(do_not_specialize=["kv_heads", "q_len", "k_len", "left", "right"])
def _grad_kv(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr,
             stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
             stride_vb, stride_vh, stride_vn, stride_vd, stride_dob, stride_doh, stride_dom, stride_dod,
             stride_gb, stride_gh, stride_gn, kv_heads, q_len, k_len, scale, softcap, left, right, grad_scale,
             GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr,
             BLOCK_N: tl.constexpr, HAS_LEFT: tl.constexpr, HAS_RIGHT: tl.constexpr, SOFTCAP: tl.constexpr):  # fmt: skip
    block = tl.program_id(0) * BLOCK_N
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    kv_head = (tl.program_id(1) % kv_heads).to(tl.int64)
    offs_n = block + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = offs_d < HEAD_DIM
    mask = (offs_n < k_len)[:, None] & mask_d[None, :]
    rows = offs_n.to(tl.int64)[:, None]
    k_at = k_ptr + batch * stride_kb + kv_head * stride_kh
    v_at = v_ptr + batch * stride_vb + kv_head * stride_vh
    k = tl.load(k_at + rows * stride_kn + offs_d[None, :] * stride_kd, mask=mask, other=0.0)  # (N, D)
    v = tl.load(v_at + rows * stride_vn + offs_d[None, :] * stride_vd, mask=mask, other=0.0)  # (N, D)
    dk = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    dv = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    shift = k_len - q_len
    low = block * 0
    high = q_len
    if HAS_RIGHT:  # query i sees key j from i = j - shift - right on
        low = tl.minimum(tl.maximum(block - shift - right, 0), q_len) // BLOCK_M * BLOCK_M
    if HAS_LEFT:  # and up to i = j - shift + left
        high = tl.minimum(q_len, tl.maximum(block + BLOCK_N - shift + left, 0))
    limits = (q_len, k_len, scale, softcap, left, right)
    strides = (stride_qm, stride_qd, stride_dom, stride_dod)
    for g in range(GROUP):
        head = kv_head * GROUP + g
        q_at = q_ptr + batch * stride_qb + head * stride_qh
        do_at = do_ptr + batch * stride_dob + head * stride_doh
        line = (batch * kv_heads * GROUP + head) * q_len
        at = (q_at, do_at, lse_ptr + line, delta_ptr + line)
        dk, dv = _walk_queries(
            dk, dv, k, v, at, strides, offs_n, offs_d, mask_d, limits, low, high,
            BLOCK_M, HAS_LEFT, HAS_RIGHT, SOFTCAP,
        )  # fmt: skip
    at = batch * stride_gb + kv_head * stride_gh + rows * stride_gn + offs_d[None, :]
    tl.store(dk_ptr + at, (dk * grad_scale).to(dk_ptr.dtype.element_ty), mask=mask)
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _walk_keys(
    dq,
    tensors,
    first,
    last,
    BLOCK_N: tl.constexpr,
    MASKED: tl.constexpr,
    HAS_LEFT: tl.constexpr,
    HAS_RIGHT: tl.constexpr,
    SOFTCAP: tl.constexpr,
):
    """dQ of one block of queries from keys first .. last."""
    q, do, lse, delta, at, strides, offs_m, offs_d, mask_d, limits = tensors
    k_at, v_at = at
    stride_kn, stride_kd, stride_vn, stride_vd = strides
    for start in range(first, last, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        rows = offs_n.to(tl.int64)[:, None]
        mask = (offs_n < limits[1])[:, None] & mask_d[None, :]
        k = tl.load(k_at + rows * stride_kn + offs_d[None, :] * stride_kd, mask=mask, other=0.0)  # (N, D)
        v = tl.load(v_at + rows * stride_vn + offs_d[None, :] * stride_vd, mask=mask, other=0.0)  # (N, D)
        s = tl.dot(q, tl.trans(k))  # (M, N)
        p, slope = _weights(
            s, lse[:, None], offs_m[:, None], offs_n[None, :], limits, MASKED, HAS_LEFT, HAS_RIGHT, SOFTCAP
        )
        dp = tl.dot(do, tl.trans(v))  # (M, N)
        ds = p * (dp - delta[:, None]) * slope
        dq = tl.dot(ds.to(k.dtype), k, dq)
    return dq


@triton.jit(do_not_specialize=["heads", "q_per_kv", "q_len", "k_len", "left", "right"])
def _grad_q(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr,
            stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
            stride_vb, stride_vh, stride_vn, stride_vd, stride_dob, stride_doh, stride_dom, stride_dod,
            stride_gb, stride_gh, stride_gm, heads, q_per_kv, q_len, k_len, scale, softcap, left, right, grad_scale,
            HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            HAS_LEFT: tl.constexpr, HAS_RIGHT: tl.constexpr, SOFTCAP: tl.constexpr):  # fmt: skip
    m_block = tl.program_id(0)
    if HAS_RIGHT:
        m_block = tl.num_programs(0) - 1 - m_block
    row = m_block * BLOCK_M
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    offs_m = row + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = offs_d < HEAD_DIM
    mask = (offs_m < q_len)[:, None] & mask_d[None, :]
    rows = offs_m.to(tl.int64)[:, None]
    q_at = q_ptr + batch * stride_qb + head * stride_qh
    do_at = do_ptr + batch * stride_dob + head * stride_doh
    q = tl.load(q_at + rows * stride_qm + offs_d[None, :] * stride_qd, mask=mask, other=0.0)  # (M, D)
    do = tl.load(do_at + rows * stride_dom + offs_d[None, :] * stride_dod, mask=mask, other=0.0)  # (M, D)
    line = tl.program_id(1).to(tl.int64) * q_len
    lse = tl.load(lse_ptr + line + offs_m, mask=offs_m < q_len, other=float("-inf"))
    delta = tl.load(delta_ptr + line + offs_m, mask=offs_m < q_len, other=0.0)
    shift = k_len - q_len
    low = row * 0
    full_low = row * 0
    high = k_len
    full_high = k_len // BLOCK_N * BLOCK_N
    if HAS_RIGHT:
        high = tl.minimum(k_len, tl.maximum(row + BLOCK_M + shift + right, 0))
        full_high = tl.minimum(full_high, tl.maximum(row + 1 + shift + right, 0) // BLOCK_N * BLOCK_N)
    if HAS_LEFT:
        low = tl.maximum(row + shift - left, 0) // BLOCK_N * BLOCK_N
        full_low = tl.cdiv(tl.maximum(row + BLOCK_M - 1 + shift - left, 0), BLOCK_N) * BLOCK_N
    full_low = tl.minimum(full_low, tl.cdiv(tl.maximum(high, low), BLOCK_N) * BLOCK_N)
    full_high = tl.maximum(full_high, full_low)
    limits = (q_len, k_len, scale, softcap, left, right)
    strides = (stride_kn, stride_kd, stride_vn, stride_vd)
    kv_head = head // q_per_kv
    at = (k_ptr + batch * stride_kb + kv_head * stride_kh, v_ptr + batch * stride_vb + kv_head * stride_vh)
    dq = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    tensors = (q, do, lse, delta, at, strides, offs_m, offs_d, mask_d, limits)
    if HAS_LEFT:
        dq = _walk_keys(dq, tensors, low, full_low, BLOCK_N, True, HAS_LEFT, HAS_RIGHT, SOFTCAP)
    dq = _walk_keys(dq, tensors, full_low, full_high, BLOCK_N, False, HAS_LEFT, HAS_RIGHT, SOFTCAP)
    dq = _walk_keys(dq, tensors, full_high, high, BLOCK_N, True, HAS_LEFT, HAS_RIGHT, SOFTCAP)
    at = batch * stride_gb + head * stride_gh + rows * stride_gm + offs_d[None, :]
    tl.store(dq_ptr + at, (dq * grad_scale).to(dq_ptr.dtype.element_ty), mask=mask)


def launch(dout, q, k, v, out, lse, grads, plan, kv_config=None, q_config=None):
    """Fill grads = (dq, dk, dv) of any strides."""
    dq, dk, dv = grads
    heads, q_len, d = q.shape[1:]
    batch, k_len = plan.batch, plan.k_len
    delta = torch.empty_like(lse)
    _delta[(triton.cdiv(q_len, 64), batch * heads)](
        out,
        dout,
        delta,
        *out.stride(),
        *dout.stride(),
        heads,
        q_len,
        HEAD_DIM=d,
        BLOCK_D=plan.block_d,
        BLOCK_M=64,
    )
    strides = (*q.stride(), *k.stride(), *v.stride(), *dout.stride())
    scale, left, right = plan.scale, plan.left, plan.right
    numbers = (q_len, k_len, scale * arguments.LOG2E, plan.softcap, left or 0, right or 0, scale)
    flags = dict(
        HEAD_DIM=d,
        BLOCK_D=plan.block_d,
        HAS_LEFT=left is not None,
        HAS_RIGHT=right is not None,
        SOFTCAP=plan.softcap > 0,
    )
    for_kv, for_q = choose_configs(plan.block_d, q.itemsize)
    block_m, block_n, num_warps, num_stages = kv_config or for_kv
    _grad_kv[(triton.cdiv(k_len, block_n), batch * k.shape[1])](
        q, k, v, dout, lse, delta, dk, dv, *strides, *dk.stride()[:3], k.shape[1], *numbers, GROUP=plan.q_per_kv,
        BLOCK_M=block_m, BLOCK_N=block_n, num_warps=num_warps, num_stages=num_stages, **flags,
    )  # fmt: skip
    block_m, block_n, num_warps, num_stages = q_config or for_q
    _grad_q[(triton.cdiv(q_len, block_m), batch * heads)](
        q, k, v, dout, lse, delta, dq, *strides, *dq.stride()[:3], heads, plan.q_per_kv, *numbers,
        BLOCK_M=block_m, BLOCK_N=block_n, num_warps=num_warps, num_stages=num_stages, **flags,
    )  # fmt: skip

"""Compute attention forward on every GPU that Triton supports and in an interpreter of its IR.

A program owns BLOCK_M queries and walks over the keys in tiles. It keeps a running maximum, a running sum and
the unnormalized output in registers, so the score matrix never exists in memory. Tiles that no query of the
block may see are never loaded, and only tiles that a mask cuts pay for one.
"""

import triton
import triton.language as tl

from . import arguments

LOG2E = 1.4426950408889634
# (block_m, block_n, num_warps, num_stages) by head dim
CONFIGS = {
    16: (128, 64, 4, 3),
    32: (128, 64, 4, 3),
    64: (128, 64, 4, 3),
    128: (128, 64, 8, 3),
    256: (64, 32, 4, 2),
}
# fp32 tiles take twice the room, so these fit in the 99 KB of an sm_89 too, and spill next to nothing
FP32 = {64: (128, 64, 8, 2), 128: (64, 16, 8, 2), 256: (32, 32, 8, 1)}


def choose_config(block_d: int, itemsize: int) -> tuple[int, int, int, int]:
    return (FP32 if itemsize == 4 else {}).get(block_d, CONFIGS[block_d])


@triton.jit
def _tile_range(
    row,
    q_len,
    k_len,
    left,
    right,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HAS_LEFT: tl.constexpr,
    HAS_RIGHT: tl.constexpr,
):
    """Return the keys [low, high) that queries row .. row + BLOCK_M see. Keys in [full_low, full_high) need no mask."""
    shift = k_len - q_len  # the last query has the last key's position
    high = k_len
    full_high = k_len
    if HAS_RIGHT:
        high = tl.minimum(k_len, tl.maximum(row + BLOCK_M + shift + right, 0))
        full_high = tl.minimum(k_len, tl.maximum(row + 1 + shift + right, 0))
    low = row * 0
    full_low = row * 0
    if HAS_LEFT:
        low = tl.maximum(row + shift - left, 0) // BLOCK_N * BLOCK_N
        full_low = tl.cdiv(tl.maximum(row + BLOCK_M - 1 + shift - left, 0), BLOCK_N) * BLOCK_N
    full_high = full_high // BLOCK_N * BLOCK_N
    full_low = tl.minimum(full_low, tl.maximum(high, low))
    return low, full_low, tl.maximum(full_high, full_low), high


@triton.jit
def _walk(
    state,
    tensors,
    limits,
    first,
    last,
    BLOCK_N: tl.constexpr,
    MASKED: tl.constexpr,
    HAS_LEFT: tl.constexpr,
    HAS_RIGHT: tl.constexpr,
    SOFTCAP: tl.constexpr,
    PAD_D: tl.constexpr,
):
    """The online softmax over keys first .. last."""
    acc, l, m = state
    q, k_ptrs, v_ptrs, stride_kn, stride_vn, offs_m, offs_n, mask_d = tensors
    k_len, shift, left, right, scale, softcap = limits
    k_ptrs += first.to(tl.int64) * stride_kn
    v_ptrs += first.to(tl.int64) * stride_vn
    for start in range(first, last, BLOCK_N):
        key = start + offs_n
        k_mask = mask_d[:, None] if PAD_D else None
        v_mask = mask_d[None, :] if PAD_D else None
        if MASKED:
            inside = key < k_len
            k_mask = inside[None, :] & mask_d[:, None]
            v_mask = inside[:, None] & mask_d[None, :]
        k = tl.load(k_ptrs, mask=k_mask, other=0.0 if MASKED or PAD_D else None)
        s = tl.dot(q, k)  # (BLOCK_M, BLOCK_N)
        if SOFTCAP:  # softcap * tanh(s / softcap), in powers of two
            s = softcap - 2 * softcap / (tl.exp2(s * (2 * scale / softcap)) + 1)
        if MASKED:
            seen = (key < k_len)[None, :]
            if HAS_RIGHT:
                seen = seen & (key[None, :] <= offs_m[:, None] + (shift + right))
            if HAS_LEFT:
                seen = seen & (key[None, :] >= offs_m[:, None] + (shift - left))
            s = tl.where(seen, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        unit = 1.4426950408889634 if SOFTCAP else scale
        top = tl.where(m_new == float("-inf"), 0.0, m_new * unit)
        p = tl.exp2(s * unit - top[:, None])
        alpha = tl.exp2(m * unit - top)
        l = l * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptrs, mask=v_mask, other=0.0 if MASKED or PAD_D else None)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m = m_new
        k_ptrs += BLOCK_N * stride_kn
        v_ptrs += BLOCK_N * stride_vn
    return acc, l, m


@triton.jit(do_not_specialize=["q_heads", "q_per_kv", "q_len", "k_len", "left", "right"])
def _forward(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    cu_q_ptr,
    cu_k_ptr,
    stride_qb,
    stride_qh,
    stride_qm,
    stride_qd,
    stride_kb,
    stride_kh,
    stride_kn,
    stride_kd,
    stride_vb,
    stride_vh,
    stride_vn,
    stride_vd,
    stride_ob,
    stride_oh,
    stride_om,
    stride_od,
    stride_lb,
    stride_lh,
    q_heads,
    q_per_kv,
    q_len,
    k_len,
    scale,
    softcap,
    left,
    right,
    HEAD_DIM: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VARLEN: tl.constexpr,
    HAS_LEFT: tl.constexpr,
    HAS_RIGHT: tl.constexpr,
    SOFTCAP: tl.constexpr,
):
    m_block = tl.program_id(0)
    if HAS_RIGHT:
        m_block = tl.num_programs(0) - 1 - m_block  # the longest rows first, so that the last wave is short
    batch = tl.program_id(1) // q_heads
    head = (tl.program_id(1) % q_heads).to(tl.int64)  # times a stride it may exceed 32 bits
    batch = batch.to(tl.int64)
    if VARLEN:
        q_start = tl.load(cu_q_ptr + batch).to(tl.int64)
        k_start = tl.load(cu_k_ptr + batch).to(tl.int64)
        q_len = (tl.load(cu_q_ptr + batch + 1) - q_start).to(tl.int32)
        k_len = (tl.load(cu_k_ptr + batch + 1) - k_start).to(tl.int32)
        q_ptr += q_start * stride_qm
        out_ptr += q_start * stride_om
        lse_ptr += q_start
        k_ptr += k_start * stride_kn
        v_ptr += k_start * stride_vn
        batch = batch * 0
    row = m_block * BLOCK_M
    if row < q_len:
        offs_m = row + tl.arange(0, BLOCK_M)
        offs_n = tl.arange(0, BLOCK_N)
        offs_d = tl.arange(0, BLOCK_D)
        mask_m = offs_m < q_len
        mask_d = offs_d < HEAD_DIM
        PAD_D: tl.constexpr = BLOCK_D != HEAD_DIM
        rows = offs_m.to(tl.int64)
        q_ptrs = (
            q_ptr
            + batch * stride_qb
            + head * stride_qh
            + rows[:, None] * stride_qm
            + offs_d[None, :] * stride_qd
        )
        q = tl.load(q_ptrs, mask=mask_m[:, None] & mask_d[None, :], other=0.0)  # (BLOCK_M, BLOCK_D)
        k_base = k_ptr + batch * stride_kb + (head // q_per_kv) * stride_kh
        v_base = v_ptr + batch * stride_vb + (head // q_per_kv) * stride_vh
        k_ptrs = k_base + offs_n[None, :] * stride_kn + offs_d[:, None] * stride_kd  # (BLOCK_D, BLOCK_N)
        v_ptrs = v_base + offs_n[:, None] * stride_vn + offs_d[None, :] * stride_vd  # (BLOCK_N, BLOCK_D)
        low, full_low, full_high, high = _tile_range(
            row, q_len, k_len, left, right, BLOCK_M, BLOCK_N, HAS_LEFT, HAS_RIGHT
        )
        acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
        l = tl.zeros([BLOCK_M], tl.float32)
        m = tl.full([BLOCK_M], float("-inf"), tl.float32)
        tensors = (q, k_ptrs, v_ptrs, stride_kn, stride_vn, offs_m, offs_n, mask_d)
        limits = (k_len, k_len - q_len, left, right, scale, softcap)
        state = (acc, l, m)
        if HAS_LEFT:
            state = _walk(
                state, tensors, limits, low, full_low, BLOCK_N, True, HAS_LEFT, HAS_RIGHT, SOFTCAP, PAD_D
            )
        state = _walk(
            state, tensors, limits, full_low, full_high, BLOCK_N, False, HAS_LEFT, HAS_RIGHT, SOFTCAP, PAD_D
        )
        state = _walk(
            state, tensors, limits, full_high, high, BLOCK_N, True, HAS_LEFT, HAS_RIGHT, SOFTCAP, PAD_D
        )
        acc, l, m = state
        l_safe = tl.where(l == 0.0, 1.0, l)  # rows that saw no key get zeros, and a log-sum-exp of -inf
        unit = 1.0 if SOFTCAP else scale * 0.6931471805599453
        lse = tl.where(l == 0.0, float("-inf"), m * unit + tl.log(l_safe))
        tl.store(lse_ptr + batch * stride_lb + head * stride_lh + offs_m, lse, mask=mask_m)
        o_ptrs = (
            out_ptr
            + batch * stride_ob
            + head * stride_oh
            + rows[:, None] * stride_om
            + offs_d[None, :] * stride_od
        )
        out = (acc / l_safe[:, None]).to(out_ptr.dtype.element_ty)
        tl.store(o_ptrs, out, mask=mask_m[:, None] & mask_d[None, :])


def launch(q, k, v, out, lse, plan, config=None):
    """Run the plan that forward.py made, on tensors of any strides."""
    block_m, block_n, num_warps, num_stages = config or choose_config(plan.block_d, q.itemsize)
    heads = q.shape[1]
    arguments.programs("sequences times query heads", plan.batch * heads)
    q_row, k_row = (0, 0) if plan.varlen else (2, 2)
    strides = []
    for t, row in ((q, q_row), (k, k_row), (v, k_row), (out, q_row)):
        strides += [0 if plan.varlen else t.stride(0), t.stride(1), t.stride(row), t.stride(-1)]
    lse_strides = (0, lse.stride(0)) if plan.varlen else (lse.stride(0), lse.stride(1))
    grid = (triton.cdiv(plan.q_len, block_m), plan.batch * heads)
    _forward[grid](
        q,
        k,
        v,
        out,
        lse,
        plan.cu_q,
        plan.cu_k,
        *strides,
        *lse_strides,
        heads,
        plan.q_per_kv,
        plan.q_len,
        plan.k_len,
        plan.scale * LOG2E,
        plan.softcap,
        plan.left or 0,
        plan.right or 0,
        HEAD_DIM=q.shape[-1],
        BLOCK_D=plan.block_d,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        VARLEN=plan.varlen,
        HAS_LEFT=plan.left is not None,
        HAS_RIGHT=plan.right is not None,
        SOFTCAP=plan.softcap > 0,
        num_warps=num_warps,
        num_stages=num_stages,
    )

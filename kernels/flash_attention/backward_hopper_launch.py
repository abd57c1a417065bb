"""Launch the Hopper backward, with one small kernel before (delta, zeros for dQ) and one after (dQ in 16 bits)."""

import torch
import triton
import triton.language as tl
from triton.experimental.gluon.language import NVMMASharedLayout
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from . import arguments
from .backward_hopper import _gradients
from .backward_tiles import BLOCK_N

L2_SHARE = 24 * 2**20  # bytes of Q, dO and dQ that programs running together may keep in the L2
BLOCK_M = {
    64: 128,
    128: 64,
}  # queries of a tile, for each head dim, where dQ of a tile is two pieces of 64 x 64


@triton.jit(do_not_specialize=["heads", "q_len"])
def _prepare(
    out_ptr,
    do_ptr,
    lse_ptr,
    stats_ptr,
    dq_ptr,
    stride_ob,
    stride_oh,
    stride_om,
    stride_dob,
    stride_doh,
    stride_dom,
    heads,
    q_len,
    unit,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    """Write, for each tile of queries, a line of BLOCK_M scaled log-sum-exps and one of deltas, and zeros where dQ
    collects.

    Rows past the end and rows that see nothing get infinity: their weights exp2(s - infinity) are zero.
    """
    tile = tl.program_id(1).to(tl.int64) * tl.num_programs(0) + tl.program_id(0)
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    inside = offs_m < q_len
    rows = offs_m.to(tl.int64)[:, None]
    out_at = out_ptr + batch * stride_ob + head * stride_oh + rows * stride_om + offs_d[None, :]
    do_at = do_ptr + batch * stride_dob + head * stride_doh + rows * stride_dom + offs_d[None, :]
    out = tl.load(out_at, mask=inside[:, None], other=0.0).to(tl.float32)  # (M, D)
    do = tl.load(do_at, mask=inside[:, None], other=0.0).to(tl.float32)  # (M, D)
    lse = tl.load(lse_ptr + tl.program_id(1).to(tl.int64) * q_len + offs_m, mask=inside, other=float("-inf"))
    start = tl.where(lse == float("-inf"), lse, -lse * unit)
    at = stats_ptr + tile * (2 * BLOCK_M) + tl.arange(0, BLOCK_M)
    tl.store(at, start)
    tl.store(at + BLOCK_M, -tl.sum(out * do, 1))
    SIZE: tl.constexpr = BLOCK_M * HEAD_DIM
    tl.store(dq_ptr + tile * SIZE + tl.arange(0, SIZE), tl.zeros([SIZE], tl.float32))


@triton.jit(do_not_specialize=["q_len"])
def _collect_dq(sums_ptr, dq_ptr, q_len, scale, HEAD_DIM: tl.constexpr):
    """The sums of one 64 x 64 piece of dQ to rows of 16 bits."""
    tile = tl.program_id(1).to(tl.int64) * (tl.num_programs(0) // 2) + tl.program_id(0) // 2
    piece = tl.program_id(0) % 2
    dq = tl.load(sums_ptr + (tile * 2 + piece) * 4096 + tl.arange(0, 4096)) * scale
    if HEAD_DIM == 64:  # these are in the order of the tensor core's registers
        dq = tl.permute(tl.reshape(dq, [8, 4, 8, 4, 2, 2]), [1, 4, 2, 0, 3, 5])
        row, col = tl.program_id(0) * 64, 0
    else:
        row, col = tl.program_id(0) // 2 * 64, piece * 64
    offs_m = row + tl.arange(0, 64)
    offs_d = col + tl.arange(0, 64)
    rows = tl.program_id(1).to(tl.int64) * q_len + offs_m
    at = dq_ptr + rows[:, None] * HEAD_DIM + offs_d[None, :]
    tl.store(at, tl.reshape(dq, [64, 64]).to(dq_ptr.dtype.element_ty), mask=(offs_m < q_len)[:, None])


def _descriptor(t, rows: int):
    layout = NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=4)
    # a stride of an axis of length 1 may be anything, also one that TMA refuses
    strides = [s if n > 1 else 8 for s, n in zip(t.stride()[:-1], t.shape[:-1], strict=True)] + [1]
    return TensorDescriptor(t, list(t.shape), strides, [1, 1, rows, t.shape[-1]], layout)


def launch(dout, q, k, v, out, lse, grads, plan):
    """Fill grads = (dq, dk, dv), which must be contiguous."""
    dq, dk, dv = grads
    batch, heads, q_len, d = q.shape
    kv_heads, k_len, group = k.shape[1], plan.k_len, plan.q_per_kv
    block_m, block_n = BLOCK_M[d], BLOCK_N.value
    m_blocks, n_blocks = -(-q_len // block_m), -(-k_len // block_n)
    sums = torch.empty(batch * heads * m_blocks * block_m * d, dtype=torch.float32, device=q.device)
    stats = torch.empty(batch * heads * m_blocks, 2 * block_m, dtype=torch.float32, device=q.device)
    unit = (
        1 / plan.scale if d == 128 else arguments.LOG2E
    )  # the scores start from them, or meet them when scaled
    _prepare[(m_blocks, batch * heads)](
        out,
        dout,
        lse,
        stats,
        sums,
        *out.stride()[:3],
        *dout.stride()[:3],
        heads,
        q_len,
        unit,
        HEAD_DIM=d,
        BLOCK_M=block_m,
    )
    head_group = min(max(1, L2_SHARE // (q_len * d * group * 8)), batch * kv_heads)
    plain = NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=32, rank=2)
    stats_desc = TensorDescriptor(stats, list(stats.shape), [2 * block_m, 1], [1, 2 * block_m], plain)
    swizzled = NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=2)
    sums_desc = TensorDescriptor(sums, [sums.numel() // 64, 64], [64, 1], [64, 64], swizzled)
    causal = plan.right is not None
    _gradients[(n_blocks * batch * kv_heads,)](
        _descriptor(q, block_m),
        _descriptor(k, block_n),
        _descriptor(v, block_n),
        _descriptor(dout, block_m),
        stats_desc,
        sums_desc,
        dk,
        dv,
        sums,
        kv_heads,
        group,
        n_blocks,
        head_group,
        batch * kv_heads,
        q_len,
        k_len,
        plan.scale * arguments.LOG2E,
        plan.scale,
        *dk.stride()[:2],
        HEAD_DIM=d,
        BLOCK_M=block_m,
        CAUSAL=causal,
        EDGE=causal or k_len % block_n != 0,
        num_warps=4,
    )
    _collect_dq[(2 * m_blocks, batch * heads)](sums, dq, q_len, plan.scale, HEAD_DIM=d)

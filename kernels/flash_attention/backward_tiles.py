"""Compute one tile of keys x queries of the Hopper backward between its matmuls, and add up dQ."""

from triton._C.libtriton import ir
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma, warpgroup_mma
from triton.language.core import _aggregate as aggregate

KEYS = gl.constexpr(64)  # of a warpgroup, because one wgmma is 64 rows tall
BLOCK_N = gl.constexpr(128)
PIECE = gl.constexpr(64)  # dQ of a tile of queries falls in two pieces of 64 x 64, one for each warpgroup


@aggregate
class Config:
    """Hold the constants known when the kernel is compiled."""

    HEAD_DIM: gl.constexpr
    BLOCK_M: gl.constexpr
    CAUSAL: gl.constexpr
    EDGE: gl.constexpr  # some tile needs a mask
    TILE: gl.constexpr  # layout of 64 x 64 numbers in registers
    KV: gl.constexpr  # of 64 keys x head dim
    LEFT: gl.constexpr  # of a product's left operand

    @gluon.constexpr_function
    def __init__(self, HEAD_DIM, BLOCK_M, CAUSAL, EDGE):
        self.HEAD_DIM = gl.constexpr(HEAD_DIM)
        self.BLOCK_M = gl.constexpr(BLOCK_M)
        self.CAUSAL = gl.constexpr(CAUSAL)
        self.EDGE = gl.constexpr(EDGE)
        kv = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD_DIM, 16])
        self.TILE = gl.constexpr(gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16]))
        self.KV = gl.constexpr(kv)
        self.LEFT = gl.constexpr(gl.DotOperandLayout(0, kv, 2))


@gluon.jit
def start_product(cfg, a, b):
    """A B^T of 64 x 64 numbers, started."""
    zero = gl.zeros([PIECE, PIECE], gl.float32, cfg.TILE)
    return warpgroup_mma(a, b.permute((1, 0)), zero, use_acc=False, is_async=True)


@gluon.jit
def _hide(p, first):
    """Put zeros where query < first[key]. Lanes cut, so a thread compares with constants and keeps no column numbers."""
    cut = p.reshape([KEYS, PIECE // 8, 4, 2])
    CUT: gl.constexpr = cut.type.layout
    PAIRS: gl.constexpr = gl.SliceLayout(2, gl.SliceLayout(3, CUT))
    eighth = gl.arange(0, PIECE // 8, gl.SliceLayout(0, PAIRS))[None, :, None, None]
    lane = gl.arange(0, 4, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(3, CUT))))[None, None, :, None]
    odd = gl.arange(0, 2, gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, CUT))))[None, None, None, :]
    first = gl.convert_layout(first, gl.SliceLayout(1, PAIRS), assert_trivial=True)[:, None, None, None]
    cut = gl.where(8 * eighth + odd >= first - 2 * lane, cut, 0.0)
    return gl.convert_layout(cut.reshape([KEYS, PIECE]), p.type.layout, assert_trivial=True)


@gluon.jit
def weights(cfg, s, j, i: gl.constexpr, where):
    """P from scores, in powers of two, that already miss their log-sum-exp. A tile without hidden pairs skips the mask."""
    p = gl.exp2(s)
    if cfg.EDGE:
        key, shift, k_len, full = where
        if j < full:
            offs_n = key + gl.arange(0, KEYS, gl.SliceLayout(1, cfg.TILE))
            first = j * 0 - 1  # of the block's queries, the first that sees the key
            if cfg.CAUSAL:
                first = offs_n - (j * cfg.BLOCK_M + i * PIECE + shift)
            p = _hide(p, gl.where(offs_n < k_len, first, PIECE))
    return p


@gluon.jit
def share(cfg, ds, buffer, c: gl.constexpr, DTYPE: gl.constexpr):
    """Store dS in 16 bits, also into shared memory, as a 64 x 64 block of the buffer's 128 keys."""
    ds = ds.to(DTYPE)
    buffer.slice(c * KEYS, KEYS).store(ds)
    return gl.convert_layout(ds, cfg.LEFT)


@gluon.jit
def exchange(ds_full, count):
    """Wait for the other half of dS after writing this one. One barrier is enough for two buffers, because a
    warpgroup here has read the last one."""
    fence_async_shared()
    mbarrier.arrive(ds_full.index(count % 2), count=1)


@gl._core.builtin
def _tma_add(desc, coord, src, _semantic=None):
    coord = _semantic._convert_to_ir_values(coord, require_i64=False)
    _semantic.builder.create_async_tma_reduce(ir.DESCRIPTOR_REDUCE_KIND.ADD, desc.handle, coord, src.handle)


@gluon.jit
def add_by_tma(desc, buffer, row, dq):
    """64 x 64 numbers by way of shared memory, which the last addition must have left."""
    tma.store_wait(0)
    buffer.store(dq)
    fence_async_shared()
    _tma_add(desc, [row, 0], buffer)


@gluon.jit
def add_from_registers(at, dq):
    """Add a thread's four numbers, adjacent in memory like a warp's 128, with one vector addition each."""
    dq = dq.reshape([4, 2, 8, 8, 4, 2]).permute([3, 0, 2, 4, 1, 5]).reshape([PIECE * PIECE])
    LINE: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    dq = gl.convert_layout(dq, LINE, assert_trivial=True)
    gl.atomic_add(at + gl.arange(0, PIECE * PIECE, LINE), dq, sem="relaxed")

"""Compute attention forward on Hopper, where the softmax of one warpgroup runs under the matmul of another.

One program owns CONSUMERS * 64 query rows. A producer warp streams K and V tiles through shared memory with TMA. Each
consumer warpgroup owns 64 rows and keeps scores and output in registers. Two overlaps make it fast. Inside a
warpgroup the matmul P V of the last tile runs while this tile's softmax is computed, and the warpgroups take turns at
the tensor core, so one computes exponentials while another multiplies. Key tiles are walked from the last to the
first, so those that need a mask come first.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.language.core import _aggregate as aggregate

from .hopper_pipeline import keep_wait_below, new_ring, pass_turn, wait_turn

ROWS = gl.constexpr(64)  # one wgmma is 64 rows tall
LOG2E = gl.constexpr(1.4426950408889634)
LN2 = gl.constexpr(0.6931471805599453)


@aggregate
class Config:
    """Hold the constants known when the kernel is compiled."""

    COLS: gl.constexpr  # head dim of the tensors
    HEAD_DIM: gl.constexpr  # of a tile, in which TMA fills the columns past COLS with zeros
    CONSUMERS: gl.constexpr
    BLOCK_M: gl.constexpr
    BLOCK_N: gl.constexpr
    TURNS: gl.constexpr  # a warpgroup issues both its matmuls before the next warpgroup may
    PIN: gl.constexpr
    LATE: gl.constexpr
    HAS_LEFT: gl.constexpr
    HAS_RIGHT: gl.constexpr
    VARLEN: gl.constexpr
    EDGE: gl.constexpr  # some tile needs a mask
    SOFTCAP: gl.constexpr
    S_LAYOUT: gl.constexpr
    O_LAYOUT: gl.constexpr

    @gluon.constexpr_function
    def __init__(self, sizes, TURNS, PIN, LATE, HAS_LEFT, HAS_RIGHT, VARLEN, EDGE, SOFTCAP):
        COLS, HEAD_DIM, CONSUMERS, BLOCK_N = sizes
        self.COLS = gl.constexpr(COLS)
        self.HEAD_DIM = gl.constexpr(HEAD_DIM)
        self.CONSUMERS = gl.constexpr(CONSUMERS)
        self.BLOCK_M = gl.constexpr(CONSUMERS * 64)
        self.BLOCK_N = gl.constexpr(BLOCK_N)
        self.TURNS = gl.constexpr(TURNS)
        self.LATE = gl.constexpr(LATE)
        self.PIN = gl.constexpr(PIN)
        self.HAS_LEFT = gl.constexpr(HAS_LEFT)
        self.HAS_RIGHT = gl.constexpr(HAS_RIGHT)
        self.VARLEN = gl.constexpr(VARLEN)
        self.EDGE = gl.constexpr(EDGE)
        self.SOFTCAP = gl.constexpr(SOFTCAP)
        self.S_LAYOUT = gl.constexpr(gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16]))
        self.O_LAYOUT = gl.constexpr(gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD_DIM, 16]))


@gluon.jit
def _locate(cfg, t, shape):
    """Return a tile's position in the tensors, and the key tiles [low, high) its rows see.

    Tiles in [full_low, full_high) need no mask.
    """
    q_heads, m_blocks, head_group, batch_heads, q_len, k_len, left, right, cu_q, cu_k = shape
    group_tiles = head_group * m_blocks
    first_head = (t // group_tiles) * head_group  # the heads of one group share the L2 cache
    heads = gl.minimum(head_group, batch_heads - first_head)
    m_block = (t % group_tiles) // heads
    if cfg.HAS_RIGHT:
        m_block = m_blocks - 1 - m_block  # the longest rows first, so that the last wave is short
    batch_head = first_head + (t % group_tiles) % heads
    batch = batch_head // q_heads
    head = batch_head % q_heads
    row = m_block * cfg.BLOCK_M
    q_start = row * 0
    k_start = row * 0
    if cfg.VARLEN:
        q_start = gl.load(cu_q + batch)
        k_start = gl.load(cu_k + batch)
        q_len = gl.load(cu_q + batch + 1) - q_start
        k_len = gl.load(cu_k + batch + 1) - k_start
        batch = batch * 0
    shift = k_len - q_len  # the last query sees the last key
    last = k_len
    seen_by_all = k_len
    if cfg.HAS_RIGHT:
        last = gl.minimum(k_len, row + cfg.BLOCK_M + shift + right)
        seen_by_all = gl.minimum(k_len, row + 1 + shift + right)
    high = gl.maximum(
        (last + cfg.BLOCK_N - 1) // cfg.BLOCK_N, 1
    )  # rows that see nothing walk one masked tile
    low = row * 0
    full_low = row * 0
    if cfg.HAS_LEFT:
        low = gl.minimum(gl.maximum(row + shift - left, 0) // cfg.BLOCK_N, high - 1)
        unseen = gl.maximum(row + cfg.BLOCK_M - 1 + shift - left, 0)
        full_low = gl.maximum((unseen + cfg.BLOCK_N - 1) // cfg.BLOCK_N, low)
    full_high = gl.minimum(gl.maximum(seen_by_all, 0) // cfg.BLOCK_N, high - 1)
    full_low = gl.minimum(full_low, high - 1)
    return (batch, head, row, q_start, q_len, k_start, k_len), (
        low,
        full_low,
        gl.maximum(full_high, full_low),
        high,
    )


@gluon.jit
def _produce(cfg, descs, rings, shape, q_per_kv, tiles):
    q_desc, k_desc, v_desc = descs
    q_ring, k_ring, v_ring = rings
    q_count = 0
    count = 0
    for t in range(gl.program_id(0), tiles, gl.num_programs(0)):
        place, keys = _locate(cfg, t, shape)
        batch, head, row, q_start, q_len, k_start, k_len = place
        low, full_low, full_high, high = keys
        for c in gl.static_range(cfg.CONSUMERS):
            q_ring.fill(q_desc, [batch, head, q_start + row + c * ROWS, 0], q_count)
            q_count += 1
        for j in range(high - 1, low - 1, -1):
            at = k_start + j * cfg.BLOCK_N
            k_ring.fill(k_desc, [batch, head // q_per_kv, at, 0], count)
            v_ring.fill(v_desc, [batch, head // q_per_kv, at, 0], count)
            count += 1


@gluon.jit
def _scores(cfg, s, consts, where, j, MASKED: gl.constexpr):
    """Cap and mask one tile of raw scores. -inf marks a hidden key."""
    scale, softcap, left, right = consts
    row, q_len, k_len = where
    if cfg.SOFTCAP:  # softcap * tanh(s / softcap), in powers of two
        s = softcap - 2 * softcap / (gl.exp2(s * (2 * scale / softcap)) + 1)
    if MASKED:
        offs_m = row + k_len - q_len + gl.arange(0, ROWS, gl.SliceLayout(1, cfg.S_LAYOUT))
        offs_n = j * cfg.BLOCK_N + gl.arange(0, cfg.BLOCK_N, gl.SliceLayout(0, cfg.S_LAYOUT))
        last = gl.full([ROWS], k_len - 1, gl.int32, gl.SliceLayout(1, cfg.S_LAYOUT))
        if cfg.HAS_RIGHT:
            last = gl.minimum(last, offs_m + right)
        seen = offs_n[None, :] <= last[:, None]
        if cfg.HAS_LEFT:
            seen = seen & (offs_n[None, :] >= (offs_m - left)[:, None])
        s = gl.where(seen, s, float("-inf"))
    return s


@gluon.jit
def _row_max(cfg, s):
    """Take the maximum in two steps, so that a thread follows several short chains of maxima instead of one long one."""
    parts = gl.max(s.reshape([ROWS, cfg.BLOCK_N // 8, 8]), 1)
    return gl.convert_layout(gl.max(parts, 1), gl.SliceLayout(1, cfg.S_LAYOUT), assert_trivial=True)


@gluon.jit
def _softmax(cfg, s, m, l, scale, MASKED: gl.constexpr):
    """Take one online step: weights of this tile, new maximum, new sum, and the factor for the earlier sum."""
    m_new = gl.maximum(m, _row_max(cfg, s))
    top = m_new * scale
    if MASKED:
        top = gl.where(m_new == float("-inf"), 0.0, top)
    alpha = gl.exp2(m * scale - top)
    p = gl.exp2(s * scale - top[:, None])
    return p, m_new, l * alpha + gl.sum(p, 1), alpha


@gluon.jit
def _wipe(cfg, v, rows):
    """Zeros from row `rows` of a tile of V on, where packed sequences have their neighbour: a weight of 0 would not
    keep its infinities out. Every warpgroup does it, all with the same bits."""
    LINES: gl.constexpr = gl.BlockedLayout([1, 8], [256 // cfg.HEAD_DIM, cfg.HEAD_DIM // 8], [4, 1], [1, 0])
    for i in gl.static_range(cfg.BLOCK_N // 16):
        if rows < 16 * i + 16:
            part = v.slice(16 * i, 16)
            own = gl.arange(0, 16, gl.SliceLayout(1, LINES)) < rows - 16 * i
            part.store(gl.where(own[:, None], part.load(LINES), 0.0))
    fence_async_shared()


@gluon.jit
def _pack(p, DTYPE: gl.constexpr):
    """Pack neighbouring weights into one 32-bit number, because 16-bit values would not keep their register over the
    loop."""
    even, odd = gl.split(p.reshape([p.shape[0], p.shape[1] // 2, 2]))
    CVT: gl.constexpr = (
        "cvt.rn.bf16x2.f32 $0, $2, $1;" if DTYPE == gl.bfloat16 else "cvt.rn.f16x2.f32 $0, $2, $1;"
    )
    return gl.inline_asm_elementwise(CVT, "=r,f,f", [even, odd], dtype=gl.int32, is_pure=True, pack=1)


@gluon.jit
def _unpack(packed, DTYPE: gl.constexpr, LAYOUT: gl.constexpr):
    even = packed.to(gl.int16).to(DTYPE, bitcast=True)
    odd = (packed >> 16).to(gl.int16).to(DTYPE, bitcast=True)
    p = gl.join(even, odd).reshape([packed.shape[0], 2 * packed.shape[1]])
    return gl.convert_layout(p, LAYOUT, assert_trivial=True)


@gluon.jit
def _step(cfg, q, rings, turns, state, where, consts, j, c: gl.constexpr, MASKED: gl.constexpr):
    """Process tile j. Issue S = Q K^T, then O += P V of the tile before, then the softmax of S while O is computed."""
    k_ring, v_ring = rings
    acc, p, m, l, count, steps = state
    scale = LOG2E if cfg.SOFTCAP else consts[0]
    p = _unpack(p, q.dtype, gl.DotOperandLayout(0, cfg.O_LAYOUT, 2))
    k = k_ring.take(count)
    if cfg.TURNS:
        wait_turn(turns, count, c)
    zero = gl.zeros([ROWS, cfg.BLOCK_N], gl.float32, cfg.S_LAYOUT)
    s = warpgroup_mma(q, k.permute((1, 0)), zero, use_acc=False, is_async=True)
    v = v_ring.take(count - 1)
    acc = warpgroup_mma(p, v, acc, is_async=True)
    if cfg.TURNS:
        pass_turn(turns, c)
    if cfg.LATE:
        v_ring.release(count - 2, pred=steps > 0)
    s = warpgroup_mma_wait(1, deps=[s])
    k_ring.release(count)
    s = _scores(cfg, s, consts, where, j, MASKED)
    p_new, m, l, alpha = _softmax(cfg, s, m, l, scale, MASKED)
    if cfg.PIN:
        l = keep_wait_below(l)
    acc, p = warpgroup_mma_wait(0, deps=[acc, p])
    if not cfg.LATE:
        v_ring.release(count - 1)
    acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, cfg.O_LAYOUT))[:, None]
    return acc, _pack(p_new, q.dtype), m, l, count + 1, steps + 1


@gluon.jit
def _store(cfg, out, lse, strides, acc, m, l, scale, batch, head, row, q_start, q_len):
    l_safe = gl.where(l == 0.0, 1.0, l)
    offs_m = row + gl.arange(0, ROWS, gl.SliceLayout(1, cfg.S_LAYOUT))
    value = gl.where(l == 0.0, float("-inf"), m * scale * LN2 + gl.log(l_safe))
    batch = batch.to(gl.int64)
    head = head.to(gl.int64)
    lse_at = lse + batch * strides[3] + head * strides[4] + q_start + offs_m
    gl.store(lse_at, value, mask=offs_m < q_len)
    acc = acc * gl.convert_layout(1.0 / l_safe, gl.SliceLayout(1, cfg.O_LAYOUT))[:, None]
    # whole 16-byte pieces of a row per thread, so that the stores coalesce
    STORE: gl.constexpr = gl.BlockedLayout([1, 8], [256 // cfg.HEAD_DIM, cfg.HEAD_DIM // 8], [4, 1], [1, 0])
    o = gl.convert_layout(acc.to(out.dtype.element_ty), STORE)
    rows = row + gl.arange(0, ROWS, gl.SliceLayout(1, STORE))
    cols = gl.arange(0, cfg.HEAD_DIM, gl.SliceLayout(0, STORE))
    out_rows = (q_start + rows).to(gl.int64)[:, None] * strides[2]
    at = out + batch * strides[0] + head * strides[1] + out_rows + cols[None, :]
    gl.store(at, o, mask=(rows < q_len)[:, None] & (cols < cfg.COLS)[None, :])


@gluon.jit
def _consume(cfg, out, lse, rings, turns, shape, consts, tiles, strides, c: gl.constexpr):
    q_ring, k_ring, v_ring = rings
    scale = LOG2E if cfg.SOFTCAP else consts[0]
    count = 0
    q_count = c
    for t in range(gl.program_id(0), tiles, gl.num_programs(0)):
        place, keys = _locate(cfg, t, shape)
        batch, head, row, q_start, q_len, k_start, k_len = place
        low, full_low, full_high, high = keys
        row += c * ROWS
        where = (row, q_len, k_len)
        m = gl.full([ROWS], float("-inf"), gl.float32, gl.SliceLayout(1, cfg.S_LAYOUT))
        l = gl.zeros([ROWS], gl.float32, gl.SliceLayout(1, cfg.S_LAYOUT))
        acc = gl.zeros([ROWS, cfg.HEAD_DIM], gl.float32, cfg.O_LAYOUT)
        q = q_ring.take(q_count)
        # the first tile has no P V before it
        k = k_ring.take(count)
        if cfg.TURNS:
            wait_turn(turns, count, c)
        zero = gl.zeros([ROWS, cfg.BLOCK_N], gl.float32, cfg.S_LAYOUT)
        s = warpgroup_mma(q, k.permute((1, 0)), zero, use_acc=False, is_async=True)
        if cfg.TURNS:
            pass_turn(turns, c)
        s = warpgroup_mma_wait(0, deps=[s])
        k_ring.release(count)
        s = _scores(cfg, s, consts, where, high - 1, cfg.EDGE)
        p, m, l, alpha = _softmax(cfg, s, m, l, scale, cfg.EDGE)
        if cfg.VARLEN:
            if k_len < high * cfg.BLOCK_N:
                _wipe(cfg, v_ring.take(count), k_len - (high - 1) * cfg.BLOCK_N)
        state = (acc, _pack(p, q.dtype), m, l, count + 1, 0)
        if cfg.EDGE:
            for j in range(high - 2, full_high - 1, -1):
                state = _step(cfg, q, (k_ring, v_ring), turns, state, where, consts, j, c, True)
        for j in range(full_high - 1, full_low - 1, -1):
            state = _step(cfg, q, (k_ring, v_ring), turns, state, where, consts, j, c, False)
        if cfg.HAS_LEFT:
            for j in range(full_low - 1, low - 1, -1):
                state = _step(cfg, q, (k_ring, v_ring), turns, state, where, consts, j, c, True)
        acc, p, m, l, count, steps = state
        q_ring.release(q_count)
        if cfg.LATE:
            v_ring.release(count - 2, pred=steps > 0)
        q_count += cfg.CONSUMERS
        p = _unpack(p, q.dtype, gl.DotOperandLayout(0, cfg.O_LAYOUT, 2))
        v = v_ring.take(count - 1)
        acc = warpgroup_mma(p, v, acc, is_async=True)
        acc = warpgroup_mma_wait(0, deps=[acc])
        v_ring.release(count - 1)
        _store(cfg, out, lse, strides, acc, m, l, scale, batch, head, row, q_start, q_len)


_SIZES = [
    "q_heads",
    "q_per_kv",
    "m_blocks",
    "head_group",
    "batch_heads",
    "tiles",
    "q_len",
    "k_len",
    "left",
    "right",
]


@gluon.jit(do_not_specialize=_SIZES)
def _forward(
    q_desc, k_desc, v_desc, out_ptr, lse_ptr, cu_q_ptr, cu_k_ptr, q_heads, q_per_kv, m_blocks, head_group,
    batch_heads, tiles, q_len, k_len, left, right, scale, softcap,
    stride_ob, stride_oh, stride_om, stride_lb, stride_lh,
    COLS: gl.constexpr, HEAD_DIM: gl.constexpr, CONSUMERS: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr,
    TURNS: gl.constexpr, PIN: gl.constexpr, LATE: gl.constexpr, HAS_LEFT: gl.constexpr, HAS_RIGHT: gl.constexpr,
    VARLEN: gl.constexpr, EDGE: gl.constexpr, SOFTCAP: gl.constexpr, REGISTERS: gl.constexpr,
    QUERIES: gl.constexpr = 1,  # tiles of Q that a warpgroup has room for (with two the next tile comes early)
):  # fmt: skip
    SIZES: gl.constexpr = (COLS, HEAD_DIM, CONSUMERS, BLOCK_N)
    cfg = Config(SIZES, TURNS, PIN, LATE, HAS_LEFT, HAS_RIGHT, VARLEN, EDGE, SOFTCAP)
    q_ring = new_ring(q_desc, CONSUMERS * QUERIES, 1)
    rings = (q_ring, new_ring(k_desc, STAGES, CONSUMERS), new_ring(v_desc, STAGES, CONSUMERS))
    turns = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], mbarrier.MBarrierLayout())
    for c in gl.static_range(CONSUMERS):
        mbarrier.init(turns.index(c), count=1)
    shape = (q_heads, m_blocks, head_group, batch_heads, q_len, k_len, left, right, cu_q_ptr, cu_k_ptr)
    consts = (scale, softcap, left, right)
    strides = (stride_ob, stride_oh, stride_om, stride_lb, stride_lh)
    produce = (cfg, (q_desc, k_desc, v_desc), rings, shape, q_per_kv, tiles)
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (_consume, (cfg, out_ptr, lse_ptr, rings, turns, shape, consts, tiles, strides, 0)),
                (_consume, (cfg, out_ptr, lse_ptr, rings, turns, shape, consts, tiles, strides, 1)),
                (_produce, produce),
            ],
            [4, 1],
            [REGISTERS, 24],
        )
    else:
        gl.warp_specialize(
            [
                (_consume, (cfg, out_ptr, lse_ptr, rings, turns, shape, consts, tiles, strides, 0)),
                (_consume, (cfg, out_ptr, lse_ptr, rings, turns, shape, consts, tiles, strides, 1)),
                (_consume, (cfg, out_ptr, lse_ptr, rings, turns, shape, consts, tiles, strides, 2)),
                (_produce, produce),
            ],
            [4, 4, 1],
            [REGISTERS, REGISTERS, 24],
        )

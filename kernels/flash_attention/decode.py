"""One new token against a long cache: the keys are split over programs, the last one to finish adds up.

Decoding reads every cached key and value once and does next to no arithmetic, so it is as fast as the memory,
if enough programs read at once. A program takes one stretch of one sequence for one key head and serves all
query heads that share it (they are the rows of its matrix product: grouped heads cost no extra bytes). Each
leaves an unnormalised output, a maximum and a sum; the program that finishes last combines them, in the same
launch. The cache may be paged (a table says where each page lies) and may hold fp8 or int8 with scales.
"""

import torch
import triton
import triton.language as tl

from . import arguments

# (block_n, num_warps, num_stages, programs per multiprocessor) by head dim
CONFIGS = {16: (128, 4, 3, 2), 32: (128, 4, 3, 2), 64: (128, 4, 3, 2), 128: (64, 4, 3, 2), 256: (32, 4, 3, 2)}
MAX_SPLITS = 128


@triton.jit(do_not_specialize=["kv_heads", "left"])
def _decode(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, lens_ptr, table_ptr, k_scale_ptr, v_scale_ptr, acc_ptr, m_ptr, l_ptr, done_ptr,
    stride_qb, stride_qh, stride_ob, stride_oh, stride_kb, stride_kh, stride_kn, stride_vb, stride_vh, stride_vn,
    stride_ksb, stride_ksh, stride_ksn, stride_vsb, stride_vsh, stride_vsn, stride_tb,
    kv_heads, scale, softcap, left, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, GROUP: tl.constexpr,
    BLOCK_G: tl.constexpr, BLOCK_N: tl.constexpr, SPLITS: tl.constexpr, BLOCK_S: tl.constexpr,
    PAGE: tl.constexpr, SCALED: tl.constexpr, HAS_LEFT: tl.constexpr, SOFTCAP: tl.constexpr,
):  # fmt: skip
    split = tl.program_id(0)
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    kv_head = tl.program_id(1) % kv_heads
    offs_g = tl.arange(0, BLOCK_G)
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = offs_d < HEAD_DIM
    mask_q = (offs_g < GROUP)[:, None] & mask_d[None, :]
    head = kv_head * GROUP + offs_g
    q_at = q_ptr + batch * stride_qb + head[:, None] * stride_qh + offs_d[None, :]
    q = tl.load(q_at, mask=mask_q, other=0.0)  # (BLOCK_G, BLOCK_D)

    length = tl.load(lens_ptr + batch)
    low = length * 0
    if HAS_LEFT:
        low = tl.maximum(length - 1 - left, 0) // BLOCK_N * BLOCK_N
    per_split = tl.cdiv(tl.cdiv(length - low, BLOCK_N), SPLITS) * BLOCK_N
    first = low + split * per_split
    last = tl.minimum(first + per_split, length)
    acc = tl.zeros([BLOCK_G, BLOCK_D], tl.float32)
    l = tl.zeros([BLOCK_G], tl.float32)
    m = tl.full([BLOCK_G], float("-inf"), tl.float32)
    unit = 1.4426950408889634 if SOFTCAP else scale
    for start in range(first, last, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        inside = key < last
        if PAGE:
            page = tl.load(table_ptr + batch * stride_tb + key // PAGE, mask=inside, other=0).to(tl.int64)
            slot = (key % PAGE).to(tl.int64)
        else:
            page = batch
            slot = key.to(tl.int64)
        k_row = page * stride_kb + kv_head * stride_kh + slot * stride_kn
        v_row = page * stride_vb + kv_head * stride_vh + slot * stride_vn
        mask_kv = inside[:, None] & mask_d[None, :]
        k = tl.load(k_ptr + k_row[:, None] + offs_d[None, :], mask=mask_kv, other=0.0)  # (BLOCK_N, BLOCK_D)
        v = tl.load(v_ptr + v_row[:, None] + offs_d[None, :], mask=mask_kv, other=0.0)  # (BLOCK_N, BLOCK_D)
        s = tl.dot(q, tl.trans(k.to(q.dtype)))  # (BLOCK_G, BLOCK_N)
        if SCALED:
            at = page * stride_ksb + kv_head * stride_ksh + slot * stride_ksn
            s = s * tl.load(k_scale_ptr + at, mask=inside, other=0.0)[None, :]
        if SOFTCAP:
            s = softcap - 2 * softcap / (tl.exp2(s * (2 * scale / softcap)) + 1)
        seen = inside
        if HAS_LEFT:
            seen = seen & (key >= length - 1 - left)
        s = tl.where(seen[None, :], s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        top = tl.where(m_new == float("-inf"), 0.0, m_new * unit)
        p = tl.exp2(s * unit - top[:, None])
        alpha = tl.exp2(m * unit - top)
        l = l * alpha + tl.sum(p, 1)
        if SCALED:
            at = page * stride_vsb + kv_head * stride_vsh + slot * stride_vsn
            p = p * tl.load(v_scale_ptr + at, mask=inside, other=0.0)[None, :]
        acc = tl.dot(p.to(q.dtype), v.to(q.dtype), acc * alpha[:, None])
        m = m_new
    out_at = out_ptr + batch * stride_ob + kv_head * GROUP * stride_oh
    lse_at = lse_ptr + (batch * kv_heads + kv_head) * GROUP
    if SPLITS > 1:
        parts = (acc_ptr, m_ptr, l_ptr, done_ptr)
        before = _leave(acc, l, m * unit, parts, offs_g, offs_d, GROUP, HEAD_DIM, SPLITS)
        if before == SPLITS - 1:
            _combine(parts, out_at, lse_at, stride_oh, offs_d, GROUP, HEAD_DIM, SPLITS, BLOCK_S)
    else:
        safe = tl.where(l == 0.0, 1.0, l)
        out = (acc / safe[:, None]).to(out_ptr.dtype.element_ty)
        tl.store(out_at + offs_g[:, None] * stride_oh + offs_d[None, :], out, mask=mask_q)
        lse = tl.where(l == 0.0, float("-inf"), m * unit * 0.6931471805599453 + tl.log(safe))
        tl.store(lse_at + offs_g, lse, mask=offs_g < GROUP)


@triton.jit
def _leave(
    acc, l, m, parts, offs_g, offs_d, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, SPLITS: tl.constexpr
):
    """Write this split's part, then say so: the count before tells how many were there already."""
    acc_ptr, m_ptr, l_ptr, done_ptr = parts
    unit = tl.program_id(1).to(tl.int64)
    at = (unit * GROUP + offs_g) * SPLITS + tl.program_id(0)
    mask_g = offs_g < GROUP
    mask_d = offs_d < HEAD_DIM
    tl.store(acc_ptr + at[:, None] * HEAD_DIM + offs_d[None, :], acc, mask=mask_g[:, None] & mask_d[None, :])
    tl.store(m_ptr + at, m, mask=mask_g)
    tl.store(l_ptr + at, l, mask=mask_g)
    tl.debug_barrier()  # every thread's part is written before one thread counts
    return tl.atomic_add(done_ptr + unit, 1, sem="acq_rel")


@triton.jit
def _combine(parts, out_at, lse_at, stride_oh, offs_d, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr,
             SPLITS: tl.constexpr, BLOCK_S: tl.constexpr):  # fmt: skip
    """Bring all parts to one maximum and add them, one query head after the other."""
    acc_ptr, m_ptr, l_ptr, done_ptr = parts
    unit = tl.program_id(1).to(tl.int64)
    tl.store(done_ptr + unit, 0)  # ready for the next launch
    offs_s = tl.arange(0, BLOCK_S)
    mask_s = offs_s < SPLITS
    mask_d = offs_d < HEAD_DIM
    for g in tl.static_range(GROUP):
        at = (unit * GROUP + g) * SPLITS + offs_s
        m = tl.load(m_ptr + at, mask=mask_s, other=float("-inf"), cache_modifier=".cg")
        l = tl.load(l_ptr + at, mask=mask_s, other=0.0, cache_modifier=".cg")
        mask = mask_s[:, None] & mask_d[None, :]
        acc = tl.load(
            acc_ptr + at[:, None] * HEAD_DIM + offs_d[None, :], mask=mask, other=0.0, cache_modifier=".cg"
        )
        top = tl.max(m, 0)
        weight = tl.exp2(m - tl.where(top == float("-inf"), 0.0, top))
        total = tl.sum(l * weight, 0)
        safe = tl.where(total == 0.0, 1.0, total)
        out = tl.sum(acc * weight[:, None], 0) / safe
        tl.store(out_at + g * stride_oh + offs_d, out.to(out_at.dtype.element_ty), mask=mask_d)
        lse = tl.where(total == 0.0, float("-inf"), top * 0.6931471805599453 + tl.log(safe))
        tl.store(lse_at + g, lse)


class Workspace:
    """Where splits leave their parts. One per stream: launches that share it must not overlap."""

    def __init__(self, device):
        self.device = device
        self.parts = torch.empty(0, dtype=torch.float32, device=device)
        self.done = torch.zeros(0, dtype=torch.int32, device=device)

    def take(self, units: int, group: int, splits: int, d: int):
        rows = units * group * splits
        if self.parts.numel() < rows * (d + 2):
            self.parts = torch.empty(rows * (d + 2), dtype=torch.float32, device=self.device)
        if self.done.numel() < units:
            self.done = torch.zeros(units, dtype=torch.int32, device=self.device)
        return self.parts, self.parts[rows * d :], self.parts[rows * (d + 1) :], self.done


_workspaces: dict = {}


def _workspace(device) -> Workspace:
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
    return _workspaces.setdefault((device, stream), Workspace(device))


def choose_splits(units: int, longest: int, block_n: int, slots: int) -> int:
    """Splits that keep `slots` programs busy to the end: least time, counted in rounds of key tiles."""
    tiles = max(1, -(-longest // block_n))
    fixed = 2.0  # tiles' worth of time that a program spends outside its loop

    def rounds(splits: int) -> float:
        return -(-units * splits // slots) * (-(-tiles // splits) + fixed + (splits > 1))

    return min(range(1, min(tiles, MAX_SPLITS) + 1), key=rounds)


def decode(q, k, v, lens=None, *, table=None, k_scale=None, v_scale=None, scale=None, window=None, softcap=0.0,
           splits=None, config=None, workspace=None, check_table=True):  # fmt: skip
    """q (batch, heads, head_dim) against a cache -> out like q, lse (batch, heads).

    Contiguous cache: k and v (batch, kv heads, keys, head_dim), `lens` (batch) of them valid, all if left out.
    Paged cache: k and v (pages, kv heads, page size, head_dim) and `table` (batch, pages of a sequence) with int32
    page numbers; transposed views are welcome. An fp8 or int8 cache comes with k_scale and v_scale, shaped like k
    without its last axis or broadcastable to that. `window` keys before the newest are seen; None is all.
    `check_table` looks at the page numbers and so waits for the GPU; turn it off inside a captured graph.
    """
    group, block_d, lens, longest = arguments.cache(q, k, v, lens, table, k_scale, v_scale, check_table)
    batch, heads, d = q.shape
    kv_heads = k.shape[1]
    scale, softcap = arguments.softmax_scale(scale, d), arguments.cap(softcap)
    left, _ = arguments.visible(True, (window, None))
    out = torch.empty_like(q)
    lse = torch.empty(batch, heads, dtype=torch.float32, device=q.device)
    if q.numel() == 0:
        return out, lse
    block_n, num_warps, num_stages, per_sm = config or CONFIGS[block_d]
    units = batch * kv_heads
    splits = splits or choose_splits(units, longest, block_n, _multiprocessors(q.device) * per_sm)
    parts = (workspace or _workspace(q.device)).take(units, group, splits, d)
    scales, scale_strides = _scales(k, k_scale, v_scale)
    _decode[(splits, units)](
        q, k, v, out, lse, lens, table if table is not None else lens, *scales, *parts, q.stride(0), q.stride(1),
        out.stride(0), out.stride(1), *k.stride()[:3], *v.stride()[:3], *scale_strides,
        table.stride(0) if table is not None else 0, kv_heads, scale * 1.4426950408889634, softcap, left or 0,
        HEAD_DIM=d, BLOCK_D=block_d, GROUP=group, BLOCK_G=max(16, triton.next_power_of_2(group)), BLOCK_N=block_n,
        SPLITS=splits, BLOCK_S=triton.next_power_of_2(splits), PAGE=k.shape[2] if table is not None else 0,
        SCALED=k_scale is not None, HAS_LEFT=left is not None, SOFTCAP=softcap > 0,
        num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip
    return out, lse


def _multiprocessors(device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


def _scales(k, k_scale, v_scale):
    """Scales as views of the cache's shape without the last axis: a broadcast axis has stride 0."""
    if k_scale is None:
        return (k, k), (0,) * 6
    views = [s.expand(k.shape[:3]) for s in (k_scale, v_scale)]
    return views, [stride for view in views for stride in view.stride()]

"""Decode one new token against a long cache, with the keys split over programs and a second launch to add up.

Decoding reads every cached key and value once and does next to no arithmetic, so memory sets its speed as long as
enough programs read together. A program takes one stretch of one sequence for one key head and serves all query heads
that share this key head. These heads are the rows of its matmul, so grouped heads cost no extra bytes. Each program
leaves an unnormalized output, a maximum and a sum, which a second, short launch combines. The cache may be paged, with
a table of each page's position, and may hold fp8 or int8 with scales.
"""

import torch
import triton
import triton.language as tl

from kernels.overlap import can_overlap, let_next_begin, overlapped, wait_for_last
from kernels.replays import Replays, form
from kernels.require import must

from . import arguments
from .arguments_decode import cache
from .decode_parts import MAX_SPLITS, choose_splits, combine, leave, workspace_of

# (block_n, num_warps, num_stages, programs per multiprocessor) by head dim: for a plain cache, for one whose rows are
# looked up, and for one whose numbers are unpacked. Head dim 128: H200, 2026-11-20, two sweeps.
WORKED = {16: (128, 4, 2, 2), 32: (128, 4, 2, 2), 64: (128, 4, 2, 2), 256: (64, 4, 2, 2)}
CONFIGS = {
    "plain": {
        16: (128, 4, 3, 2),
        32: (128, 4, 3, 2),
        64: (128, 4, 3, 2),
        128: (64, 2, 3, 2),
        256: (32, 4, 3, 2),
    },
    "paged": WORKED | {128: (64, 4, 5, 2)},
    "narrow": WORKED | {128: (128, 4, 3, 2)},
}
# with two sequences' heads for every multiprocessor nothing is split, and short programs fill the gaps better
MANY = {("plain", 128): (64, 4, 2, 4), ("paged", 128): (64, 4, 4, 2), ("narrow", 128): (64, 4, 4, 2)}

# The same for pages that hold whole tiles, in a decode step. H200, 2026-11-24
WHOLE_PAGES = (64, 4, 3, 3)


@triton.jit
def _tile_at(base, table_ptr, start, last, strides, BLOCK_N: tl.constexpr, PAGE: tl.constexpr):
    """Return the addresses of the keys start .. start + BLOCK_N of one head, as element offsets from the cache's
    first, and a mask."""
    stride_b, stride_h, stride_n = strides
    batch, kv_head = base
    if (
        PAGE and PAGE % BLOCK_N == 0
    ):  # the tile is in one page, and only its beginning differs from the last tile's
        page = tl.load(table_ptr + start // PAGE, mask=start < last, other=0).to(tl.int64)
        at = page * stride_b + kv_head * stride_h + (start % PAGE).to(tl.int64) * stride_n
        return at + tl.arange(0, BLOCK_N) * stride_n
    key = start + tl.arange(0, BLOCK_N)
    inside = key < last
    page = batch
    if PAGE:
        page = tl.load(table_ptr + key // PAGE, mask=inside, other=0).to(tl.int64)
        key = key % PAGE
    return page * stride_b + kv_head * stride_h + key.to(tl.int64) * stride_n


@triton.jit
def _unpack(x, q, INT8: tl.constexpr):
    """Return codes as numbers of q's dtype. A signed byte next to 0x64 is the fp16 number 1152 + code, without
    conversion."""
    if INT8:
        return tl.inline_asm_elementwise(
            """{ .reg .b32 t, bias;
            mov.b32 bias, 0x64806480;
            xor.b32 t, $2, 0x80808080;
            prmt.b32 $0, t, 0x64646464, 0x4140;
            prmt.b32 $1, t, 0x64646464, 0x4342;
            sub.f16x2 $0, $0, bias;
            sub.f16x2 $1, $1, bias; }""",
            "=r,=r,r",
            [x],
            dtype=tl.float16,
            is_pure=True,
            pack=4,
        )
    return x.to(q.dtype)


@triton.jit
def _step(
    state,
    q,
    k,
    v,
    k_scale,
    v_scale,
    key,
    low,
    last,
    unit,
    softcap,
    R: tl.constexpr,
    CACHE: tl.constexpr,
    PER_KEY: tl.constexpr,
    SOFTCAP: tl.constexpr,
):
    """One tile of keys. `unit` brings products q k to powers of two (with a cap: to true scores).

    The scale of a single value goes into the exponent of its weight, so that weights stay within 0 .. 1. The output
    then has a maximum of its own, top, in addition to the sum's m.
    """
    acc, l, m, top = state
    INT8: tl.constexpr = CACHE == "int8"
    s = tl.dot(q, tl.trans(_unpack(k, q, INT8))) * unit[:, None]  # (BLOCK_G, BLOCK_N)
    if PER_KEY:
        s = s * k_scale[None, :]
    if SOFTCAP:
        s = softcap - 2 * softcap / (tl.exp2(s * (2 * 1.4426950408889634 / softcap)) + 1)
        s = s * 1.4426950408889634
    s = tl.where(((key >= low) & (key < last))[None, :], s, float("-inf"))
    m_new = tl.maximum(m, tl.max(s, 1))
    floor = tl.where(m_new == float("-inf"), 0.0, m_new)
    p = tl.exp2(s - floor[:, None])
    l = l * tl.exp2(m - floor) + tl.sum(p, 1)
    top_new = m_new
    if PER_KEY:
        s = s + tl.log2(v_scale)[None, :]
        top_new = tl.maximum(top, tl.max(s, 1))
        floor = tl.where(top_new == float("-inf"), 0.0, top_new)
        p = tl.exp2(s - floor[:, None])
    acc = acc * tl.exp2(top - floor)[:, None]
    if R > 1:  # neighbouring columns of a byte-wide tile go to one thread, which then reads whole words
        v = tl.reshape(v, [v.shape[0], v.shape[1] // R, R]).trans(0, 2, 1)
        v = tl.reshape(v, [v.shape[0], v.shape[1] * v.shape[2]])
    acc = tl.dot(p.to(q.dtype), _unpack(v, q, INT8), acc)
    return acc, l, m_new, top_new


@triton.jit(do_not_specialize=["kv_heads", "keys", "left"])
def _decode(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, lens_ptr, table_ptr, k_scale_ptr, v_scale_ptr, acc_ptr, m_ptr, l_ptr,
    stride_qb, stride_qh, stride_ob, stride_oh, stride_kb, stride_kh, stride_kn, stride_vb, stride_vh, stride_vn,
    stride_ksb, stride_ksh, stride_ksn, stride_vsb, stride_vsh, stride_vsn, stride_tb,
    kv_heads, keys, scale, softcap, left, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, GROUP: tl.constexpr,
    BLOCK_G: tl.constexpr, BLOCK_N: tl.constexpr, SPLITS: tl.constexpr, R: tl.constexpr,
    HAS_LENS: tl.constexpr, PAGE: tl.constexpr, CACHE: tl.constexpr, PER_KEY: tl.constexpr, HAS_LEFT: tl.constexpr,
    SOFTCAP: tl.constexpr, OVERLAPS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if OVERLAPS:
        let_next_begin()
    split = tl.program_id(0)
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    kv_head = (tl.program_id(1) % kv_heads).to(tl.int64)
    length = keys
    if HAS_LENS:
        length = tl.load(lens_ptr + batch)
    low = length * 0
    if HAS_LEFT:
        low = tl.maximum(length - 1 - left, 0)
    begin = low // BLOCK_N * BLOCK_N
    per_split = tl.cdiv(tl.cdiv(length - begin, BLOCK_N), SPLITS) * BLOCK_N
    first = begin + split * per_split
    last = tl.minimum(first + per_split, length)
    offs_g = tl.arange(0, BLOCK_G)
    offs_d = tl.arange(0, BLOCK_D)
    mask_d = offs_d < HEAD_DIM
    mask_q = (offs_g < GROUP)[:, None] & mask_d[None, :]
    head = kv_head * GROUP + offs_g
    base = (batch, kv_head)
    table_ptr += batch * stride_tb
    if EARLY:  # all of the first tile but the newest key is at rest, and that one is fetched after the wait
        key = first + tl.arange(0, BLOCK_N)
        old = ((key < last) & (key != length - 1))[:, None] & mask_d[None, :]
        new = ((key < last) & (key == length - 1))[:, None] & mask_d[None, :]
        k_at = _tile_at(base, table_ptr, first, last, (stride_kb, stride_kh, stride_kn), BLOCK_N, PAGE)
        v_at = _tile_at(base, table_ptr, first, last, (stride_vb, stride_vh, stride_vn), BLOCK_N, PAGE)
        at_k = k_ptr + k_at[:, None] + offs_d[None, :]
        at_v = v_ptr + v_at[:, None] + offs_d[None, :]
        k_first = tl.load(at_k, mask=old, other=0.0)  # (BLOCK_N, BLOCK_D)
        v_first = tl.load(at_v, mask=old, other=0.0)
        wait_for_last()
        k_first = tl.where(new, tl.load(at_k, mask=new, other=0.0), k_first)
        v_first = tl.where(new, tl.load(at_v, mask=new, other=0.0), v_first)
    q_at = q_ptr + batch * stride_qb + head[:, None] * stride_qh + offs_d[None, :]
    q = tl.load(q_at, mask=mask_q, other=0.0)  # (BLOCK_G, BLOCK_D)
    unit = tl.full([BLOCK_G], 1.0, tl.float32) * scale
    if (
        CACHE != "same"
    ):  # fp16 holds every code exactly and is cheap to unpack to, so q is brought into its range
        q_top = tl.maximum(tl.max(tl.abs(q.to(tl.float32)), 1), 1e-30)
        q = (q.to(tl.float32) / q_top[:, None]).to(tl.float16)
        unit = unit * q_top
        if not PER_KEY:
            unit = unit * tl.load(k_scale_ptr + batch * stride_ksb + kv_head * stride_ksh)
    acc = tl.zeros([BLOCK_G, BLOCK_D], tl.float32)
    l = tl.zeros([BLOCK_G], tl.float32)
    m = tl.full([BLOCK_G], float("-inf"), tl.float32)
    state = (acc, l, m, m)
    if EARLY:
        state = _step(
            state, q, k_first, v_first, key, key, key, low, last, unit, softcap, R, CACHE, PER_KEY, SOFTCAP
        )
        first += BLOCK_N
    for start in range(first, last, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        inside = key < last
        mask = inside[:, None] & mask_d[None, :]
        k_at = _tile_at(base, table_ptr, start, last, (stride_kb, stride_kh, stride_kn), BLOCK_N, PAGE)
        v_at = _tile_at(base, table_ptr, start, last, (stride_vb, stride_vh, stride_vn), BLOCK_N, PAGE)
        k = tl.load(k_ptr + k_at[:, None] + offs_d[None, :], mask=mask, other=0.0)  # (BLOCK_N, BLOCK_D)
        v = tl.load(v_ptr + v_at[:, None] + offs_d[None, :], mask=mask, other=0.0)  # (BLOCK_N, BLOCK_D)
        k_scale = key
        v_scale = key
        if PER_KEY:
            k_at = _tile_at(base, table_ptr, start, last, (stride_ksb, stride_ksh, stride_ksn), BLOCK_N, PAGE)
            v_at = _tile_at(base, table_ptr, start, last, (stride_vsb, stride_vsh, stride_vsn), BLOCK_N, PAGE)
            k_scale = tl.load(k_scale_ptr + k_at, mask=inside, other=0.0)
            v_scale = tl.load(v_scale_ptr + v_at, mask=inside, other=1.0)
        state = _step(
            state, q, k, v, k_scale, v_scale, key, low, last, unit, softcap, R, CACHE, PER_KEY, SOFTCAP
        )
    acc, l, m, top = state
    if R > 1:
        acc = tl.reshape(tl.reshape(acc, [BLOCK_G, R, BLOCK_D // R]).trans(0, 2, 1), [BLOCK_G, BLOCK_D])
    if PER_KEY:
        acc = acc * tl.exp2(top - tl.where(m == float("-inf"), 0.0, m))[:, None]
    elif CACHE != "same":
        acc = acc * tl.load(v_scale_ptr + batch * stride_vsb + kv_head * stride_vsh)
    out_at = out_ptr + batch * stride_ob + kv_head * GROUP * stride_oh
    lse_at = lse_ptr + (batch * kv_heads + kv_head) * GROUP
    if SPLITS > 1:
        leave(acc, l, m, (acc_ptr, m_ptr, l_ptr), offs_g, offs_d, GROUP, HEAD_DIM, SPLITS)
    else:
        safe = tl.where(l == 0.0, 1.0, l)
        out = (acc / safe[:, None]).to(out_ptr.dtype.element_ty)
        tl.store(out_at + offs_g[:, None] * stride_oh + offs_d[None, :], out, mask=mask_q)
        lse = tl.where(l == 0.0, float("-inf"), m * 0.6931471805599453 + tl.log(safe))
        tl.store(lse_at + offs_g, lse, mask=offs_g < GROUP)


REPLAYS = Replays()


def decode(
    q,
    k,
    v,
    lens=None,
    *,
    table=None,
    k_scale=None,
    v_scale=None,
    scale=None,
    window=None,
    softcap=0.0,
    splits=None,
    config=None,
    workspace=None,
    check_values=True,
    early=False,
):
    """q (batch, heads, head_dim) against a cache -> out like q, lse (batch, heads).

    Contiguous cache: k and v (batch, kv heads, keys, head_dim), with `lens` (batch) valid keys, or all if left out.
    Paged cache: k and v (pages, kv heads, page size, head_dim) and `table` (batch, pages of a sequence) with int32 page
    numbers. Transposed views are welcome. An fp8 or int8 cache comes with k_scale and v_scale, in k's shape without the
    last axis or broadcastable to this shape. `window` keys before the newest are seen, or all with None. Scales are not
    negative. `check_values` looks at lens and table and so waits for the GPU. Turn it off inside a captured graph.
    `early` begins while the launch before runs (kernels/overlap.py), and fetches keys already: lens, table and all keys
    and values but each sequence's newest must be at rest.
    """
    out = torch.empty_like(q)
    lse = q.new_empty(q.shape[:2], dtype=torch.float32)
    given, key = [one for one in (q, k, v, lens, table, k_scale, v_scale) if one is not None], None
    if config is None and not (check_values and lens is not None):
        key = (
            *map(form, (q, k, v, lens, table, k_scale, v_scale)),
            scale,
            window,
            type(window),
            softcap,
            splits,
            early,
        )
        if ready := REPLAYS.get(key):
            memory = (workspace or workspace_of(q.device)).memory(*ready.note)
            if ready(*given, out, lse, memory):
                return out, lse
    group, block_d, longest = cache(q, k, v, lens, table, k_scale, v_scale, check_values)
    batch, heads, d = q.shape
    kv_heads = k.shape[1]
    scale, softcap = arguments.softmax_scale(scale, d), arguments.cap(softcap)
    left, _ = arguments.visible(True, (window, None))
    if q.numel() == 0:
        return out, lse
    units = batch * kv_heads
    arguments.programs("sequences times key heads", units)
    processors = arguments.multiprocessors(q.device)
    kind = "narrow" if k_scale is not None else "plain" if table is None else "paged"
    page = 0 if table is None or k_scale is not None else k.shape[2]
    block_n, num_warps, num_stages, per_sm = config or choose_config(kind, block_d, units, processors, page)
    room = arguments.shared_memory(q.device) // (2 * block_n * block_d * k.element_size())
    num_stages = min(num_stages, max(2, room))  # smaller GPUs hold fewer tiles of K and V
    fits = splits is None or 1 <= splits <= MAX_SPLITS
    must(fits, "splits", f"from 1 to {MAX_SPLITS}", splits, "leave it out for the least time")
    splits = splits or choose_splits(units, longest, block_n, processors * per_sm)
    if config is None and longest <= 2 * splits * block_n:
        num_stages = 2  # one or two tiles leave nothing to fetch ahead, and more programs fit
    overlaps = can_overlap(q.device)
    early = early and overlaps and k_scale is None
    taken = batch * heads, splits, d
    parts = (workspace or workspace_of(q.device)).take(*taken)
    scales, scale_strides, per_key = _scales(k, k_scale, v_scale, table is not None)
    unit = scale if softcap else scale * arguments.LOG2E
    with REPLAYS.recording(key, *given, out, lse, parts[0]) as recording:
        recording.note = taken
        _decode[(splits, units)](
            q, k, v, out, lse, lse if lens is None else lens, lse if table is None else table, *scales, *parts,
            q.stride(0), q.stride(1), out.stride(0), out.stride(1), *k.stride()[:3], *v.stride()[:3], *scale_strides,
            0 if table is None else table.stride(0), kv_heads, longest, unit, softcap, left or 0,
            HEAD_DIM=d, BLOCK_D=block_d, GROUP=group, BLOCK_G=max(16, triton.next_power_of_2(group)), BLOCK_N=block_n,
            SPLITS=splits, R=1 if k_scale is None else max(1, block_d // (8 * num_warps)), HAS_LENS=lens is not None,
            PAGE=0 if table is None else k.shape[2], CACHE=_kind(k, k_scale), PER_KEY=per_key, HAS_LEFT=left is not None,
            SOFTCAP=softcap > 0, OVERLAPS=overlaps, EARLY=early, num_warps=num_warps, num_stages=num_stages,
            **overlapped(early),
        )  # fmt: skip
        if splits > 1:
            combine(parts, out, lse, splits, overlaps)
    return out, lse


def choose_config(
    kind: str, block_d: int, units: int, processors: int, page: int = 0
) -> tuple[int, int, int, int]:
    few = CONFIGS[kind][block_d]
    if page and page % WHOLE_PAGES[0] == 0 and block_d == 128 and units < processors:
        return WHOLE_PAGES
    return MANY.get((kind, block_d), few) if units >= 2 * processors else few


def _kind(k, k_scale) -> str:
    """Assembly is for GPUs. Elsewhere int8 codes are cast like fp8's."""
    if k_scale is None:
        return "same"
    return "int8" if k.dtype == torch.int8 and k.is_cuda else "codes"


def _scales(k, k_scale, v_scale, paged):
    """Return scales as views of the cache's shape without the last axis, and whether a head has several per sequence."""
    if k_scale is None:
        return (k, k), (0,) * 6, False
    views = [s.expand(k.shape[:3]) for s in (k_scale, v_scale)]
    strides = [stride for view in views for stride in view.stride()]
    along = (0, 2) if paged else (2,)
    several = any(view.stride(axis) != 0 and k.shape[axis] > 1 for view in views for axis in along)
    return views, strides, several

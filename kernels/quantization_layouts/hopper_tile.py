"""Many rows times a packed weight on Hopper: a warp keeps a ring full, warpgroups unpack in registers and multiply.

Rows of W are the rows of the product, so that an unpacked weight is the tensor cores' operand from registers and is
never written anywhere: the offline shuffle has dealt every lane what the instruction wants of it. X comes through shared
memory. One warp asks for words, scales and X some steps ahead (the copy engine needs no registers for what is on its way);
each warpgroup walks along K at a pace of its own, so that one unpacks while another's product runs.
All programs get the same share of all steps, cut where it falls. Who shares a tile leaves its sums in fp32, and whoever
comes last adds them in the order of K: the same bits at every run, and nobody waits.
"""

from dataclasses import dataclass

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kernels.moe_routing.counters import arrivals
from kernels.quantization_layouts.arguments import check_layer
from kernels.quantization_layouts.packed import Packed

STEP = gl.constexpr(128)  # columns of W at a time: two vectors of each lane, one long group
VECTORS = gl.constexpr(2)
WORDS = gl.constexpr(256)  # of a brick in a step
barrier = getattr(gl, "barrier", None) or gl.thread_barrier  # Triton 3.7, 3.6


@dataclass(frozen=True)
class HopperTile:
    cols: int = 16  # rows of X
    consumers: int = 4  # warpgroups that unpack and multiply
    bricks: int = 4  # of 16 rows, of each: 4 or 8
    stages: int = 8
    late: bool = True  # sums are scaled in fp32, not weights in 16 bits
    even: bool = True  # all programs the same share of steps, not whole tiles


_UNPACK = """{{
.reg .b32 t;
lop3.b32 $0, $4, 0x000F000F, $9, 0xEA;
shr.u32 t, $4, 4;
lop3.b32 $1, t, 0x000F000F, $9, 0xEA;
shr.u32 t, $4, 8;
lop3.b32 $2, t, 0x000F000F, $9, 0xEA;
shr.u32 t, $4, 12;
lop3.b32 $3, t, 0x000F000F, $9, 0xEA;
sub.{0} $0, $0, $5;
sub.{0} $1, $1, $5;
sub.{0} $2, $2, $6;
sub.{0} $3, $3, $6;
{1}
}}"""
_SCALE = "mul.{0} $0, $0, $7; mul.{0} $1, $1, $7; mul.{0} $2, $2, $8; mul.{0} $3, $3, $8;"
UNPACK = {
    (name, late): gl.constexpr(_UNPACK.format(pair, "" if late else _SCALE.format(pair)))
    for name, pair in (("fp16", "f16x2"), ("bf16", "bf16x2"))
    for late in (False, True)
}
F16_LATE, F16, BF16_LATE, BF16 = (
    UNPACK["fp16", True],
    UNPACK["fp16", False],
    UNPACK["bf16", True],
    UNPACK["bf16", False],
)


@gluon.constexpr_function
def _bases(BRICKS, *first):
    """Registers, lanes and warps of what lies brick by brick: a warp has a brick, or two that are four apart."""
    return [*first] + ([[4, 0]] if BRICKS == 8 else [])


@gluon.constexpr_function
def _words_layout(BRICKS):
    lanes = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]]
    registers = _bases(BRICKS, [0, 1], [0, 2], [0, 128])
    return gl.DistributedLinearLayout(registers, lanes, [[1, 0], [2, 0]], [], [BRICKS, 256])


@gluon.constexpr_function
def _rows_layout(BRICKS, PARTS):
    """Scales (bricks, parts x 16): each lane has those of its rows r and r + 8."""
    lanes = [[0, 0], [0, 0], [0, 1], [0, 2], [0, 4]]
    parts = [[0, 16 << i] for i in range(PARTS.bit_length() - 1)]
    return gl.DistributedLinearLayout(
        _bases(BRICKS, [0, 8], *parts), lanes, [[1, 0], [2, 0]], [], [BRICKS, 16 * PARTS]
    )


@gluon.constexpr_function
def _slice(layout):
    return gl.SliceLayout(2, gl.SliceLayout(4, gl.SliceLayout(6, layout)))


@gluon.constexpr_function
def _asm(dtype, LATE):
    if dtype == gl.float16:
        return F16_LATE.value if LATE else F16.value
    return BF16_LATE.value if LATE else BF16.value


@gluon.jit
def _of_rows(pairs, LAYOUT: gl.constexpr, PV: gl.constexpr, PW: gl.constexpr):
    """(bricks, parts x 16) -> of rows r and of rows r + 8, each as wide as the words' own shape."""
    B: gl.constexpr = pairs.shape[0]
    both = pairs.reshape([B, PV, PW, 2, 8]).permute(
        0, 1, 4, 2, 3
    )  # (brick, vector, row, part of it, row / 8)
    first, second = both.split()
    first = gl.convert_layout(first, _slice(LAYOUT), assert_trivial=True)
    second = gl.convert_layout(second, _slice(LAYOUT), assert_trivial=True)
    first = gl.expand_dims(gl.expand_dims(gl.expand_dims(first, 2), 4), 6)
    second = gl.expand_dims(gl.expand_dims(gl.expand_dims(second, 2), 4), 6)
    return first, second


@gluon.jit
def _twice(half):
    """A number of 16 bits in both halves of 32."""
    bits = half.to(gl.int16, bitcast=True).to(gl.int32) & 0xFFFF
    return bits | (bits << 16)


@gluon.jit
def _unpack(words, scale, zero, filled, dtype: gl.constexpr, LATE: gl.constexpr, HAS_ZEROS: gl.constexpr):
    """Words (bricks, 256) to four times as many pairs of 16-bit weights, k / 8 and row / 8 of the fragment."""
    B: gl.constexpr = words.shape[0]
    PARTS: gl.constexpr = scale.shape[1] // 16
    PV: gl.constexpr = min(PARTS, VECTORS)
    PW: gl.constexpr = PARTS // PV
    words = words.reshape([B, PV, VECTORS // PV, 8, 4, PW, 4 // PW])
    LAYOUT: gl.constexpr = words.type.layout
    if LATE:
        s0, s1 = filled, filled
    else:
        s0, s1 = _of_rows(_twice(scale), LAYOUT, PV, PW)
    if HAS_ZEROS:
        z = zero.to(gl.int32)
        m0, m1 = _of_rows(z | (z << 16) | filled, LAYOUT, PV, PW)
    else:
        m0, m1 = filled | 0x00080008, filled | 0x00080008
    return gl.inline_asm_elementwise(
        _asm(dtype, LATE),
        "=&r,=&r,=&r,=&r,r,r,r,r,r,r",
        [words, m0, m1, s0, s1, filled],
        dtype=(gl.int32, gl.int32, gl.int32, gl.int32),
        is_pure=True,
        pack=1,
    )


@gluon.jit
def _operand(p0, p1, p2, p3, dtype: gl.constexpr, ACC: gl.constexpr):
    """(rows, 128) as the tensor cores' operand: registers only change their names."""
    B: gl.constexpr = p0.shape[0]
    pairs = gl.join(gl.join(p0, p1), gl.join(p2, p3))  # .., k / 8, row / 8
    low = pairs.to(gl.int16).to(dtype, bitcast=True)
    high = (pairs >> 16).to(gl.int16).to(dtype, bitcast=True)
    w = gl.join(low, high).reshape([B, VECTORS, 8, 4, 4, 2, 2, 2])
    w = w.permute(0, 6, 2, 1, 4, 5, 3, 7).reshape([16 * B, STEP])
    return gl.convert_layout(w, gl.DotOperandLayout(0, ACC, 2), assert_trivial=True)


@gluon.jit
def _share(units, tiles, steps, EVEN: gl.constexpr):
    """The first step of this program's and the one behind its last, counted through all tiles."""
    c = gl.program_id(0)
    if EVEN:
        first = c * units // gl.num_programs(0)
        last = (c + 1) * units // gl.num_programs(0)
    else:
        first = c * tiles // gl.num_programs(0) * steps
        last = (c + 1) * tiles // gl.num_programs(0) * steps
    return first, last


@gluon.jit
def _produce(descs, rings, sizes, HAS_ZEROS: gl.constexpr, EVEN: gl.constexpr):
    w_desc, s_desc, z_desc, x_desc = descs
    words, scales, zeros, xs, full, empty = rings
    M, N, steps, tiles, tiles_m = sizes
    STAGES: gl.constexpr = words.shape[0]
    BRICKS: gl.constexpr = words.shape[1]
    WIDTH: gl.constexpr = scales.shape[2]
    COLS: gl.constexpr = xs.shape[1]
    BYTES: gl.constexpr = w_desc.block_type.nbytes + s_desc.block_type.nbytes + x_desc.block_type.nbytes
    first, last = _share(tiles * steps, tiles, steps, EVEN)
    for u in range(first, last):
        stage = (u - first) % STAGES
        tile = u // steps
        step = u % steps
        mbarrier.wait(empty.index(stage), ((u - first) // STAGES & 1) ^ 1)
        ready = full.index(stage)
        brick = tile // tiles_m * BRICKS
        if HAS_ZEROS:
            mbarrier.expect(ready, BYTES + z_desc.block_type.nbytes)
            tma.async_copy_global_to_shared(z_desc, [brick, step * WIDTH], ready, zeros.index(stage))
        else:
            mbarrier.expect(ready, BYTES)
        tma.async_copy_global_to_shared(w_desc, [brick, step * WORDS], ready, words.index(stage))
        tma.async_copy_global_to_shared(s_desc, [brick, step * WIDTH], ready, scales.index(stage))
        tma.async_copy_global_to_shared(x_desc, [tile % tiles_m * COLS, step * STEP], ready, xs.index(stage))


@gluon.jit
def _take(
    rings,
    filled,
    count,
    dtype: gl.constexpr,
    LATE: gl.constexpr,
    HAS_ZEROS: gl.constexpr,
    WHICH: gl.constexpr,
    B: gl.constexpr,
):
    """The next step's weights, unpacked, and its scales."""
    words, scales, zeros, xs, full, empty = rings
    STAGES: gl.constexpr = words.shape[0]
    PARTS: gl.constexpr = scales.shape[2] // 16
    stage = count % STAGES
    mbarrier.wait(full.index(stage), count // STAGES & 1)
    word = words.index(stage).slice(WHICH * B, B).load(_words_layout(B))
    scale = scales.index(stage).slice(WHICH * B, B).load(_rows_layout(B, PARTS))
    zero = scale
    if HAS_ZEROS:
        zero = zeros.index(stage).slice(WHICH * B, B).load(_rows_layout(B, PARTS))
    p0, p1, p2, p3 = _unpack(word, scale, zero, filled, dtype, LATE, HAS_ZEROS)
    return p0, p1, p2, p3, scale


@gluon.jit
def _scaled(acc, part, scale, ACC: gl.constexpr):
    rows = scale.to(gl.float32).reshape([scale.shape[0] * 16])
    rows = gl.convert_layout(rows, gl.SliceLayout(1, ACC), assert_trivial=True)
    return acc + part * rows[:, None]


@gluon.jit
def _owner(unit, units):
    """The program whose share holds a step."""
    return ((unit + 1) * gl.num_programs(0) - 1) // units


@gluon.jit
def _finish(
    acc,
    out,
    sums,
    sizes,
    tile,
    first,
    last,
    WHICH: gl.constexpr,
    CONSUMERS: gl.constexpr,
    ACC: gl.constexpr,
    EVEN: gl.constexpr,
):
    """Store a tile, or leave this part of it and, if all other parts are there, add them up and store."""
    y_ptr, stride_ym = out
    part_ptr, done_ptr = sums
    M, N, steps, tiles, tiles_m = sizes
    ROWS: gl.constexpr = acc.shape[0]
    COLS: gl.constexpr = acc.shape[1]
    rows = gl.arange(0, ROWS, gl.SliceLayout(1, ACC))
    cols = gl.arange(0, COLS, gl.SliceLayout(0, ACC))
    ours = True
    if EVEN:
        begin = tile * steps
        if last - first < steps:
            c = gl.program_id(0)
            units = tiles * steps
            at = part_ptr + WHICH * ROWS * COLS + rows[:, None] * COLS + cols[None, :]
            size = CONSUMERS * ROWS * COLS
            slot = 2 * c + (first == begin).to(
                gl.int32
            )  # a share has at most one head of a tile, and one tail
            gl.store(at + slot.to(gl.int64) * size, acc)
            barrier()  # every thread's sums are written before one thread counts
            head = _owner(begin, units)
            tail = _owner(begin + steps - 1, units)
            counter = done_ptr + tile * CONSUMERS + WHICH
            ours = gl.atomic_add(counter, 1, sem="acq_rel") == tail - head
            if ours:
                gl.store(counter, 0)
                acc = gl.load(at + (2 * head + 1).to(gl.int64) * size)
                for other in range(head + 1, tail + 1):
                    acc += gl.load(at + (2 * other).to(gl.int64) * size)
    if ours:
        offs_n = (tile // tiles_m * CONSUMERS + WHICH) * ROWS + rows
        offs_m = tile % tiles_m * COLS + cols
        at_y = y_ptr + offs_m.to(gl.int64)[None, :] * stride_ym + offs_n[:, None]
        gl.store(at_y, acc.to(y_ptr.dtype.element_ty), mask=(offs_n < N)[:, None] & (offs_m < M)[None, :])


@gluon.jit
def _consume(
    out,
    sums,
    rings,
    sizes,
    filled,
    WHICH: gl.constexpr,
    CONSUMERS: gl.constexpr,
    LATE: gl.constexpr,
    HAS_ZEROS: gl.constexpr,
    EVEN: gl.constexpr,
):
    words, scales, zeros, xs, full, empty = rings
    M, N, steps, tiles, tiles_m = sizes
    dtype: gl.constexpr = xs.dtype
    STAGES: gl.constexpr = words.shape[0]
    B: gl.constexpr = words.shape[1] // CONSUMERS
    COLS: gl.constexpr = xs.shape[1]
    ACC: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, COLS, 16])
    begin, last = _share(tiles * steps, tiles, steps, EVEN)
    first = begin
    while first < last:
        tile = first // steps
        end = gl.minimum(last, (tile + 1) * steps)
        acc = gl.zeros([16 * B, COLS], gl.float32, ACC)
        nothing = gl.zeros([16 * B, COLS], gl.float32, ACC)
        for u in range(first, end):
            stage = (u - begin) % STAGES
            p0, p1, p2, p3, scale = _take(rings, filled, u - begin, dtype, LATE, HAS_ZEROS, WHICH, B)
            w = _operand(p0, p1, p2, p3, dtype, ACC)
            x = xs.index(stage).permute((1, 0))
            if LATE:
                part = warpgroup_mma(w, x, nothing, use_acc=False, is_async=True)
                part, w = warpgroup_mma_wait(0, deps=(part, w))
                acc = _scaled(acc, part, scale, ACC)
            else:
                acc = warpgroup_mma(w, x, acc, is_async=True)
                acc, w = warpgroup_mma_wait(0, deps=(acc, w))
            mbarrier.arrive(empty.index(stage), count=1)
        _finish(acc, out, sums, sizes, tile, first, end, WHICH, CONSUMERS, ACC, EVEN)
        first = end


@gluon.jit(do_not_specialize=["done_ptr", "M", "tiles", "tiles_m"])  # one compiled kernel for every M
def hopper_tile_kernel(
    w_desc,
    s_desc,
    z_desc,
    x_desc,
    y_ptr,
    part_ptr,
    done_ptr,
    filled,
    M,
    N,
    steps,
    tiles,
    tiles_m,
    stride_ym,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
    LATE: gl.constexpr,
    HAS_ZEROS: gl.constexpr,
    EVEN: gl.constexpr,
    REGISTERS: gl.constexpr,
):
    words = gl.allocate_shared_memory(gl.int32, [STAGES] + w_desc.block_type.shape, w_desc.layout)
    scales = gl.allocate_shared_memory(s_desc.dtype, [STAGES] + s_desc.block_type.shape, s_desc.layout)
    xs = gl.allocate_shared_memory(x_desc.dtype, [STAGES] + x_desc.block_type.shape, x_desc.layout)
    zeros = scales
    if HAS_ZEROS:
        zeros = gl.allocate_shared_memory(z_desc.dtype, [STAGES] + z_desc.block_type.shape, z_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=CONSUMERS)
    fence_async_shared()
    rings = (words, scales, zeros, xs, full, empty)
    descs = (w_desc, s_desc, z_desc, x_desc)
    sizes = (M, N, steps, tiles, tiles_m)
    out = (y_ptr, stride_ym)
    sums = (part_ptr, done_ptr)
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (_consume, (out, sums, rings, sizes, filled, 0, 2, LATE, HAS_ZEROS, EVEN)),
                (_consume, (out, sums, rings, sizes, filled, 1, 2, LATE, HAS_ZEROS, EVEN)),
                (_produce, (descs, rings, sizes, HAS_ZEROS, EVEN)),
            ],
            [4, 1],
            [REGISTERS, 24],
        )
    elif CONSUMERS == 3:
        gl.warp_specialize(
            [
                (_consume, (out, sums, rings, sizes, filled, 0, 3, LATE, HAS_ZEROS, EVEN)),
                (_consume, (out, sums, rings, sizes, filled, 1, 3, LATE, HAS_ZEROS, EVEN)),
                (_consume, (out, sums, rings, sizes, filled, 2, 3, LATE, HAS_ZEROS, EVEN)),
                (_produce, (descs, rings, sizes, HAS_ZEROS, EVEN)),
            ],
            [4, 4, 1],
            [REGISTERS, REGISTERS, 24],
        )
    else:
        gl.warp_specialize(
            [
                (_consume, (out, sums, rings, sizes, filled, 0, 4, LATE, HAS_ZEROS, EVEN)),
                (_consume, (out, sums, rings, sizes, filled, 1, 4, LATE, HAS_ZEROS, EVEN)),
                (_consume, (out, sums, rings, sizes, filled, 2, 4, LATE, HAS_ZEROS, EVEN)),
                (_consume, (out, sums, rings, sizes, filled, 3, 4, LATE, HAS_ZEROS, EVEN)),
                (_produce, (descs, rings, sizes, HAS_ZEROS, EVEN)),
            ],
            [4, 4, 4, 1],
            [REGISTERS, REGISTERS, REGISTERS, 24],
        )


_GLUON = {
    torch.bfloat16: gl.bfloat16,
    torch.float16: gl.float16,
    torch.int32: gl.int32,
    torch.uint8: gl.uint8,
}


def _descriptor(matrix, block, swizzled: bool = False):
    if swizzled:
        layout = gl.NVMMASharedLayout.get_default_for(block, _GLUON[matrix.dtype])
    else:
        layout = gl.NVMMASharedLayout(0, 8 * matrix.element_size(), 2)
    return TensorDescriptor.from_tensor(matrix, block, layout)


def hopper_tile(x, w: Packed, out=None, config: HopperTile | None = None) -> torch.Tensor:
    """out (rows, N) = x (rows, K) times the packed weight."""
    x, out, each = check_layer(x, w, out, None, None)
    if not out.numel():
        return out
    c = config or HopperTile()
    bricks = c.consumers * c.bricks
    tiles_m = -(-each // c.cols)
    tiles = -(-w.n // (16 * bricks)) * tiles_m
    steps = -(-w.k // STEP.value)
    programs = min(_programs(x.device), tiles * (steps if c.even else 1))
    width = STEP.value // w.group * 16
    words = w.words[0].view(-1, w.words[0].shape[2] * 128)
    scales = w.scales.view(-1, w.scales.shape[2] * 16)
    s_desc = _descriptor(scales, [bricks, width])
    parts, done = x, x
    if c.even:
        parts = torch.empty(2 * programs * 16 * bricks * c.cols, dtype=torch.float32, device=x.device)
        done = arrivals(x.device, tiles * c.consumers)
    hopper_tile_kernel[(programs,)](
        _descriptor(words, [bricks, WORDS.value]),
        s_desc,
        s_desc if w.zeros is None else _descriptor(w.zeros.view(scales.shape), [bricks, width]),
        _descriptor(x, [c.cols, STEP.value], swizzled=True),
        out,
        parts,
        done,
        w.filled,
        each,
        w.n,
        steps,
        tiles,
        tiles_m,
        out.stride(0),
        CONSUMERS=c.consumers,
        STAGES=c.stages,
        LATE=c.late and w.group == STEP.value,
        HAS_ZEROS=w.zeros is not None,
        EVEN=c.even,
        REGISTERS=REGISTERS[c.consumers],
        num_warps=4,
    )
    return out


REGISTERS = {2: 240, 3: 160, 4: 112}  # of a thread that multiplies, by warpgroups


def _programs(device) -> int:
    if device.type != "cuda":
        return 132
    return torch.cuda.get_device_properties(device).multi_processor_count

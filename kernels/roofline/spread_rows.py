"""Compute LayerNorm(GELU(x)) of rows that are too long for one multiprocessor, by a cluster of programs a row.

Each program of a cluster (Hopper and later) holds one part of the row in registers, so a row is read once, however
long. The programs exchange two numbers a row, their part's mean and its sum of squares about this mean, through shared memory.
Sums about a part's own mean don't cancel, and neither does what is added for the distance of the means.
"""

from dataclasses import dataclass

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from kernels.overlap import capped
from kernels.roofline import gelu as one_program

gelu = gluon.jit(one_program.gelu.fn)


# Two sets of slots and their barriers, in turns, because a program may send its next row's numbers while another still
# reads this row's. They lie in front of the compiler's own shared memory.
OPEN = gl.constexpr("""
.shared .align 16 .b8 spread_slots[256];
.shared .align 8 .b64 spread_full[2];
{
.reg .pred first;
.reg .b32 thread;
mov.u32 thread, %tid.x;
setp.eq.u32 first, thread, 0;
@first mbarrier.init.shared.b64 [spread_full], 1;
@first mbarrier.init.shared.b64 [spread_full + 8], 1;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
mov.u32 $0, 0;
}""")
# A thread a part sends both numbers to that part's program, whose barrier counts the bytes. A cluster's barrier would
# wait for all stores and loads under way as well.
EXCHANGE = gl.constexpr("""{
.reg .pred some, open;
.reg .b32 thread, slots, full, there, theirs;
mov.u32 thread, %tid.x;
mov.u32 slots, spread_slots;
mov.u32 full, spread_full;
mad.lo.u32 slots, $5, 128, slots;
mad.lo.u32 full, $5, 8, full;
setp.eq.u32 some, thread, 0;
@some mbarrier.arrive.expect_tx.shared.b64 _, [full], $8;
mad.lo.u32 there, $4, 8, slots;
mapa.shared::cluster.u32 there, there, $7;
mapa.shared::cluster.u32 theirs, full, $7;
setp.lt.u32 some, thread, $9;
@some st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [there], {$2, $3}, [theirs];
WAIT:
mbarrier.try_wait.parity.shared.b64 open, [full], $6;
@!open bra WAIT;
mad.lo.u32 there, $7, 8, slots;
ld.shared.v2.f32 {$0, $1}, [there];
}""")


@gluon.jit
def columns(at, i, PIECE: gl.constexpr, WIDE: gl.constexpr):
    """Return the columns of the i-th piece of each part."""
    return at + i * PIECE + gl.arange(0, PIECE, layout=gl.SliceLayout(0, WIDE))[None, :]


@gluon.jit
def load_parts(
    ptr, here, at, cols, PIECE: gl.constexpr, PIECES: gl.constexpr, WIDE: gl.constexpr, KEEP: gl.constexpr
):
    pieces = ()
    for i in gl.static_range(PIECES):
        offs = columns(at, i, PIECE, WIDE)
        pieces = pieces + (gl.load(ptr + offs, mask=(offs < cols) & here, other=0.0, eviction_policy=KEEP),)
    return pieces


@gluon.jit
def spread_rows_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    rows,
    cols,
    stride_x,
    stride_y,
    eps,
    PARTS: gl.constexpr,
    PIECE: gl.constexpr,
    PIECES: gl.constexpr,
    EVEN: gl.constexpr,
    WIDE: gl.constexpr,
    FEW: gl.constexpr,
):
    """Walk rows. A tensor's first dimension is the part, and the cluster's programs have one each."""
    SHORT: gl.constexpr = x_ptr.dtype.element_ty.primitive_bitwidth <= 16
    LENGTH: gl.constexpr = PIECE * PIECES
    end = PARTS * LENGTH if EVEN else cols  # known while compiling, masks vanish
    at = gl.arange(0, PARTS, layout=gl.SliceLayout(1, WIDE))[:, None] * LENGTH
    count = gl.maximum(gl.minimum(end - at, LENGTH), 1).to(gl.float32)  # the last parts of a row may be empty
    mine = gl.arange(0, PARTS, layout=gl.SliceLayout(1, FEW))[:, None]
    everyone = gl.arange(0, PARTS, layout=gl.SliceLayout(0, FEW))[None, :] + 0 * mine
    counts = gl.maximum(gl.minimum(end - everyone * LENGTH, LENGTH), 0).to(gl.float32)
    first = gl.program_id(0).to(gl.int64)
    gl.inline_asm_elementwise(OPEN, "=r", [], dtype=gl.int32, is_pure=False, pack=1)
    ahead = load_parts(x_ptr + first * stride_x, first < rows, at, end, PIECE, PIECES, WIDE, "")
    count_rows = 0
    for row in range(first, rows, gl.num_programs(0)):
        g = ()
        total = gl.zeros((PARTS, PIECE), gl.float32, layout=WIDE)
        for i in gl.static_range(PIECES):
            g = g + (gelu(ahead[i].to(gl.float32), SHORT),)  # 0 where nothing was loaded
            total += g[i]
        next_row = row + gl.num_programs(0)
        ahead = load_parts(x_ptr + next_row * stride_x, next_row < rows, at, end, PIECE, PIECES, WIDE, "")
        near = gl.sum(total, axis=1)[:, None] / count
        total = gl.zeros((PARTS, PIECE), gl.float32, layout=WIDE)
        for i in gl.static_range(PIECES):
            centred = g[i] - near
            if not EVEN:
                centred = gl.where(columns(at, i, PIECE, WIDE) < end, centred, 0.0)
            total += centred * centred
        squares = gl.sum(total, axis=1)[:, None]
        near = gl.convert_layout(near, FEW) + 0.0 * everyone
        squares = gl.convert_layout(squares, FEW) + 0.0 * everyone
        nears, squares = gl.inline_asm_elementwise(
            EXCHANGE,
            "=&f,=&f,f,f,r,r,r,r,r,r",
            [
                near,
                squares,
                mine + 0 * everyone,
                count_rows & 1,
                (count_rows >> 1) & 1,
                everyone,
                8 * PARTS,
                PARTS,
            ],
            dtype=(gl.float32, gl.float32),
            is_pure=False,
            pack=1,
        )
        mean = gl.sum(nears * counts, axis=1)[:, None] / cols
        off = nears - mean
        scale = gl.rsqrt(gl.sum(squares + off * off * counts, axis=1)[:, None] / cols + eps)
        mean, scale = gl.convert_layout(mean, WIDE), gl.convert_layout(scale, WIDE)
        shift = -mean * scale
        count_rows += 1
        here = row < rows  # always, but without it the loads below would be hoisted and held
        weight = load_parts(weight_ptr, here, at, end, PIECE, PIECES, WIDE, "evict_last")
        bias = load_parts(bias_ptr, here, at, end, PIECE, PIECES, WIDE, "evict_last")
        for i in gl.static_range(PIECES):
            offs = columns(at, i, PIECE, WIDE)
            mask = (offs < end) & here
            normal = g[i] * scale + shift if SHORT else (g[i] - mean) * scale
            y = normal * weight[i].to(gl.float32) + bias[i].to(gl.float32)
            gl.store(y_ptr + row * stride_y + offs, y.to(y_ptr.dtype.element_ty), mask=mask)


@dataclass(frozen=True)
class Spread:
    parts: int  # of a row, and programs of a cluster
    piece: int  # numbers of a part that are loaded at a time, a power of two
    warps: int
    clusters: int  # on a GPU of 132 multiprocessors, whose registers must fit
    registers: int  # that a thread may have


# By the columns up to which each is the fastest of up to 79. H200, 2026-11-28, 67 million elements in bf16, of which a
# copy takes 62 to 65 us: 71 and 72 us for 14,336 and 16,384 columns (74 and 75 by one program a row), 70 for 32,768, and
# for longer rows 73 to 84, which one program would read twice, in 115 to 128. From 16,385 to 28,672 one program is as fast.
SPREADS = {
    16384: Spread(2, 1024, 4, 198, 168),
    32768: Spread(8, 512, 2, 91, 168),
    36864: Spread(8, 512, 4, 61, 128),
    40960: Spread(8, 1024, 4, 61, 128),
    49152: Spread(8, 1024, 4, 57, 128),
    57344: Spread(8, 1024, 4, 45, 168),
    61440: Spread(8, 512, 4, 44, 168),
    65536: Spread(8, 1024, 4, 43, 168),
    131072: Spread(16, 1024, 4, 21, 168),
}
SHORTEST = 12289
WHOLE = range(16385, 28673)  # columns in between, of which one program holds a row
STEP = 16  # elements, at whose multiples rows must begin and end, or loads would be of single elements: 613 us, not 331


def spread_for(cols: int, element_bytes: int) -> Spread | None:
    """Choose for rows that are faster in parts, or return None for others."""
    if cols < SHORTEST or cols in WHOLE or cols > max(SPREADS) or element_bytes > 2 or cols % STEP:
        return None
    return SPREADS[min(most for most in SPREADS if cols <= most)]


def can_spread(x, out) -> bool:
    """Say whether the GPU has clusters of 16 programs (Hopper, Blackwell's data-centre chips) and rows are aligned."""
    if not x.is_cuda or torch.cuda.get_device_capability(x.device)[0] not in (9, 10):
        return False
    return all(one.stride(0) % STEP == 0 and one.data_ptr() % 16 == 0 for one in (x, out))


def layouts(parts: int, piece: int, warps: int):
    """Return how a piece of each part lies in registers, and how a few numbers a part do."""
    cluster = [[1 << i, 0] for i in range(parts.bit_length() - 1)]
    lane = min(8, piece // (32 * warps))
    wide = gl.BlockedLayout([1, lane], [1, 32], [1, warps], [1, 0], cluster)
    return wide, gl.BlockedLayout([1, 1], [1, 32], [1, warps], [1, 0], cluster)


def launch(x, weight, bias, eps: float, out, c: Spread, processors: int):
    """Compute LayerNorm(GELU(x)) into `out` by at most as many clusters as run at once."""
    rows, cols = x.shape
    clusters = min(rows, max(1, c.clusters * processors // 132))
    pieces = triton.cdiv(cols, c.parts * c.piece)
    wide, few = layouts(c.parts, c.piece, c.warps)
    return spread_rows_kernel[(clusters,)](
        x,
        weight,
        bias,
        out,
        rows,
        cols,
        x.stride(0),
        out.stride(0),
        eps,
        PARTS=c.parts,
        PIECE=c.piece,
        PIECES=pieces,
        EVEN=cols == c.parts * c.piece * pieces,
        WIDE=wide,
        FEW=few,
        num_warps=c.warps,
        num_ctas=c.parts,
        **capped(c.registers),
    )

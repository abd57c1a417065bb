"""Compute LayerNorm(GELU(x)). A row is read once, stays in registers, and is written once.

At full bandwidth an H200 has time for some 32 instructions per element, so each one counts. GELU is the exact one, x
Phi(x) with Phi the normal distribution function (not the tanh approximation), computed as max(x, 0) - |x| Q(|x|),
where Q, the upper tail, is 2 to the power of a polynomial fitted to log2 Q, within 1e-7 of exact for fp32, and for 16
bits within 6e-5, where fp16 itself rounds 1 by 5e-4. That is 18 instructions an element in all, where the library's
erf takes 48. Bytes must be in flight meanwhile. A program walks rows and requests the next row as soon as this row's
16 bits are spent, so that the two rows share their registers. Long rows are held in pieces, so 14,336 columns take seven of
2048 and not one of 16,384, an eighth of it idle. Short rows are taken several at a time. Longer rows are
spread over a cluster of programs (spread_rows.py). On a GPU without clusters a row that no SM can hold is read twice, the
second time from the L2.
"""

from dataclasses import dataclass, replace

import torch
import triton
import triton.language as tl

from kernels.replays import Replays, form
from kernels.roofline import spread_rows
from kernels.roofline.gelu import gelu

LONGEST_HELD = {
    2: 28672,
    4: 16384,
}  # columns by bytes of an element, as registers hold of a row and of the next


@triton.jit
def load_rows(
    x_ptr,
    row,
    rows,
    stride,
    cols,
    PIECE: tl.constexpr,
    PIECES: tl.constexpr,
    EVEN: tl.constexpr,
    KEEP: tl.constexpr,
):
    """Load rows (ROWS, 1) as a tuple of pieces. Padding a length to a power of two wastes less than a piece.

    The mask by row keeps the compiler from hoisting loads. Without it 8192 columns take 247 registers for 168.
    """
    pieces = ()
    for i in tl.static_range(PIECES):
        offs = i * PIECE + tl.arange(0, PIECE)[None, :]
        here = (row < rows) & (offs < (PIECE * PIECES if EVEN else cols))
        at = x_ptr + row * stride + offs  # (ROWS, PIECE)
        pieces = pieces + (tl.load(at, mask=here, other=0.0, eviction_policy=KEEP),)
    return pieces


@triton.jit
def layernorm_gelu_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    rows,
    cols,
    stride_x,
    stride_y,
    eps,
    ROWS: tl.constexpr,
    PIECE: tl.constexpr,
    PIECES: tl.constexpr,
    EVEN: tl.constexpr,
    HELD: tl.constexpr,
    LATE: tl.constexpr,
):
    """EVEN says at compile time that pieces end with the row, so that masks vanish. HELD keeps weights in registers."""
    SHORT: tl.constexpr = x_ptr.dtype.element_ty.primitive_bitwidth <= 16
    zero, lanes = tl.zeros((1, 1), tl.int64), tl.arange(0, ROWS)[:, None]
    if HELD:
        weight = load_rows(weight_ptr, zero, 1, 0, cols, PIECE, PIECES, EVEN, "")
        bias = load_rows(bias_ptr, zero, 1, 0, cols, PIECE, PIECES, EVEN, "")
    first = tl.program_id(0).to(tl.int64) * ROWS
    ahead = load_rows(x_ptr, first + lanes, rows, stride_x, cols, PIECE, PIECES, EVEN, "")
    for start in range(first, rows, tl.num_programs(0) * ROWS):
        row = start + lanes
        g = ()
        total = tl.zeros((ROWS, PIECE), tl.float32)
        for i in tl.static_range(PIECES):
            g = g + (gelu(ahead[i].to(tl.float32), SHORT),)  # 0 where nothing was loaded
            total += g[i]
        ahead = load_rows(
            x_ptr, row + tl.num_programs(0) * ROWS, rows, stride_x, cols, PIECE, PIECES, EVEN, ""
        )
        mean = (tl.sum(total, axis=1) / cols)[:, None]
        total = tl.zeros((ROWS, PIECE), tl.float32)
        for i in tl.static_range(PIECES):
            centred = g[i] - mean
            if not EVEN:
                centred = tl.where(i * PIECE + tl.arange(0, PIECE)[None, :] < cols, centred, 0.0)
            total += centred * centred
        scale = tl.rsqrt((tl.sum(total, axis=1) / cols)[:, None] + eps)
        shift = -mean * scale
        if not (HELD or LATE):
            weight = load_rows(weight_ptr, zero, 1, 0, cols, PIECE, PIECES, EVEN, "evict_last")
            bias = load_rows(bias_ptr, zero, 1, 0, cols, PIECE, PIECES, EVEN, "evict_last")
        for i in tl.static_range(PIECES):
            offs = i * PIECE + tl.arange(0, PIECE)[None, :]
            if LATE:
                here = (row < rows) & (offs < (PIECE * PIECES if EVEN else cols))
                w = tl.load(weight_ptr + offs, mask=here, other=0.0, eviction_policy="evict_last")
                b = tl.load(bias_ptr + offs, mask=here, other=0.0, eviction_policy="evict_last")
            else:
                w, b = weight[i], bias[i]
            normal = g[i] * scale + shift if SHORT else (g[i] - mean) * scale  # fp32 keeps what cancels
            y = normal * w.to(tl.float32) + b.to(tl.float32)
            mask = (row < rows) & (offs < (PIECE * PIECES if EVEN else cols))
            tl.store(y_ptr + row * stride_y + offs, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _add(a0, a1, b0, b1):
    return a0 + b0, a1 + b1


@triton.jit
def long_rows_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, rows, cols, stride_x, stride_y, eps, PIECE: tl.constexpr
):
    """Walk a row twice: sums from memory, then the answer from the L2's remains.

    Squares are summed about the first piece's mean, so that a large mean does not cancel them.
    """
    SHORT: tl.constexpr = x_ptr.dtype.element_ty.primitive_bitwidth <= 16
    lanes = tl.arange(0, PIECE)
    for row in range(tl.program_id(0).to(tl.int64), rows, tl.num_programs(0)):
        x_row, y_row = x_ptr + row * stride_x, y_ptr + row * stride_y
        near = tl.sum(gelu(tl.load(x_row + lanes, mask=lanes < cols, other=0.0).to(tl.float32), SHORT))
        near = near / tl.minimum(cols, PIECE)
        once, squares = tl.zeros((PIECE,), tl.float32), tl.zeros((PIECE,), tl.float32)
        for at in range(0, cols, PIECE):
            here = at + lanes < cols
            x = tl.load(x_row + at + lanes, mask=here, other=0.0, eviction_policy="evict_last")
            off = tl.where(here, gelu(x.to(tl.float32), SHORT) - near, 0.0)
            once += off
            squares += off * off
        once, squares = tl.reduce((once, squares), 0, _add)
        mean = once / cols
        scale = tl.rsqrt(squares / cols - mean * mean + eps)
        for at in range(0, cols, PIECE):
            here = at + lanes < cols
            x = tl.load(x_row + at + lanes, mask=here, other=0.0, eviction_policy="evict_first")
            weight = tl.load(weight_ptr + at + lanes, mask=here, other=0.0).to(tl.float32)
            bias = tl.load(bias_ptr + at + lanes, mask=here, other=0.0).to(tl.float32)
            y = (gelu(x.to(tl.float32), SHORT) - near - mean) * scale * weight + bias
            tl.store(y_row + at + lanes, y.to(y_ptr.dtype.element_ty), mask=here, cache_modifier=".cs")


@dataclass(frozen=True)
class Config:
    piece: int  # numbers of a row that are loaded at a time, a power of two
    warps: int
    programs: int  # that one SM keeps, whose registers must fit, 65,536 / (32 * warps * programs) a thread
    held: bool = False  # weight and bias stay in registers, or the L1 has them for each row
    rows: int = 1  # that a program takes at a time
    late: bool = False  # weight and bias are loaded piece by piece, where registers are short


# By the columns up to which each is the fastest of some thirty. H200, 2026-11-28, 67 million elements in bf16: 69 to 71
# us up to 12,288 columns but for 384 (80), 71 to 75 up to 28,672, where a copy takes 64, and 115 to 128 where a row is read
# twice. Clusters of programs are faster from 12,289 to 16,384 columns, and above 28,672 (spread_rows.py).
CONFIGS = {
    256: Config(256, 1, 20, held=True, rows=4),
    384: Config(256, 1, 12, held=True, rows=4),
    512: Config(512, 1, 12, held=True, rows=4),
    768: Config(256, 2, 8, rows=4),
    1024: Config(1024, 2, 14, held=True),
    1536: Config(512, 1, 20),
    2048: Config(512, 2, 10),
    2560: Config(256, 2, 10),
    3072: Config(1024, 2, 8),
    4096: Config(512, 4, 6),
    5120: Config(512, 4, 4),
    6144: Config(512, 4, 4),
    7168: Config(1024, 8, 3),
    8192: Config(512, 4, 3),
    10240: Config(1024, 8, 2),
    12288: Config(2048, 4, 2),
    14336: Config(2048, 4, 2, late=True),
    16384: Config(4096, 16, 1),
    20480: Config(2048, 16, 1),
    24576: Config(8192, 32, 1),
    28672: Config(4096, 32, 1),
}
LONG = Config(8192, 16, 2)


def config_for(cols: int, element_bytes: int = 2) -> Config:
    """Choose for rows that fit in registers. LONG serves longer ones."""
    if cols > LONGEST_HELD[max(2, element_bytes)]:
        return LONG
    config = CONFIGS[min(most for most in CONFIGS if cols <= most)]
    if element_bytes <= 2:
        return config
    return replace(
        config, programs=max(1, config.programs // 2)
    )  # the same bytes on order, twice the registers


REPLAYS = Replays()


def layernorm_gelu(
    x, weight, bias, eps: float = 1e-5, out=None, config: Config | None = None
) -> torch.Tensor:
    """Return LayerNorm over the last dimension of GELU(x). x (rows, cols) has contiguous rows at any row stride."""
    key = form(x), form(weight), form(bias), form(out), eps, config
    ready = REPLAYS.get(key)
    if not ready:
        check(x, weight, bias)
    out = torch.empty_like(x, memory_format=torch.contiguous_format) if out is None else out
    if ready and ready(x, weight, bias, out):
        return out
    with REPLAYS.recording(key, x, weight, bias, out):
        _launch(x, weight, bias, eps, out, config)
    return out


def _launch(x, weight, bias, eps: float, out, config: Config | None) -> None:
    rows, cols = x.shape
    spread = spread_rows.spread_for(cols, x.element_size()) if spread_rows.can_spread(x, out) else None
    if spread and not config:
        spread_rows.launch(x, weight, bias, eps, out, spread, multiprocessors(x))
        return
    c = config or config_for(cols, x.element_size())
    programs = (min(triton.cdiv(rows, c.rows), c.programs * multiprocessors(x)),)
    given = x, weight, bias, out, rows, cols, x.stride(0), out.stride(0), eps
    if c is LONG:
        long_rows_kernel[programs](*given, PIECE=c.piece, num_warps=c.warps)
        return
    layernorm_gelu_kernel[programs](
        *given,
        ROWS=c.rows,
        PIECE=c.piece,
        PIECES=triton.cdiv(cols, c.piece),
        EVEN=cols % c.piece == 0,
        HELD=c.held,
        LATE=c.late,
        num_warps=c.warps,
    )


def multiprocessors(x) -> int:
    return torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 4


def check(x, weight, bias) -> None:
    if x.ndim != 2 or (x.shape[1] > 1 and x.stride(1) != 1):
        raise ValueError(
            f"x must be (rows, cols) with contiguous rows, got {tuple(x.shape)}, strides {x.stride()}"
        )
    cols = x.shape[1]
    for name, vector in (("weight", weight), ("bias", bias)):
        if tuple(vector.shape) != (cols,) or not vector.is_contiguous():
            raise ValueError(f"{name} must be contiguous of shape ({cols},), got {tuple(vector.shape)}")

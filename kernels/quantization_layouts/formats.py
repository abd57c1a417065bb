"""Run the other formats of the table as layers, multiplied as they are stored (W8A8, FP8), or widened in registers.

Y = X @ W.T. W8A16, MXFP4 and NVFP4 are widened to X's 16 bits. The two FP4 formats are thus emulated, since only
Blackwell's tensor cores take them. Two codes share a byte, the first in its low half.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
import triton

from kernels.quantization_layouts import dispatch
from kernels.quantization_layouts.candidates import Layer, layer
from kernels.quantization_layouts.formats_kernel import formats_kernel
from kernels.quantization_layouts.int8_row import int8_row
from kernels.quantization_layouts.packed import Packed, assemble, int8_words
from kernels.quantization_layouts.quantize_rows import NUMBERS, quantize_rows
from kernels.quantization_layouts.reference import DTYPES, E2M1, MX_BLOCK, NV_BLOCK, Scaled
from kernels.quantization_layouts.ring_launch import is_hopper, multiprocessors
from kernels.replays import Replays, form
from kernels.require import must, one_of
from kernels.tensors import rows_aligned, to_torch

BLOCKS = {"mxfp4": MX_BLOCK, "nvfp4": NV_BLOCK}
FORMS = (*NUMBERS, "w8a16", *BLOCKS)
EIGHT_BITS = {"w8a8": np.dtype(np.int8), "w8a16": np.dtype(np.int8), "fp8": DTYPES["fp8"]}
SIXTEEN = (torch.float16, torch.bfloat16)
MANY = 2**62


@dataclass(frozen=True)
class Narrow:
    form: str
    numbers: torch.Tensor  # (N, K) int8 or fp8, or FP4 codes, uint8 (N, K / 2)
    scales: torch.Tensor  # fp32, one a row, or MXFP4 exponents, uint8 (N, K / 32), or NVFP4 fp8 (N, K / 16)
    whole: float = 1.0  # shared by all scales of an NVFP4 tensor

    @property
    def sides(self) -> tuple[int, int]:
        n, stored = self.numbers.shape
        return n, stored * (2 if self.form in BLOCKS else 1)

    def to(self, device) -> "Narrow":
        return replace(self, numbers=self.numbers.to(device), scales=self.scales.to(device))


@dataclass(frozen=True)
class Tile:
    rows_n: int
    rows_m: int
    columns: int  # of W and X in a step
    warps: int
    stages: int


# H200, 2026-11-23, by rows of X. One tile streams W, one shares W between rows, one keeps the tensor cores busy.
STREAMS, UNPACKS = Tile(64, 16, 256, 4, 4), Tile(64, 16, 128, 4, 3)
TILES = {
    "w8a8": {16: STREAMS, MANY: Tile(128, 128, 128, 4, 3)},
    "fp8": {16: STREAMS, MANY: Tile(256, 128, 128, 8, 3)},
    "w8a16": {16: UNPACKS, 64: Tile(128, 64, 128, 8, 4), MANY: Tile(128, 256, 64, 8, 3)},
    "mxfp4": {16: UNPACKS, 64: Tile(64, 64, 256, 4, 3), MANY: Tile(128, 128, 64, 8, 3)},
    "nvfp4": {16: UNPACKS, 64: Tile(64, 64, 256, 4, 3), MANY: Tile(64, 256, 64, 4, 3)},
}


# Between a few rows and many of a format that is multiplied as it is stored: the first tile with this many per SM.
# H200, 2026-11-23, 256 x 4096 x 4096 in fp8: 17.3 us, 38 by the tile for many rows.
AS_STORED = (
    (2.0, Tile(64, 64, 128, 4, 3)),  # many tiles, in turns, room for four on an SM
    (0.75, Tile(64, 64, 128, 4, 5)),
)
FEWEST = {
    "w8a8": Tile(64, 32, 256, 4, 4),
    "fp8": Tile(64, 64, 128, 4, 5),
}  # fp8 adds no more than 128 imprecisely
SHARED = (1.0, Tile(64, 128, 128, 4, 4))  # from 65 rows on, where the tile for many does not fill the GPU
FILLED = {"w8a8": 1.5, "fp8": 0.75}  # true from this many tiles per SM on


def tile_for(form: str, rows: int, outputs: int, processors: int) -> Tile:
    tiles = TILES[form]
    tile = tiles[min(most for most in tiles if rows <= most)]
    if form not in NUMBERS or rows <= 16:
        return tile
    wide = ((FILLED[form], tile), SHARED) if rows > 64 else ()
    for least, one in (*wide, *AS_STORED):
        if triton.cdiv(outputs, one.rows_n) * triton.cdiv(rows, one.rows_m) >= least * processors:
            return one
    return FEWEST[form]


def by_ring(x, w: Narrow, out) -> bool:
    """Multiply FP8 of many rows on Hopper, by a copy engine that wants 16-byte rows. H200, 2026-11-23, 110 us for 134
    at 4096^3."""
    hopper = x.is_cuda and torch.cuda.get_device_capability(x.device)[0] == 9
    reached = rows_aligned(x) and rows_aligned(out) and w.sides[1] % 16 == 0
    return w.form == "fp8" and x.shape[0] > 64 and hopper and reached


def pack(q: Scaled, form: str, device="cpu") -> Narrow:
    """Lay out the results of the reference's quantizers for the kernel."""
    one_of(FORMS, form=form)
    if form in BLOCKS:
        return _pack_fp4(q, form, device)
    wanted = EIGHT_BITS[form]
    must(q.numbers.dtype == wanted, "q", f"{wanted} numbers for {form}", q.numbers.dtype, "quantize it so")
    one_a_row = q.scales.shape == (len(q.numbers), 1)
    must(one_a_row, "q", "quantized with one scale a row", q.scales.shape, "quantize it so")
    return Narrow(form, to_torch(q.numbers, device), to_torch(q.scales[:, 0].astype(np.float32), device))


def _pack_fp4(q: Scaled, form: str, device) -> Narrow:
    must(q.group == BLOCKS[form], "q", f"in blocks of {BLOCKS[form]}", q.group, "quantize it so")
    codes = np.searchsorted(E2M1, np.abs(q.numbers)) | np.signbit(q.numbers) * 8
    numbers = to_torch((codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), device)
    if form == "mxfp4":
        exponents = np.log2(np.where(q.scales > 0, q.scales, 1.0)) + 127
        return Narrow(form, numbers, to_torch(exponents.astype(np.uint8), device))
    each = q.scales / q.whole if q.whole else q.scales
    return Narrow(form, numbers, to_torch(each.astype(DTYPES["fp8"]), device), q.whole)


def by_bits(w: Narrow) -> Packed:
    """Pack FP4 for kernels that make bf16 of E2M1's bits, with 16-bit scales (MXFP4 4.5 bits a weight, NVFP4 5).

    A code's bits are a bf16 that is 2^126 too small, so scales are that much larger, after the largest became 1.
    """
    must(w.form in BLOCKS, "w", "MXFP4 or NVFP4", w.form, "the others are multiplied as they are stored")
    n, k = w.sides
    codes = torch.stack((w.numbers & 15, w.numbers >> 4), -1).view(1, n, k)
    scales = torch.exp2(w.scales.double() - 127) if w.form == "mxfp4" else w.scales.double()
    most = torch.exp2(torch.ceil(torch.log2(scales.max().clamp(min=2.0**-127))))
    whole = (most * w.whole).float().view(1)
    return assemble(codes, (scales / most * 2.0**126).bfloat16()[None], None, None, 4, BLOCKS[w.form], whole)


def by_bytes(w: Narrow) -> Packed:
    """Pack W8A16 for the ring, which makes bf16 of a byte's bits and scales each row's sum."""
    must(w.form == "w8a16", "w", "W8A16", w.form, "the others have kernels of their own")
    n, k = w.sides
    must(
        k % 8 == 0,
        "w",
        "of a multiple of 8 columns",
        k,
        "the copy engine wants rows of 16 bytes; keep it as it is",
    )
    words, none = int8_words(w.numbers[None]), torch.empty(1, dtype=torch.bfloat16, device=w.numbers.device)
    return Packed((words,), none, None, None, 8, k, 1, n, k, w.scales)


def prepared(w: Narrow) -> Narrow | Layer:
    """Return the fastest layout for bf16 activations: FP4 shuffled, W8A16 on Hopper too, the others as they are stored.

    H200, 2026-11-24, 28672 x 8192 in NVFP4, takes 51 us for 128 at M = 1, 52 for 129 at 16, 69 for 185 at 64, with the
    same error. Shifts and masks replaced a table, and no weight changes its lane. Keep W as it is stored for fp16
    activations.
    """
    if w.form in BLOCKS:
        return layer(by_bits(w))
    if w.form == "w8a16" and is_hopper(w.numbers.device) and w.sides[1] % 8 == 0:
        return layer(by_bytes(w))
    return w


def linear(x: torch.Tensor, w: Narrow | Layer, out: torch.Tensor | None = None) -> torch.Tensor:
    """Multiply X (rows, K) in 16 bits. For formats with narrow activations X is quantized row by row first."""
    if isinstance(w, Layer):
        return dispatch.linear(x, w, out)
    must(x.dtype in SIXTEEN, "x", "fp16 or bf16", x.dtype, "convert it; narrow activations go to product()")
    must(
        w.form != "mxfp4" or x.dtype == torch.bfloat16,
        "x",
        "bf16 for MXFP4, whose powers of two leave fp16's range",
        x.dtype,
        "convert it",
    )
    if w.form not in NUMBERS:
        return product(x, None, w, out)
    must(
        x.ndim == 2 and x.shape[1] == w.sides[1],
        "x",
        f"(rows, {w.sides[1]})",
        tuple(x.shape),
        "as W's inputs",
    )
    numbers, scales = quantize_rows(x, w.form)
    return product(
        numbers,
        scales,
        w,
        torch.empty(len(x), w.sides[0], dtype=x.dtype, device=x.device) if out is None else out,
    )


REPLAYS = Replays()


def product(x, scales, w: Narrow, out: torch.Tensor | None = None, tile: Tile | None = None) -> torch.Tensor:
    """Multiply without quantizing. X comes as numbers with one scale a row, or in 16 bits with None."""
    key = form(x), form(scales), form(w.numbers), form(w.scales), form(out), w.form, w.whole, tile
    ready = REPLAYS.get(key)
    if not ready:
        check(x, scales, w, out)
    if out is None:
        made = torch.bfloat16 if w.form in NUMBERS else x.dtype
        out = torch.empty(x.shape[0], w.sides[0], dtype=made, device=x.device)
    given = [one for one in (x, scales, w.numbers, w.scales, out) if one is not None]
    if ready and ready(*given):
        return out
    if not out.numel():
        return out
    if x.stride(1) != 1:
        return _launch(x.contiguous(), scales, w, out, tile)
    with REPLAYS.recording(key, *given):
        return _launch(x, scales, w, out, tile)


def check(x, scales, w: Narrow, out) -> None:
    n, k = w.sides
    must(
        x.ndim == 2 and x.shape[1] == k,
        "x",
        f"(rows, {k})",
        tuple(x.shape),
        "the weight has that many inputs",
    )
    stored = NUMBERS.get(w.form)
    must(
        x.dtype == stored if stored else x.dtype in SIXTEEN,
        "x",
        f"{stored or 'fp16 or bf16'} for {w.form}",
        x.dtype,
        "see quantize_rows",
    )
    must(
        (scales is not None) == bool(stored),
        "scales",
        "given where X is quantized, and only there",
        scales,
        f"{w.form}",
    )
    for name, part in (("w.numbers", w.numbers), ("w.scales", w.scales), ("scales", scales), ("out", out)):
        if part is not None:
            must(part.device == x.device, name, f"on x's device {x.device}", part.device, "move it there")
    shape = (x.shape[0], n)
    fits = out is None or tuple(out.shape) == shape
    must(fits, "out", str(shape), None if out is None else tuple(out.shape), "leave it out to have it made")


def _launch(x, scales, w: Narrow, out, tile: Tile | None) -> torch.Tensor:
    n, k = w.sides
    if w.form == "w8a16" and x.shape[0] == 1 and tile is None:
        int8_row(x, w.numbers, w.scales, out)
        return out
    if tile is None and by_ring(x, w, out):
        from kernels import hopper_fp8

        processors = multiprocessors(x.device)
        config, width = hopper_fp8.pick(x.shape[0], n, k, processors, blocks=False)
        return hopper_fp8.launch(x, w.numbers.t(), scales, w.scales, out, config, processors, width)
    tile = tile or tile_for(w.form, x.shape[0], n, multiprocessors(x.device))
    tiles_n, tiles_m = triton.cdiv(n, tile.rows_n), triton.cdiv(x.shape[0], tile.rows_m)
    formats_kernel[(tiles_n * tiles_m,)](
        x,
        w.numbers,
        w.scales if scales is None else scales,
        w.scales,
        out,
        x.shape[0],
        n,
        k,
        w.whole,
        x.stride(0),
        *out.stride(),
        FORM=w.form,
        BLOCK=BLOCKS.get(w.form, 1),
        ROWS_N=tile.rows_n,
        ROWS_M=tile.rows_m,
        COLUMNS=tile.columns,
        EVEN=k % tile.columns == 0,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    return out

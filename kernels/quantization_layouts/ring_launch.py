"""Launch the ring, with descriptors, the shares of work, and the configurations tuned on an H200."""

from dataclasses import dataclass
from functools import lru_cache

import torch
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kernels.counters import arrivals
from kernels.hopper_tiles import descriptor
from kernels.machines import machine
from kernels.overlap import can_overlap, capped, overlapped
from kernels.quantization_layouts.arguments import check_layer
from kernels.quantization_layouts.hopper_unpack import STEP, WORDS
from kernels.quantization_layouts.packed import Packed
from kernels.quantization_layouts.ring import ring_kernel
from kernels.require import must


@dataclass(frozen=True)
class Ring:
    cols: int = 16  # rows of X
    consumers: int = 4  # warpgroups that unpack and multiply
    pieces: int = 1  # of 64 rows of W, of each
    stages: int = 8
    # with one piece, and groups as long as a step, sums are scaled in fp32, otherwise weights in 16 bits
    late: bool = True
    # all SMs share out the steps, or each program gets a whole part of one tile
    even: bool = True
    early: bool = False  # see kernels/overlap.py
    two: bool = False  # programs on a multiprocessor, of two warpgroups each

    @property
    def rows(self) -> int:
        return 64 * self.pieces * self.consumers


REGISTERS = {2: 240, 4: 112}  # of a thread that multiplies, by warpgroups


def is_hopper(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.get_device_capability(device) == (9, 0)


def takes(w: Packed) -> bool:
    """Four bits, or int8, on a Hopper GPU."""
    return w.bits in (4, 8) and is_hopper(w.device)


def ring(x, w: Packed, out=None, config: Ring | None = None) -> torch.Tensor:
    """Compute out (rows, N) = x (rows, K) times the packed weight, with equally many rows for each expert."""
    x, out, each = check_layer(x, w, out, None, None)
    must(w.bits in (4, 8), "w", "of four bits, or int8", w.bits, "run it with stream or tile")
    if not out.numel():
        return out
    c = config or pick(each, w)
    early = c.early and can_overlap(x.device)
    bricks = c.rows // 16
    tiles_n, tiles_m = -(-w.n // c.rows), -(-each // c.cols)
    step = STEP.value * 4 // w.bits
    tiles, steps = w.experts * tiles_n * tiles_m, -(-w.k // step)
    programs, even = shares(c, tiles, steps, multiprocessors(x.device))
    parts = torch.empty(2 * programs * c.rows * c.cols if even else 1, dtype=torch.float32, device=x.device)
    width = STEP.value // w.group * 16
    words = _rows(w.words[0], [bricks, WORDS.value])
    scales = words if w.kind == "int8" else _rows(w.scales, [bricks, width])
    ring_kernel[(programs,)](
        words,
        scales,
        scales if w.zeros is None else _rows(w.zeros, [bricks, width]),
        descriptor(x, [c.cols, step]),
        out,
        parts,
        arrivals(x.device, tiles * c.consumers * c.pieces if even else 1),
        w.operands[4],
        w.filled,
        tiles,
        steps,
        tiles_n,
        tiles_m,
        each,
        w.n,
        w.words[0].shape[1],
        out.stride(0),
        CONSUMERS=c.consumers,
        STAGES=c.stages,
        LATE=c.late and c.pieces == 1 and w.group == STEP.value,
        BOOK=w.kind,
        HAS_ZEROS=w.zeros is not None,
        EVEN=even,
        EARLY=early,
        REGISTERS=104 if c.two else REGISTERS[c.consumers],
        num_warps=4,
        **overlapped(early),
        **capped(80 if c.two else 0),
    )
    return out


def shares(config: Ring, tiles: int, steps: int, multiprocessors: int) -> tuple[int, bool]:
    """Return the number of programs, and whether they cut tiles."""
    fits = tiles * steps * multiprocessors < 2**31  # shares are cut in 32 bits
    if config.even and fits:
        return min(multiprocessors, tiles * steps), True
    each = min(multiprocessors // tiles, steps) if fits else 1
    return (tiles * each, True) if each > 1 else (min(multiprocessors, tiles), False)


def _rows(part, block) -> TensorDescriptor:
    """Return (experts, bricks, ..). A brick's numbers are one row, and rows of all experts follow each other."""
    matrix = part.view(part.shape[0] * part.shape[1], -1)
    layout = gl.NVMMASharedLayout(0, 8 * part.element_size(), 2)
    return TensorDescriptor.from_tensor(matrix, block, layout)


@lru_cache
def multiprocessors(device: torch.device) -> int:
    """Return the GPU's SMs, or a Hopper's where kernels are only compiled."""
    if device.type != "cuda":
        return machine("H200").sms
    return torch.cuda.get_device_properties(device).multi_processor_count


# H200, 2026-11-22, of a large weight. Deeper rings are slower, and cutting tiles pays from 16 rows of X on.
PICKS = {
    8: Ring(8, stages=5, even=False),
    16: Ring(16, stages=6),
    32: Ring(32, stages=6),
    64: Ring(64, stages=6),
}


# The same of FP4 and of int8, and of their small weights, whose tiles are too few for wide ones. H200, 2026-11-24
OF_KIND = {
    "fp4": (
        PICKS | {64: Ring(64, stages=5)},
        {most: Ring(most, 2, stages=8 if most < 32 else 6, even=False) for most in PICKS},
    ),
    "int8": (
        {most: Ring(most, stages=8, even=most > 8) for most in PICKS},
        {most: Ring(most, 2, stages=10, even=False) for most in PICKS},
    ),
}
LARGE = 2**26  # weights


def pick(rows: int, w: Packed | None = None) -> Ring:
    """Choose by the rows of X, and for FP4 and int8 by the weight's size. Calibration measures the alternatives."""
    picks = PICKS
    if w is not None and w.kind in OF_KIND:
        large, small = OF_KIND[w.kind]
        picks = large if w.n * w.k >= LARGE else small
    return next((c for most, c in picks.items() if rows <= most), Ring(128, 2, 2, 4))

"""Launch the ring, with descriptors, the shares of work, and the configurations tuned on an H200."""

from dataclasses import dataclass
from functools import lru_cache

import torch
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kernels.counters import arrivals
from kernels.hopper_tiles import descriptor
from kernels.machines import machine
from kernels.quantization_layouts.arguments import check_layer
from kernels.quantization_layouts.hopper_unpack import STEP, WORDS
from kernels.quantization_layouts.overlap import can_overlap, capped, overlapped
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
    early: bool = False  # see overlap.py
    two: bool = False  # programs on a multiprocessor, of two warpgroups each

    @property
    def rows(self) -> int:
        return 64 * self.pieces * self.consumers


REGISTERS = {2: 240, 4: 112}  # of a thread that multiplies, by warpgroups


def takes(w: Packed) -> bool:
    """Four bits on a Hopper GPU."""
    return w.bits == 4 and w.device.type == "cuda" and torch.cuda.get_device_capability(w.device) == (9, 0)


def ring(x, w: Packed, out=None, config: Ring | None = None) -> torch.Tensor:
    """Compute out (rows, N) = x (rows, K) times the packed weight, with equally many rows for each expert."""
    x, out, each = check_layer(x, w, out, None, None)
    must(w.bits == 4, "w", "of four bits", w.bits, "run it with stream or tile")
    if not out.numel():
        return out
    c = config or pick(each)
    early = c.early and can_overlap(x.device)
    bricks = c.rows // 16
    tiles_n, tiles_m = -(-w.n // c.rows), -(-each // c.cols)
    tiles, steps = w.experts * tiles_n * tiles_m, -(-w.k // STEP.value)
    programs, even = shares(c, tiles, steps, multiprocessors(x.device))
    parts = torch.empty(2 * programs * c.rows * c.cols if even else 1, dtype=torch.float32, device=x.device)
    width = STEP.value // w.group * 16
    scales = _rows(w.scales, [bricks, width])
    ring_kernel[(programs,)](
        _rows(w.words[0], [bricks, WORDS.value]),
        scales,
        scales if w.zeros is None else _rows(w.zeros, [bricks, width]),
        descriptor(x, [c.cols, STEP.value]),
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
        w.scales.shape[1],
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


# H200, 2026-11-22, of a large weight; deeper rings are slower, and to cut tiles pays from 16 rows of X on
PICKS = {
    8: Ring(8, stages=5, even=False),
    16: Ring(16, stages=6),
    32: Ring(32, stages=6),
    64: Ring(64, stages=6),
}


def pick(rows: int) -> Ring:
    """Choose by the rows of X alone. Calibration measures the alternatives."""
    return next((c for most, c in PICKS.items() if rows <= most), Ring(128, 2, 2, 4))

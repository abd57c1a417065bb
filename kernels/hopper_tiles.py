"""Share code among rings of tiles on Hopper: their sizes, the walk over the output, descriptors, and the way out."""

from dataclasses import dataclass

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


@dataclass(frozen=True)
class Config:
    consumers: int = 2  # warpgroups that multiply, 1, 2, or 3 with fewer registers each
    rows: int = 64  # of the output tile, per consumer
    block_n: int = 256
    block_k: int = 64
    stages: int = 4
    slice: int = 64  # columns stored at a time
    buffers: int = 2  # slices on their way out, per consumer
    group_m: int = 8


@gluon.jit
def tile_of(t, tiles_m, tiles_n, GROUP_M: gl.constexpr):
    """Return the t-th tile: down GROUP_M tiles, then one to the right, the same walk as cost.program_tile."""
    width = GROUP_M * tiles_n
    first = (t // width) * GROUP_M
    rows = gl.minimum(tiles_m - first, GROUP_M)
    return first + (t % width) % rows, (t % width) // rows


@gluon.jit
def columns(x, PARTS: gl.constexpr):
    """Return x as a tuple of PARTS (a power of two) column slices. Registers only change their names."""
    if PARTS == 1:
        parts = (x,)
    else:
        low, high = x.reshape([x.shape[0], 2, x.shape[1] // 2]).permute(0, 2, 1).split()
        parts = columns(low, PARTS // 2) + columns(high, PARTS // 2)
    return parts


@gluon.jit
def store(c_desc, buffers, acc, m, n, WHICH: gl.constexpr, BUFFERS: gl.constexpr):
    """Write acc through this consumer's buffers in turn: one slice is stored while the next is converted."""
    SLICE: gl.constexpr = buffers.shape[2]
    slices = columns(acc, acc.shape[1] // SLICE)
    for i in gl.static_range(acc.shape[1] // SLICE):
        buffer = buffers.index(WHICH * BUFFERS + i % BUFFERS)
        tma.store_wait(pendings=BUFFERS - 1)
        buffer.store(slices[i].to(c_desc.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(c_desc, [m, n + i * SLICE], buffer)


_GLUON = {
    torch.bfloat16: gl.bfloat16,
    torch.float16: gl.float16,
    torch.float32: gl.float32,
    torch.float8_e4m3fn: gl.float8e4nv,
}


def descriptor(tensor, block):
    """A TMA descriptor of a matrix whose last dimension is contiguous, in blocks of this shape."""
    layout = gl.NVMMASharedLayout.get_default_for(block, _GLUON[tensor.dtype])
    return TensorDescriptor.from_tensor(tensor, block, layout)

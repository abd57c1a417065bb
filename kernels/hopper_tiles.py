"""Share code among rings of tiles on Hopper: their sizes, the walk over the output, descriptors, and the way out."""

from dataclasses import dataclass

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kernels.counters import arrivals

barrier = getattr(gl, "barrier", None) or gl.thread_barrier  # Triton 3.7, or 3.6


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
    across: int = 1  # boxes of B in a tile, next to each other, each with sums of its own


@gluon.jit
def tile_of(t, tiles_m, tiles_n, GROUP_M: gl.constexpr):
    """Return the t-th tile: down GROUP_M tiles, then one to the right, the same walk as cost.program_tile."""
    width = GROUP_M * tiles_n
    first = (t // width) * GROUP_M
    rows = gl.minimum(tiles_m - first, GROUP_M)
    return first + (t % width) % rows, (t % width) // rows


@gluon.jit
def share_of(program, programs, sizes):
    """Return the first step of an even share of all steps, and the one after its last.

    Programs work in groups of `width`, in lockstep on tiles below each other, so that they fetch the same B together.
    """
    tiles_m, tiles_n, steps, width = sizes
    total, groups = tiles_m * tiles_n // width * steps, programs // width
    group = program // width
    return group * total // groups, (group + 1) * total // groups


@gluon.jit
def cut(begin, behind, steps):
    """Return the turns of a share of at least a tile, and how many turns are the first part of a tile, 0 or 1."""
    first = (behind % steps + steps - 1) // steps
    last = (begin % steps + steps - 1) // steps
    return first + behind // steps - (begin + steps - 1) // steps + last, first


@gluon.jit
def turn(u, begin, behind, steps):
    """Return the tile of a share's u-th turn, its first step there and the one after its last.

    A tile that the next program ends comes first, and the tile that the program before began comes last. So the
    sums of the first part are there long before the next program needs them.
    """
    first = (behind % steps + steps - 1) // steps
    tile = (begin + steps - 1) // steps + u - first
    low = 0
    high = steps
    if u < first:
        tile = behind // steps
        high = behind % steps
    elif tile >= behind // steps:
        tile = begin // steps
        low = begin % steps
    return tile, low, high


@gluon.jit
def turns_of(sizes, WALK: gl.constexpr):
    """Return how many turns this program takes."""
    tiles_m, tiles_n, steps, width = sizes
    if WALK == "even":
        begin, behind = share_of(gl.program_id(0), gl.num_programs(0), sizes)
        count, _ = cut(begin, behind, steps)
    elif WALK == "once":
        count = 1
    else:
        count = gl.cdiv(tiles_m * tiles_n - gl.program_id(0), gl.num_programs(0))
    return count


@gluon.jit
def turn_of(u, sizes, GROUP_M: gl.constexpr, WALK: gl.constexpr):
    """Return the tile of this program's u-th turn, down and across, and its steps, from the first to before the last.

    Shares are "even", or whole tiles are taken in "rounds", or each program takes one tile, "once".
    """
    tiles_m, tiles_n, steps, width = sizes
    if WALK == "even":
        begin, behind = share_of(gl.program_id(0), gl.num_programs(0), sizes)
        tile, low, high = turn(u, begin, behind, steps)
        down = tiles_m // width
        tile_m = tile % down * width + gl.program_id(0) % width
        tile_n = tile // down
    elif WALK == "once":
        low, high = 0, steps
        tile_m, tile_n = gl.program_id(2) * gl.num_programs(0) + gl.program_id(0), gl.program_id(1)
    else:
        low, high = 0, steps
        tile_m, tile_n = tile_of(gl.program_id(0) + u * gl.num_programs(0), tiles_m, tiles_n, GROUP_M)
    return tile_m, tile_n, low, high


@gluon.jit
def sums_at(part_ptr, program, like, WHICH: gl.constexpr, CONSUMERS: gl.constexpr):
    """Return the addresses of a consumer's sums of a tile that its program leaves to another."""
    ROWS: gl.constexpr = like.shape[0]
    COLS: gl.constexpr = like.shape[1]
    rows = gl.arange(0, ROWS, gl.SliceLayout(1, like.type.layout))
    cols = gl.arange(0, COLS, gl.SliceLayout(0, like.type.layout))
    slot = (program * CONSUMERS + WHICH).to(gl.int64) * (ROWS * COLS)
    return part_ptr + slot + rows[:, None] * COLS + cols[None, :]


@gluon.jit
def leave(acc, sums, WHICH: gl.constexpr, CONSUMERS: gl.constexpr):
    """Write the sums of a tile's first steps for the program that ends this tile."""
    part_ptr, done_ptr = sums
    gl.store(sums_at(part_ptr, gl.program_id(0), acc, WHICH, CONSUMERS), acc)
    barrier()  # every thread's sums are written before one thread says so
    gl.atomic_xchg(done_ptr + gl.program_id(0) * CONSUMERS + WHICH, 1, sem="release")


@gluon.jit
def take(like, begun, sums, width, WHICH: gl.constexpr, CONSUMERS: gl.constexpr):
    """Return the sums with which the program before began this tile, whose flag is zero again, or zeros."""
    part_ptr, done_ptr = sums
    before = gl.program_id(0) - width
    if begun:
        flag = done_ptr + before * CONSUMERS + WHICH
        while gl.atomic_cas(flag, 1, 0, sem="acquire") == 0:
            pass
    return gl.load(sums_at(part_ptr, before, like, WHICH, CONSUMERS), mask=begun, other=0.0)


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
    COUNT: gl.constexpr = acc.shape[1] // SLICE
    TURNS: gl.constexpr = min(BUFFERS, COUNT)  # a tile of one slice comes back to the same buffer each time
    slices = columns(acc, COUNT)
    for i in gl.static_range(COUNT):
        buffer = buffers.index(WHICH * BUFFERS + i % TURNS)
        tma.store_wait(pendings=TURNS - 1)
        buffer.store(slices[i].to(c_desc.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(c_desc, [m, n + i * SLICE], buffer)


def even_width(tiles_m: int, tiles_n: int, steps: int, processors: int) -> tuple[int, int]:
    """Return the programs of a group where equal shares of all steps end sooner than whole tiles in rounds, or 0, and
    the steps of the longest share."""
    tiles = tiles_m * tiles_n
    best, width = -(-tiles // processors) * steps, 0
    if (
        tiles < processors or tiles * steps * processors >= 2**31
    ):  # a share is at least a tile, cut in 32 bits
        return 0, best
    for w in range(1, min(tiles_m, processors) + 1):
        if tiles_m % w:
            continue
        each = -(-(tiles // w * steps) // (processors // w))
        if each < best or (each == best and width):
            best, width = each, w
    return width, best


NARROWEST = 4  # programs of a group, on an H200: with one, 640 x 11008 x 4096 took 111 us instead of 91, with three 2% more


def cheapest(
    m: int, n: int, k: int, processors: int, round_ns: dict, handover_ns: dict
) -> tuple[Config, int]:
    """Return the configuration that ends soonest, and the width of its even shares, or 0 for whole tiles in rounds.

    `round_ns` is the cost of a round of tiles for a column of K. Shares cost `handover_ns` more in a call, because
    programs write sums, read them and wait for them. Configurations that it leaves out have no shares.
    """
    found = []
    for c, ns in round_ns.items():
        tiles_m, tiles_n, steps = -(-m // (c.consumers * c.rows)), -(-n // c.block_n), -(-k // c.block_k)
        found.append((-(-tiles_m * tiles_n // processors) * ns * k, c, 0))
        if c in handover_ns:
            width, longest = even_width(tiles_m, tiles_n, steps, processors)
            if width >= NARROWEST:
                found.append((longest / steps * ns * k + handover_ns[c], c, width))
    _, config, width = min(found, key=lambda one: one[0])
    return config, width


def walk_of(config: Config, out, programs: int, width: int):
    """Return the grid and the name of the walk, with room and flags for the sums that even shares leave.

    Where each program has one tile, at most, the grid is the walk by groups itself. That saves the divisions before the
    first copy, 0.3 us. (All rows as one group made 1024 x 1024 x 4096 in bf16 18% slower.)
    """
    c, (m, n) = config, out.shape
    if width:
        programs = programs // width * width
        room = programs * c.consumers * c.rows * c.block_n
        parts = torch.empty(room, dtype=torch.float32, device=out.device)
        return (programs,), "even", parts, arrivals(out.device, programs * c.consumers * c.across)
    tiles_m, tiles_n = -(-m // (c.consumers * c.rows)), -(-n // c.block_n)
    group = min(tiles_m, c.group_m)
    if tiles_m * tiles_n <= programs and tiles_m % group == 0:
        return (group, tiles_n, tiles_m // group), "once", out, out
    return (programs,), "rounds", out, out


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

"""Hand tiles from warp to warp within one Hopper program: stages in shared memory, and barriers."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.language.core import _aggregate as aggregate

from kernels.ring_barriers import ring_barriers


@aggregate
class Ring:
    """Tiles in shared memory, each with a barrier that says it is full and one that says it is empty."""

    tiles: gl.shared_memory_descriptor
    full: gl.shared_memory_descriptor
    empty: gl.shared_memory_descriptor

    @gluon.constexpr_function
    def __init__(self, tiles, full, empty):
        self.tiles = tiles
        self.full = full
        self.empty = empty

    @gluon.jit
    def fill(self, desc, coords, count):
        slots: gl.constexpr = self.tiles.shape[0]
        slot = count % slots
        mbarrier.wait(self.empty.index(slot), ((count // slots) & 1) ^ 1)
        mbarrier.expect(self.full.index(slot), desc.block_type.nbytes)
        tma.async_copy_global_to_shared(desc, coords, self.full.index(slot), self.tiles.index(slot))

    @gluon.jit
    def take(self, count):
        slots: gl.constexpr = self.tiles.shape[0]
        slot = count % slots
        mbarrier.wait(self.full.index(slot), (count // slots) & 1)
        return self.tiles.index(slot).reshape([self.tiles.shape[3], self.tiles.shape[4]])

    @gluon.jit
    def release(self, count, pred=True):
        slots: gl.constexpr = self.tiles.shape[0]
        mbarrier.arrive(self.empty.index(count % slots), count=1, pred=pred)


@gluon.jit
def new_ring(desc, SLOTS: gl.constexpr, READERS: gl.constexpr):
    tiles = gl.allocate_shared_memory(desc.dtype, [SLOTS] + desc.block_type.shape, desc.layout)
    full, empty = ring_barriers(SLOTS, READERS)
    return Ring(tiles, full, empty)


@gluon.jit
def wait_turn(turns, count, c: gl.constexpr):
    """Wait for this warpgroup's turn. The first warpgroup starts, because it waits for one pass less than any other."""
    FIRST: gl.constexpr = 1 if c == 0 else 0
    mbarrier.wait(turns.index(c), (count + FIRST) & 1)


@gluon.jit
def pass_turn(turns, c: gl.constexpr):
    mbarrier.arrive(turns.index((c + 1) % turns.shape[0]), count=1)


@gluon.jit
def keep_wait_below(x):
    """Keep the following wait below the work on x, by an event that never fires, which ptxas does not reorder."""
    return gl.inline_asm_elementwise(
        "{ .reg .pred p; setp.lt.f32 p, $1, 0f00000000; @p pmevent 0; mov.b32 $0, $1; }",
        "=f,f",
        [x],
        dtype=gl.float32,
        is_pure=False,
        pack=1,
    )

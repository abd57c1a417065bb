"""Stream the queries' side of the Hopper backward through shared memory: Q, dO and two numbers for each query."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.language.core import _aggregate as aggregate

from .backward_tiles import KEYS, PIECE

SLOTS = gl.constexpr(2)


@aggregate
class Stream:
    """Hold a tile of queries in a slot with two barriers. One says that the tile has arrived, the other that both
    warpgroups have used the tile."""

    q: gl.shared_memory_descriptor
    do: gl.shared_memory_descriptor
    rows: gl.shared_memory_descriptor
    q_full: gl.shared_memory_descriptor
    do_full: gl.shared_memory_descriptor
    empty: gl.shared_memory_descriptor

    @gluon.constexpr_function
    def __init__(self, q, do, rows, q_full, do_full, empty):
        self.q = q
        self.do = do
        self.rows = rows
        self.q_full = q_full
        self.do_full = do_full
        self.empty = empty

    @gluon.jit
    def fill(self, q_desc, do_desc, rows_desc, coords, line, count):
        slot = count % SLOTS
        mbarrier.wait(self.empty.index(slot), ((count // SLOTS) & 1) ^ 1)
        full = self.q_full.index(slot)
        mbarrier.expect(full, q_desc.block_type.nbytes + rows_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(q_desc, coords, full, self.q.index(slot))
        tma.async_copy_global_to_shared(rows_desc, [line, 0], full, self.rows.index(slot))
        full = self.do_full.index(slot)
        mbarrier.expect(full, do_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(do_desc, coords, full, self.do.index(slot))

    @gluon.jit
    def take_q(self, count):
        tile = self.q.index(count % SLOTS).reshape([self.q.shape[3], self.q.shape[4]])
        mbarrier.wait(self.q_full.index(count % SLOTS), (count // SLOTS) & 1)
        return tile

    @gluon.jit
    def take_do(self, count):
        mbarrier.wait(self.do_full.index(count % SLOTS), (count // SLOTS) & 1)
        return self.do.index(count % SLOTS).reshape([self.do.shape[3], self.do.shape[4]])

    @gluon.jit
    def numbers(self, cfg, count, i: gl.constexpr):
        """Return one number for each of 64 queries, the log-sum-exps first, then the deltas. They arrived with Q,
        which was waited for."""
        line = self.rows.index(count % SLOTS).reshape([self.rows.shape[2]])
        return line.slice(i * PIECE, PIECE).load(gl.SliceLayout(0, cfg.TILE))[None, :]

    @gluon.jit
    def sums(self, cfg, count):
        """A tile of scores that starts from its queries' log-sum-exps."""
        row = self.numbers(cfg, count, 0)
        rows, _ = gl.broadcast(row, gl.zeros([KEYS, PIECE], gl.float32, cfg.TILE))
        return _in_registers_of_their_own(rows)

    @gluon.jit
    def release(self, count):
        mbarrier.arrive(self.empty.index(count % SLOTS), count=1)


@gluon.jit
def _in_registers_of_their_own(x):
    """Equal numbers share a register otherwise, until they are copied into a product's sums while another one runs."""
    return gl.inline_asm_elementwise(
        "add.f32 $0, $1, 0f80000000;", "=f,f", [x], dtype=gl.float32, is_pure=False, pack=1
    )


@gluon.jit
def new_stream(q_desc, do_desc, rows_desc):
    q = gl.allocate_shared_memory(q_desc.dtype, [SLOTS] + q_desc.block_type.shape, q_desc.layout)
    do = gl.allocate_shared_memory(do_desc.dtype, [SLOTS] + do_desc.block_type.shape, do_desc.layout)
    rows = gl.allocate_shared_memory(gl.float32, [SLOTS] + rows_desc.block_type.shape, rows_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    do_full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(SLOTS):
        mbarrier.init(q_full.index(slot), count=1)
        mbarrier.init(do_full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=2)
    return Stream(q, do, rows, q_full, do_full, empty)

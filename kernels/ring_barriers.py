"""Hold the barriers of a ring in shared memory, through which warps of one Hopper program hand over stages."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier


@gluon.jit
def ring_barriers(STAGES: gl.constexpr, READERS: gl.constexpr):
    """Make each stage's barriers. `full` fires when its expected copies have come, `empty` when every reader has let
    it go."""
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=READERS)
    return full, empty

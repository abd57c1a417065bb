"""Share sizes, references and costs among questions of gemm tiling."""

import math

from grader.questions import Budget, Case
from grader.questions.min_programs import side_by_side
from grader.questions.work import WHOLE_BLOCKS, filled, work
from kernels.gemm_tiling import cost


def sizes(m, n, k) -> dict:
    return {"M": int(m), "N": int(n), "K": int(k)}


LOADED = "the sides of the tile, since B is loaded once for each row of tiles and A once for each column; and whether a tile loads each element of its band once"
REUSED = "the sides of the tile: reuse is their harmonic mean, so grow the smaller one"
STORED = "the store: every element of C once, in C's own dtype"
KEPT = "what goes through scratch: the sum lives in registers from its first step along K to its last"
DOT = "do the products go through tl.dot, in a dtype and a tile that tensor cores take?"
LOADED_WIDE = "operands go into tl.dot as they were loaded: widened to fp32 they take twice the registers and run at half the rate"
ALL_WORK = 0.8  # of every kind, per multiply-add, most of it for addresses and masks outside tl.dot
CYCLES = 0.4  # of a lane, per multiply-add, about 0.15 where sums are scaled every 32 steps
OUTSIDE = 0.25  # operations per multiply-add, 1/16 if a dot is added to the sum after every 16 steps


def mnk(case: Case) -> tuple[int, int, int]:
    return tuple(case.sizes[s] for s in "MNK")


def useful(case: Case) -> float:
    return cost.flops(*mnk(case))


def in_dots(case: Case) -> list[Budget]:
    """Require the multiply-adds in tl.dot, and almost no other work. A dot whose result is thrown away earns nothing."""
    m, n, k = mnk(case)
    return [
        Budget(
            what="FLOP in tl.dot",
            count="dot",
            least=useful(case),
            most=2 * filled((m, 256), (n, 256), (k, 128)),
            look=DOT,
            over=WHOLE_BLOCKS,
            model=f"2 M N K = {2 * m * n * k:,} at least, M, N and K rounded up to 256, 256 and 128 at most",
        ),
        work(ALL_WORK, m * n * k, f"{m} x {n} x {k} products"),
        Budget(
            what="FLOP in tl.dot on operands widened to fp32",
            count="wide dot",
            most=0,
            look=LOADED_WIDE,
            model="every operand of at most 16 bits",
        ),
        Budget(
            what="operations outside tl.dot",
            count="operations",
            most=OUTSIDE * m * n * k,
            look=DOT,
            model=f"{OUTSIDE:g} for each of the {m} x {n} x {k} products",
        ),
    ]


def shared_out(case: Case) -> Budget:
    """Require parallel tiles: programs for at least half of the SMs, or one for every 256 x 256 numbers of C."""
    m, n, _ = mnk(case)
    least = min(case.sm_count // 2, math.ceil(m / 256) * math.ceil(n / 256))
    of = f"of {case.sm_count} multiprocessors half, or one for every 256 x 256 numbers of C: {least}"
    return side_by_side("store c", "c", "store", least, of)


LESSON = "course/01_gemm_tiling"
LARGE = Case(sizes(4096, 4096, 4096), "bf16", sm_count=132)
COMPILED = Case(sizes(4096, 4096, 1024), "bf16")  # a few programs may each own a large share

"""Draw the inputs of *small product* and limit their cost."""

from grader.questions import Budget, Case
from grader.questions.work import WHOLE_BLOCKS, filled
from kernels.roofline import cost

DOT = "does the product go through tl.dot?"
SIDE = 32  # of the largest block
BESIDE = 0.25  # operations a multiply-add, more than the sums of two blocks of 32 x 32 take


def in_dots(c: Case) -> list[Budget]:
    m, n, k = (c.sizes[s] for s in "MNK")
    flops = cost.gemm(m, n, k).flops
    return [
        Budget(
            what="FLOP in tl.dot",
            count="dot",
            least=flops,
            most=2 * filled((m, SIDE), (n, SIDE), (k, SIDE)),
            look=DOT,
            over=WHOLE_BLOCKS,
            model=f"at least 2 M N K = {flops:,.0f}, at most with sides rounded up to {SIDE}",
        ),
        Budget(
            what="operations outside tl.dot",
            count="operations",
            most=BESIDE * m * n * k,
            look=DOT,
            model=f"{BESIDE} for each of {m} x {n} x {k} products",
        ),
    ]

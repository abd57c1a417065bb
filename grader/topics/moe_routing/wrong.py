"""The topic's kernels, wrong."""

from grader.topics.moe_routing import wrong_combine, wrong_gemm, wrong_order

WRONG = {**wrong_order.WRONG, **wrong_gemm.WRONG, **wrong_combine.WRONG}
EQUIVALENT = {**wrong_order.EQUIVALENT, **wrong_gemm.EQUIVALENT, **wrong_combine.EQUIVALENT}

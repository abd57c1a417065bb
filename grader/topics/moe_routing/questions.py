"""Routing tokens to experts: the layer's six steps in numpy, and the kernels of what no library call does."""

from grader.topics.moe_routing import (
    combine,
    concepts,
    gemm,
    mistakes_combine,
    mistakes_gemm,
    mistakes_order,
    order,
)

QUESTIONS = (*concepts.QUESTIONS, order.ORDER, gemm.GEMM, combine.COMBINE)
SHORTCUTS = {
    **concepts.SHORTCUTS,
    order.ORDER.id: mistakes_order.SHORTCUTS,
    gemm.GEMM.id: mistakes_gemm.SHORTCUTS,
    combine.COMBINE.id: mistakes_combine.SHORTCUTS,
}

"""Routing tokens to experts: the layer's six steps in numpy, and the kernels of what a library's GEMM does not do."""

from grader.topics.moe_routing import concepts

QUESTIONS = (*concepts.QUESTIONS,)
SHORTCUTS = {**concepts.SHORTCUTS}

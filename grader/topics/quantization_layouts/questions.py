"""Quantized layouts: codes, scales and bytes in numpy, and kernels that read a packed weight once and nothing wider."""

from grader.topics.quantization_layouts import concepts

LESSON = concepts.LESSON
QUESTIONS = (*concepts.QUESTIONS,)
SHORTCUTS = {**concepts.SHORTCUTS}

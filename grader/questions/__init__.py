"""Describe questions, by the model of a question, the layout of its cases in memory, and the catalogue of all
topics."""

from grader.questions.catalog import find, folder, load, part_of
from grader.questions.model import (
    COUNTS,
    NO_OUTPUT,
    Budget,
    Call,
    Case,
    Free,
    Gap,
    KernelQuestion,
    Mistake,
    NumpyQuestion,
    Part,
    Prepare,
    Question,
    RanksQuestion,
    Speed,
    Tensor,
    Together,
    UpTo,
)

__all__ = [
    "COUNTS",
    "NO_OUTPUT",
    "Budget",
    "Call",
    "Case",
    "Free",
    "Gap",
    "KernelQuestion",
    "Mistake",
    "NumpyQuestion",
    "Part",
    "Prepare",
    "Question",
    "RanksQuestion",
    "Speed",
    "Tensor",
    "Together",
    "UpTo",
    "find",
    "folder",
    "load",
    "part_of",
]

"""Make families of wrong answers, one mistake with any tiles, and the shortcuts that only some sizes reveal."""

from collections.abc import Callable

from grader.questions import Case, KernelQuestion, Mistake
from grader.questions.memory import strides


def family(name: str, sentence: str, *outputs: Callable, edits: tuple = (), part: str = "values") -> Mistake:
    """Make a mistake of outputs that each compute, from (inputs, case), all that it gives with one choice of tiles."""
    return Mistake(name, sentence, outputs[0], variants=outputs[1:], edits=edits, part=part)


def leaving_out(name: str, sentence: str, *misses: Callable, edits: tuple = ()) -> Mistake:
    """Make a mistake that never writes some elements: each function flags them, from a case, with one choice of tiles."""
    return Mistake(name, sentence, misses=misses, edits=edits)


def computing(output: Callable) -> Callable:
    """Return a shortcut that computes outputs, where other shortcuts look at a case alone."""
    output.computes = True
    return output


# Shortcuts: (question, case) -> whether that case gives a wrong answer.


def within_limit(size: str, most: int) -> Callable:
    """Return an answer that is right for sizes up to `most` alone."""
    return lambda question, case: case.sizes[size] > most


def laid_out(question: KernelQuestion, case: Case, name: str) -> list[tuple[int, int]]:
    """Return (size, stride) of each axis."""
    spec = next(t for t in question.tensors if t.name == name)
    shape = spec.sizes(case.sizes)
    return list(zip(shape, strides(shape, case.layout.get(name, "")), strict=True))


def one_stride(name: str, axis: int) -> Callable:
    """Return an answer that takes this stride for 1."""

    def shows(question: KernelQuestion, case: Case) -> bool:
        size, stride = laid_out(question, case, name)[axis]
        return size > 1 and stride != 1

    return shows


def dense(name: str) -> Callable:
    """Return an answer that takes the tensor for contiguous."""

    def shows(question: KernelQuestion, case: Case) -> bool:
        found = laid_out(question, case, name)
        whole = strides(tuple(size for size, _ in found), "")
        return any(size > 1 and stride != step for (size, stride), step in zip(found, whole, strict=True))

    return shows


def same_strides(used: str, of: str, axes: tuple[int, ...] = ()) -> Callable:
    """Return an answer that walks tensor `of` by the strides of tensor `used`, on these axes or on all common ones."""

    def shows(question: KernelQuestion, case: Case) -> bool:
        mine, theirs = laid_out(question, case, used), laid_out(question, case, of)
        pairs = [(mine[i], theirs[i]) for i in axes or range(min(len(mine), len(theirs)))]
        return any(size > 1 and stride != other for (_, other), (size, stride) in pairs)

    return shows

"""Place tensors in memory: strided, with poison in the gaps, so that reading or writing there shows."""

from dataclasses import dataclass

import numpy as np

from grader.box.serve.frames import DTYPES, dtype_name
from grader.questions.far import Repeated
from grader.questions.model import (
    REPEATED,
    TRANSPOSED,
    TRANSPOSED_PADDED,
    WIDE,
    Case,
    KernelQuestion,
    Tensor,
    repeated_axes,
)

POISON = 0xFF  # NaN in every float type, -1 in every integer type
APART = "apart "  # before a number of elements
PAD = (
    25  # extra elements between rows of a padded layout, so that rows of 8 or 16 numbers each begin anywhere
)


@dataclass
class Placed:
    """Hold a tensor with its shape, strides and the bytes of its storage."""

    spec: Tensor
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    storage: np.ndarray
    paged: bool = False  # larger than memory: an input whose storage repeats, or an output without one

    def view(self, storage: np.ndarray | None = None) -> np.ndarray:
        flat = (self.storage if storage is None else storage).reshape(-1)
        steps = tuple(s * flat.itemsize for s in self.strides)
        return np.lib.stride_tricks.as_strided(flat, self.shape, steps)

    def indices(self, offsets: np.ndarray) -> np.ndarray:
        """Return elements of the storage as indices by axis, a row each. An element in a gap between rows is left
        out."""
        found, left = np.zeros((len(offsets), len(self.shape)), np.int64), np.asarray(offsets, np.int64)
        for axis in sorted(range(len(self.shape)), key=lambda a: -self.strides[a]):
            found[:, axis] = np.minimum(left // max(1, self.strides[axis]), self.shape[axis] - 1)
            left = left - found[:, axis] * self.strides[axis]
        return found[left == 0]

    def as_task(self) -> dict:
        return {
            "name": self.spec.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "strides": list(self.strides),
            "axes": self.spec.axes,
            "role": self.spec.role,
            **({"formerly": self.spec.formerly} if self.spec.formerly else {}),
            **({"paged": True} if self.paged else {}),
        }


def strides(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """Return the distance in elements from one index to the next, by axis. "spread 3" puts neighbours 3 apart, and no
    other stride is a multiple of 3. "apart 100" puts the last of the outermost axis about 100 from its first."""
    if layout.startswith(TRANSPOSED) and len(shape) >= 2:
        inner = strides((*shape[:-2], shape[-1], shape[-2]), layout.removeprefix(TRANSPOSED).strip())
        return (*inner[:-2], inner[-1], inner[-2])
    if layout.startswith("spread "):
        return _spread(shape, int(layout.split()[1]))
    if layout.startswith(APART):
        return _apart(shape, int(layout.removeprefix(APART)))
    if layout.startswith(REPEATED):
        axes = repeated_axes(layout)
        once = shape if layout.endswith(WIDE) else [1 if n in axes else size for n, size in enumerate(shape)]
        inner = strides(tuple(once), "")
        return tuple(0 if axis in axes else step for axis, step in enumerate(inner))
    if layout not in ("", "padded", TRANSPOSED, TRANSPOSED_PADDED):
        raise ValueError(
            "layout must be padded, transposed, transposed padded, spread or apart with a number, or repeated along an axis, "
            f"got {layout!r}"
        )
    steps, step = [], 1
    for position, size in enumerate(reversed(shape)):
        steps.append(step)
        step *= max(1, size)
        if layout.endswith("padded") and position == 0:
            step += PAD
    return tuple(reversed(steps))


def extent(shape: tuple[int, ...], steps: tuple[int, ...]) -> int:
    """Return the elements of memory from the first element of a tensor to its last one."""
    return 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))


def _spread(shape: tuple[int, ...], inner: int) -> tuple[int, ...]:
    """Step each axis past all of the axis within it, and a little further, so that no two strides agree."""
    steps = [inner]
    for size in reversed(shape[1:]):
        steps.append(steps[-1] * max(1, size) + 1)
    return tuple(reversed(steps))


def _apart(shape: tuple[int, ...], whole: int) -> tuple[int, ...]:
    """Step the outermost axis as far as fits into so many elements, or past all of the axes within it."""
    first, *inner = strides(shape, "")
    return max(first, whole // max(1, shape[0] - 1)), *inner


def place(question: KernelQuestion, case: Case, values: dict[str, np.ndarray]) -> list[Placed]:
    far = any(isinstance(one, Repeated) for one in values.values())
    return [(paged if far else _place)(spec, case, values.get(spec.name)) for spec in question.tensors]


def as_placed(name: str, array: np.ndarray) -> Placed:
    """Return an array that an answer made of weights, as an input of its kernels. Its axes are numbered, as scratch's
    are."""
    spec = Tensor(name, "0123456789"[: array.ndim], array.shape, dtype_name(array))
    return Placed(spec, spec.dtype, array.shape, strides(array.shape, ""), array.reshape(-1).copy())


def shape_only(spec: Tensor, case: Case) -> Placed:
    shape = spec.sizes(case.sizes)
    empty = np.empty(0, np.uint8)
    return Placed(spec, case.dtype_of(spec), shape, strides(shape, case.layout.get(spec.name, "")), empty)


def paged(spec: Tensor, case: Case, value: np.ndarray | Repeated | None) -> Placed:
    """Place a tensor of a far corner."""
    if spec.role != "out" and not isinstance(value, Repeated):
        return _place(spec, case, value)
    dtype, shape = case.dtype_of(spec), spec.sizes(case.sizes)
    pool = value.pool if spec.role != "out" else np.empty(0, DTYPES[dtype])
    return Placed(spec, dtype, shape, strides(shape, ""), pool, paged=True)


def _place(spec: Tensor, case: Case, value: np.ndarray | None) -> Placed:
    shape, dtype = spec.sizes(case.sizes), case.dtype_of(spec)
    steps = strides(shape, case.layout.get(spec.name, ""))
    storage = np.full(extent(shape, steps) * DTYPES[dtype].itemsize, POISON, np.uint8).view(DTYPES[dtype])
    placed = Placed(spec, dtype, shape, steps, storage)
    if spec.role != "out":
        if value is None or value.shape != shape or value.dtype != DTYPES[dtype]:
            got = "nothing" if value is None else f"{value.dtype}{value.shape}"
            raise ValueError(
                f"input {spec.name} must be {dtype}{shape}, got {got}; see the question's inputs()"
            )
        placed.view()[...] = value
    return placed

"""Say where an access went, by axis and index: "row k = 63 of b, which has 50"."""

import numpy as np

from .errors import KernelError
from .storage import Storage

POSITIONS = {1: ("element",), 2: ("row", "column")}


def coarse_to_fine(tensor: Storage) -> list[int]:
    """The axes of more than one element, the widest steps first."""
    axes = [a for a, side in enumerate(tensor.shape) if side > 1] or list(range(len(tensor.shape)))[-1:]
    return sorted(axes, key=lambda a: -tensor.strides[a])


def decoded(tensor: Storage, element: int) -> dict[int, int]:
    """The index along each axis, as far as strides alone tell."""
    found, rest = {}, element
    for axis in coarse_to_fine(tensor):
        found[axis], rest = divmod(rest, max(1, tensor.strides[axis]))
    return found


def beyond(tensor: Storage, element: int, steps: set[int]) -> tuple[int, int] | None:
    """Return the axis along which an access left the tensor, and how far it went. Take the widest axis that
    its tile moves along in `steps`, at the end of any wider axis. Without such an axis, take the widest of
    all."""
    axes = coarse_to_fine(tensor)
    if not axes:
        return None
    if 0 <= element < tensor.whole:  # in a gap between rows
        outside = [(a, i) for a, i in decoded(tensor, element).items() if not 0 <= i < tensor.shape[a]]
        return outside[0] if outside else None
    moves = next((a for a in axes if tensor.strides[a] in steps), axes[0])
    rest = element
    for axis in axes[: axes.index(moves)]:
        rest -= (tensor.shape[axis] - 1) * tensor.strides[axis] if element >= 0 else 0
    index = rest // max(1, tensor.strides[moves])
    return (moves, index) if not 0 <= index < tensor.shape[moves] else None


def place_of(tensor: Storage, axis: int, index: int, of: str = "") -> str:
    words, letter = POSITIONS.get(len(tensor.shape), ()), tensor.axes[axis]
    word = words[axis] if axis < len(words) else ""
    if tensor.named:
        word = f"{word} {letter} =".strip()
    where = f"{word} {index}" if word else f"index {index} along axis {letter}"
    return f"{where} of {of or tensor.name}, which has {tensor.shape[axis]}"


def steps_of(tensor: Storage, pointer: np.ndarray) -> dict[int, int]:
    """Return the distance in elements between neighbours in one program's tile, by the tile's axis."""
    found = {}
    for axis, side in enumerate(pointer.shape):
        if side > 1:
            step = np.diff(pointer.take([0, 1], axis), axis=axis).reshape(-1)[0]
            found[axis] = int(step) // tensor.itemsize
    return found


def jumped(tensor: Storage, pointer: np.ndarray) -> dict[int, int]:
    """Return, by the tile's axis, the widest stride that divides all its steps, where these differ: indices that were
    loaded, of rows mostly."""
    found = {}
    for axis in range(pointer.ndim):
        steps = np.diff(np.moveaxis(pointer, axis, -1).reshape(-1, pointer.shape[axis])[0]) // tensor.itemsize
        if len(set(steps.tolist())) > 1:
            found[axis] = max((s for s in tensor.strides if s and not (steps % s).any()), default=0)
    return found


def by_place_in_tile(tensor: Storage, corner: dict, lane: tuple, steps: dict) -> tuple[int, int] | None:
    """Return the axis and index of one lane, counted from its tile's corner. Return nothing if the corner is
    outside, or a step isn't a stride of the tensor."""
    at = dict(corner)
    for axis, step in steps.items():
        along = next((a for a in at if tensor.strides[a] == step), None)
        if along is None:
            return None
        at[along] += int(lane[axis])
    return next(((a, i) for a, i in at.items() if not 0 <= i < tensor.shape[a]), None)


def otherwise(tensor: Storage, element: int, axis: int, index: int, corner: dict, moved: set[int]) -> str:
    """Name the other reading of an address: one element past the end is also the element after the last row.
    Which one was meant is known only if the tile moves along that axis too, from a corner within a row."""
    finer = [a for a in coarse_to_fine(tensor) if tensor.strides[a] < tensor.strides[axis]]
    if (
        index != tensor.shape[axis]
        or not finer
        or (tensor.strides[finer[0]] in moved and corner.get(finer[0]))
    ):
        return ""
    rest = (element - (index - 1) * tensor.strides[axis]) // tensor.strides[finer[0]]
    axes = tensor.axes if tensor.named else ["index along axis " + digit for digit in tensor.axes]
    last = POSITIONS.get(len(tensor.shape), axes)[axis]
    return f"; by the same address {place_of(tensor, finer[0], rest, of=f'its last {last}')}"


def outside(kind: str, tensor: Storage, address: np.ndarray, bad: np.ndarray, row_of, frame, tile, line: int):
    """Return the error of an access whose lanes `bad` are outside the tensor. `row_of` maps a lane to its
    program of the `frame`, and `tile(row)` gives all its pointers. A tile wholly outside got there
    along the widest axis.
    """
    lane = int(np.flatnonzero(bad)[0])
    row = int(row_of[lane])
    program, steps, jumps, corner = frame.place(row), {}, {}, {}
    element = (int(address[lane]) - tensor.base) // tensor.itemsize
    along, pointer = None, tile(row)
    mine = np.argwhere(pointer == address[lane])
    if not bad[row_of == row].all():
        jumps = jumped(tensor, pointer)
        steps = steps_of(tensor, pointer) | jumps
        begins = (int(pointer.reshape(-1)[0]) - tensor.base) // tensor.itemsize
        corner = decoded(tensor, begins)
        if len(mine) == 1 and not jumps and 0 <= begins < tensor.whole:
            along = by_place_in_tile(tensor, corner, tuple(mine[0]), steps)
    facts = {"tensor": tensor.name, "program": program, "element": element, "extent": tensor.whole}
    facts |= {"access": kind, "lane": mine[0].tolist() if len(mine) else []}
    if along is None and tensor.whole:
        along = beyond(tensor, element, set(steps.values()))
    if along is not None:
        axis, index = along
        facts |= {"axis": tensor.axes[axis], "index": index, "size": tensor.shape[axis]}
        what = place_of(tensor, axis, index)
        what += "" if jumps else otherwise(tensor, element, axis, index, corner, set(steps.values()))
    elif 0 <= element < tensor.whole:
        spread = min(tensor.strides[a] for a in coarse_to_fine(tensor))
        what = f"element {element}, a gap: its elements lie {spread} apart"
    else:
        what = f"element {element}, and its elements are 0 to {tensor.whole - 1}"
    message = f"{kind} outside {tensor.name}: program {ids(program, frame.grid)} reached {what}"
    return KernelError("OutOfBounds", message, line, **facts)


def ids(program: list, grid: tuple) -> str:
    """Write a program as its kernel knows it, a number, or one number for each axis of its grid."""
    used = max((axis + 1 for axis, side in enumerate(grid) if side > 1), default=1)
    return f"{program[0]}" if used == 1 else f"({', '.join(map(str, program[:used]))})"


def nowhere(kind: str, program: list, grid: tuple, line: int) -> KernelError:
    message = (
        f"{kind} outside every tensor: program {ids(program, grid)} followed a pointer that leads to none"
    )
    return KernelError("OutOfBounds", message, line, program=program, access=kind)

"""Compare the promises tl.multiple_of, tl.max_contiguous and tl.max_constancy with the values."""

import numpy as np

from .bounds import ids
from .errors import KernelError, hold
from .frame import Frame
from .tree import NUMPY, BadIR, Op, Type
from .values import full

WORDS = {"tt.divisibility": "multiple_of", "tt.contiguity": "max_contiguous", "tt.constancy": "max_constancy"}


def hints_of(op: Op) -> dict[str, tuple[int, ...]]:
    found = {name: op.attributes[name] for name in WORDS if name in op.attributes}
    for numbers in found.values():
        hold_form(numbers, op.result_types[0] if op.result_types else None, op.line)
    return found


def hold_form(numbers, type: Type | None, line: int) -> None:
    rank = max(1, len(type.shape)) if type else 0
    if not isinstance(numbers, tuple) or len(numbers) != rank or any(n < 1 for n in numbers):
        raise BadIR("a hint must have one number of at least 1 for each axis", line)


def checked(perform, op: Op, bound: bool):
    """Return a function that performs the operation within a run and checks the result against its promises."""
    hints, type = hints_of(op), op.result_types[0]

    def run(run, *values):
        found = perform(run, *values) if bound else perform(*values)
        value = found[0] if isinstance(found, tuple) else found
        compare(run.frame, hints, value, type, op.line)
        return found

    return run


def carried_of(op: Op) -> list[tuple]:
    """Return the promises about the values that a loop carries:
    the argument's index in the body, its hints, its type, and the loop's line."""
    found: dict[int, dict] = {}
    if not op.name.startswith("scf.") or not op.regions or not op.regions[-1]:
        return []
    for attribute, numbers in op.attributes.items():
        name, _, place = attribute.partition("_arg")
        if name in WORDS and place.isdecimal():
            found.setdefault(int(place), {})[name] = numbers
    types = op.regions[-1][0].types
    for place, hints in found.items():
        for numbers in hints.values():
            hold_form(numbers, types[place] if place < len(types) else None, op.line)
    return [(place, hints, types[place], op.line) for place, hints in found.items()]


def hold_carried(frame: Frame, carried: list[tuple], values: list) -> None:
    for place, hints, type, line in carried:
        compare(frame, hints, np.asarray(values[place]), type, line)


def compare(frame: Frame, hints: dict, value: np.ndarray, type: Type, line: int) -> None:
    """Holds a value to its hints."""
    step = NUMPY[type.element].itemsize if type.element else 1
    value = full(value, type.shape) if type.shape else value.reshape(-1, 1)
    for name, numbers in hints.items():
        for axis, number in enumerate(numbers, 1):
            if number == 1:
                continue
            lines = np.moveaxis(value, axis, -1)
            bad = broken(name, lines, number, step)
            if bad.any():
                first = np.argwhere(bad)[0]
                program = frame.place(int(first[0]) if len(bad) == frame.size else 0)
                text = sentence(name, number, int(lines[tuple(first)]), bool(type.element))
                text += f", in program {ids(program, frame.grid)}"
                hold(KernelError("FalseHint", text, line, program=program, word=WORDS[name]))


def broken(name: str, lines: np.ndarray, number: int, step: int) -> np.ndarray:
    """Return where the values, along their last axis, break the promise."""
    places = np.arange(lines.shape[-1])
    steps = np.zeros(lines.shape, bool)  # whether a value follows the one before it
    steps[..., 1:] = lines[..., 1:] == lines[..., :-1] + step
    if name == "tt.contiguity":
        return ~steps & (places % number > 0)
    if name == "tt.constancy":
        same = np.ones(lines.shape, bool)
        same[..., 1:] = lines[..., 1:] == lines[..., :-1]
        return ~same & (places % number > 0)
    return ~steps & (lines % number != 0)  # of a run of consecutive values only the first must divide


def sentence(name: str, number: int, got: int, pointer: bool) -> str:
    word = WORDS[name]
    if name == "tt.divisibility":
        what = "an address" if pointer else str(got)
        return f"tl.{word} promises a multiple of {number}, and {what} is none"
    kind = "consecutive" if name == "tt.contiguity" else "equal"
    return f"tl.{word} promises {number} {kind} values in a row, and they are not"


def hold_arguments(attributes: list[dict], values: list, line: int) -> None:
    """Check the assumptions that a kernel's text makes about its arguments."""
    for number, (promised, value) in enumerate(zip(attributes, values, strict=True)):
        divisor = promised.get("tt.divisibility", 1)
        if isinstance(divisor, int) and divisor > 1 and isinstance(value, int) and value % divisor:
            text = f"the kernel was compiled for an argument {number} that {divisor} divides, got {value}"
            hold(KernelError("FalseHint", text, line))

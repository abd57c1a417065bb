"""Convert types from Triton IR's spelling and back."""

import re

from .tree import NUMPY, BadIR, Type

MOST_ELEMENTS = 1 << 20  # of a tensor, as in Triton's own front end
TENSOR = re.compile(r"tensor<((?:\d{1,7}x){1,20})(.{1,40})>")
POINTER = re.compile(r"!tt\.ptr<(\w{1,12})(?:, 1)?>")
DESCRIPTOR = re.compile(r"!tt\.tensordesc<(?:tensor<)?((?:\d{1,7}x){1,5})([su]?)(\w{1,12})>>?")
SPELLED = re.compile(
    r"!tt\.tensordesc<(?:tensor<)?\w{1,80}>{1,2}|tensor<[\dx]{1,160}(?:!tt\.ptr<[\w, ]{1,20}>|\w{1,20})>|!tt\.ptr<[\w, ]{1,20}>|\w{1,20}\b"
)


def type_of(text: str) -> Type:
    """Return the type that a text names, which must be one whole type that SPELLED matches."""
    if text in NUMPY:
        return Type(text)
    if pointer := POINTER.fullmatch(text):
        if pointer[1] in NUMPY:
            return Type("ptr", (), pointer[1])
    elif tensor := TENSOR.fullmatch(text):
        inner = type_of(tensor[2])
        if not inner.shape and inner.scalar != "desc":
            return Type(inner.scalar, _shape(tensor[1], text), inner.element)
    elif descriptor := DESCRIPTOR.fullmatch(text):
        sides, sign, element = descriptor.groups()
        if element in NUMPY and (not sign or element[0] == "i"):
            return Type("desc", _shape(sides, text), element, sign)
    raise BadIR(
        f"a type must be a number, a pointer to one, a tensor of either or a descriptor, got {text[:80]}"
    )


def _shape(sides: str, text: str) -> tuple[int, ...]:
    shape, elements = tuple(int(side) for side in sides.split("x")[:-1]), 1
    for side in shape:
        elements *= side
        if side < 1 or side & (side - 1) or elements > MOST_ELEMENTS:
            raise BadIR(
                f"a tensor's sides must be powers of two, {MOST_ELEMENTS} elements at most, got {text[:80]}"
            )
    return shape


def spelled(type: Type) -> str:
    sides = "".join(f"{side}x" for side in type.shape)
    if type.scalar == "desc":
        return f"!tt.tensordesc<tensor<{sides}{type.sign}{type.element}>>"
    inner = f"!tt.ptr<{type.element}>" if type.scalar == "ptr" else type.scalar
    return f"tensor<{sides}{inner}>" if type.shape else inner


def spelled_all(types: list[Type]) -> str:
    """Spell a list of results. A single result needs no parentheses, while none or several do."""
    return spelled(types[0]) if len(types) == 1 else f"({', '.join(map(spelled, types))})"

"""Read the value of an arith.constant:
an array without axes if all elements agree, else one of its type's shape."""

import re

import numpy as np

from .narrow import converted
from .scanner import Scanner
from .strings import QUOTED
from .tree import NUMPY, BadIR, Type
from .words_of_types import SPELLED, spelled, type_of

NUMBER = re.compile(
    r"-?(?:0x[0-9A-Fa-f]{1,16}|\d{1,40}(?:\.\d{0,40})?(?:[eE][+-]?\d{1,4})?)(?![\w.])|true\b|false\b"
)
BLOB = re.compile(r"0x((?:[0-9A-Fa-f]{2})*+)")
TRUTH = {"true": True, "false": False, "1": True, "0": False, "-1": True}
DEEPEST, MOST_LISTED = 20, 1 << 15


def read_value(scanner: Scanner) -> tuple[np.ndarray, Type]:
    """Read `64 : i32`, `true` or `dense<0.0> : tensor<...>`."""
    if scanner.take("dense<"):
        elements = _elements(scanner)
        scanner.need(">")
        scanner.need(":")
        type = type_of(scanner.match(SPELLED, "a type")[0])
        return _dense(elements, type), type
    text = scanner.match(NUMBER, "a number")[0]
    type = type_of(scanner.match(SPELLED, "a type")[0]) if scanner.take(":") else Type("i1")
    if type.shape or type.scalar not in NUMPY:
        raise BadIR(f"a number must be of a number's type, got {spelled(type)}")
    return _number(text, type.scalar), type


def _elements(scanner: Scanner, depth: int = 0):
    """Read a number's text, a blob's bytes or a list of such."""
    if depth > DEEPEST:
        scanner.bad(f"lists nested {DEEPEST} deep at most")
    if scanner.take("["):
        return scanner.many(lambda: _elements(scanner, depth + 1), "]", MOST_LISTED)
    if scanner.peek('"'):
        blob = BLOB.fullmatch(scanner.match(QUOTED, "a string")[1])
        if blob is None:
            scanner.bad("bytes in hexadecimal")
        return bytes.fromhex(blob[1])
    return scanner.match(NUMBER, "a number")[0]


def _dense(elements, type: Type) -> np.ndarray:
    if not type.shape or type.scalar not in NUMPY:
        raise BadIR(f"dense elements must be of a tensor of numbers, got {spelled(type)}")
    if isinstance(elements, str):
        return _number(elements, type.scalar)
    if isinstance(elements, bytes):
        return _from_bytes(elements, type)
    flat = []
    _flatten(elements, type.shape, flat)
    return np.array([_number(text, type.scalar) for text in flat], type.dtype).reshape(type.shape)


def _from_bytes(raw: bytes, type: Type) -> np.ndarray:
    size, elements = type.dtype.itemsize, int(np.prod(type.shape))
    if type.scalar == "i1" or len(raw) not in (size, size * elements):
        raise BadIR(f"a constant of {spelled(type)} must have {size * elements} bytes, got {len(raw)}")
    found = np.frombuffer(raw, type.dtype).copy()
    return found.reshape(()) if len(raw) == size else found.reshape(type.shape)


def _flatten(elements, shape: tuple[int, ...], flat: list) -> None:
    if not shape:
        if not isinstance(elements, str):
            raise BadIR("dense elements must be nested as their type says")
        flat.append(elements)
        return
    if not isinstance(elements, list) or len(elements) != shape[0]:
        raise BadIR("dense elements must be as many as their type says")
    for inner in elements:
        _flatten(inner, shape[1:], flat)


def _number(text: str, scalar: str) -> np.ndarray:
    dtype = NUMPY[scalar]
    bits = 8 * dtype.itemsize
    if scalar == "i1":
        if text not in TRUTH:
            raise BadIR(f"a truth value must be true or false, got {text[:40]!r}")
        return np.array(TRUTH[text])
    try:
        if scalar[0] == "i":
            value = int(text, 0)
            if not -(1 << bits - 1) <= value < 1 << bits:
                raise ValueError
            return np.array(value & (1 << bits) - 1, f"u{dtype.itemsize}").view(dtype)
        if text.startswith("0x"):
            return np.array(int(text, 16), f"u{dtype.itemsize}").view(dtype)
        with np.errstate(all="ignore"):
            return converted(np.array(np.float64(text)), dtype)
    except (ValueError, OverflowError):
        raise BadIR(f"a number must be one of {scalar}, got {text[:40]!r}") from None


def value_text(value: np.ndarray, type: Type) -> str:
    """The attribute that gives `value` again, floats by their bits."""
    if not type.shape:
        text = _number_text(value[()], type)
        return text if type.scalar == "i1" else f"{text} : {spelled(type)}"
    return f"dense<{_elements_text(value, type)}> : {spelled(type)}"


def _elements_text(value: np.ndarray, type: Type) -> str:
    if not value.shape:
        return _number_text(value[()], type)
    if type.scalar != "i1":
        return f'"0x{np.ascontiguousarray(value).tobytes().hex().upper()}"'
    return "[" + ", ".join(_elements_text(inner, type) for inner in value) + "]"


def _number_text(value, type: Type) -> str:
    if type.scalar == "i1":
        return "true" if value else "false"
    if type.scalar[0] == "i":
        return str(int(value))
    return f"0x{np.asarray(value).tobytes()[::-1].hex().upper()}"

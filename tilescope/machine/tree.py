"""Hold Triton IR as a tree, which the reader makes from a text, the interpreter runs, and the writer prints."""

from dataclasses import dataclass, field

import numpy as np

from .narrow import BF16, E4M3, E5M2

NUMPY = {
    "i1": np.dtype(bool),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "bf16": BF16,
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f8E4M3FN": E4M3,
    "f8E5M2": E5M2,
}


class BadIR(ValueError):
    """The text isn't IR that an answer may hold. `line` is the line of the answer's cell, 0 if unknown."""

    def __init__(self, message: str, line: int = 0):
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Type:
    """A scalar, a pointer (`element` says to what), a tensor of either, or a descriptor (of tiles of `shape`)."""

    scalar: str  # a key of NUMPY, "ptr" or "desc"
    shape: tuple[int, ...] = ()
    element: str = ""  # of a pointer or a descriptor, a key of NUMPY
    sign: str = ""  # of a descriptor of integers, "s" or "u" if its text says so

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.int64) if self.element else NUMPY[self.scalar]


@dataclass
class Op:
    name: str  # "tt.load"
    results: list[str]  # names of values, unique within their function
    operands: list[str]
    attributes: (
        dict  # name -> int, bool, str, tuple of ints, and in a constant "value" -> array, () if all are one
    )
    regions: list[list["Block"]]
    operand_types: list[Type]
    result_types: list[Type]
    successors: list[str] = field(default_factory=list)  # labels
    line: int = 0  # of the answer's cell, 0 where unknown


@dataclass
class Block:
    label: str
    arguments: list[str]
    types: list[Type]
    ops: list[Op] = field(default_factory=list)


@dataclass
class Function:
    name: str
    public: bool
    blocks: list[Block]
    result_types: list[Type]
    argument_attributes: list[dict]  # one for each argument: {"tt.divisibility": 16}
    line: int = 0
    attributes: dict = field(default_factory=dict)  # attributes that the writer must print again: noinline
    words: dict[str, str] = field(default_factory=dict)  # value -> the name that its text gave it

    @property
    def argument_types(self) -> list[Type]:
        return self.blocks[0].types


@dataclass
class Module:
    functions: dict[str, Function]
    prepared: object = field(
        default=None, compare=False, repr=False
    )  # set by run.py, and dropped once functions are changed

    @property
    def kernel(self) -> Function:
        """Return the one public function, which is launched."""
        public = [function for function in self.functions.values() if function.public]
        if len(public) != 1:
            raise BadIR(f"a text must hold one public function, got {len(public)}")
        return public[0]

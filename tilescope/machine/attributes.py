"""Check attributes. Each kind knows its own values and prints them as Triton's parser takes them."""

import re
from dataclasses import dataclass

from .strings import quoted

MOST_WORDS = 1000
UNHOISTED = "#llvm.loop_annotation<licm = <disable = true, versioningDisable = true>>"
PLAIN_WORDS = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f]*")


@dataclass(frozen=True)
class Whole:
    """A whole number, from a range or a set."""

    legal: range | frozenset
    bits: int = 32
    optional: bool = False

    def holds(self, value) -> bool:
        return type(value) is int and value in self.legal

    def text(self, value) -> str:
        return f"{value} : i{self.bits}"

    @property
    def wanted(self) -> str:
        if isinstance(self.legal, range):
            return f"from {self.legal[0]} to {self.legal[-1]}"
        return "one of " + ", ".join(map(str, sorted(self.legal)))


@dataclass(frozen=True)
class Truth:
    legal: tuple = (True, False)
    wanted: str = "true or false"
    optional: bool = False

    def holds(self, value) -> bool:
        return type(value) is bool and value in self.legal

    def text(self, value) -> str:
        return "true" if value else "false"


@dataclass(frozen=True)
class Flag:
    """There or not."""

    wanted: str = "there or not"
    optional: bool = True

    def holds(self, value) -> bool:
        return value is True

    def text(self, value) -> str:
        return ""


@dataclass(frozen=True)
class Wholes:
    """A list of whole numbers, each within a range: `array<i32: 1, 0>`."""

    legal: range
    most: int = 256
    optional: bool = False

    def holds(self, value) -> bool:
        return (
            type(value) is tuple
            and len(value) <= self.most
            and all(type(one) is int and one in self.legal for one in value)
        )

    def text(self, value) -> str:
        return f"array<i32: {', '.join(map(str, value))}>" if value else "array<i32>"

    @property
    def wanted(self) -> str:
        return f"{self.most} whole numbers at most" if self.most else "empty"


@dataclass(frozen=True)
class Hint:
    """One whole number for each axis: `dense<[16, 1]> : tensor<2xi32>`."""

    wanted: str = "a positive number for each axis"
    optional: bool = True

    def holds(self, value) -> bool:
        return (
            type(value) is tuple
            and len(value) > 0
            and all(type(one) is int and 0 < one < 1 << 31 for one in value)
        )

    def text(self, value) -> str:
        return f"dense<[{', '.join(map(str, value))}]> : tensor<{len(value)}xi32>"


@dataclass(frozen=True)
class Named:
    """The one word of a dialect's own attribute: `#arith.fastmath<none>`."""

    dialect: str
    word: str = "none"
    optional: bool = True

    def holds(self, value) -> bool:
        return value == self.word

    def text(self, value) -> str:
        return f"#{self.dialect}<{value}>" if value else f"#{self.dialect}"

    @property
    def wanted(self) -> str:
        return self.word or "there"


@dataclass(frozen=True)
class Unhoisted:
    """The mark that tl.range(disable_licm=True) leaves on its loop.
    MLIR's parser takes the whole, its printer splits the parts."""

    wanted: str = "as tl.range(disable_licm=True) leaves it"
    optional: bool = True

    def holds(self, value) -> bool:
        return value == UNHOISTED

    def text(self, value) -> str:
        return value


@dataclass(frozen=True)
class Words:
    """Words that a learner wanted printed. A GPU's printf reads them as a format, so `%` may be left out."""

    without: str = ""
    optional: bool = False

    def holds(self, value) -> bool:
        if type(value) is not str or len(value) > MOST_WORDS or not PLAIN_WORDS.fullmatch(value):
            return False
        return not any(c in value for c in self.without)

    def text(self, value) -> str:
        return quoted(value)

    @property
    def wanted(self) -> str:
        no = f" and no {self.without}" if self.without else ""
        return f"text of {MOST_WORDS} characters at most, with no control characters{no}"


@dataclass(frozen=True)
class OneOf:
    """One of a table's words."""

    legal: frozenset
    what: str
    optional: bool = False

    def holds(self, value) -> bool:
        return type(value) is str and value in self.legal

    def text(self, value) -> str:
        return quoted(value)

    @property
    def wanted(self) -> str:
        return self.what


@dataclass(frozen=True)
class Callee:
    """A function of the same module."""

    wanted: str = "a function of this module"
    optional: bool = False

    def holds(self, value) -> bool:
        return type(value) is str

    def text(self, value) -> str:
        return f"@{value}"


@dataclass(frozen=True)
class Value:
    """A constant's own value, of its result's type. write.py prints it."""

    wanted: str = "a number or a tensor of numbers"
    optional: bool = False

    def holds(self, value) -> bool:
        return hasattr(value, "dtype")

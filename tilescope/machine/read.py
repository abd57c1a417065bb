"""Read Triton IR in MLIR's generic form. One grammar covers every operation, so nothing here knows what one
means.

The text is hostile. Every pattern is linear, depth and counts are capped, and any fault ends in BadIR.
verify.py decides what an operation may carry and whether its types agree.
"""

import re

import numpy as np

from . import locations, names
from .attributes import UNHOISTED
from .constants import read_value
from .scanner import Scanner
from .strings import QUOTED, unquoted
from .tree import BadIR, Block, Module, Op, Type
from .words_of_types import SPELLED, type_of

MOST_CHARACTERS = 2 << 20
MOST_OPS = 20_000
MOST_BLOCKS, MOST_OF_LOCATION = 2_000, 10_000
MOST_VALUES = 256  # results of one operation
DEEPEST_REGION, DEEPEST_ATTRIBUTE = 24, 6

VALUE = re.compile(r"%[\w.$-]+(?:#\d{1,4})?")
COUNT = re.compile(r"\d{1,4}\b")
LABEL = re.compile(r"\^[\w.$-]+")
NAME = re.compile(r"[A-Za-z_][\w.$]*")
INTEGER = re.compile(r"-?\d{1,20}(?![\w.])")
ALIAS_OF_LOCATION = re.compile(r"loc\((#loc\d*)\)")
OF_LOCATION = re.compile(r'[^()"\n]++|"(?:[^"\\\n]|\\.)*+"|[()]')
OF_DIALECT = re.compile(r"#[a-z_]+\.[a-z_]+(?:<([\w, ]{0,80})>)?")


def read(text: str, cell: str = "<answer>") -> Module:
    """Return the module of a text, with lines of `cell`. Raise BadIR if it isn't one."""
    if len(text) > MOST_CHARACTERS:
        raise BadIR(f"Triton IR must be {MOST_CHARACTERS >> 20} MiB at most, got {len(text) >> 20} MiB")
    places, rest = locations.split(text)
    module = Reader(rest, locations.Locations(places, cell)).whole()
    if module.attributes:
        raise BadIR(f"a module must carry no attributes, got {', '.join(module.attributes)[:80]}")
    return names.functions(module.regions[0][0].ops)


class Reader(Scanner):
    def __init__(self, text: str, where: locations.Locations):
        super().__init__(text)
        self.where, self.depth, self.ops, self.blocks = where, 0, 0, 0
        self.types: dict[str, Type] = {}

    def whole(self) -> Op:
        module = self.operation()
        if self.at != len(self.text):
            self.bad("the text's end")
        if module.name != "builtin.module" or len(module.regions) != 1 or len(module.regions[0]) != 1:
            raise BadIR(f"Triton IR must be one module, got {module.name[:60]!r}")
        return module

    def operation(self) -> Op:
        self.ops += 1
        if self.ops > MOST_OPS:
            raise BadIR(
                f"a kernel must have {MOST_OPS} operations at most, got more; use fewer unrolled loops"
            )
        results = self.results() if self.peek("%") else []
        name = self.match(QUOTED, "an operation's name")[1]
        self.need("(")
        operands = self.many(self.value, ")")
        successors = self.many(self.label, "]") if self.take("[") else []
        attributes = {}
        if self.take("<{"):
            self.entries(attributes, name)
            self.need(">")
        regions = self.many(self.region, ")") if self.take("(") else []
        if self.take("{"):
            self.entries(attributes, name)
        self.need(":")
        operand_types, result_types = self.signature()
        line = self.line()
        if len(operand_types) != len(operands) or len(result_types) != len(results):
            raise BadIR(f"{name} must have a type for each of its values, got another number of them", line)
        op = Op(name, results, operands, attributes, regions, operand_types, result_types, successors, line)
        return _with_value(op) if name == "arith.constant" else op

    def results(self) -> list[str]:
        found = []
        while True:
            name = self.match(VALUE, "a value")[0]
            count = int(self.match(COUNT, "a count")[0]) if self.take(":") else 1
            if not 1 <= count <= MOST_VALUES:
                self.bad(f"1 to {MOST_VALUES} results")
            found += [name, *(f"{name}#{place}" for place in range(1, count))]
            if len(found) > MOST_VALUES:
                raise BadIR(f"an operation must have {MOST_VALUES} results at most, got more")
            if not self.take(","):
                self.need("=")
                return found

    def value(self) -> str:
        return self.match(VALUE, "a value")[0].removesuffix("#0")

    def label(self) -> str:
        return self.match(LABEL, "a block's label")[0]

    def type(self) -> Type:
        text = self.match(SPELLED, "a type")[0]
        if text not in self.types:
            self.types[text] = type_of(text)
        return self.types[text]

    def signature(self) -> tuple[list[Type], list[Type]]:
        self.need("(")
        operands = self.many(self.type, ")")
        self.need("->")
        return operands, self.many(self.type, ")") if self.take("(") else [self.type()]

    def line(self) -> int:
        """Return the line of a location, if the text has one here."""
        if short := ALIAS_OF_LOCATION.match(self.text, self.at):
            self.at = short.end()
            self.skip()
            return self.where.line(short[1])
        if not self.peek("loc("):
            return 0
        start, depth = self.at, 0
        self.at += len("loc")
        while depth or self.at == start + len("loc"):
            word = self.match(OF_LOCATION, "a location")[0]
            if self.at - start > MOST_OF_LOCATION:
                self.bad(f"locations of {MOST_OF_LOCATION} characters at most")
            depth += {"(": 1, ")": -1}.get(word, 0)
        return self.where.line(self.text[start : self.at])

    def region(self) -> list[Block]:
        self.depth += 1
        if self.depth > DEEPEST_REGION:
            raise BadIR(f"loops and branches must be nested {DEEPEST_REGION} deep at most, got more")
        self.need("{")
        blocks = [Block("", [], [])]
        while not self.take("}"):
            if self.peek("^"):
                blocks.append(self.head())
            else:
                blocks[-1].ops.append(self.operation())
        self.depth -= 1
        return blocks if blocks[0].ops or len(blocks) == 1 else blocks[1:]

    def head(self) -> Block:
        self.blocks += 1
        if self.blocks > MOST_BLOCKS:
            raise BadIR(f"a kernel must have {MOST_BLOCKS} blocks at most, got more")
        label = self.label()
        arguments = self.many(self.argument, ")") if self.take("(") else []
        self.need(":")
        return Block(label, [name for name, _ in arguments], [type for _, type in arguments])

    def argument(self) -> tuple[str, Type]:
        name = self.value()
        self.need(":")
        type = self.type()
        self.line()
        return name, type

    def entries(self, attributes: dict, operation: str, depth: int = 0) -> None:
        for name, value in self.many(lambda: self.entry(depth), "}"):
            if name in attributes:
                raise BadIR(f"{operation} must carry an attribute once, got {name} twice")
            attributes[name] = value

    def entry(self, depth: int):
        """Read a name and its value. Only a constant's value has a type that matters."""
        name = unquoted(self.match(QUOTED, "a name")[1]) if self.peek('"') else self.match(NAME, "a name")[0]
        if not self.take("="):
            return name, True
        if name == "value" and not self.peek("#"):
            return name, read_value(self)
        return name, self.attribute(depth)

    def attribute(self, depth: int):
        if depth > DEEPEST_ATTRIBUTE:
            self.bad(f"attributes nested {DEEPEST_ATTRIBUTE} deep at most")
        if self.peek('"'):
            return unquoted(self.match(QUOTED, "a string")[1])
        if self.take("["):
            return self.many(lambda: self.attribute(depth + 1), "]")
        if self.take("{"):
            found = {}
            self.entries(found, "a dictionary", depth + 1)
            return found
        if self.take("@"):
            return (
                unquoted(self.match(QUOTED, "a name")[1]) if self.peek('"') else self.match(NAME, "a name")[0]
            )
        if self.peek("("):
            return self.signature()
        if self.take(UNHOISTED) or self.take("#loop_annotation"):
            return UNHOISTED
        if self.peek("#"):
            return self.match(OF_DIALECT, "a dialect's attribute")[1] or ""
        if self.take("array<"):
            self.match(NAME, "a type")
            return tuple(self.many(self.integer, ">")) if self.take(":") else self.need(">") or ()
        if self.peek("dense<"):
            return self.hint()
        for word, value in (("true", True), ("false", False), ("unit", True)):
            if self.take(word):
                return value
        number = self.integer()
        if self.take(":"):
            self.match(NAME, "a type")
        return number

    def integer(self) -> int:
        return int(self.match(INTEGER, "a whole number")[0])

    def hint(self) -> tuple[int, ...]:
        """Read one whole number for each axis: `dense<[16, 1]> : tensor<2xi32>`."""
        value, type = read_value(self)
        if len(type.shape) != 1 or type.shape[0] > 32 or type.scalar not in ("i32", "i64"):
            raise BadIR("a list of whole numbers must have one axis and 32 numbers at most, got another one")
        return tuple(int(number) for number in np.broadcast_to(value, type.shape))


def _with_value(op: Op) -> Op:
    """A constant's attribute without the type that it carries, which is the result's."""
    value, type = op.attributes["value"] if isinstance(op.attributes.get("value"), tuple) else (None, None)
    if op.result_types != [type]:
        raise BadIR("a constant must have a value of its result's type", op.line)
    op.attributes["value"] = value
    return op

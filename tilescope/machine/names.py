"""Rename everything in a module. Of the answer's names only the kernel's remains, if it is a plain word.

MLIR lets two adjacent regions use one name for two values. Here a name means one value of its function.
"""

import re
from itertools import count

from .tree import BadIR, Block, Function, Module, Op

PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
TAKEN = re.compile(r"function_\d+|vprintf")
MOST_FUNCTIONS = 64


def functions(ops: list[Op]) -> Module:
    """A module's functions, from its operations."""
    if len(ops) > MOST_FUNCTIONS:
        raise BadIR(f"a module must hold {MOST_FUNCTIONS} functions at most, got {len(ops)}")
    chosen: dict[str, str] = {}
    for op in ops:
        name = _checked(op).attributes["sym_name"]
        if name in chosen:
            raise BadIR("each function must have a name of its own, got one twice", op.line)
        chosen[name] = _own(name, op, len(chosen))
    public = [op for op in ops if op.attributes.get("sym_visibility", "public") == "public"]
    if len(public) != 1:
        raise BadIR(f"a module must hold one public function, the kernel, got {len(public)}")
    found = [_function(op, chosen) for op in ops]
    return Module({function.name: function for function in found})


def _checked(op: Op) -> Op:
    attributes = op.attributes
    if op.name != "tt.func":
        raise BadIR(f"a module must hold functions alone, got {op.name[:60]}", op.line)
    if op.operands or op.results or op.successors or len(op.regions) != 1 or not op.regions[0][0].ops:
        raise BadIR("a function must have a body and nothing else", op.line)
    signature, name = attributes.get("function_type"), attributes.get("sym_name")
    if not isinstance(name, str) or not isinstance(signature, tuple) or len(signature) != 2:
        raise BadIR("a function must have a name and a type", op.line)
    if signature[0] != op.regions[0][0].types:
        raise BadIR("a function must have the arguments that its type says", op.line)
    return op


def _own(name: str, op: Op, place: int) -> str:
    if op.attributes.get("sym_visibility", "public") != "public":
        return f"function_{place}"
    return name if PLAIN.fullmatch(name) and not TAKEN.fullmatch(name) else "kernel"


def _function(op: Op, chosen: dict[str, str]) -> Function:
    attributes = dict(op.attributes)
    _, results = attributes.pop("function_type")
    name, blocks = chosen[attributes.pop("sym_name")], op.regions[0]
    of_arguments = attributes.pop("arg_attrs", [{} for _ in blocks[0].types])
    of_results = attributes.pop("res_attrs", [])
    public = attributes.pop("sym_visibility", "public") == "public"
    if not isinstance(of_arguments, list) or not all(isinstance(one, dict) for one in of_arguments):
        raise BadIR("a function's arguments must carry a dictionary each", op.line)
    if not isinstance(of_results, list) or any(of_results):
        raise BadIR("a function's results must carry no attributes", op.line)
    renamer = Renamer(chosen)
    renamer.region(blocks)
    return Function(name, public, blocks, results, of_arguments, op.line, attributes, renamer.words)


class Renamer:
    def __init__(self, functions: dict[str, str]):
        self.functions = functions
        self.values: dict[str, str] = {}  # of all regions around it
        self.words: dict[str, str] = {}
        self.numbers, self.labels = count(), count()

    def region(self, blocks: list[Block]) -> None:
        mine = [name for block in blocks for name in _defined(block)]
        for name in mine:
            if name in self.values:
                raise BadIR(f"a value must be defined once, got {name[:60]} twice")
            self.values[name] = own = f"%{next(self.numbers)}"
            self.words[own] = name
        labels = {block.label: f"^bb{next(self.labels)}" for block in blocks}
        if len(labels) < len(blocks):
            raise BadIR("a block must have a label of its own, got one twice")
        for block in blocks:
            self.block(block, labels)
        for name in mine:
            del self.values[name]

    def block(self, block: Block, labels: dict[str, str]) -> None:
        block.label = labels[block.label]
        block.arguments = [self.values[name] for name in block.arguments]
        for op in block.ops:
            op.operands = [self.value(name, op) for name in op.operands]
            op.results = [self.values[name] for name in op.results]
            for label in op.successors:
                if label not in labels:
                    raise BadIR(f"a branch must lead to a block beside it, got {label[:60]}", op.line)
            op.successors = [labels[label] for label in op.successors]
            if "callee" in op.attributes:
                self.call(op)
            for region in op.regions:
                self.region(region)

    def value(self, name: str, op: Op) -> str:
        if name not in self.values:
            raise BadIR(f"a value must be defined before it is used, got {name[:60]}", op.line)
        return self.values[name]

    def call(self, op: Op) -> None:
        callee = op.attributes["callee"]
        if not isinstance(callee, str) or callee not in self.functions:
            raise BadIR("a call must name a function of this module", op.line)
        op.attributes["callee"] = self.functions[callee]


def _defined(block: Block) -> list[str]:
    return block.arguments + [name for op in block.ops for name in op.results]

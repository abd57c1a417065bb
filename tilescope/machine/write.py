"""Print a module in the form that Triton's own parser takes.
Names, order and spelling are ours, whatever the original text was."""

from .attributes import Value
from .constants import value_text
from .operations import ARGUMENT, FUNCTION, OPERATIONS
from .tree import Block, Function, Module, Op, Type
from .words_of_types import spelled, spelled_all

CELL = "<answer>"


def write(module: Module) -> str:
    """The text of a module that verify() let pass."""
    lines = ['"builtin.module"() ({']
    for function in module.functions.values():
        _function(function, lines)
    return "\n".join([*lines, "}) : () -> ()", ""])


def _function(function: Function, lines: list[str]) -> None:
    types = ", ".join(map(spelled, function.argument_types))
    properties = [
        f"function_type = ({types}) -> {spelled_all(function.result_types)}",
        f'sym_name = "{function.name}"',
        f'sym_visibility = "{"public" if function.public else "private"}"',
    ]
    if any(function.argument_attributes):
        carried = ", ".join(_braces(one, ARGUMENT) for one in function.argument_attributes)
        properties.insert(0, f"arg_attrs = [{carried}]")
    lines.append(f'  "tt.func"() <{{{", ".join(properties)}}}> ({{')
    _region(function.blocks, lines, "    ")
    lines.append(f"  }}) {_braces(function.attributes, FUNCTION)} : () -> () {_place(function.line)}")


def _region(blocks: list[Block], lines: list[str], indent: str) -> None:
    for number, block in enumerate(blocks):
        if number or block.arguments:
            pairs = zip(block.arguments, block.types, strict=True)
            arguments = ", ".join(f"{name}: {spelled(type)}" for name, type in pairs)
            lines.append(
                f"{indent[2:]}{block.label}({arguments}):" if arguments else f"{indent[2:]}{block.label}:"
            )
        for op in block.ops:
            _operation(op, lines, indent)


def _operation(op: Op, lines: list[str], indent: str) -> None:
    row = OPERATIONS[op.name]
    head = f"{', '.join(op.results)} = " if op.results else ""
    head += f'"{op.name}"({", ".join(op.operands)})'
    if op.successors:
        head += f"[{', '.join(op.successors)}]"
    if any(name in row.attributes for name in op.attributes):
        head += f" <{_braces(op.attributes, row.attributes, op.result_types)}>"
    if op.regions:
        head += " ("
        for number, blocks in enumerate(op.regions):
            lines.append(f"{indent}{head if not number else '}, '}{{")
            _region(blocks, lines, indent + "  ")
        head = "})"
    if any(name in row.extras for name in op.attributes):
        head += f" {_braces(op.attributes, row.extras)}"
    operands = ", ".join(map(spelled, op.operand_types))
    lines.append(f"{indent}{head} : ({operands}) -> {spelled_all(op.result_types)} {_place(op.line)}")


def _braces(carried: dict, legal: dict, results: list[Type] = ()) -> str:
    found = []
    for name in sorted(name for name in carried if name in legal):
        text = (
            value_text(carried[name], results[0])
            if isinstance(legal[name], Value)
            else legal[name].text(carried[name])
        )
        found.append(f"{name} = {text}" if text else name)
    return "{" + ", ".join(found) + "}"


def _place(line: int) -> str:
    """Return a location. Line 0 means no line, because LLVM accepts no call without one."""
    return f'loc("{CELL}":{line}:1)'

"""A kernel's source, and the variables that its values are."""

import ast
import linecache
import os
import re
import sys
from collections.abc import Iterator

from .machine.tree import Block, Function, Op


def place_of(file: str, line: int | None) -> str:
    """Write a line of a file as a user knows it, with a notebook's cell by its number and a nearby file without its
    path."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    cell = shell.compile.format_code_name(file) if shell is not None else None
    if cell is not None:
        return " ".join(cell) + f", line {line}" * bool(line)
    try:
        near = os.path.relpath(file)
    except (OSError, ValueError):  # no folder to be in, or another drive
        near = ".."
    name = file if near.startswith("..") else near
    return f"{name}:{line}" if line else name


def source_of(file: str, kernel: str, line: int) -> tuple[int, list[str]]:
    """Return a kernel's first line and its lines, from its def to its end,
    or no lines if the file can't be read."""
    lines = linecache.getlines(file)
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return line, []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef)
            and node.name == kernel
            and node.lineno <= line <= node.end_lineno
        ):
            return node.lineno, [one.rstrip("\n") for one in lines[node.lineno - 1 : node.end_lineno]]
    return line, []


def called_at(file: str, lines: set[int]) -> list[list]:
    """Return the functions of a file that hold some lines, each as its first line and its lines."""
    text = linecache.getlines(file)
    try:
        tree = ast.parse("".join(text))
    except SyntaxError:
        return []
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inner = {
        max(around, key=lambda node: node.lineno)
        for line in lines
        if (around := [node for node in functions if node.lineno <= line <= node.end_lineno])
    }
    return [[n.lineno, [one.rstrip("\n") for one in text[n.lineno - 1 : n.end_lineno]]] for n in inner]


def variables(function: Function, source: list[str]) -> dict[str, str]:
    """Return values by the source's variables. Triton numbers variables that share a name, and names each
    part of an expression after the assigned variable. On one line, the last value is the variable's."""
    known = set(re.findall(r"[A-Za-z_]\w*", "\n".join(source)))
    found, last = {}, {}
    for value, word in function.words.items():
        name = word.lstrip("%")
        plain = re.sub(r"_\d+$", "", name)
        found[value] = name if name in known else plain if plain in known else ""
    for op in operations(function.blocks):
        for value in op.results:
            earlier = last.get((found[value], op.line))
            if earlier is not None and found[value]:
                found[earlier] = ""
            last[found[value], op.line] = value
    return found


def operations(blocks: list[Block]) -> Iterator[Op]:
    for block in blocks:
        for op in block.ops:
            for region in op.regions:
                yield from operations(region)
            yield op

"""Fill in values that a text leaves to the build: {{row("greedy").us:.0f}} becomes a number, <!-- judged=forward -->
a table."""

import ast
import importlib
import json
import math
import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from numbers import Number
from pathlib import Path

from . import debugger, judged, rules

FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
VALUE = re.compile(r"\{\{(.+?)\}\}")
LET = "<!-- let"


class Unfilled(Exception):
    """A value can't be written into its sentence. The message says why."""


class Recorded(dict):
    """Holds a recorded run's values, by name or as attributes: row.peers["compiled"].us."""

    def __missing__(self, name):
        raise Unfilled(f"the record has no {name!r} there, it has {', '.join(self)}")

    __getattr__ = dict.__getitem__


@dataclass
class Filled:
    """A text with its values, the line of the source that each of its lines comes from, and [(line, complaint)]."""

    text: str
    lines: list[int] = field(default_factory=list)
    complaints: list[tuple[int, str]] = field(default_factory=list)


def record(topic: str, name: str = "h200") -> Recorded:
    """Return a recorded run of a topic, kernels/<topic>/results/<name>.json."""
    import kernels

    path = Path(kernels.__file__).parent / topic / "results" / f"{name}.json"
    if not path.is_file():
        raise Unfilled(f"{topic} has no recorded run {name!r} in kernels/{topic}/results/")
    return json.loads(path.read_text(encoding="utf-8"), object_hook=Recorded)


def _kept(topic: str, name: str) -> Recorded | None:
    """Return a recorded run, or nothing where none is kept yet."""
    try:
        return record(topic, name)
    except Unfilled:
        return None


def row(topic: str, case: str, run: str = "h200", **where) -> Recorded:
    """Return the one row of a recorded run with this case, and with these values where cases share a name."""
    rows = record(topic, run).rows
    found = [one for one in rows if one.case == case and all(one.get(k) == v for k, v in where.items())]
    if len(found) != 1:
        near = get_close_matches(case, {one.case for one in rows}, 3, 0.3)
        raise Unfilled(f"{len(found)} rows of {run}.json have the case {case!r}; near it: {', '.join(near)}")
    return found[0]


def about(value: float, digits: int = 1) -> str:
    """Round to this many significant digits: about(1234567, 2) is '1,200,000'."""
    places = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{round(value, places):,.{max(places, 0)}f}"


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown. Its cells are words, with numbers already formatted."""
    if wrong := [cell for row in rows for cell in row if not isinstance(cell, str)]:
        raise Unfilled(f"a table's cells must be words, got {wrong[0]!r}. Write f'{{{wrong[0]!r}:.1f}}'")
    if any(len(row) != len(heads) for row in rows):
        raise Unfilled(f"a table's rows must have {len(heads)} cells each, as its head has")
    rule = ["---"] + ["---:"] * (len(heads) - 1)
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, rule, *rows])


def names(topic: str) -> dict:
    """Return what a text's expressions may use."""
    from kernels.machines import machine

    known = {"about": about, "machine": machine, "math": math, "table": table}
    known["module"] = lambda name, of=topic: importlib.import_module(f"kernels.{of}.{name}")
    known["record"] = lambda name="h200", of=topic: record(of, name)
    known["kept"] = lambda name, of=topic: _kept(of, name)
    known["row"] = lambda case, run="h200", of=topic, **where: row(of, case, run, **where)
    try:
        known["cost"] = importlib.import_module(f"kernels.{topic}.cost")
    except ModuleNotFoundError as error:
        if not f"kernels.{topic}.cost".startswith(error.name):
            raise
    return known


def _why(error: Exception) -> str:
    if isinstance(error, Unfilled):
        return str(error)
    return f"{type(error).__name__}: {error}"


def said(words: str, known: dict) -> str:
    """Return the printed form of the text between {{ and }}: an expression and its number format."""
    try:
        (part,) = ast.parse("f'''{" + words + "}'''", mode="eval").body.values
        value = eval(compile(ast.Expression(part.value), words, "eval"), known)
        if not isinstance(value, Number | str):
            raise Unfilled(f"must be a number or words, got {type(value).__name__}")
        if isinstance(value, Number):
            if part.format_spec is None:
                raise Unfilled("a number must say how it is written, such as :.0f or :.1%")
            if not math.isfinite(value):
                raise Unfilled(f"must be a finite number, got {value}")
        spec = ast.JoinedStr([part])
        return eval(compile(ast.fix_missing_locations(ast.Expression(spec)), words, "eval"), known)
    except Exception as error:
        raise Unfilled(f"{{{{{words}}}}}: {_why(error)}") from None


def _assign(block: str, known: dict) -> None:
    """Run the assignments of a <!-- let ... --> block."""
    try:
        tree = ast.parse(block)
        if odd := [node for node in tree.body if not isinstance(node, ast.Assign)]:
            raise Unfilled(f"must be assignments, name = value, got {ast.unparse(odd[0])}")
        exec(compile(tree, "let", "exec"), known)
    except Exception as error:
        raise Unfilled(f"let: {_why(error)}") from None


def fill(words: str, topic: str) -> Filled:
    """Fill in the values and tables of a topic's text. Code is left as it is."""
    made, out = Filled(""), []
    known = names(topic) if "{{" in words or LET in words else {}
    source, at, fence = words.split("\n"), 0, ""
    while at < len(source):
        line, number, count = source[at], at + 1, 1
        mark = FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        try:
            if fence or mark:
                lines = [line]
            elif line.startswith(LET):
                count += next(i for i, one in enumerate(source[at:]) if one.rstrip().endswith("-->"))
                _assign("\n".join(source[at : at + count]).strip()[len(LET) : -len("-->")].strip(), known)
                count += source[at + count : at + count + 1] == [""]  # two blank lines would end a cell
                lines = []
            elif found := judged.MARK.match(line):
                lines = judged.table(topic, found[1]).rstrip("\n").split("\n")
            elif found := debugger.MARK.match(line):
                lines = debugger.paragraph(topic, found[1]).split("\n")
            elif found := rules.MARK.match(line):
                lines = rules.paragraph(topic, found[1]).split("\n")
            else:
                text = VALUE.sub(lambda one: said(one[1], known), line)
                if "{{" in text:
                    raise Unfilled("{{ must be closed by }} on its line")
                lines = text.split("\n")
        except (Unfilled, judged.Unknown, debugger.Unknown, rules.Unknown) as error:
            made.complaints.append((number, str(error)))
            lines = [line]
        except StopIteration:
            made.complaints.append((number, "<!-- let must be closed by -->"))
            lines = [line]
        out += lines
        made.lines += [number] * len(lines)
        at += count
    made.text = "\n".join(out)
    return made

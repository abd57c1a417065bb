"""Make rows of a question's mistakes.py: the answer's mistake, how the suites make it, and what the report says."""

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import replace

from grader.questions.model import Mistake


def edited(name: str, *edits: tuple[str, str], part: str = "values", told_as: str = "") -> Mistake:
    """Make a row of edits (before, after) of the right answer, with the part that they lose and the row that the
    report names."""
    return Mistake(name, edits=edits, part=part, told_as=told_as)


def changed(*edits: tuple[str, str], part: str = "values", mistake: str = "") -> Callable[[str], Mistake]:
    """Make the row of a table in which its name is the key."""
    return lambda name: edited(name, *edits, part=part, told_as=mistake)


def of_table(table: dict[str, Callable[[str], Mistake]]) -> tuple[Mistake, ...]:
    """Make the rows of a table of `changed`."""
    return tuple(row(name) for name, row in table.items())


def in_cells(name: str, arguments: str, table: dict[str, tuple[str, str]]) -> tuple[Mistake, ...]:
    """Make a row of each (sentence, body), as a cell that defines the function `name` with these arguments."""
    return tuple(
        Mistake(mistake, sentence, cell=f"def {name}({arguments}):\n{textwrap.indent(body, '    ')}\n")
        for mistake, (sentence, body) in table.items()
    )


def with_cells(rows: Iterable[Mistake], cells: dict[str, str]) -> tuple[Mistake, ...]:
    """Give each row the cell of the same name."""
    rows = tuple(rows)
    if unlike := {row.name for row in rows} ^ cells.keys():
        raise KeyError(f"each row must have a cell and each cell a row, got {sorted(unlike)} without")
    return tuple(replace(row, cell=cells[row.name]) for row in rows)

"""Share mistakes among questions of roofline."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grader.questions import Case, Mistake


@dataclass(frozen=True)
class Wrong:
    """`edits` of the solution lose `part`. `gives` (inputs in float64, case) returns the whole output, in any of its
    forms."""

    edits: list[tuple[str, str]]
    sentence: str = ""
    gives: tuple[Callable, ...] = ()
    part: str = "values"


def gives(sentence: str, *outputs: Callable, by: list[tuple[str, str]]) -> Wrong:
    return Wrong(by, sentence, outputs)


def changed(*edits: tuple[str, str], part: str = "values") -> Wrong:
    return Wrong(list(edits), part=part)


def block_of(n: int) -> int:
    """The power of two that holds n lanes."""
    return 1 << max(0, n - 1).bit_length()


GRID_OF_TILES = "(triton.cdiv(p.M, 16), triton.cdiv(p.N, 32))"


def named(formula: Callable, outputs: tuple[str, ...]) -> Callable:
    """Return the formula as the recogniser calls it, from the inputs as drawn to outputs by their names."""

    def wrong(inputs: dict, case: Case) -> dict:
        with np.errstate(all="ignore"):
            found = formula({name: v.astype(np.float64) for name, v in inputs.items()}, case)
        return dict(zip(outputs, found if isinstance(found, tuple) else (found,), strict=True))

    return wrong


def of_ladder(outputs: tuple[str, ...], table: dict[str, Wrong]) -> tuple[Mistake, ...]:
    """Make a row a mistake of a table whose formulas give these outputs."""
    found = []
    for name, row in table.items():
        first, *others = [named(formula, outputs) for formula in row.gives] or [None]
        found.append(
            Mistake(name, row.sentence, first, variants=tuple(others), edits=tuple(row.edits), part=row.part)
        )
    return tuple(found)

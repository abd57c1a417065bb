"""Wrong answers to a topic's numpy questions, each a cell: the suites hand it in, and the report computes with it."""

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grader.questions.model import Mistake


@dataclass(frozen=True)
class Cells:
    """`entry`: what a question's function takes; `table`: question -> mistake -> (sentence, the function's body)."""

    entry: dict[str, str]
    table: dict[str, dict[str, tuple[str, str]]]

    def cell(self, name: str, body: str) -> str:
        return f"def {name}({self.entry[name]}):\n{textwrap.indent(body, '    ')}\n"

    def function(self, name: str, body: str) -> Callable:
        """The mistake's own cell, run."""
        names = {"math": math, "np": np}
        exec(compile(self.cell(name, body), f"<{name}>", "exec"), names)
        return names[name]

    def mistakes(self, name: str) -> tuple[Mistake, ...]:
        return tuple(
            Mistake(mistake, sentence, wrong=self.function(name, body))
            for mistake, (sentence, body) in self.table[name].items()
        )

    def made(self, slug: str) -> dict[str, dict[str, str]]:
        """Question's id -> mistake -> cell, for the suites."""
        return {
            f"{slug}.{name}": {mistake: self.cell(name, body) for mistake, (_, body) in rows.items()}
            for name, rows in self.table.items()
        }

"""Values as one set of programs sees them."""

import numpy as np

from .tree import BadIR


class Frame:
    """A scope. Values of the enclosing scope are cut to this set's programs at first use."""

    __slots__ = ("programs", "grid", "outer", "rows", "values", "size")

    def __init__(self, programs: np.ndarray, grid: tuple, outer: "Frame | None" = None, rows=None):
        self.programs, self.grid, self.outer, self.rows = programs, grid, outer, rows
        self.values, self.size = {}, len(programs)

    def get(self, name: str) -> np.ndarray:
        found = self.values.get(name)
        if found is None:
            if self.outer is None:
                raise BadIR(f"the value {name} is not there")
            found = self.outer.get(name)
            if self.rows is not None and len(found) > 1:
                found = found[self.rows]
            self.values[name] = found
        return found

    def program(self, axis: int) -> np.ndarray:
        x, y = self.grid[:2]
        return np.asarray(
            (self.programs % x, self.programs // x % y, self.programs // (x * y))[axis], np.int32
        )

    def place(self, row: int) -> list[int]:
        """The program ids of one row."""
        return [int(self.program(axis)[row]) for axis in range(3)]

    def first(self, bad: np.ndarray) -> list[int]:
        """The program ids of the first row that has something bad."""
        return self.place(int(np.argwhere(bad)[0][0]) if len(bad) == self.size else 0)

    def part(self, rows) -> "Frame":
        return Frame(self.programs[rows], self.grid, self, rows)

    def scope(self) -> "Frame":
        return Frame(self.programs, self.grid, self)

"""Collect what kernels print (tl.device_print), with the program and its line, up to a limit."""

from dataclasses import dataclass

import numpy as np

from .narrow import widened

MOST_CHARACTERS = 2_000  # of one line


@dataclass
class Print:
    launch: int
    program: list[int]
    line: int
    text: str


class Prints:
    """Hold lines up to a limit. Beyond this limit a program's line replaces the last line of a later program."""

    def __init__(self, most: int):
        self.most, self.left_out = most, 0
        self.numbered: list[tuple[int, int, Print]] = []  # (launch, program's number, line)

    @property
    def kept(self) -> list[Print]:
        """Return the lines program by program."""
        return [line for *_, line in sorted(self.numbered, key=lambda row: row[:2])]

    def add(
        self, launch: int, frame, line: int, prefix: str, values: list[np.ndarray], hexadecimal: bool
    ) -> None:
        order = np.argsort(frame.programs, kind="stable") if self.most else ()
        self.left_out += frame.size - len(order)
        for done, row in enumerate(order):
            number = int(frame.programs[row])
            if len(self.numbered) == self.most and not self.gives_way(launch, number):
                self.left_out += frame.size - done
                return
            words = [self.text(v[row if len(v) > 1 else 0], hexadecimal) for v in values]
            text = " ".join([prefix.strip(), *words]).strip()[:MOST_CHARACTERS]
            self.numbered.append((launch, number, Print(launch, frame.place(row), line, text)))

    def gives_way(self, launch: int, number: int) -> bool:
        """Drop the last line of the latest program, if that comes after this one."""
        last = max(range(self.most), key=lambda at: (self.numbered[at][:2], at))
        if self.numbered[last][:2] <= (launch, number):
            return False
        del self.numbered[last]
        self.left_out += 1
        return True

    @staticmethod
    def text(value: np.ndarray, hexadecimal: bool) -> str:
        if hexadecimal and value.dtype.kind in "iu":
            value = value.view(f"u{value.dtype.itemsize}")
            return np.array2string(value, threshold=32, formatter={"int": lambda n: f"0x{n:x}"})
        return np.array2string(widened(value), threshold=32, precision=6)

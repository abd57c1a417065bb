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
    def __init__(self, most: int):
        self.most, self.kept, self.left_out = most, [], 0

    def add(
        self, launch: int, frame, line: int, prefix: str, values: list[np.ndarray], hexadecimal: bool
    ) -> None:
        room = self.most - len(self.kept)
        self.left_out += max(0, frame.size - room)
        for row in range(min(room, frame.size)):
            words = [self.text(v[row if len(v) > 1 else 0], hexadecimal) for v in values]
            text = " ".join([prefix.strip(), *words]).strip()[:MOST_CHARACTERS]
            self.kept.append(Print(launch, frame.place(row), line, text))

    @staticmethod
    def text(value: np.ndarray, hexadecimal: bool) -> str:
        if hexadecimal and value.dtype.kind in "iu":
            value = value.view(f"u{value.dtype.itemsize}")
            return np.array2string(value, threshold=32, formatter={"int": lambda n: f"0x{n:x}"})
        return np.array2string(widened(value), threshold=32, precision=6)

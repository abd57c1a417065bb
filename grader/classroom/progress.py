"""How far a class has come: one line with a bar on a terminal, a line for each step elsewhere."""

import shutil
import sys

WIDE = 24  # characters of the bar


class Step(str):
    """A sentence that knows how much of its work is done."""

    def __new__(cls, sentence: str, done: int, of: int):
        self = super().__new__(cls, sentence)
        self.done, self.of = done, of
        return self


class Bar:
    """Say a sentence with it; a Step gives way to the next on a terminal, any other sentence stays."""

    def __init__(self, stream=None):
        self.stream = stream or sys.stderr
        self.open = False  # whether a bar stands in the last line

    def __call__(self, sentence: str) -> None:
        if not self.stream.isatty():
            print(sentence, file=self.stream, flush=True)
            return
        step = isinstance(sentence, Step) and sentence.of
        text = bar(sentence) if step else sentence
        self.stream.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1] if step else text}")
        self.stream.write("" if step else "\n")
        self.stream.flush()
        self.open = bool(step)

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_) -> None:
        if self.open:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


def bar(step: Step) -> str:
    full = round(WIDE * step.done / step.of)
    return f"[{'#' * full}{'.' * (WIDE - full)}] {step}"

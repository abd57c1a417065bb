"""Show the progress of a class: one line with a bar on a terminal, a line for each step elsewhere."""

import sys

from grader.tools.progress import over

WIDE = 24  # characters of the bar


class Step(str):
    """A sentence that knows how much of its work is done."""

    def __new__(cls, sentence: str, done: int, of: int):
        self = super().__new__(cls, sentence)
        self.done, self.of = done, of
        return self


class Bar:
    """Print a sentence with the bar. On a terminal the next Step replaces a Step, and any other sentence stays."""

    def __init__(self, stream=None):
        self.stream = stream or sys.stderr
        self.open = False  # whether the last line shows a bar

    def __call__(self, sentence: str) -> None:
        if not self.stream.isatty():
            print(sentence, file=self.stream, flush=True)
            return
        self.open = bool(isinstance(sentence, Step) and sentence.of)
        over(self.stream, bar(sentence) if self.open else "")
        if not self.open:
            print(sentence, file=self.stream, flush=True)

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_) -> None:
        if self.open:
            over(self.stream)


def bar(step: Step) -> str:
    full = round(WIDE * step.done / step.of)
    return f"[{'#' * full}{'.' * (WIDE - full)}] {step}"

"""Show the progress of a long piece of work, as one line of a terminal that the next line replaces, or as lines with
seconds."""

import shutil
import sys
import threading
import time


def over(stream, text: str = "") -> None:
    """Write over the terminal's present line, cut to its width."""
    stream.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
    stream.flush()


class Progress:
    """Call it with a sentence, from any thread. It writes to stderr, and nothing without a terminal or listener."""

    def __init__(self, lines: bool = False, every: float = 0.0, stream=None):
        self.stream, self.lines = stream or sys.stderr, lines
        self.every, self.last = every, float("-inf")  # at most one line in this many seconds
        self.shown = lines or self.stream.isatty()
        self.started, self.lock = time.monotonic(), threading.Lock()

    def __call__(self, sentence: str) -> None:
        if not self.shown or time.monotonic() - self.last < self.every:
            return
        with self.lock:
            self.last = time.monotonic()
            if self.lines:
                print(f"{time.monotonic() - self.started:7.2f} s  {sentence}", file=self.stream, flush=True)
            else:
                over(self.stream, sentence)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.shown and not self.lines:
            over(self.stream)

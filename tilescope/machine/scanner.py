"""A position in a text that moves past expected text. Each pattern here takes time linear in the text."""

import re

from .tree import BadIR

BLANK = frozenset(" \t\r\n/")
MOST = 512  # of most lists: operands, arguments, attributes
SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*)*")


class Scanner:
    def __init__(self, text: str):
        self.text, self.at = text, 0
        self.skip()

    def skip(self) -> None:
        if self.text[self.at : self.at + 1] in BLANK:
            self.at = SPACE.match(self.text, self.at).end()

    def bad(self, wanted: str):
        near = self.text[self.at : self.at + 40].split("\n")[0]
        raise BadIR(f"Triton IR must have {wanted} here, got {near!r}")

    def peek(self, word: str) -> bool:
        return self.text.startswith(word, self.at)

    def take(self, word: str) -> bool:
        if not self.text.startswith(word, self.at):
            return False
        self.at += len(word)
        self.skip()
        return True

    def need(self, word: str) -> None:
        if not self.take(word):
            self.bad(repr(word))

    def match(self, pattern: re.Pattern, wanted: str) -> re.Match:
        found = pattern.match(self.text, self.at)
        if found is None:
            self.bad(wanted)
        self.at = found.end()
        self.skip()
        return found

    def many(self, one, end: str, most: int = MOST) -> list:
        """Read what `one` reads, with commas between, up to `end`."""
        found = []
        if self.take(end):
            return found
        while True:
            found.append(one())
            if len(found) > most:
                self.bad(f"lists of {most} at most")
            if not self.take(","):
                self.need(end)
                return found

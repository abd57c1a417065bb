"""Keep an answer's prints up to a limit, and count the lines left out."""

import re

WARNED = "warning"  # begins a line that Python or Triton wrote, and not the answer
LEFT_OUT = re.compile(r"\n?… and ([\d,]+) more lines?\Z")


def with_note(text: str, left_out: int) -> str:
    note = f"… and {left_out:,} more line{'s' * (left_out != 1)}" if left_out else ""
    return f"{text}\n{note}" if text and note else text or note


def parted(text: str) -> tuple[list[str], int]:
    """Its lines, and how many its note says were left out before."""
    note = LEFT_OUT.search(text)
    lines = (text[: note.start()] if note else text).splitlines()
    return lines, int(note[1].replace(",", "")) if note else 0


def without_warnings(text: str) -> tuple[list[str], str]:
    """Return the warnings among an answer's prints, each once, and its own prints."""
    lines, left_out = parted(text)
    found = [line for line in lines if re.match(rf"{WARNED}(, line \d+)?: ", line)]
    own = [line for line in lines if line not in found]
    words = [line.removeprefix(WARNED).lstrip(",: ") for line in dict.fromkeys(found)]
    return words, with_note("\n".join(own), left_out)


def first_lines(text: str, most: int) -> str:
    lines, before = parted(text)
    return with_note("\n".join(lines[:most]), before + max(0, len(lines) - most))


def shortened(text: str, most: int, left_out: int = 0) -> str:
    """Return the first lines, up to `most` characters together, and how many were left out: here, earlier as the note
    says, and `left_out` elsewhere. A single line that is too long is cut."""
    (lines, before), kept = parted(text), []
    for line in lines:
        room = most - sum(len(one) + 1 for one in kept)
        if len(line) > room and kept:
            break
        kept.append(line if len(line) <= room else line[:room] + "…")
    return with_note("\n".join(kept), left_out + before + len(lines) - len(kept))


class Printed:
    """Replaces stdout and stderr. It keeps the beginning of the output and counts the remaining lines."""

    encoding, errors = "utf-8", "replace"
    MOST = 20_000

    def __init__(self):
        self.parts, self.room = [], self.MOST
        self.line_ends, self.last = 0, ""  # of the omitted part

    def write(self, text):
        if self.room:
            kept, rest = text[: self.room], text[self.room :]
            self.parts.append(kept)
            self.room -= len(kept)
        else:
            rest = text
        if rest:
            self.line_ends += rest.count("\n")
            self.last = rest
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False

    def text(self) -> str:
        text = "".join(self.parts)
        if not self.last:
            return text
        lost = self.line_ends + (not self.last.endswith("\n"))
        # A line that was cut counts as left out, so that no part of the line is kept.
        whole, line_end, _ = text.rpartition("\n")
        return with_note(whole, lost) if line_end else with_note(text + "…", lost - 1)

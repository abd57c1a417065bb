"""Find the line of the answer's cell that an operation comes from, the innermost of a chain of calls."""

import re

from .tree import BadIR

ALIAS = re.compile(r"#(loc\d*) = loc\((.*)\)\s*")
# a quoted string is passed over in one go, closed or not, or a hostile string would be read again from each of
# its quotes
WORD = re.compile(r'"((?:[^"\\\n]|\\.)*+)"?(?::(\d{1,9}):\d)?|#(loc\d*)')
DEEPEST = 64
# the other names that Triton gives, for tl.range(disable_licm=True). An operation that has it says
# #loop_annotation
UNHOISTED = (
    "#loop_licm = #llvm.loop_licm<disable = true, versioningDisable = true>",
    "#loop_annotation = #llvm.loop_annotation<licm = #loop_licm>",
)


def split(text: str) -> tuple[dict[str, str], str]:
    """The locations that a text names, and the text without them."""
    places, rest = {}, []
    for line in text.split("\n"):
        if not line.startswith("#"):
            rest.append(line)
            continue
        found = ALIAS.fullmatch(line)
        if line in UNHOISTED:
            continue
        if found is None:
            raise BadIR(f"Triton IR must name locations alone, got {line[:60]!r}")
        places[found[1]] = found[2]
    return places, "\n".join(rest)


class Locations:
    def __init__(self, places: dict[str, str], cell: str):
        self.cell, self.places = cell, places
        self.known: dict[str, int] = {}

    def line(self, location: str, depth: int = 0) -> int:
        """Return the first line of the cell that a location names, directly or through its references,
        or 0 if there is none."""
        for file, line, alias in WORD.findall(location):
            if line and file == self.cell:
                return int(line)
            if alias and (found := self._named(alias, depth)):
                return found
        return 0

    def _named(self, alias: str, depth: int) -> int:
        if alias not in self.known:
            self.known[alias] = 0  # what refers to itself ends here
            if depth < DEEPEST:
                self.known[alias] = self.line(self.places.get(alias, ""), depth + 1)
        return self.known[alias]

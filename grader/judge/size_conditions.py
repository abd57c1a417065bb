"""Find the cases of several ranks at which conditions of an answer on sizes go ways that no other case goes."""

from dataclasses import dataclass

from grader.judge.branches import Reader
from grader.questions import Together
from grader.questions.on_condition import fewest

MOST, EACH = 8, 2  # cases of a check, and of those that go the same ways


@dataclass
class Conditions:
    """Follow the conditions in a cell's function of ranks."""

    source: str
    entry: str

    def __post_init__(self):
        self.reader = Reader(self.source, self.entry)
        self.numbers = [number for number in self.reader.numbers() if number > 1]  # that may be sizes

    def ways(self, case: Together) -> set:
        """Return which way each condition goes on some rank of a case."""
        found = set()
        for rank, arguments in enumerate(case.each):
            each = self.reader.branches_of_rank(rank, len(case.each), arguments)
            found |= {way for way in each if isinstance(way[1], bool | str)}
        return found


def telling(conditions: Conditions, usual: list[Together], candidates: list[Together]) -> list[Together]:
    """Return the candidates that go ways which no usual case goes, each time the one that goes most of them. Another
    goes each way too, since one case may not show what is wrong."""
    gone, picked = set().union(*map(conditions.ways, usual)), []
    each = [(one, conditions.ways(one) - gone) for one in candidates]
    for _ in range(EACH):
        rest = [pair for pair in each if not any(pair[0] is one for one in picked)]
        picked += fewest(rest, MOST - len(picked))
    return picked

"""Find the cases of several ranks at which conditions of an answer on sizes go ways that no other case goes.

A whole number that takes few values in all cases is a condition, too: max(0, 1 - abs(ranks - 3)), say."""

from collections import Counter
from dataclasses import dataclass

from grader.judge.branches import Reader
from grader.questions import Together
from grader.questions.on_condition import FEW, fewest

MOST, EACH = 8, 2  # cases of a check, and of those that go the same ways


@dataclass
class Conditions:
    """Follow the conditions in a cell's function of ranks."""

    source: str
    entry: str

    def __post_init__(self):
        self.reader = Reader(self.source, self.entry)
        self.numbers = [number for number in self.reader.numbers() if number > 1]  # that may be sizes
        self.constants = self.reader.constants()

    def ways(self, case: Together) -> set:
        """Return which way each condition goes on some rank of a case, and which values its whole numbers have."""
        each = enumerate(case.each)
        return set().union(*(self.reader.branches_of_rank(rank, len(case.each), one) for rank, one in each))


def telling(conditions: Conditions, usual: list[Together], candidates: list[Together]) -> list[Together]:
    """Return the candidates that go ways which no usual case goes, each time the one that goes most of them. Another
    goes each way too, since one case may not show what is wrong."""
    gone, picked = set().union(*map(conditions.ways, usual)), []
    each = [(one, conditions.ways(one)) for one in candidates]
    values = Counter(place for place, _ in gone.union(*(ways for _, ways in each)))
    each = [(one, {way for way in ways - gone if values[way[0]] <= FEW}) for one, ways in each]
    for _ in range(EACH):
        rest = [pair for pair in each if not any(pair[0] is one for one in picked)]
        picked += fewest(rest, MOST - len(picked))
    return picked

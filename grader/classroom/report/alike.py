"""Find answers that are more alike than independent answers would be, for a person to look at, never for a grade.

A run of tokens that few answers share says more than a common run, so a run shared by n weighs 1/(n-1). Text that
the lab hands out weighs nothing. Two answers are named if they share most of their weight, and enough weight to say
anything."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from grader.classroom.report import tokens
from grader.classroom.report.tokens import Token

LENGTH = {"code": 8, "markdown": 5}  # tokens of a run, words of a sentence
LEAST_SHARE = 0.7  # of the weight of the two together
LEAST_WEIGHT = 15.0  # about this number of runs that no other answer has
LEAST_TOKENS = 25  # of an answer's own, before "identical" says anything
MOST_PAIRS = 40


@dataclass(frozen=True)
class Written:
    """One answer of one student."""

    student: str
    source: str
    kind: str = "code"
    term: str = ""  # an earlier answer, since this class's own name none

    @property
    def whose(self) -> str:
        return f"{self.student} ({self.term})" if self.term else self.student


@dataclass(frozen=True)
class Pair:
    """Two answers and which characters of each are shared."""

    one: Written
    other: Written
    share: float
    weight: float
    marks: tuple[list[tuple[int, int]], list[tuple[int, int]]]


@dataclass(frozen=True)
class Alike:
    identical: list[list[str]]  # students whose answers differ in names, comments and spaces at most
    pairs: list[Pair]
    more: int = 0  # pairs beyond MOST_PAIRS


@dataclass(frozen=True)
class _Read:
    """An answer as its runs of tokens, without those that were handed out."""

    written: Written
    tokens: list[Token]
    runs: list[tuple]
    own: frozenset

    @property
    def own_tokens(self) -> int:
        length = len(self.tokens) - len(self.runs) + 1
        covered = {at + i for at, run in enumerate(self.runs) if run in self.own for i in range(length)}
        return len(covered)


def find(answers: list[Written], stub: str) -> Alike:
    """`stub` is the cell as it was handed out."""
    if not answers:
        return Alike([], [])
    length = LENGTH[answers[0].kind]
    given = set(tokens.grams(_tokens(answers[0].kind, stub), length))
    read = [_read(one, given, length) for one in answers]
    read = [one for one in read if one.own]
    identical = _identical(read)
    pairs = _pairs(read)
    return Alike(identical, pairs[:MOST_PAIRS], max(0, len(pairs) - MOST_PAIRS))


def _tokens(kind: str, text: str) -> list[Token]:
    return tokens.of_code(text) if kind == "code" else tokens.of_text(text)


def _read(one: Written, given: set, length: int) -> _Read:
    found = _tokens(one.kind, one.source)
    runs = tokens.grams(found, length)
    return _Read(one, found, runs, frozenset(runs) - given)


def _identical(read: list[_Read]) -> list[list[str]]:
    groups = defaultdict(list)
    for one in read:
        if one.own_tokens >= LEAST_TOKENS:
            groups[tuple(one.runs)].append(one.written)
    named = [
        sorted(one.whose for one in group) for group in groups.values() if len(group) > 1 and _of_now(*group)
    ]
    return sorted(named, key=lambda group: (len(group), group))


def _of_now(*written: Written) -> bool:
    """Return whether one answer is this class's. Two answers of earlier terms are not our business any more."""
    return any(not one.term for one in written)


def _pairs(read: list[_Read]) -> list[Pair]:
    held = Counter(run for one in read for run in one.own)
    weight = {run: 1.0 if count == 1 else 1.0 / (count - 1) for run, count in held.items()}
    whole = {id(one): sum(weight[run] for run in one.own) for one in read}
    found = []
    for one, other in _worth_a_look(read):
        if not _of_now(one.written, other.written):
            continue
        shared = one.own & other.own
        both = sum(weight[run] for run in shared)
        share = 2 * both / (whole[id(one)] + whole[id(other)])
        if share >= LEAST_SHARE and both >= LEAST_WEIGHT:
            marks = _marks(one, shared), _marks(other, shared)
            found.append(Pair(one.written, other.written, share, both, marks))
    return sorted(found, key=lambda pair: (-pair.weight * pair.share, pair.one.whose, pair.other.whose))


def _worth_a_look(read: list[_Read]) -> Iterator[tuple[_Read, _Read]]:
    """Yield every pair. The first of several identical answers represents them all, and is paired with the second
    once."""
    same = defaultdict(list)
    for one in sorted(read, key=lambda one: bool(one.written.term)):  # this class's own represents all
        same[tuple(one.runs)].append(one)
    yield from (tuple(group[:2]) for group in same.values() if len(group) > 1)
    yield from combinations([group[0] for group in same.values()], 2)


def _marks(one: _Read, shared: frozenset) -> list[tuple[int, int]]:
    """Stretches of the source that shared runs cover."""
    length = len(one.tokens) - len(one.runs) + 1
    covered = sorted({at + i for at, run in enumerate(one.runs) if run in shared for i in range(length)})
    spans = []
    for at in covered:
        token = one.tokens[at]
        if spans and one.tokens[at - 1].end == spans[-1][1]:
            spans[-1] = (spans[-1][0], token.end)
        else:
            spans.append((token.start, token.end))
    return spans

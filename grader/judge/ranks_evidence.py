"""Run several ranks of one answer. Each runs alone in the jail up to its next exchange, and the referee carries what
they send.

No two ranks run at the same time, so no rank can look at another, use a side channel, or wait for another. A rank would
wait for ever exactly if the others don't enter its next exchange.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from grader.box.serve.printed import parted
from grader.box.warm import Limits, Outcome
from grader.jail import exchange, host
from grader.jail.exchange import Mismatch, Turn
from grader.judge import one_new
from grader.judge.diagnose import from_error
from grader.judge.evidence import Evidence
from grader.judge.failed import Failed
from grader.judge.size_conditions import Conditions, telling
from grader.questions import Together, reach

MOST_CASE_BYTES = 16 << 20
TRIED = 120  # cases whose sizes go through the conditions of a cell
MOST_ASLEEP_S, HURRIED_S = (
    90.0,
    2.0,
)  # of one check, after which each remaining turn gets this long
ORDINALS = ("1st", "2nd", "3rd")
STAYS = 903  # the purpose that draws whose tokens stay as they are
ONE_NEW = 904  # the purpose that draws calls in which one argument alone is new
REPEATS, OF_LARGEST = 9, 3  # of a call in the smallest case, and in the largest
TWICE = "a second call in the same process, with other tokens and weights"
AGAIN = (
    "each rank runs from its start for each exchange, with what it received: what it draws must come from a seed that is set, "
    "and nothing from a clock"
)


def ordinal(number: int) -> str:
    return ORDINALS[number - 1] if number <= len(ORDINALS) else f"{number}th"


def of_all(printed: dict[int, str]) -> tuple[str, int]:
    """Return (the printed lines of all ranks, the number of lines already left out)."""
    said = {rank: parted(printed[rank].strip("\n")) for rank in sorted(printed)}
    lines = [f"rank {rank}: {line}" for rank, (lines, _) in said.items() for line in lines]
    return "\n".join(lines), sum(left_out for _, left_out in said.values())


def named(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {in_a_row(ranks)}"


def in_a_row(words: list) -> str:
    *first, last = map(str, words)
    return f"{', '.join(first)} and {last}" if first else last


def awaited(call: str, ranks: list[int], gone: list[int], turns: list[Turn]) -> str:
    """Return the rows that each of these ranks would receive from ranks that have ended."""
    if call == exchange.COUNTS:
        return "the counts"
    rows = [sum(turns[rank].ask.receive[one] for one in gone) for rank in ranks]
    return f"{in_a_row([f'{n:,}' for n in rows])} row{'s' * (rows != [1])}"


def tokens(given: tuple) -> int:
    """Return how many tokens a rank has."""
    return len(given[0])


def moved(each: list, rank: int, comes_from: dict[int, int]) -> tuple:
    """Return what another rank has, in another order, or a rank's own."""
    return (
        tuple(np.roll(one, 1, axis=0) for one in each[comes_from[rank]]) if rank in comes_from else each[rank]
    )


def negated(one, place: float | None = None, kept: frozenset[bytes] = frozenset()):
    """Return an array of floats with all signs turned, such as another layer's weights, and anything else as it is. With a
    place only the row there of each of its matrices is turned, and a cache that looks at a few numbers misses it. Matrices
    to be kept stay as they are then."""
    if not (isinstance(one, np.ndarray) and one.dtype.kind == "f"):
        return one
    if place is None or one.ndim < 3:
        return -one
    found, row = one.copy(), int(place * one.shape[-2])
    found[one_new.not_among(kept, one), row : row + 1] *= -1
    return found


@dataclass
class Meeting:
    """Hold one case, with the exchanges of its ranks so far, and how it ended."""

    case: Together
    hidden: bool
    before: "Meeting | None" = None  # of the same ranks, whose processes made this call first
    refilled: bool = False  # whether its arrays are filled anew for this one
    repeats: int = 0  # how often rank 0 makes that call again before this one
    replies: list[list] = field(default_factory=list)  # by rank, the result of each exchange
    asked: list[tuple] = field(default_factory=list)  # by rank, digests of what it asked
    sent: list[np.ndarray] = field(default_factory=list)  # by exchange, bytes from rank to rank
    calls: list[str] = field(default_factory=list)
    results: list[Turn] = field(default_factory=list)
    failed: Failed | None = None

    def __post_init__(self):
        self.replies = [[] for _ in self.case.each]
        self.asked = [() for _ in self.case.each]
        self.carried_of = np.zeros(self.ranks, np.int64)  # bytes, what a rank keeps for itself with them

    @property
    def ranks(self) -> int:
        return len(self.case.each)

    @property
    def open(self) -> bool:
        return not self.results and self.failed is None

    @property
    def sent_by(self) -> np.ndarray:
        """Return the bytes that each rank sent to others."""
        return sum((table.sum(axis=1) for table in self.sent), np.zeros(self.ranks, np.int64))

    @property
    def received_by(self) -> np.ndarray:
        return sum((table.sum(axis=0) for table in self.sent), np.zeros(self.ranks, np.int64))

    @property
    def rows_sent_by(self) -> np.ndarray:
        """Return the bytes of rows that each rank sent to others, without counts."""
        rows = [table for call, table in zip(self.calls, self.sent, strict=True) if call == exchange.ROWS]
        return sum((table.sum(axis=1) for table in rows), np.zeros(self.ranks, np.int64))

    def given(self, rank: int) -> tuple:
        """Return what a rank's next turn takes."""
        own = self.ranks, self.case.each[rank], self.replies[rank]
        if self.before is None:
            return own
        repeats = self.repeats if rank == 0 else 0
        return *own, (self.before.case.each[rank], self.before.replies[rank], self.refilled, repeats)

    def lines(self) -> list[str]:
        """Return the exchanges, a line each."""
        return [
            f"exchange {number}, {call}: "
            + ", ".join(f"rank {r} sent {n:,} bytes" for r, n in enumerate(table.sum(axis=1)))
            for number, (call, table) in enumerate(zip(self.calls, self.sent, strict=True), 1)
        ]

    def fail(self, came: str, look: str, told: str, **facts) -> None:
        self.failed = Failed(came, look, told=told, **facts)

    def where(self, rank: int) -> str:
        """Say which rank it is, and how far it got."""
        done = len(self.replies[rank])
        after = f" after its {ordinal(done)} exchange ({self.calls[-1]})" if done else ""
        return f"rank {rank} of {self.ranks}{after}"

    def settle(self, turns: list[Turn]) -> None:
        """Settle a round after all ranks had their turn: one more exchange, the end, or a fault."""
        for rank, turn in enumerate(turns):
            if self.open:
                self._look_at(rank, turn)
        if not self.open:
            return
        waiting = [rank for rank, turn in enumerate(turns) if turn.ask]
        if not waiting:
            self.results = turns
        elif len(waiting) < self.ranks:
            self._deadlock(waiting, turns)
        else:
            self._exchange(turns)

    def _look_at(self, rank: int, turn: Turn) -> None:
        known = self.asked[rank]
        if turn.before[: len(known)] != known and not (turn.error and len(turn.before) < len(known)):
            self.fail(
                f"rank {rank} of {self.ranks} sent something else when it ran again", AGAIN, "another run"
            )
        elif turn.error:
            failed = from_error(turn.error, self.where(rank))
            self.fail(failed.came, failed.look, failed.told, **failed.facts)
        elif len(turn.before) != len(known) + bool(turn.ask):
            self.fail(
                f"rank {rank} of {self.ranks} left out an exchange when it ran again", AGAIN, "another run"
            )
        self.asked[rank] = turn.before

    def _deadlock(self, waiting: list[int], turns: list[Turn]) -> None:
        gone, number = [rank for rank in range(self.ranks) if rank not in waiting], len(self.calls) + 1
        by_call = {}
        for rank in waiting:
            by_call.setdefault(turns[rank].ask.call, []).append(rank)
        each = [
            f"{named(ranks)} {'wait' if len(ranks) > 1 else 'waits'} in {call} for {awaited(call, ranks, gone, turns)}"
            for call, ranks in by_call.items()
        ]
        self.fail(
            f"in the {ordinal(number)} exchange {' and '.join(each)} of {named(gone)}, for ever: "
            f"{named(gone)} returned without entering it",
            "every rank enters every exchange, also one that has no row to send and none to receive",
            "ranks that wait for ever",
        )

    def _exchange(self, turns: list[Turn]) -> None:
        asks = [turn.ask for turn in turns]
        try:
            replies, sent = exchange.route(asks)
            self.carried_of += [ask.array.nbytes for ask in asks]
            if self.carried_of.sum() > MOST_CASE_BYTES:
                most = int(self.carried_of.argmax())
                raise Mismatch(
                    f"{asks[0].call} brings what all {self.ranks} ranks gave so far to {self.carried_of.sum():,} bytes, where "
                    f"{MOST_CASE_BYTES:,} are the most; the largest share is rank {most}'s, {self.carried_of[most]:,} bytes",
                    "how many rows are sent, and how wide they are",
                )
        except Mismatch as wrong:
            came = f"in the {ordinal(len(self.calls) + 1)} exchange {wrong.came}"
            return self.fail(came, wrong.look, "exchanges that do not fit together")
        self.calls.append(asks[0].call)
        self.sent.append(sent)
        for rank, reply in enumerate(replies):
            self.replies[rank].append(reply)


@dataclass
class RanksEvidence(Evidence):
    met: dict[bool, list[Meeting]] = field(default_factory=dict)  # by whether they are hidden

    asleep_s: float = 0.0  # wall time of all turns without their processor time

    def hidden_cases(self) -> list[Together]:
        return self.drawn_from(self.rng(0))

    def drawn_from(self, rng: np.random.Generator) -> list[Together]:
        """Draw the question's own hidden cases, one with the cell's own numbers, and some for its conditions on sizes."""
        found, own = reach.hidden(self.question, rng), Conditions(self.source, self.question.entry)
        if own.constants and self.question.holding:
            found = [*found, self.question.holding(rng, own.constants)]
        if not own.numbers or not self.question.near:
            return found
        candidates = [self.question.near(rng, own.numbers) for _ in range(TRIED)]
        return [*found, *telling(own, [*self.question.public, *found], candidates)]

    def count(self, outcome: Outcome) -> Outcome:
        self.asleep_s += max(0.0, outcome.seconds - outcome.cpu_s)
        return super().count(outcome)

    def limits(self) -> Limits:
        """Return the limits. A rank that sleeps a little in every turn is stopped in the end, but on a busy machine
        the wall clock alone fails no answer."""
        usual = host.RANKS_LIMITS
        return replace(usual, wall_s=HURRIED_S) if self.asleep_s > MOST_ASLEEP_S else usual

    def meetings(self, hidden: bool) -> list[Meeting]:
        """Run every public case, or every hidden one, to its end, once."""
        if hidden not in self.met:
            cases = self.hidden_cases() if hidden else list(self.question.public)
            found = self.finish([Meeting(case, hidden) for case in cases], hidden)
            # in two parts, as the processes of a box are few
            more = [one for part in self.again(found) for one in self.finish(part, hidden)] if hidden else []
            self.met[hidden] = [*found, *more]
        return self.met[hidden]

    def again(self, hidden: list[Meeting]) -> tuple[list[Meeting], list[Meeting]]:
        """Return a public case and the hidden one of most tokens, to be called once more in the same processes: what an answer
        keeps in its module from one call must not serve the next. All ranks but one have other tokens then, of
        which that one learns from the others alone. They come in arrays of their own, and in those of the first call.
        The hidden cases of most and of fewest tokens are called many times, as buffers may take turns and may be small or
        large. One rank alone is called both ways too. Some small cases and one of many tokens are called
        once more with one argument alone new, as what is kept may be told apart by another one."""
        chosen = []
        for meetings, of_ranks in ((self.meetings(False), min), (hidden, sum)):
            if ended := [one for one in meetings if one.results]:
                chosen.append(max(ended, key=lambda one: of_ranks(map(tokens, one.case.each))))  # noqa: B023
        how = [
            (one, refilled, OF_LARGEST if one.hidden and not refilled else 0)
            for one in chosen
            for refilled in (False, True)
        ]
        # of two ranks or of a token or two a rank may get the same again
        several = [one for one in hidden if one.ranks > 2 and min(map(tokens, one.case.each)) > 2]
        if ended := [one for one in several if one.results]:
            how.append((min(ended, key=lambda one: sum(map(tokens, one.case.each))), False, REPEATS))
        alone = [one for one in hidden if one.ranks == 1 and one.results]
        if alone:  # where nothing travels answers often take a way of their own
            longest = max(alone, key=lambda one: tokens(one.case.each[0]))
            how += [(longest, refilled, 0) for refilled in (False, True)]
        found = [
            Meeting(Together(self.turned(one.case.each, refilled), TWICE), True, one, refilled, repeats)
            for one, refilled, repeats in how
        ]
        of_one = one_new.calls(self.question, [one.case for one in ended], self.rng(ONE_NEW))
        return found, [Meeting(case, True, ended[i], refilled) for i, case, refilled in of_one]

    def turned(self, each: tuple, in_part: bool = False) -> tuple:
        """Return what the ranks have, where one keeps its tokens and the others take one another's in another order. All
        weights are others and experts may have moved, or in part: the one rank keeps all else too, and of the others' weights
        some are others."""
        rng, count = self.rng(STAYS), self.question.of_tokens
        place = rng.random() if in_part else None  # the same on all ranks, which may have copies of an expert
        stays = int(rng.integers(len(each)))
        moving = [rank for rank in range(len(each)) if rank != stays] or [stays]
        comes_from = dict(zip(moving, np.roll(moving, 1).tolist(), strict=True))
        kept = one_new.matrices(each[stays : stays + 1]) if in_part else frozenset()
        found = tuple(
            (
                *moved([one[:count] for one in each], rank, comes_from),
                *(negated(one, place, kept) for one in given[count:]),
            )
            for rank, given in enumerate(each)
        )
        return self.question.moved(rng, found) if self.question.moved and not in_part else found

    def meet(self, cases: list[Together], hidden: bool) -> list[Meeting]:
        return self.finish([Meeting(case, hidden) for case in cases], hidden)

    def finish(self, found: list[Meeting], hidden: bool) -> list[Meeting]:
        """Run these cases to their end."""
        printed = {}
        while going := [one for one in found if one.open]:
            turns: dict[int, list[Turn]] = {id(one): [] for one in going}
            for rank in range(max(one.ranks for one in going)):
                self.say(f"rank {rank}, exchange {max(len(one.calls) for one in going) + 1}")
                here = [one for one in going if rank < one.ranks and one.open]
                for one, turn in zip(here, self.turn(rank, here, printed), strict=True):
                    turns[id(one)].append(turn)
            for one in going:
                if one.open:
                    one.settle(turns[id(one)])
        if not hidden:
            self.heard(*of_all(printed))
        return found

    def turn(self, rank: int, meetings: list[Meeting], printed: dict) -> list[Turn]:
        """Run one rank's turn in each case. If its process ends without a word, find the case that ended it by
        halving."""
        if not meetings:
            return []
        given = [one.given(rank) for one in meetings]
        outcome, turns = host.turn_of(
            self.source, self.question.entry, rank, given, self.level, self.limits()
        )
        self.count(outcome)
        if said := outcome.header.get("printed"):
            printed[rank] = str(said)
        if not outcome.error:
            return turns
        if len(meetings) == 1:
            return [Turn(error=outcome.error)]
        half = len(meetings) // 2
        first, rest = self.turn(rank, meetings[:half], printed), meetings[half:]
        if outcome.ended and any(
            one.error for one in first
        ):  # a loop that never ends is not waited for again
            for one in rest:
                one.fail("not run: another case ended the process", "", "its process ended")
            return first + [Turn(error=outcome.error) for _ in rest]
        return first + self.turn(rank, rest, printed)

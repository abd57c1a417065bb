"""Judge ranks questions: every rank's result, the bytes that it sent to others, and the number of exchanges."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from grader.judge import hidden_failure, rank_repair, returned
from grader.judge.compare import Difference
from grader.judge.failed import Failed
from grader.judge.hidden_failure import HiddenFailure
from grader.judge.ranks_evidence import Meeting, RanksEvidence
from grader.judge.record import PartResult
from grader.questions import NO_OUTPUT, Part

NOT_KNOWN = "what of it the receiver does not need, has already, or could be sent in fewer bits"
SENT_HOME = "this sends a result home for each row too many that it receives: "
BUSY = "which copy a token goes to: its own rank's if that has one, and otherwise neither all ranks nor all tokens of a rank may choose the same one"
KEPT = (
    "what the cell keeps from one call, in variables outside the function: the next call brings other tokens, or another "
    "argument alone, or one of another rank alone"
)
OVERWRITTEN = "Overwritten"  # a kind of error, of a result that a later call changes
OWN = "what the cell keeps outside the function: each call returns arrays of its own, and a later one changes none of them"
RAISED = "Error: "  # as a line's exception is told
COUNTS_ALONE = (
    "the rows alone are within the limit, so look at exchange_counts: it carries 8 bytes for each number in counts. What does "
    "a receiver need to know beyond how many rows come?"
)


def judge_values(evidence: RanksEvidence, part: Part, result: PartResult) -> None:
    result.evidence = "values"
    public = evidence.meetings(False)
    wrong = [trouble(evidence.question, one) for one in public]
    if any(wrong):
        raise _public(evidence, public, wrong)
    hidden = evidence.meetings(True)
    hidden_failure.raise_what_can_be_shown(hidden_failures(evidence, hidden))
    result.came = f"every rank is right in {len(public)} public and {len(hidden)} hidden cases"


def trouble(question, meeting: Meeting) -> Failed | None:
    """Return what is wrong with the results of a case's ranks, for the first rank that has a fault."""
    if meeting.failed:
        return meeting.failed
    wanted = question.reference(meeting.case.each)
    for rank, (turn, want) in enumerate(zip(meeting.results, wanted, strict=True)):
        found = returned.differs(question, question.entry, turn.result, want, turn.arrays)
        if found:
            said = found.sentence() if isinstance(found, Difference) else found
            return Failed(
                f"rank {rank} of {meeting.ranks}: {said}",
                _whence(question, meeting, rank, found) or _rows(question, meeting, rank, want),
                told="values that differ",
            )
    return None


def _whence(question, meeting: Meeting, rank: int, found: Difference | str) -> str:
    if isinstance(found, str):
        return ""
    if rounded := found.pattern.rounding():
        return rounded
    said = question.whence(meeting.case.each, rank, found.index) if question.whence and found.index else ""
    told = "; ".join(filter(None, (found.first(), found.pattern.sentence(), said)))
    return told or "which rows that rank received, and where it puts them"


def _rows(question, meeting: Meeting, rank: int, want) -> str:
    """Say where rows begin to be wrong, if there are too many or too few of them."""
    turn = meeting.results[rank]
    wanted = want if isinstance(want, tuple) else (want,)
    items = returned.items_of(turn.result, turn.arrays) if isinstance(want, tuple) else [turn.result]
    for item, right in zip(items or [], wanted, strict=False):
        got = returned.array_of(item, turn.arrays) if isinstance(item, dict) else None
        if got is None or got.ndim != right.ndim or got.shape[1:] != right.shape[1:] or not question.whence:
            continue
        common = min(len(got), len(right))
        with np.errstate(invalid="ignore"):
            other = np.flatnonzero(
                [not np.array_equal(*two, True) for two in zip(got[:common], right[:common], strict=True)]
            )
        row = int(other[0]) if len(other) else common
        if len(got) != len(right) and row < len(right):
            then = "the next is another" if row < len(got) else "then it ends"
            before = f"its first {row:,} rows are right, and {then}" if row else "its first row is another"
            return f"{before}: {question.whence(meeting.case.each, rank, (row, 0))}"
    return f"what {question.entry} returns on rank {rank}"


def _public(evidence: RanksEvidence, meetings: list[Meeting], wrong: list[Failed | None]) -> Failed:
    """Return the first failure, with the number of right cases, and a mistake that gives every result."""
    question = evidence.question
    number, failed = next((i, one) for i, one in enumerate(wrong) if one)
    right = wrong.count(None)
    count = f"{right} of {len(wrong)} public cases are right; " if right else ""
    look = known_mistake(question, meetings) or repaired(evidence, meetings[number], failed) or failed.look
    return Failed(f"{count}{meetings[number].case.kind}: {failed.came}", look, **failed.facts)


def known_mistake(question, meetings: list[Meeting]) -> str:
    """Return the sentence of a mistake that gives every result of every case that ended, and is wrong in one."""
    ended = [one for one in meetings if one.results]
    if len(ended) < len(meetings):
        return ""
    for mistake in question.mistakes:
        if mistake.wrong and all(_gives(question, mistake, one) for one in ended):
            return mistake.sentence
    return ""


def _gives(question, mistake, meeting: Meeting) -> bool:
    try:
        with np.errstate(all="ignore"):
            would = mistake.wrong(meeting.case.each)
        return not any(
            returned.compare(question, "x", turn.result, one, turn.arrays)
            for turn, one in zip(meeting.results, would, strict=True)
        )
    except NO_OUTPUT:
        return False


def hidden_failures(evidence: RanksEvidence, hidden: list[Meeting]) -> Iterator[HiddenFailure]:
    question, public = evidence.question, evidence.meetings(False)
    for one in hidden:
        if failed := trouble(question, one):
            overwritten = (failed.facts.get("error") or {}).get("kind") == OVERWRITTEN
            kept = OWN if overwritten else KEPT
            known = kept if one.before else known_mistake(question, [*public, one])
            yield HiddenFailure(one.case.kind, failed, partial(drawn_anew, evidence, one.case.kind), known)


def drawn_anew(evidence: RanksEvidence, kind: str) -> Failed | str:
    """Return how a case of this kind fails with public seeds, or an empty text."""
    for draw in range(hidden_failure.SHOWN_DRAWS):
        rng = np.random.Generator(np.random.PCG64([hidden_failure.SHOWN_SEED, draw]))
        like_it = [one for one in evidence.drawn_from(rng) if one.kind == kind]
        for meeting in evidence.meet(like_it, True):
            if failed := trouble(evidence.question, meeting):
                failed.look = repaired(evidence, meeting, failed) or failed.look
                return failed
    return ""


def repaired(evidence: RanksEvidence, meeting: Meeting, failed: Failed) -> str:
    """Return the sentence of a small change that makes every tried case right. Ranks that wait or never end take too long to
    be tried again."""
    if meeting.failed and RAISED not in failed.came:
        return ""
    return rank_repair.sentence(evidence, meeting.case, partial(trouble, evidence.question))


def judge_bytes(evidence: RanksEvidence, part: Part, result: PartResult) -> None:
    result.evidence, question = "counted by the referee", evidence.question
    result.asked = f"at most, from each rank to all others: {question.model}"
    most = 0.0
    if not any(one.judge == "exchanges" for one in question.parts):  # then this part limits them too
        require_few_exchanges(evidence)
    for meeting in [*evidence.meetings(False), *evidence.meetings(True)]:
        allowed = np.asarray(question.most_bytes(meeting.case.each))
        over = meeting.sent_by > allowed
        if over.any():
            raise _too_much(question, meeting, evidence.meetings(False), allowed, int(over.argmax()))
        most = max(most, float((meeting.sent_by / np.maximum(allowed, 1)).max()))
    result.came = f"no rank sends more than {most:.0%} of what it may"


def habit(question, meetings: list[Meeting]) -> str:
    """Return the sentence of a habit that sends exactly these rows in every case."""
    for sentence, spends in question.habits.values():
        if all(np.array_equal(spends(one.case.each), one.rows_sent_by) for one in meetings):
            return sentence
    return ""


def _too_much(question, meeting: Meeting, public: list[Meeting], allowed: np.ndarray, rank: int) -> Failed:
    sent = meeting.sent_by
    look = habit(question, [*public, meeting]) or NOT_KNOWN
    uneven = sent.sum() <= allowed.sum()  # all together send no more than they may
    if look == NOT_KNOWN and question.most_received and uneven and receives_too_much(question, meeting)[rank]:
        look = SENT_HOME + BUSY
    times = (
        f"{times_over(sent[rank] / allowed[rank])} times what it may"
        if allowed[rank]
        else "where it may send nothing"
    )
    if look == NOT_KNOWN and meeting.rows_sent_by[rank] <= allowed[rank]:
        look = COUNTS_ALONE
    if meeting.hidden:
        came = f"a hidden case ({meeting.case.kind}): a rank sends {times}"
        return Failed(came, look, told=f"a hidden case ({meeting.case.kind}): a rank sends too much")
    whom = int(sum(meeting.sent)[rank].argmax())
    came = (
        f"{meeting.case.kind}: rank {rank} of {meeting.ranks} sends {sent[rank]:,} bytes, {times} ({allowed[rank]:,.0f}); "
        f"most of them to rank {whom}"
    )
    return Failed(came, look)


def times_over(factor: float) -> str:
    """Return a factor above 1 with as many digits as it takes to see that it is."""
    digits = next((n for n in range(2, 9) if round(factor, n) > 1), 9)
    return f"{factor:.{digits}f}"


def receives_too_much(question, meeting: Meeting) -> np.ndarray:
    """Return which ranks receive more than they should."""
    return meeting.received_by > np.asarray(question.most_received(meeting.case.each))


def judge_exchanges(evidence: RanksEvidence, part: Part, result: PartResult) -> None:
    result.evidence, question = "counted by the referee", evidence.question
    result.asked = f"at most {question.most_exchanges} exchanges, which all ranks enter together"
    result.came = f"{require_few_exchanges(evidence)} exchanges at most"


def require_few_exchanges(evidence: RanksEvidence) -> int:
    """Return the most exchanges of a case. Raise Failed if they are more than the question allows."""
    question = evidence.question
    found = max([*evidence.meetings(False), *evidence.meetings(True)], key=lambda one: len(one.calls))
    if len(found.calls) > question.most_exchanges:
        kind = f"a hidden case ({found.case.kind})" if found.hidden else found.case.kind
        raise Failed(
            f"{kind}: {len(found.calls)} exchanges: {', '.join(found.calls)}",
            "every exchange waits for the slowest rank and pays for its start: what could travel together?",
        )
    return len(found.calls)


def judge_busiest(evidence: RanksEvidence, part: Part, result: PartResult) -> None:
    result.evidence, question = "counted by the referee", evidence.question
    result.asked = "the busiest rank receives barely more than copies that take turns leave it"
    for meeting in [*evidence.meetings(False), *evidence.meetings(True)]:
        most, came = np.asarray(question.most_received(meeting.case.each)), meeting.received_by
        over = receives_too_much(question, meeting)
        if over.any():
            rank = int(over.argmax())
            times = f"{times_over(came[rank] / most[rank])} times what it should"
            kind = f"a hidden case ({meeting.case.kind})" if meeting.hidden else meeting.case.kind
            who = "a rank" if meeting.hidden else f"rank {rank} of {meeting.ranks}"
            bytes_of = "" if meeting.hidden else f": {came[rank]:,} bytes, {most[rank]:,.0f} are allowed"
            raise Failed(
                f"{kind}: {who} receives {times}{bytes_of}",
                habit(question, [*evidence.meetings(False), meeting]) or BUSY,
                told=f"{kind}: a rank receives too much" if meeting.hidden else "",
            )
    result.came = "no rank receives more than it should"

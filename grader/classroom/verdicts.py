"""One answer -> one Record, whoever asks: nbgrader's own autograde, the class command, or a cluster's map."""

from grader import questions
from grader.classroom import term as terms
from grader.classroom.term import Term
from grader.judge import record, referee
from grader.judge.record import INCONCLUSIVE, Record

RETRIES = 2


def judge(source: str, question_id: str, mode: str, seed: int, epoch: str) -> dict:
    """Plain values in, plain values out, so that any map can carry it. Our own trouble is tried again, a verdict never."""
    question = questions.find(question_id)
    for _ in range(1 + RETRIES):
        verdict = referee.grade_one(source, question, mode=mode, seed=seed, epoch=epoch)
        if not _infrastructure(verdict):
            break
    return verdict.as_json()


def _infrastructure(verdict: Record) -> bool:
    """Trouble that another try may not have; a time that beats physics is for a person, however often it is measured."""
    open_parts = [part for part in verdict.parts if part.state == INCONCLUSIVE]
    return (
        verdict.verdict == INCONCLUSIVE
        and bool(verdict.message)
        or any(not part.facts.get("beats_physics") for part in open_parts)
    )


def verdict_of(source: str, question_id: str, term: Term) -> Record:
    """The record that is kept, or a fresh one, which is then kept."""
    question = questions.find(question_id)
    key = terms.key(term, question, source)
    verdict = terms.find(term, key) if key else None
    if verdict is None:
        verdict = Record.from_json(judge(source, question_id, term.mode, term.seed(question_id), term.epoch))
        terms.keep(term, verdict)
    return verdict


def no_verdict(question_id: str, mode: str, reason: str) -> Record:
    """Where there is nothing to judge with: for a person."""
    return record.Record(question_id, INCONCLUSIVE, 0.0, 0.0, mode, message=reason)

"""One answer -> one Record, for nbgrader's own autograde: the record that is kept, or a fresh one."""

from grader import questions
from grader.classroom import term as terms
from grader.classroom.jobs import job
from grader.classroom.term import Term
from grader.judge import record
from grader.judge.record import INCONCLUSIVE, Record


def verdict_of(source: str, question_id: str, term: Term) -> Record:
    """The record that is kept, or a fresh one, which is then kept."""
    question = questions.find(question_id)
    key = terms.key(term, question, source)
    verdict = terms.find(term, key) if key else None
    if verdict is None:
        verdict = job.judge(source, question_id, term.mode, term.seed(question_id), term.epoch)
        terms.keep(term, verdict)
    return verdict


def no_verdict(question_id: str, mode: str, reason: str) -> Record:
    """Where there is nothing to judge with: for a person."""
    return record.Record(question_id, INCONCLUSIVE, 0.0, 0.0, mode, message=reason)

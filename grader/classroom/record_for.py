"""Return one Record for an answer, kept or fresh, for nbgrader's own autograde."""

from grader import questions
from grader.classroom import grading_round
from grader.classroom.grading_round import GradingRound
from grader.classroom.jobs import job
from grader.judge import record
from grader.judge.record import INCONCLUSIVE, Record


def verdict_of(source: str, question_id: str, round_: GradingRound) -> Record:
    """The record that is kept, or a fresh one, which is then kept."""
    question = questions.find(question_id)
    key = grading_round.key(round_, question, source)
    verdict = grading_round.find(round_, key) if key else None
    if verdict is None:
        verdict = job.judge(source, question_id, round_.mode, round_.seed(question_id), round_.epoch)
        grading_round.keep(round_, verdict)
    return verdict


def no_verdict(question_id: str, mode: str, reason: str) -> Record:
    """Leave a cell to a person, because there is nothing to judge with."""
    return record.Record(question_id, INCONCLUSIVE, 0.0, 0.0, mode, message=reason)

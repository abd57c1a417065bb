"""One answer to be judged, and how often trouble of our own is tried again."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grader import box, questions
from grader.classroom import grading_round
from grader.classroom.grading_round import GradingRound
from grader.judge import referee
from grader.judge.record import INCONCLUSIVE, Record

LEAST_BOX = 2  # that strangers' code is kept apart by
TRIES = 3  # tries after our own trouble, never to replace a verdict


@dataclass(frozen=True)
class Job:
    """All that a judge needs, as plain values. `whose` is the first student who handed it in."""

    key: str
    whose: str
    source: str
    question: str
    mode: str
    seed: int
    epoch: str

    def task(self) -> tuple:
        return self.source, self.question, self.mode, self.seed, self.epoch


def require_box() -> None:
    """BoxError where a class must not be judged."""
    box.require(LEAST_BOX, "judging a class")


def attempt(source: str, question_id: str, mode: str, seed: int, epoch: str) -> dict:
    """Make one try at one verdict: plain values in, plain values out."""
    question = questions.find(question_id)
    return referee.grade_one(source, question, mode=mode, seed=seed, epoch=epoch).as_json()


def infrastructure(verdict: Record) -> bool:
    """Return whether a retry is worthwhile. Yes for our own failures, no for a time below the hardware limit, which a
    person must look at."""
    open_parts = [part for part in verdict.parts if part.state == INCONCLUSIVE]
    return (
        verdict.verdict == INCONCLUSIVE
        and bool(verdict.message)
        or any(not part.facts.get("beats_physics") for part in open_parts)
    )


def judge(*task) -> Record:
    """A verdict, tried again where the trouble was our own."""
    for _ in range(TRIES):
        verdict = Record.from_json(attempt(*task))
        if not infrastructure(verdict):
            break
    return verdict


def one_by_one(jobs: list[Job]) -> Iterator[Record]:
    """Judge in this process, which is enough until a class is large."""
    return (judge(*job.task()) for job in jobs)


def jobs_of(round_: GradingRound, came_in: Iterable) -> Iterator[Job]:
    """A job for each answer that is new, once however many handed it in."""
    seen = set()
    for one in came_in:
        own = round_.of(one.student)
        for question_id, source in one.answers():
            key = grading_round.key(own, questions.find(question_id), source)
            if key and key not in seen and grading_round.find(own, key) is None:
                seen.add(key)
                seed = own.seed(question_id)
                yield Job(key, one.student, source, question_id, own.mode, seed, own.epoch)

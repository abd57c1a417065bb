"""Start what large cases need while the judges look at smaller ones: on two cores the referee computes on one what should come
out, and the machine runs on the other one. A wrong answer wastes at most what has begun."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial

from grader.box.warm import Outcome
from grader.judge.evidence import background_pool
from grader.judge.kernel_evidence import KernelEvidence, Run


def begin(evidence: KernelEvidence, name, work: Callable) -> None:
    """Do some work of a check in the background, if there are cores for it. It is dropped with the cases that run ahead."""
    if evidence.has_room_ahead:
        evidence.ahead[name] = background_pool().submit(work)


def result(evidence: KernelEvidence, name: tuple, work: Callable):
    """Return what this work gives, which may have begun."""
    started = evidence.ahead.pop(name, None)
    return started.result() if started is not None else work()


def after_runs(
    evidence: KernelEvidence, what: str, purposes: Iterable[int], launch: Callable[[int, Run], Outcome | None]
) -> None:
    """Begin a launch for each of these cases that run ahead, once its run has ended."""
    for purpose in purposes:
        started = evidence.ahead.get(purpose)
        if started is not None:  # it stands before this in the queue, so waiting for it keeps nothing back
            begin(evidence, (what, purpose), partial(unless_it_failed, started, partial(launch, purpose)))


def unless_it_failed(started: Future, launch: Callable[[Run], Outcome | None]) -> Outcome | None:
    run = started.result()
    return None if run.outcome.error else launch(run)

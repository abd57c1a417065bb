"""Run one try at one verdict in a worker of a farm. A student's Python stays in the box, here as everywhere."""

from grader import box, questions
from grader.box import warm
from grader.classroom.jobs import job
from grader.judge import answer, fingerprint, record, referee


def attempt(expected_key: str, source: str, question_id: str, mode: str, seed: int, epoch: str) -> dict:
    """Return {"record": ...}, or {"unfit": why this worker must not judge}."""
    job.require_box()
    text = answer.digest(answer.normalise(source))
    specification = referee.specification(questions.find(question_id))
    if record.key(text, specification, mode, referee.machine(mode), epoch) != expected_key:
        why = (
            "a worker has another version of the course, of its packages or of the GPU than the class command"
        )
        return {"unfit": why, "worker": where()}
    return {"record": job.attempt(source, question_id, mode, seed, epoch), "worker": where()}


def where() -> str:
    """Return the address of the worker that runs this task."""
    from distributed import get_worker

    return get_worker().address


def facts(mode: str) -> dict:
    """Return the facts that a verdict of this worker would rest on."""
    return {
        "machine": referee.machine(mode),
        "versions": record.versions(),
        "code": fingerprint.shared_code(),
        "level": int(box.best_level()),
    }


def dask_teardown(worker) -> None:
    """Close the boxes of a worker that ends in order. A killed worker loses them by their lifelines."""
    warm.stop_all()

"""The referee's end of the jail."""

from grader.box import warm
from grader.box.serve.frames import DTYPES
from grader.jail import protocol

LOWER = warm.Worker("jail", "grader.jail.inside.lower")
NUMPY = warm.Worker("jail", "grader.jail.inside.numpy_answer")
LOWER_LIMITS = warm.Limits(wall_s=45.0, cpu_s=40, memory_bytes=3 << 30, answer_bytes=16 << 20)
NUMPY_LIMITS = warm.Limits(wall_s=30.0, cpu_s=5, answer_bytes=64 << 20)
FORGED = "the answer wrote into the grader's own channel"


def lower(source: str, entry: str, cases: list[dict], target: int, level: int | None = None):
    """(Outcome, Lowered or None): the plans and texts of all cases, asked once."""
    task = protocol.lower_request(source, entry, cases, target)
    outcome = warm.programs(LOWER, level).ask(task, {}, LOWER_LIMITS)
    if outcome.error:
        return outcome, None
    try:
        return outcome, protocol.lowered(outcome.header, cases, DTYPES)
    except protocol.BadReply:
        return warm.Outcome(ended=FORGED, seconds=outcome.seconds, cpu_s=outcome.cpu_s), None


def call(source: str, entry: str, calls: list, arrays: dict, limits=NUMPY_LIMITS, level: int | None = None):
    """A numpy answer on a list of encoded calls."""
    task = {"source": source, "entry": entry, "calls": calls}
    return warm.programs(NUMPY, level).ask(task, arrays, limits)

"""The referee's end of the jail."""

import os

from grader.box import warm
from grader.box.serve.frames import DTYPES
from grader.jail import exchange, protocol

FRONT_END = "TILESCOPE_FRONT_END"  # "python" asks for the way that needs no compiled library
LOWER = warm.Worker(
    "grader.jail.inside.lower",
    ("grader/jail", "tilescope/front_end", "tilescope/lowering.py"),
    environment={FRONT_END: os.environ[FRONT_END]} if FRONT_END in os.environ else {},
)
NUMPY = warm.Worker("grader.jail.inside.numpy_answer", ("grader/jail",))
LOWER_LIMITS = warm.Limits(wall_s=45.0, cpu_s=40, memory_bytes=3 << 30, answer_bytes=16 << 20)
TEXTS_LIMITS = warm.Limits(wall_s=20.0, cpu_s=10, answer_bytes=16 << 20)
PLAN_LIMITS = warm.Limits(wall_s=20.0, cpu_s=5, enough_s=4, answer_bytes=64 << 20)
PACK_LIMITS = warm.Limits(wall_s=45.0, cpu_s=30, memory_bytes=3 << 30, answer_bytes=256 << 20)
NUMPY_LIMITS = warm.Limits(wall_s=30.0, cpu_s=5, answer_bytes=64 << 20)
VARIANTS_LIMITS = warm.Limits(wall_s=15.0, cpu_s=3, answer_bytes=64 << 20)
RANKS = warm.Worker("grader.jail.inside.ranks_answer", ("grader/jail",))
RANKS_LIMITS = warm.Limits(wall_s=20.0, cpu_s=5, memory_bytes=4 << 30, answer_bytes=16 << 20)


def lower(request: protocol.LowerRequest, level: int | None = None, limits=LOWER_LIMITS):
    """Return (Outcome, Lowered or None), the plans and texts of all cases, requested once."""
    return _lowered(request.task(), request.cases, level, limits)


def lower_each(request: protocol.TextsRequest, level: int | None = None, limits=TEXTS_LIMITS):
    """Return (Outcome, Lowered or None), one case of several texts of a cell."""
    return _lowered(request.task(), [request.case] * len(request.sources), level, limits)


def _lowered(task: dict, cases: list[protocol.ToldCase], level: int | None, limits: warm.Limits):
    outcome = warm.programs(LOWER, level).ask(task, {}, limits)
    if outcome.error:
        return outcome, None
    try:
        return outcome, protocol.lowered(outcome.header, cases, DTYPES)
    except protocol.BadReply:
        return _forged(outcome), None


def plan(request: protocol.PlanRequest, level: int | None = None):
    """Return (Outcome, a Planned for each case), where nothing is lowered. All of them are empty if it fails, or if the
    machine is too busy, since only a search for cases asks."""
    outcome = warm.Outcome()
    try:
        outcome = warm.programs(LOWER, level).ask(request.task(), {}, PLAN_LIMITS)
        if not outcome.error:
            return outcome, protocol.planned(outcome.header, request.cases)
    except (protocol.BadReply, warm.JailTrouble):
        pass
    return outcome, [protocol.Planned()] * len(request.cases)


def prepare(source: str, entry: str, plans: list, weights: list[dict], level: int | None = None):
    """Return (Outcome, a Made for each plan) from the answer's own function on weights. Arrays keep their strides."""
    arrays, cases = {}, []
    for plan, given in zip(plans, weights, strict=True):
        arguments = []
        for value in given.values():
            name = f"a{len(arrays)}"
            is_array = hasattr(value, "dtype")
            arguments.append({"array": name, **in_memory(value)} if is_array else {"value": value})
            arrays |= {name: value} if is_array else {}
        cases.append(protocol.PackCase(arguments, plan.packed))
    request = protocol.PackRequest(source, entry, cases)
    outcome = warm.programs(LOWER, level).ask(request.task(), arrays, PACK_LIMITS)
    if outcome.error:
        return outcome, [protocol.Made(error=outcome.error)] * len(plans)
    try:
        return outcome, protocol.prepared(outcome.header, outcome.arrays, plans, DTYPES)
    except protocol.BadReply:
        forged = _forged(outcome)
        return forged, [protocol.Made(error=forged.error)] * len(plans)


def in_memory(array) -> dict:
    """Return {"strides"} in elements of an array that isn't row by row in memory, since only its numbers travel."""
    if array.flags.c_contiguous:
        return {}
    return {"strides": [step // array.itemsize for step in array.strides]}


def call(
    source: str,
    entry: str,
    calls: list,
    arrays: dict,
    limits=NUMPY_LIMITS,
    level: int | None = None,
    watched: bool = False,
):
    """Call a numpy answer on a list of encoded calls. `watched` also reports where each call returned."""
    request = protocol.CallRequest(source, entry, calls, watched)
    outcome = warm.programs(NUMPY, level).ask(request.task(), arrays, limits)
    if outcome.error:
        return outcome
    try:
        protocol.require_results(request, outcome.header, outcome.arrays)
    except protocol.BadReply:
        return _forged(outcome)
    return outcome


def call_variants(sources: list[str], entry: str, calls: list, arrays: dict, level: int | None = None):
    """Run the same calls of several sources in one process. Return (Outcome, each source's results or None)."""
    request = protocol.VariantsRequest(sources, entry, calls)
    outcome = warm.programs(NUMPY, level).ask(request.task(), arrays, VARIANTS_LIMITS)
    if outcome.error:
        return outcome, []
    try:
        return outcome, protocol.variants(request, outcome.header, outcome.arrays)
    except protocol.BadReply:
        return _forged(outcome), []


def turn_of(source: str, entry: str, rank: int, cases: list, level: int | None = None, limits=RANKS_LIMITS):
    """Return (Outcome, a Turn for each case), one rank of an answer run up to its next exchange in each."""
    request, arrays = exchange.request(source, entry, rank, cases)
    outcome = warm.programs(RANKS, level).ask(request.task(), arrays, limits)
    if outcome.error:
        return outcome, []
    try:
        ranks = [case.ranks for case in request.cases]
        return outcome, exchange.turns(outcome.header, outcome.arrays, ranks, warm.clean_error)
    except protocol.BadReply:
        return _forged(outcome), []


def _forged(outcome: warm.Outcome) -> warm.Outcome:
    return warm.Outcome(ended=warm.WROTE, end=warm.FORGED, seconds=outcome.seconds, cpu_s=outcome.cpu_s)

"""An exception as plain data."""

SAID = {
    MemoryError: ("memory", "the answer asked for more memory than it may have"),
    RecursionError: ("load", "the answer calls itself, or nests, deeper than Python goes"),
    SystemExit: ("load", "the answer ended its own process (exit or quit)"),
}


def report_of(error: BaseException) -> dict:
    """Return an exception as plain data. One with the worker's report gives that report."""
    if isinstance(getattr(error, "report", None), dict):
        return error.report
    for kind, (stage, message) in SAID.items():
        if isinstance(error, kind):
            return {"stage": stage, "kind": kind.__name__, "message": message, "line": None}
    message = f"{type(error).__name__}: {error}"[:2000]
    return {"stage": "worker", "kind": type(error).__name__, "message": message, "line": None}

"""What a judge writes into a part's result: that it failed, where, and what feedback may say of it."""

from grader.evidence import Run
from grader.record import FAIL, PartResult


def fail(result: PartResult, came: str, look: str = "", **facts) -> PartResult:
    result.state, result.points, result.came = FAIL, 0.0, came
    result.look = look or result.look
    result.facts |= facts
    return result


def describe(run: Run) -> str:
    """A public case in full; a hidden one by its kind alone."""
    if run.hidden:
        return f"a hidden case ({run.case.kind})"
    sizes = ", ".join(f"{k} = {v}" for k, v in run.case.sizes.items())
    layout = "".join(f", {name} {how}" for name, how in run.case.layout.items())
    return f"{sizes}, {run.case.dtype}{layout}"


def from_error(error: dict, result: PartResult, where: str) -> PartResult:
    """An exception of the answer, or the end of its process, as a report."""
    kind, message, line = error.get("kind"), error["message"], error.get("line")
    place = f"line {line} of the cell" if line else "the cell as a whole"
    if kind == "NotImplementedError":
        return fail(
            result,
            "not started: the cell still raises NotImplementedError",
            "replace that line by your own code",
            error=error,
        )
    if kind == "OutOfBounds":
        return fail(
            result,
            f"{where}: {message}",
            "the mask of that access, and the strides that lead to it",
            error=error,
        )
    if kind == "NameError":
        place += ": an answer stands alone, so what it calls is defined in its own cell"
    prefix = f"{where}: " if error["stage"] in ("kernel", "call", "process") else ""
    program = f" (program {tuple(error['program'])} of {error['kernel']})" if error.get("program") else ""
    return fail(result, f"{prefix}{message}{program}", place, error=error)


SORTS = {
    "OutOfBounds": "an access outside a tensor", "Ended": "its process was stopped or ended itself",
    "NotImplementedError": "not started",
}  # fmt: skip


def tell(result: PartResult, kind: str) -> PartResult:
    """What feedback may say of a failed hidden case: its kind and the sort of failure, in words of ours alone."""
    error = result.facts.get("error")
    sort = (
        SORTS.get(error["kind"], "an exception") if error else result.facts.get("sort", "values that differ")
    )
    known = f"; {result.look}" if result.facts.get("known") else ""
    result.told = f"a hidden case ({kind}): {sort}{known}"
    return result

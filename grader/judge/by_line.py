"""Name the lines that load or store a tensor, where it moves too often. The case runs again, to count by line."""

import math

from grader.box.warm import JailTrouble
from grader.judge.kernel_evidence import KernelEvidence, Run
from grader.questions import Budget
from grader.questions.account import BYTES, CUT

LEAST = 0.01  # of a tensor's bytes, which a line must ask for to be named
MOST_NAMED = 4
VERBS = {"load": "load", "store": "store", "any": "move"}


def look(
    evidence: KernelEvidence,
    run: Run,
    budget: Budget,
    usual: str,
    programs: list[int] | None = None,
    share: float = 1.0,
) -> str:
    """Return `usual` with the lines that share a tensor's bytes, if it moves more than once. They take its place if it
    speaks of neighbours. `programs` are those that ran, and their share of the work is `share`."""
    own = next((one for one in run.placed if one.spec.name == budget.tensor), None)
    if own is None or budget.count not in BYTES or not math.isfinite(budget.most):
        return usual
    counted = (
        one["tensors"].get(budget.tensor, {}).get(kind) for one in run.launches for kind in kinds(budget)
    )
    moved = sum(row["dedup"] for row in counted if row)
    if moved <= CUT * share * math.prod(own.shape) * own.storage.itemsize:
        return usual
    lines = of_tensor(evidence, run, budget, programs)
    if not lines:
        return usual
    said = f"{lines} {VERBS[budget.access]} {budget.tensor}: is one of them spare?"
    return said if budget.count != "dedup" or usual == spare(budget) else f"{said} If not, {usual}"


def spare(budget: Budget) -> str:
    """Ask for the access that is too many, whole sectors or not."""
    what = "all of it" if budget.tensor == "all" else budget.tensor
    return (
        f"without what is unused in each sector {what} still moves too often: which load or store is spare?"
    )


def kinds(budget: Budget) -> tuple[str, ...]:
    return {"load": ("load",), "store": ("store", "atomic")}.get(budget.access, ("load", "store", "atomic"))


def of_tensor(evidence: KernelEvidence, run: Run, budget: Budget, programs: list[int] | None) -> str:
    """Return the lines between which a tensor's bytes are divided, or an empty text if one line moves them all."""
    try:
        rows = evidence.lines(run, programs)
    except JailTrouble:
        return ""
    asked: dict[int, int] = {}
    for row in rows:
        if row["tensor"] == budget.tensor and row["kind"] in kinds(budget) and row["line"] > 0:
            asked[row["line"]] = asked.get(row["line"], 0) + row["bytes"]
    whole = sum(asked.values())
    named = {line: count for line, count in sorted(asked.items()) if count >= LEAST * whole}
    if not 1 < len(named) <= MOST_NAMED:
        return ""
    *others, last = (f"{line} ({count / whole:.0%} of the bytes)" for line, count in named.items())
    return f"lines {', '.join(others)} and {last}"

"""Judge a kernel's costs: bytes and operations counted by the machine, against the topic's cost model."""

import math
from dataclasses import replace

import numpy as np

from grader.judge import by_line
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import METERED, KernelEvidence, Run
from grader.judge.picture import coarse
from grader.judge.record import PartResult
from grader.questions import Budget, Part
from grader.questions.account import account
from grader.questions.timed import CHIP
from kernels import machines
from tilescope.machine.program import A_DOT

UNITS = {
    "programs": "programs",
    "dot": "FLOP",
    "wide dot": "FLOP",
    "operations": "operations",
    "integers": "operations",
    "work": "operations",
}


def judge(evidence: KernelEvidence, part: Part, result: PartResult) -> None:
    question = evidence.question
    result.evidence = "counted here on the CPU"
    run = evidence.run(METERED)
    budgets = account(question, part.name, run.case)
    result.asked = budgets_in_words(budgets, question.most_launches)
    result.asked_openly = "; ".join(map(limit_openly, budgets))
    result.facts = {"case": dict(run.case.sizes)}
    if not evidence.facts:  # one table and picture a report
        evidence.facts = {"launches": run.launches, "touched": touched(run), "work": work(question, run)}
        result.facts |= evidence.facts
    rows = [{**as_row(budget), **spending(run, budget)} for budget in budgets]
    result.facts["budgets"] = rows
    broken = [b for row, b in zip(rows, budgets, strict=True) if not b.least <= row["spent"] <= b.most]
    limits, too_many = [*map(limit_in_words, broken)], len(run.launches) > question.most_launches
    if too_many:
        limits.insert(0, most_launches(question.most_launches))
    if limits:
        result.asked = "; ".join(limits) + kept(len(budgets) + 1 - len(limits))
    if too_many:
        raise Failed(
            f"{len(run.launches)} launches, allowed {question.most_launches}",
            "fuse the steps of launch(p)",
            told="too many launches",
        )
    for row, budget in zip(rows, budgets, strict=True):
        if row["spent"] > budget.most:
            share = times(row["spent"] / budget.most) if budget.most else "more than"
            came = f"{budget.what}: {amount(row['spent'], budget)}, {share} the limit of {amount(budget.most, budget)}"
            came += f": {limits_of_time(row['limits'], budget)}" if "limits" in row else ""
            told = f"{budget.what}: {share} the limit"
            look = by_line.look(evidence, run, budget, look_for(run, budget))
            raise Failed(came, look, told=told, **result.facts)
        if row["spent"] < budget.least:
            came = f"{budget.what}: {came_of_few(run, budget)}, less than the {amount(budget.least, budget)} that it takes"
            raise Failed(came, budget.look, told=f"{budget.what}: less than it takes", **result.facts)
    result.came = "; ".join(row_in_words(row, budget) for row, budget in zip(rows, budgets, strict=True))
    result.told = f"all {len(rows)} limits kept"


def times(ratio: float, digits: int = 2) -> str:
    """Write a ratio above 1 with enough digits to see that it is."""
    while digits < 9 and float(f"{ratio:.{digits}f}") <= 1:
        digits += 1
    return f"{ratio:.{digits}f} times"


def as_row(budget: Budget) -> dict:
    """Return plain data that JSON can hold. A missing bound is left out."""
    row = {name: getattr(budget, name) for name in ("what", "count", "tensor", "access", "model")}
    return row | {k: getattr(budget, k) for k in ("most", "least") if math.isfinite(getattr(budget, k))}


def amount(value: float, budget: Budget) -> str:
    if budget.count == "time":
        return f"{value * 1e6:.3g} µs"
    if budget.count in UNITS:
        return f"{value:,.0f} {UNITS[budget.count]}"
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:,.0f} bytes"


def budgets_in_words(budgets: list[Budget], launches: int) -> str:
    return "; ".join([*map(limit_in_words, budgets), most_launches(launches)])


def most_launches(count: int) -> str:
    return f"at most {count} launch{'es' * (count > 1)}"


def kept(count: int) -> str:
    """Say how many other limits are kept."""
    return f" ({count} further limit{'s' * (count > 1)} kept)" if count else ""


def limit_in_words(budget: Budget) -> str:
    return f"{budget.what}: {rule(budget)}"


def limit_openly(budget: Budget) -> str:
    """Name the limit without the drawn size, which later students may meet again."""
    bound = "at most" if math.isfinite(budget.most) else "at least"
    return f"{budget.what}: {bound} what the model says"


def look_for(run: Run, budget: Budget) -> str:
    """Return the budget's own hint, unless the bytes alone are too many, since then neighbours aren't the problem."""
    if budget.count == "sectors" and spent(run, replace(budget, count="dedup")) > budget.most:
        return by_line.spare(budget)
    return budget.look_above


def rule(budget: Budget) -> str:
    least, most = budget.least > 0, math.isfinite(budget.most)
    model = f" ({budget.model})" if budget.model else ""
    if most:
        return f"at most {amount(budget.most, budget)}{model}"
    return f"at least {amount(budget.least, budget)}{model}" if least else "counted"


def row_in_words(row: dict, budget: Budget) -> str:
    """Return the cost and its limit, with the unit once if both have the same."""
    found, upper = amount(row["spent"], budget), math.isfinite(budget.most)
    bound = amount(budget.most if upper else budget.least, budget)
    number, unit = found.split(" ", 1)
    found = number if bound.endswith(f" {unit}") else found
    return f"{budget.what}: {found} of at {'most' if upper else 'least'} {bound}"


def spending(run: Run, budget: Budget) -> dict:
    """Return the cost, and for a time the time of each limit."""
    found = {"spent": spent(run, budget)}
    return found | ({"limits": machines.times(run.launches, CHIP)} if budget.count == "time" else {})


def limits_of_time(limits: dict, budget: Budget) -> str:
    """Return the time of each limit per number, the slowest first."""
    count, one = budget.per
    slowest = sorted(limits.items(), key=lambda pair: -pair[1])
    return (
        ", ".join(f"{name} {1e12 * seconds / count:.3g} ps" for name, seconds in slowest) + f" for each {one}"
    )


def spent(run: Run, budget: Budget) -> float:
    """Return the count of one budget, over all launches."""
    launches = run.launches
    if budget.count == "time":
        return machines.total(launches, CHIP)
    if budget.count == "dot":
        return sum(
            n for launch in launches for kind, n in launch["dots"].items() if kind not in BESIDE_TENSOR_CORES
        )
    if budget.count == "wide dot":
        return sum(n for launch in launches for kind, n in launch["dots"].items() if kind.startswith(WIDE))
    if budget.count == "work":
        return sum(sum(one["operations"].values()) + sum(one["dots"].values()) / A_DOT for one in launches)
    if budget.count in KINDS:
        return sum(
            sum(n for kind, n in launch["operations"].items() if kind in KINDS[budget.count])
            for launch in launches
        )
    rows = counted(run, budget)
    if budget.count == "programs":
        return min(map(taking_part, working(rows)), default=0)
    return sum(row.get(budget.count, 0) for row in rows)


def of_all_launches(run: Run, budget: Budget) -> int:
    """Return how many programs would move the bytes of all launches in the same time, since the rows of a short second
    launch may differ by what its inputs ask for."""
    rows = counted(run, budget)
    busiest = sum(row.get("busiest", 0) for row in working(rows))
    return math.ceil(sum(row["dedup"] for row in rows) / busiest) if busiest else 0


def working(rows: list[dict]) -> list[dict]:
    """Return the launches that do a good part of the work, so that an idle one with many programs earns nothing."""
    whole = sum(row["dedup"] for row in rows)
    return [row for row in rows if row["dedup"] >= GOOD_PART * whole]


def counted(run: Run, budget: Budget) -> list[dict]:
    """Return the machine's count of every access that matters, launch by launch."""
    return [
        row
        for launch in run.launches
        for name, kind in accesses(run, budget)
        if (row := launch["tensors"].get(name, {}).get(kind))
    ]


def taking_part(row: dict) -> int:
    """Return the programs that share the work: all of them if they share it almost evenly, since few sizes divide without a
    rest. A thousand programs count as two if the busiest does half the work."""
    all_of_them = row.get("programs", 0)
    if not row.get("busiest"):
        return all_of_them
    shared = row["dedup"] / row["busiest"]
    return all_of_them if ALMOST * shared >= all_of_them else math.ceil(shared)


def came_of_few(run: Run, budget: Budget) -> str:
    """Describe a count below its minimum. For programs, also say how unevenly the work was split, if that is the
    fault."""
    came = amount(spent(run, budget), budget)
    if budget.count != "programs":
        return came
    rows = working(counted(run, budget))
    best = min(rows, key=taking_part, default={})
    if best.get("programs", 0) < budget.least:
        return came
    share = best["busiest"] / best["dedup"]
    return f"{best['programs']:,}, of which one has {share:.0%} of all: as good as {came}"


ALMOST = 1.25  # times an even share of the work, for the busiest program
KINDS = {
    "operations": ("float", "special"),
    "integers": ("int", "convert", "address"),
}  # as the machine counts them
GOOD_PART = 0.1  # of the bytes of a tensor
BESIDE_TENSOR_CORES = ("fp32:ieee", "fp64")  # dots that fused multiply-adds do
WIDE = ("fp32", "fp64")  # an operand's dtype, with any precision after it


def accesses(run: Run, budget: Budget) -> list[tuple[str, str]]:
    """Return the counted accesses. An atomic on an output is a store, and an output that is read back counts as
    scratch."""
    outputs = [p.spec.name for p in run.placed if p.spec.role != "in"]
    kinds = ("load", "store", "atomic") if budget.access == "any" else (budget.access,)
    found = [(name, kind) for name in names_of(run, budget) for kind in kinds]
    if budget.access == "store":
        found += [(name, "atomic") for name in names_of(run, budget) if name in outputs]
    if budget.tensor == "scratch" and "load" in kinds:
        found += [(name, "load") for name in outputs]
    return found


def names_of(run: Run, budget: Budget) -> list[str]:
    operands, scratch = [p.spec.name for p in run.placed], list(run.plan.scratch)
    groups = {"all": operands + scratch, "scratch": scratch, "packed": list(run.plan.packed)}
    return groups.get(budget.tensor, [budget.tensor])


def work(question, run: Run) -> dict:
    """Return the operation's useful FLOP and all bytes, since doing twice the work deserves no credit in a picture."""
    moved = sum(c["dedup"] for launch in run.launches for t in launch["tensors"].values() for c in t.values())
    ran = sum(launch["flops"] for launch in run.launches)
    useful = float(question.useful(run.case)) if question.useful else float(ran)
    return {"useful_flops": useful, "dot_flops": float(ran), "bytes": float(moved)}


def touched(run: Run) -> dict:
    """Return how often each element of each tensor was touched, coarse enough to draw."""
    found = {}
    for placed in run.placed:
        for kind in ("loads", "stores"):
            counts = placed.view(run.outcome.arrays[f"{kind}:{placed.spec.name}"])
            if np.any(counts):
                found[f"{kind}:{placed.spec.name}"] = coarse(counts)
    return found

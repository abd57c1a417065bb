"""Estimate the cost of a class of another size from a measured one. Every number names its basis."""

import re

from grader import questions

ENTERED, JUDGED = re.compile(r"entered (\d+) of (\d+)"), re.compile(r"judged (\d+) of (\d+)")
FIRST, LAST = 0.2, 0.2  # shares of the entries that tell whether a fuller gradebook is slower
FARMS = (1, 8, 32)


def by_kind(took: dict[tuple[str, str], float]) -> dict[str, dict]:
    """kind -> how many different answers were judged, and seconds of a check."""
    found = {}
    for (question, _), seconds in took.items():
        found.setdefault(questions.find(question).kind, []).append(seconds)
    return {
        kind: {
            "answers": len(all_),
            "mean_s": round(sum(all_) / len(all_), 3),
            "longest_s": round(max(all_), 2),
        }
        for kind, all_ in found.items()
    }


def measured(said: list, wanted) -> dict:
    """Seconds of judging and of entering, from when each line was heard."""
    judging = entering = 0.0
    each = []
    for one in said:
        began = next((at for at, line in one.lines if "different answers to judge" in line), None)
        judged = [at for at, line in one.lines if JUDGED.match(line)]
        entered = [at for at, line in one.lines if ENTERED.match(line)]
        judging += judged[-1] - began if judged and began is not None else 0.0
        if entered:
            start = judged[-1] if judged else began or entered[0]
            entering += entered[-1] - start
            each = [b - a for a, b in zip(entered, entered[1:], strict=False)]
    part = max(1, int(len(each) * FIRST))
    return {
        "seconds": round(sum(one.seconds for one in said), 1),
        "judging_s": round(judging, 1),
        "entering_s": round(entering, 1),
        "entering_each_s": round(entering / wanted.students, 3),
        "entering_first_fifth_s": round(sum(each[:part]) / part, 3) if each else None,
        "entering_last_fifth_s": round(sum(each[-part:]) / part, 3) if each else None,
    }


def plan(size: int, students: int, kinds: dict[str, dict], cost: dict) -> dict:
    """Estimate for `size` submissions of the same kind. Numpy answers grow with the class, and at worst kernels'
    texts too."""
    grown = size / students
    checks = {kind: round(row["answers"] * grown) for kind, row in kinds.items()}
    work_s = sum(checks[kind] * kinds[kind]["mean_s"] for kind in checks)
    every_kernel = kinds.get("kernel", {}).get("mean_s", 0.0)
    return {
        "different_answers": checks,
        "work_of_checks_h": round(work_s / 3600, 2),
        "judging_h_by_workers": {str(n): round(work_s / n / 3600, 2) for n in FARMS},
        "if_every_student_had_a_kernel_of_their_own_h_by_workers": {
            str(n): round((work_s + size * every_kernel) / n / 3600, 2) for n in FARMS
        },
        "entering_h_one_writer": round(cost["entering_each_s"] * size / 3600, 2),
    }


def package_versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("distributed", "dask", "nbgrader")}

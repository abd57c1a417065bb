"""Plan many told cases and lower none, so that the referee sees by what an answer's plans differ."""

import sys
import time

from .answer_module import AnswerError
from .bind import make_plan
from .plan import Plan

MOST_S = 3.0  # for all cases of a request, after which no other one is planned


def planned(module, task: dict, arrays: dict) -> tuple[dict, dict]:
    """Return {"cases": [{"facts": {text: text}, "grids"}]}, for as many of the cases as there is time for."""
    printed, rows, began = sys.stdout, [], (time.process_time(), time.monotonic())
    for case in task["cases"]:
        if max(time.process_time() - began[0], (time.monotonic() - began[1]) / 2) > MOST_S:
            break
        sys.stdout = sys.stderr = type(printed)()
        try:
            plan = make_plan(module, task["entry"], case)
            rows.append({"facts": facts(plan), "grids": [step["grid"] for step in plan.steps]})
        except AnswerError as error:
            rows.append({"facts": {"error": f"line {error.report['line']}"}, "grids": []})
    sys.stdout = sys.stderr = printed
    return {"cases": rows}, {}


def facts(plan: Plan) -> dict[str, str]:
    """Return what a plan says, each under a name of its own, and all constants of a step together."""
    found = {"kernels": " ".join(step["kernel"] for step in plan.steps)}
    for number, step in enumerate(plan.steps):
        settings = {"num_warps": step["num_warps"], "num_stages": step["num_stages"], **step["constexprs"]}
        found |= {f"{number} {name}": str(value) for name, value in settings.items()}
        found[f"{number} together"] = " ".join(map(str, settings.values()))
        found |= {f"{number} grid {axis}": str(size) for axis, size in enumerate(step["grid"])}
    for kind in ("scratch", "packed"):
        arrays = getattr(plan, kind)
        found |= {f"{kind} {name}": f"{row['dtype']} {row['shape']}" for name, row in arrays.items()}
    return {name: value[:200] for name, value in found.items()}

"""What crosses to the GPU: the plan of each case, and each distinct kernel of all their plans once, as Triton IR.

Two launches share their code where kernel, dtypes, constants, alignment, warps and stages are the same.
"""

import json

from answer_module import AnswerError
from interpret import argument_values, jit_functions, make_plan
from lowering import TileTooLarge, lower
from specialise import specialise


def cross(module, task: dict) -> dict:
    """{"cases": [{"plan", "kernels": [{"ir": number, "arguments"}]} or {"error"}], "ir": [text], "settings": [...]}"""
    known = {}
    rows = [_one({**task, **case}, module, known) for case in task["cases"]]
    found = list(known.values())
    return {"cases": rows, "ir": [one["ir"] for one in found], "settings": [one["settings"] for one in found]}


def _one(case: dict, module, known: dict) -> dict:
    """A case whose launch or kernel goes wrong takes none of the others with it."""
    try:
        plan = make_plan(module, case)
        values, kernels = argument_values(case, plan), jit_functions(module)
        used = [
            _kernel(kernels[step["kernel"]], step, values, case["targets"][0], known) for step in plan.steps
        ]
    except AnswerError as error:
        return {"error": error.report}
    except TileTooLarge as error:
        return {
            "error": {"stage": "compile", "kind": type(error).__name__, "message": str(error), "line": None}
        }
    return {"plan": plan.as_json(), "kernels": used}


def _kernel(kernel, step: dict, values: dict, target: int, known: dict) -> dict:
    *specialised, arguments = specialise(kernel, step, values)
    types, constants, attributes = specialised
    settings = {"num_warps": step["num_warps"], "num_stages": step["num_stages"]}
    parts = [step["kernel"], types, sorted(constants.items()), sorted(attributes.items()), settings]
    key = json.dumps(parts, default=str)
    if key not in known:
        texts, _ = lower(kernel, step, specialised, target, "ttir")
        known[key] = {"ir": texts["ttir"], "settings": settings, "number": len(known)}
    return {"ir": known[key]["number"], "arguments": arguments}

"""What ran in the interpreter must be Triton: each kernel of each judged plan goes through Triton's own front end.

The interpreter would run Python that no GPU knows; and a launch(p) could answer otherwise when asked by the compiler.
"""

import json

from answer_module import AnswerError
from interpret import argument_values, jit_functions, make_plan
from lowering import lower
from specialise import specialise


def same_plan(module, case: dict):
    """The plan of one case, which must be the one that ran."""
    plan = make_plan(module, case)
    if json.loads(json.dumps(plan.as_json())) != case["plan"]:
        raise AnswerError(
            "launch",
            "launch(p) gave another plan when it was asked again; it must depend on p alone",
            kind="OtherPlan",
        )
    return plan


def check(module, task: dict) -> list[str]:
    """IR text of every kind of launch in the task's cases. An error says in which case it came up."""
    seen = {}
    for number, case in enumerate(task["cases"]):
        case = {**task, **case}
        try:
            plan = same_plan(module, case)
            values, kernels = argument_values(case, plan), jit_functions(module)
            for step in plan.steps:
                types, constants, _, _ = specialise(kernels[step["kernel"]], step, values)
                key = (step["kernel"], json.dumps([types, sorted(constants.items())], default=str))
                if key not in seen:
                    texts, _ = lower(
                        kernels[step["kernel"]], step, (types, constants, {}), task["targets"][0]
                    )
                    seen[key] = texts["front end"]
        except AnswerError as error:
            error.report["case"] = number
            raise
    return list(seen.values())

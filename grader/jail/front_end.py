"""What ran in the interpreter must be Triton: each kernel of each judged plan goes through Triton's own front end.

The interpreter would run Python that no GPU knows; and a launch(p) could answer otherwise when asked by the compiler.
"""

import json

from answer_module import AnswerError, blame
from interpret import argument_values, jit_functions, make_plan
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import ir, make_backend


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


def check(module, task: dict, signature) -> list[str]:
    """IR text of every kind of launch in the task's cases. An error says in which case it came up."""
    seen = {}
    for number, case in enumerate(task["cases"]):
        case = {**task, **case}
        try:
            plan = same_plan(module, case)
            values, kernels = argument_values(case, plan), jit_functions(module)
            for step in plan.steps:
                types, constants, _, _ = signature(kernels[step["kernel"]], step, values)
                key = (step["kernel"], json.dumps([types, sorted(constants.items())], default=str))
                if key not in seen:
                    seen[key] = lower(kernels[step["kernel"]], step, types, constants, task["targets"][0])
        except AnswerError as error:
            error.report["case"] = number
            raise
    return list(seen.values())


def lower(kernel, step: dict, types: dict, constants: dict, target: int) -> str:
    """A kernel as Triton IR, and no further: no registers, no machine code."""
    gpu = GPUTarget("cuda", target, 32)
    backend = make_backend(gpu)
    options = backend.parse_options({"num_warps": step["num_warps"], "num_stages": step["num_stages"]})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(kernel, signature=types, constexprs=constants, attrs={})
    with blame("compile"):
        module = source.make_ir(
            gpu, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
        )
    return str(module)

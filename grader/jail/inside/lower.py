"""Lower answers (worker "lower", with three named operations). For each case, a cell becomes a plan and the Triton IR
of each distinct kernel, as text.

No tensor enters and no kernel runs here. Anything this process says of itself is read as a stranger's word. A cell
whose question lets it prepare weights does so in another process, once its texts are fixed (weight_packing.py).
"""

import json
import re
import sys
import warnings

import numpy as np
from printed import WARNED  # the box's own, on its path

from tilescope import lowering  # with the builder that it may need, all of tilescope that a jail is shown

import triton  # isort: skip: where its compiled library is missing, lowering has put ours there
import triton.language as tl  # isort: skip
from triton.compiler import code_generator  # isort: skip

from ..protocol import MOST_TEXTS
from .answer_module import FILE, GAVE_UP, AnswerError, blame, load
from .bind import Arguments, argument_values, kernels_of, make_plan
from .front_end_words import warned_anew
from .plan_many import planned
from .specialise import specialise
from .steady import changed
from .weight_packing import prepared

LAUNCHED_BY_THE_COURSE = (
    "launch(p) says what to run and runs nothing itself: name the kernel in a step, with its grid"
)

FLOATS_OF_INTEGERS = re.compile(
    r'= "?math\.(?!absi|ipowi|ctlz|ctpop|cttz)\w+"?[ (].*: \(?(?:tensor<[\dx]*)?i\d+'
)


class LaunchedByTheAnswer(RuntimeError):
    pass


def in_one_line(message, category, filename, lineno, line=None) -> str:
    """Return a warning as one line among the answer's prints."""
    line = f", line {lineno}" if filename == FILE else ""
    return f"{WARNED}{line}: {warned_anew(str(message))}\n"


def no_dump(module) -> None:
    """Keep Triton from printing the module if operations don't fit together, because a learner can't use this output."""


def prepare() -> None:
    def run(self, *arguments, **more):
        raise LaunchedByTheAnswer(LAUNCHED_BY_THE_COURSE)

    warnings.formatwarning = in_one_line
    code_generator.print = no_dump
    triton.runtime.JITFunction.run = run
    triton.runtime.JITFunction.__repr__ = lambda self: f"<kernel {self.fn.__name__}>"
    lowering.prepared(90)
    for name in [name for name in sys.modules if name.split(".")[0] == "tilescope"]:
        sys.modules.pop(name)  # shown for this module only, so no answer finds it by its name


def run(task: dict, arrays: dict) -> tuple[dict, dict]:
    operations = {"lower": lowered, "texts": each_lowered, "plan": planned, "pack": prepared}
    if task.get("operation") not in operations:
        raise ValueError(f"operation must be one of {', '.join(operations)}, got {task.get('operation')!r}")
    module = loaded(task["source"])
    return operations[task["operation"]](module, task, arrays)


def loaded(source: str):
    return load(source, {"triton": triton, "tl": tl, "np": np})


def lowered(module, task: dict, arrays: dict) -> tuple[dict, dict]:
    """Return {"cases": [{"plan", "kernels": [{"text": number, "arguments"}], "printed"} or {"error"}], "texts":
    [text]}."""
    known, rows = {}, []
    for case in task["cases"]:
        printed = sys.stdout
        fresh = sys.stdout = sys.stderr = type(printed)()
        rows.append({**_one(module, task, case, known), "printed": fresh.text()})
        sys.stdout = sys.stderr = printed
    if any("plan" in row for row in rows):
        again = loaded(task["source"])
        rows = [error or row for row, error in zip(rows, changed(again, task, rows), strict=True)]
    return {"cases": rows, "texts": [text for text in known.values()]}, {}


def each_lowered(module, task: dict, arrays: dict) -> tuple[dict, dict]:
    """Return a row for each of several texts of a cell, in the same form. No answer is judged by these, so launch(p) isn't
    called again."""
    printed, rows, texts = sys.stdout, [], []
    sys.stdout = sys.stderr = type(printed)()
    for source in task["sources"]:
        known = {}
        try:
            row = _one(loaded(source), task, task["cases"][0], known)
        except AnswerError as error:
            row = {"error": error.report}
        for used in row.get("kernels", ()):
            used["text"] += len(texts)
        texts += known.values()
        rows.append(row)
    sys.stdout = sys.stderr = printed
    return {"cases": rows, "texts": texts}, {}


def _one(module, task: dict, case: dict, known: dict) -> dict:
    """Lower one case. If its launch or kernel fails, the others go on."""
    try:
        plan = make_plan(module, task["entry"], case)
        values, kernels = argument_values(case, plan), kernels_of(module)
        used = [_kernel(kernels[step["kernel"]], step, values, task["target"], known) for step in plan.steps]
    except AnswerError as error:
        return {"error": error.report}
    return {"plan": plan.as_json(), "kernels": used}


def _kernel(kernel, step: dict, values: Arguments, target: int, known: dict) -> dict:
    *specialised, arguments = specialise(kernel, step, values)
    types, constants, attributes = specialised
    settings = [step["kernel"], step["num_warps"], step["num_stages"]]
    key = json.dumps([settings, types, sorted(constants.items()), sorted(attributes.items())], default=str)
    if key not in known:
        if len(known) >= MOST_TEXTS:
            raise AnswerError(
                "launch",
                f"an answer may have at most {MOST_TEXTS} different kernels over all cases",
                kind="TooMany",
            )
        with blame("compile", kernel=step["kernel"]):
            settings = {"num_warps": step["num_warps"], "num_stages": step["num_stages"]}
            text = lowering.text_of(kernel, *specialised, target=target, **settings)
            if FLOATS_OF_INTEGERS.search(text):  # Triton's own parser gives up here
                raise RuntimeError(GAVE_UP)
            known[key] = text
    return {"text": list(known).index(key), "arguments": [values.today(name) for name in arguments]}

"""Run the referee's end of the machine: one case's texts and inputs go in, values and counts come out."""

from dataclasses import replace

import numpy as np

from grader.box import warm
from grader.box.serve.frames import dtype_name
from grader.machine import protocol

# programs that wait for each other are threads, up to 512 in number
MACHINE = warm.Worker("grader.machine.inside.main", ("grader/machine", "tilescope/machine"), processes=600)
LIMITS = warm.Limits(wall_s=120.0, cpu_s=100, memory_bytes=6 << 30, answer_bytes=1 << 30)
SECONDS = 40.0  # of processor time for one case
NO_THREAD = (
    "can't start new thread"  # of programs that wait for each other: other runs on this system have them all
)


def run_case(texts, plan, tensors, *, values: dict, operation="run", level=None, **how) -> warm.Outcome:
    """Run a case. `tensors` are placed, and `values` holds arguments' numbers by name, as (type, value)."""
    request, given = request_of(texts, plan, tensors, values, operation, **how)
    limits = replace(LIMITS, enough_s=request.seconds / 2)
    outcome = warm.programs(MACHINE, level).ask(request.task(), given, limits)
    if outcome.error and NO_THREAD in outcome.error["message"]:
        raise warm.JailTrouble("the machine got no thread for each of the programs that wait for one another")
    if operation in ("run", "stores", "writers", "lines") and not outcome.error:
        try:
            if operation == "lines":
                protocol.lines_reply(request, outcome.header, outcome.arrays)
            elif operation == "writers":
                protocol.writers_reply(request, outcome.arrays, dtype_name)
            else:
                protocol.run_reply(request, outcome.header, outcome.arrays, dtype_name)
        except protocol.BadReply as bad:
            raise warm.JailTrouble(f"the machine answered {bad}") from None
    return outcome


def request_of(
    texts, plan, tensors, values: dict, operation="run", **how
) -> tuple[protocol.RunRequest, dict]:
    """Return the request to the machine, together with its arrays."""
    used = sorted({step.text for step in plan.steps})
    request = protocol.RunRequest(
        texts=[texts[number] for number in used],
        steps=[protocol.Step(used.index(s.text), s.grid, arguments(s, values)) for s in plan.steps],
        tensors=[one.as_task() for one in tensors],
        scratch=plan.scratch,
        operation=operation,
        **{"seconds": SECONDS, **how},
    )
    given = {one.spec.name: one.storage for one in tensors if one.spec.role != "out" and one.storage.size}
    return request, given


def arguments(step, values: dict) -> list:
    return [
        list(values[name]) if name in values else ["tensor", name.removesuffix("_ptr")]
        for name in step.arguments
    ]


def print_texts(texts: list[str], level: int | None = None) -> list[dict]:
    """Return each text in the machine's print of its own tree with its accesses and what steers them, or {"error"} if no
    answer may hold this text."""
    request = protocol.PrintRequest(list(texts))
    outcome = warm.programs(MACHINE, level).ask(request.task(), {}, LIMITS)
    if outcome.error:
        return [{"error": outcome.error}] * len(request.texts)
    return [
        row if isinstance(row["text"], str) else {"error": warm.clean_error(row["text"]["error"])}
        for row in protocol.print_reply(request, outcome.header)
    ]


def numbers(case, plan, tensors) -> dict:
    """Return the value of each argument that isn't a pointer: sizes, scalars and strides, scratch's among them."""
    found = {name: integer_argument(v) for name, v in case.sizes.items()}
    found |= {
        n: ("fp32", float(v)) if isinstance(v, float) else integer_argument(v)
        for n, v in case.scalars.items()
    }
    strides = {one.spec.name: (one.spec.axes, one.strides) for one in tensors}
    for name, row in plan.scratch.items():
        steps = np.cumprod([1, *reversed(row["shape"][1:])])[::-1] if row["shape"] else ()
        strides[name] = ("0123456789", steps)
    for name, (axes, steps) in strides.items():
        found |= {f"stride_{name}{axis}": integer_argument(s) for axis, s in zip(axes, steps, strict=False)}
    return found


def integer_argument(value) -> tuple[str, int]:
    return ("i64" if abs(value) >= 2**31 else "i32", int(value))

"""Find comparisons of numbers with constants that a question doesn't allow, in the kernels of all plans.

A cut-off or a clamp is right on one side of its constant only, and no case need come near it."""

from dataclasses import dataclass

from grader.jail.protocol import Plan
from grader.judge import steering
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import KernelEvidence
from grader.questions import Case, criteria_text
from grader.questions.model import ANYTHING, ORDINARY, WEIGHTS
from tilescope.machine.comparisons import WHOLE

LOOK = (
    "what the formula does with numbers on both sides of {}. {}. A number that the lab doesn't name is where a shortcut "
    "begins, and numbers beyond it get another result"
)
FLOATS = "fp", "bf"


@dataclass(frozen=True, order=True)
class Compared:
    """Hold a line that compares numbers with a constant, by the question's names."""

    line: int
    constant: str
    source: str


def judge(evidence: KernelEvidence) -> None:
    """Raise Failed for the first line that compares numbers of floats with another constant than the question allows."""
    question = evidence.question
    if ANYTHING in question.compared:
        return
    found = {one for plan in steering.plans(evidence) for one in of_plan(evidence, plan)}
    found = {one for one in found if one.constant not in (*ORDINARY, *question.compared)}
    if found:
        first, rule = min(found), criteria_text.compared(question)
        alike = [one for one in found if (one.line, one.constant) == (first.line, first.constant)]
        sources = criteria_text.listed(sorted({one.source for one in alike}))
        does = "rounds numbers of {} to {}" if first.constant == WHOLE else "compares numbers of {} with {}"
        said = f"line {first.line} {does.format(sources, first.constant)}"
        raise Failed(said, LOOK.format(first.constant, rule), asked=rule, told=said)


def of_plan(evidence: KernelEvidence, plan: Plan) -> set[Compared]:
    """Return what numbers of floats are compared with in the kernels of a plan, as they came in or as scratch holds them."""
    floats = of_floats(next(iter(evidence.known.values())), evidence.question, plan)
    told = dict.fromkeys(plan.packed, WEIGHTS)
    made_of = steering.contents(evidence, plan)
    return {
        Compared(one.line, one.constant, told.get(source, source))
        for step in plan.steps
        for one in evidence.printed_text(step.text).get("compared", ())
        for source in steering.origins(steering.name(step, one.source), made_of) & floats
    }


def of_floats(case: Case, question, plan: Plan) -> set[str]:
    """Return the names of all that brings in numbers of floats: inputs, scalars and prepared arrays."""
    inputs = {
        one.name for one in question.tensors if one.role != "out" and case.dtype_of(one).startswith(FLOATS)
    }
    scalars = {name for name, value in case.scalars.items() if isinstance(value, float)}
    packed = {name for name, one in plan.packed.items() if one["dtype"].startswith(FLOATS)}
    return inputs | scalars | packed

"""Find comparisons of numbers with constants that a question doesn't allow, in the kernels of all plans.

A cut-off or a clamp is right on one side of its constant only, and no case need come near it."""

from dataclasses import dataclass

from grader.jail.protocol import Plan
from grader.judge import steering
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import KernelEvidence
from grader.questions import Case, KernelQuestion, criteria_text
from grader.questions.model import ANYTHING, ONE_ANOTHER, ORDINARY, WEIGHTS
from tilescope.machine.comparisons import WHOLE

LOOK = (
    "what the formula does with numbers on both sides of {}. {}. A number that the lab doesn't name is where a shortcut "
    "begins, and numbers beyond it get another result"
)
FLOATS = "fp", "bf"


@dataclass(frozen=True, order=True)
class Compared:
    """Hold a line that compares numbers with a constant, or with one another, by the question's names."""

    line: int
    constant: str
    source: str
    of_many: bool = False  # whether a maximum, a sum or a product of many is compared


def judge(evidence: KernelEvidence) -> None:
    """Raise Failed for the first line that compares numbers with something that the question doesn't allow."""
    question = evidence.question
    if ANYTHING in question.compared:
        return
    found = {one for plan in steering.plans(evidence) for one in of_plan(evidence, plan)}
    found = {one for one in found if not allowed(question, one)}
    if found:
        first, rule = min(found), criteria_text.compared(question)
        alike = [one for one in found if (one.line, one.constant) == (first.line, first.constant)]
        sources = criteria_text.listed(sorted({one.source for one in alike}))
        does = "rounds {} of {} to {}" if first.constant == WHOLE else "compares {} of {} with {}"
        what = "a maximum, a sum or a product of many numbers" if first.of_many else "numbers"
        other = first.constant if first.constant != ONE_ANOTHER else "other numbers"
        said = f"line {first.line} {does.format(what, sources, other)}"
        raise Failed(said, LOOK.format(other, rule), asked=rule, told=said)


def allowed(question: KernelQuestion, one: Compared) -> bool:
    usual = () if one.of_many else (ONE_ANOTHER, *ORDINARY)
    return one.constant in (*usual, *question.compared)


def of_plan(evidence: KernelEvidence, plan: Plan) -> set[Compared]:
    """Return what numbers are compared with in the kernels of a plan, as they came in or as scratch holds them. Whole numbers
    that steer nothing, such as codes, count where many are compared at once."""
    case, question = next(iter(evidence.known.values())), evidence.question
    floats, codes = of_floats(case, question, plan), of_codes(case, question)
    told, made_of = dict.fromkeys(plan.packed, WEIGHTS), steering.contents(evidence, plan)
    found = set()
    for step in plan.steps:
        for one in evidence.printed_text(step.text).get("compared", ()):
            read = steering.name(step, one.source)
            many = one.reduced or read in plan.scratch
            for source in steering.origins(read, made_of) & (floats | codes if one.reduced else floats):
                found.add(Compared(one.line, one.constant or ONE_ANOTHER, told.get(source, source), many))
    return found


def of_floats(case: Case, question: KernelQuestion, plan: Plan) -> set[str]:
    """Return the names of all that brings in numbers of floats: inputs, scalars and prepared arrays."""
    inputs = {
        one.name for one in question.tensors if one.role != "out" and case.dtype_of(one).startswith(FLOATS)
    }
    scalars = {name for name, value in case.scalars.items() if isinstance(value, float)}
    packed = {name for name, one in plan.packed.items() if one["dtype"].startswith(FLOATS)}
    return inputs | scalars | packed


def of_codes(case: Case, question: KernelQuestion) -> set[str]:
    """Return the inputs of whole numbers that may steer nothing."""
    steering_ones = {row.by for row in question.steered}
    whole = {one.name for one in question.tensors if one.role == "in" and case.dtype_of(one).startswith("i")}
    return whole - steering_ones

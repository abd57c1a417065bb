"""Find loads and uses of tl.dot that numbers of an input steer although the question doesn't say that they may, at all sizes
that launch(p) planned for."""

from collections.abc import Iterator
from dataclasses import dataclass

from grader.jail.protocol import Kernel, Plan
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import KernelEvidence
from grader.questions import KernelQuestion, criteria_text
from grader.questions.model import DOT, SCRATCH, WEIGHTS
from tilescope.machine import influence

WHICH, WHETHER = "which elements", "whether it does"
LOOK = (
    "what the address, the mask, and the branches and loops around this line depend on. {}. A part that is left out for some "
    "numbers is wrong for others, such as infinities and NaN, and a part that is repeated costs its bytes twice"
)


@dataclass(frozen=True, order=True)
class Found:
    """Hold a load or a tl.dot that numbers of a tensor steer, by the names of the question."""

    line: int
    target: str
    source: str
    branch: bool


def judge(evidence: KernelEvidence) -> None:
    """Raise Failed for the first such line."""
    question = evidence.question
    found = {one for one in every(evidence) if not allowed(question, one)}
    if found:
        first, rule = min(found), criteria_text.steered(question)
        alike = [one for one in found if (one.line, one.target) == (first.line, first.target)]
        sources = criteria_text.listed(sorted({one.source for one in alike}))
        what = WHETHER if any(one.branch for one in alike) else WHICH
        verb = "multiplies by" if first.target == DOT else "loads"
        said = f"line {first.line} {verb} {first.target}, and numbers of {sources} decide {what}"
        raise Failed(said, LOOK.format(rule), asked=rule, told=said)


def every(evidence: KernelEvidence) -> Iterator[Found]:
    """Yield what numbers steer in each plan of this check. Plans alike are looked at once."""
    for plan in plans(evidence):
        yield from of_plan(evidence, plan)


def plans(evidence: KernelEvidence) -> Iterator[Plan]:
    """Yield the plans of a check, those with the same kernels and arguments once."""
    seen = set()
    for purpose in evidence.cases:
        plan = evidence.plan(purpose)
        if isinstance(plan, Plan):
            steps = tuple((step.text, step.arguments) for step in plan.steps)
            if steps not in seen:
                seen.add(steps)
                yield plan


def of_plan(evidence: KernelEvidence, plan: Plan) -> Iterator[Found]:
    """Yield what numbers of inputs steer in the kernels of a plan. Numbers in scratch and outputs stand for those that they
    were made of."""
    read = {one.name for one in evidence.question.tensors if one.role in ("in", "inout")} | set(plan.packed)
    told = dict.fromkeys(plan.scratch, SCRATCH) | dict.fromkeys(plan.packed, WEIGHTS)
    made_of = contents(evidence, plan)
    for step in plan.steps:
        for one in evidence.printed_text(step.text).get("steers", ()):
            target = name(step, one.target)
            for source in origins(name(step, one.source), made_of) & read:
                named = told.get(target, target), told.get(source, source)
                yield Found(one.line, *named, one.by == "branch")


def contents(evidence: KernelEvidence, plan: Plan) -> dict[str, set[str]]:
    """Return for each tensor that a plan's kernels store the tensors and scalars that its numbers depend on."""
    made_of: dict[str, set[str]] = {}
    for step in plan.steps:
        for one in evidence.printed_text(step.text).get("content", ()):
            made_of.setdefault(name(step, one.tensor), set()).add(name(step, one.source))
    return made_of


def name(step: Kernel, place: int) -> str:
    """Return the name of the tensor that a kernel's argument points into."""
    return DOT if place == influence.DOT else step.arguments[place].removesuffix("_ptr")


def origins(tensor: str, made_of: dict[str, set[str]]) -> set[str]:
    """Return the tensors that the numbers of a tensor depend on, itself among them."""
    found, left = set(), [tensor]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += made_of.get(one, ())
    return found


def allowed(question: KernelQuestion, found: Found) -> bool:
    return any(
        row.by == found.source
        and (not row.of or found.target in row.of)
        and (row.whether or not found.branch)
        for row in question.steered
    )

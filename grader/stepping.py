"""Show step(answer), the failing case of a kernel answer line by line in tilescope's stepper.

Public cases come first, then those that a check may show of a hidden kind. The jail lowers the answer as for a check.
Its IR then runs in this process, which is the learner's own.
"""

import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np

from grader.judge import answer, hidden_failure, parts
from grader.judge.diagnose import differs, judge_case
from grader.judge.failed import Failed, Refusal, Unclear
from grader.judge.kernel_evidence import PUBLIC, KernelEvidence
from grader.machine import host
from grader.machine.inside import main as machine
from grader.questions import KernelQuestion
from tilescope.checking import Witness, ids_of
from tilescope.findings import Finding, of_error, of_race
from tilescope.machine.dtypes import NAMES
from tilescope.machine.interpreter import Launch
from tilescope.machine.turns import element_of
from tilescope.recorder import Place, Recorder, Recording
from tilescope.sources import variables

FILE = "<answer>"  # what the text of an answer calls its cell


class NothingToStep(ValueError):
    """Reports that no step can be shown. The message says why."""


def recorded(answer_object, question, case=None, program=None) -> Recording:
    """Return the recording of a kernel answer's failing case, or of the named case. `program` is as for tilescope."""
    if not isinstance(question, KernelQuestion):
        raise NothingToStep(
            f"step needs a kernel's answer, got one for {question.id}. run() tries this answer"
        )
    try:
        source = answer.normalise(answer.of_object(answer_object))
        answer.require_parses(source)
    except (answer.Refused, answer.NotFound) as trouble:
        raise NothingToStep(str(trouble)) from None
    evidence = parts.gather(question, source, seed=0)
    if case is None:
        evidence, purpose, came = failing(evidence)
    else:
        from grader.trial import number_of, with_sizes

        chosen = (
            with_sizes(question, case)
            if isinstance(case, dict)
            else question.public[number_of(case, question)]
        )
        evidence.cases, purpose = {PUBLIC: replace(chosen, sm_count=chosen.sm_count or 16)}, PUBLIC
        came = wrong(evidence, purpose)
    return record(evidence, purpose, came, program)


def wrong(evidence: KernelEvidence, purpose: int) -> str:
    """Return a check's sentence about a case, or an empty text if nothing is wrong."""
    try:
        run = evidence.run(purpose)
        run.hidden = False
        judge_case(evidence.question, run, (), evidence)
    except Failed as failed:
        return failed.came
    except Unclear:
        pass
    except Refusal as trouble:
        raise NothingToStep(str(trouble)) from None
    return ""


def failing(evidence: KernelEvidence) -> tuple[KernelEvidence, int, str]:
    """Return the first failing case that may be shown, or the first public one if none fails."""
    for purpose in evidence.public:
        if came := wrong(evidence, purpose):
            return evidence, purpose, came
    for draw in range(hidden_failure.SHOWN_DRAWS):
        again = KernelEvidence(
            evidence.question, evidence.source, hidden_failure.SHOWN_SEED + draw, level=evidence.level
        )
        again.cases = {n: again.case(n) for n in again.hidden}
        for purpose in again.cases:
            if came := wrong(again, purpose):
                return again, purpose, came
    return evidence, evidence.public[0], ""


def record(evidence: KernelEvidence, purpose: int, came: str, program) -> Recording:
    """Run a case twice more, first to find the program to blame, then to record that program."""
    plan, run = evidence.plan(purpose), evidence.run(purpose)
    if isinstance(plan, dict):
        raise NothingToStep(plan["message"])
    again = partial(once_more, evidence, purpose, plan)
    places = {(race["tensor"], race["element"]) for race in run.outcome.header.get("races", [])}
    at = worst(evidence, run) if came and not run.outcome.error and not places else None
    witness = Witness(places | ({at} if at else set()))
    report, tensors, modules = again(watcher=witness)
    grids = [one.grid for one in plan.steps]
    number = guilty(report, len(grids))
    kernel = modules[[s.text for s in plan.steps][number]].kernel
    found = findings(report, kernel.name, grids[number], number, witness, tensors, at, came)
    which = chosen(program, found, grids[number])
    first, source = kernel_source(evidence.source, kernel.name, kernel.line)
    recording = Recording(kernel.name, FILE, first, source, tuple(grids[number]), which)
    recording.findings = [finding.as_dict() for finding in found]
    recording.places = [
        Place(t.name, NAMES[t.elements.dtype], t.base, t.itemsize, t.extent, tuple(t.shape), tuple(t.strides))
        for t in tensors
    ]
    recorder = Recorder(recording, variables(kernel, source))
    again(launch=lambda at, *given: (recorder.launch if at == number else Launch)(at, *given))
    return recording


def once_more(evidence: KernelEvidence, purpose: int, plan, **more):
    """Run a case in this process. Return its report, its tensors, and the modules by their text's number."""
    _, placed = evidence.draw(purpose)
    case, texts = evidence.case(purpose), evidence.texts(purpose)
    anything = {
        "sm_count": case.sm_count,
        "repeatable": evidence.question.repeatable,
        "counting": "values",
    }
    request, given = host.request_of(texts, plan, placed, host.numbers(case, plan, placed), **anything)
    task = request.task()
    modules = [machine.parsed(text) for text in task["texts"]]
    tensors = machine.tensors_of(task, given)
    report = machine.run_task(task, modules, tensors, **more)
    return report, tensors, dict(zip(sorted({s.text for s in plan.steps}), modules, strict=True))


def worst(evidence: KernelEvidence, run) -> tuple[str, int] | None:
    """The output and the element of its storage that is furthest from the reference."""
    got = {name: run.output(name) for name in run.want}
    _, found = differs(evidence.question, run.inputs, run.case, got, run.want)
    if found is None:
        return None
    placed = next(p for p in run.placed if p.spec.name == found.name)
    return found.name, int(np.dot(found.index, placed.strides))


def guilty(report, count: int) -> int:
    """Return the launch to record, which is the launch that ended the run, else a launch with a race, else the
    last."""
    if report.error:
        return min(len(report.launches), count - 1)
    return report.races[0]["launch"] if report.races else count - 1


def findings(
    report, kernel: str, grid, number: int, witness: Witness, tensors, at, came: str
) -> list[Finding]:
    stored = {tensor.name: tensor for tensor in tensors}
    if report.error:
        return [of_error(kernel, FILE, report.error)]
    found = []
    for race in report.races:
        if race["launch"] == number:
            element = element_of(stored[race["tensor"]], race["element"])
            launched = SimpleNamespace(kernel=kernel, file=FILE, grid=tuple(grid))
            found.append(of_race(launched, race, witness.other(race, grid), element))
    if found or not came:
        return found
    seen = witness.seen[(*at, "store")] if at else {}
    program, line = list(seen)[-1] if seen else (0, None)
    tensor, element = at or ("", None)
    ids = [ids_of(program, grid)] if seen else []
    return [Finding("failed", came, kernel, FILE, line, tensor, ids, element)]


def chosen(program, found: list[Finding], grid) -> int:
    """Return the program's number: the requested one, else the first that a finding names."""
    from tilescope.stepping import Wanted

    named = next((tuple(f.programs[0]) for f in found if f.programs), 0)
    number = Wanted(named if program is None else program).number(tuple(grid))
    if number is None:
        raise NothingToStep(f"program must be in the grid {tuple(grid)}, got {program!r}")
    return number


def kernel_source(source: str, kernel: str, line: int) -> tuple[int, list[str]]:
    """The kernel's lines in the answer, as its IR counts them."""
    lines = source.splitlines()
    head = next(
        (n for n, text in enumerate(lines, 1) if re.match(rf"\s*def\s+{re.escape(kernel)}\b", text)), line
    )
    end = head
    while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t)#"):
        end += 1
    while end > head and not lines[end - 1].strip():
        end -= 1
    return head, lines[head - 1 : end]

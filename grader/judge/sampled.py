"""Values of the compiled case: whole where that is cheap, else of drawn programs on its full-size inputs."""

import math

import numpy as np

from grader.judge.cases import describe, differs, judge_case, refuse_error
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import COMPILED, KernelEvidence, Run

PROGRAMS = 24  # drawn ones, beside the corners of the grid
WHOLE_S = 90  # of processor time, where programs depend on one another and all must run
DRAWN = 901  # the purpose of the drawing


def judge_compiled_case(evidence: KernelEvidence) -> None:
    question, plan = evidence.question, evidence.plan(COMPILED)
    if isinstance(plan, dict) or question.sampled is None:
        return judge_case(question, evidence.run(COMPILED), [])
    if len(plan.steps) > 1 or plan.scratch or any('"tt.atomic' in text for text in evidence.texts(COMPILED)):
        run = evidence.run(COMPILED, seconds=WHOLE_S)
        refuse_error(run)
        return judge_written(evidence, run, whole=True)
    chosen = programs(plan.steps[0].grid, evidence.rng(DRAWN))
    run = evidence.run(COMPILED, programs=[chosen])
    refuse_error(run)
    return judge_written(evidence, run, whole=False)


def programs(grid: tuple[int, int, int], rng: np.random.Generator) -> list[int]:
    """Linear numbers of the grid's corners and of programs drawn from all of it."""
    x, y, z = grid
    corners = {i + x * (j + y * k) for i in (0, x - 1) for j in (0, y - 1) for k in (0, z - 1)}
    return sorted(corners | {int(n) for n in rng.integers(0, math.prod(grid), PROGRAMS)})


def judge_written(evidence: KernelEvidence, run: Run, whole: bool) -> None:
    """What the programs wrote, compared in rows drawn from what they wrote; a program that writes nothing is told."""
    question, case = evidence.question, run.case
    written = {
        placed.spec.name: placed.view(run.outcome.arrays[f"stores:{placed.spec.name}"]) > 0
        for placed in run.placed
        if placed.spec.role != "in"
    }
    where = describe(run)
    for name, there in written.items():
        if whole and not there.all() or not there.any():
            raise Failed(f"{where}: {np.count_nonzero(~there):,} elements of {name} were never written", told="elements that were never written")  # fmt: skip
    picked = question.sampled(question, run.inputs, case, evidence.rng(DRAWN + 1), written)
    for inputs, part, places in picked:
        want = question.reference(inputs, part)
        got = {name: np.where(written[name][place], run.output(name)[place].astype(np.float64), want[name]) for name, place in places.items()}  # fmt: skip
        sentence, _ = differs(question, inputs, part, got, want)
        if sentence:
            raise Failed(f"at the size that is compiled ({where}): {sentence}", "the sizes of the compiled case", told="values that differ")  # fmt: skip

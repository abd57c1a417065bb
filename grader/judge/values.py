"""The judge of a kernel's values: public cases, hidden ones, and the cases that are metered and compiled as well."""

from grader.judge import on_gpu, sampled
from grader.judge.cases import judge_case
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import COMPILED, METERED, KernelEvidence, Run
from grader.judge.other_launch import launch_to_blame
from grader.judge.record import PartResult
from grader.judge.shown import NOTHING_SHOWN, SHOWN_SEED
from grader.questions import Part

SHOWN_DRAWS = 3  # a mistake need not show in the first


def judge(evidence: KernelEvidence, part: Part, result: PartResult) -> None:
    result.evidence = "run here on the CPU"
    public, hidden = evidence.public, evidence.hidden
    runs = judge_public(evidence, public)
    metered = [p for p in (METERED,) if p in evidence.cases]
    evidence.run_ahead(hidden + metered)
    silent = None  # the failure of a kind that fails with rare numbers alone: a later kind may say more
    for number, purpose in enumerate(hidden + metered):
        shown = (
            f"{len(hidden)} hidden cases … {number}/{len(hidden)}"
            if purpose in hidden
            else "the metered case"
        )
        evidence.say(f"running {shown}")
        run = evidence.run(purpose)
        runs += [run] if purpose in hidden else []
        try:
            judge_case(evidence.question, run, runs, evidence.poisoned)
        except Failed as failed:
            found = shown_with_another(evidence, purpose, failed, runs)
            if found.look != NOTHING_SHOWN:
                raise found from None
            silent = silent or found
    if silent:
        raise silent
    if COMPILED in evidence.cases:
        evidence.say("running the compiled case")
        sampled.judge_compiled_case(evidence)
    if evidence.on_gpu is not None:
        on_gpu.judge_runs(evidence, runs, result)
    result.came = f"{len(public)} public and {len(hidden)} hidden cases agree with the reference"


def judge_public(evidence: KernelEvidence, public: list[int]) -> list[Run]:
    """All of them run, so that a failure can say how many are right already."""
    evidence.run_ahead(public)
    runs, first, right = [], None, 0
    for number, purpose in enumerate(public):
        evidence.say(f"running {len(public)} public cases … {number}/{len(public)}")
        runs.append(evidence.run(purpose))
    for purpose, run in zip(public, runs, strict=True):
        try:
            judge_case(evidence.question, run, runs, evidence.poisoned)
            right += 1
        except Failed as failed:
            if first is None:
                first, at = failed, purpose
    if first:
        first.look = launch_to_blame(evidence, at, first) or first.look
        first.told = ""
        if right:
            first.came = f"{right} of {len(runs)} public cases are right; {first.came}"
        raise first
    return runs


def shown_with_another(evidence: KernelEvidence, purpose: int, failed: Failed, runs: list[Run]) -> Failed:
    """A failure of a hidden case: its kind alone, and the numbers of a case like it from a seed that is no secret."""
    case = evidence.cases[purpose]
    came = f"a hidden case ({case.kind}): {failed.told or 'it fails'}"
    known = failed.look if failed.facts.get("known") else ""
    shown = len(evidence.public)  # what is said of the new case must hold for the public ones too
    for seed in range(SHOWN_SEED, SHOWN_SEED + SHOWN_DRAWS):
        again = KernelEvidence(evidence.question, evidence.source, seed, level=evidence.level)
        again.cases = {
            number: one for number, one in again.cases.items() if one.kind == case.kind and number == purpose
        }
        if not again.cases:
            break
        try:
            run = again.run(purpose)
            run.hidden = False
            judge_case(evidence.question, run, runs[:shown], again.poisoned)
        except Failed as like_it:
            came += f". A case of that kind, drawn anew for you to see: {like_it.came}"
            look = known or launch_to_blame(again, purpose, like_it) or like_it.look
            return Failed(came, look, told=came, known=bool(known))
    look = known or NOTHING_SHOWN
    return Failed(came, look, told=came, known=bool(known))

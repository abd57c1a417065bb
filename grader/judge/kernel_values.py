"""Judge a kernel's values: public cases, hidden ones, and the metered and compiled cases as well."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

from grader.judge import (
    ahead,
    budgets_at_scale,
    hidden_failure,
    kernel_repair,
    on_gpu,
    pipelined,
    rounded,
    sampled,
    weight_packing,
)
from grader.judge.diagnose import in_full, judge_case, named
from grader.judge.failed import Failed, Unclear
from grader.judge.hidden_failure import HiddenFailure
from grader.judge.kernel_evidence import (
    AT_NUMBER,
    AT_SMS,
    COMPILED,
    CORNER,
    EVERY_PROGRAM,
    FARS,
    IN_PART,
    METERED,
    ON_CONDITION,
    ON_EDGE,
    OWN_NUMBERS,
    OWN_SCALARS,
    PAIRS,
    WAITING,
    WHOLE,
    KernelEvidence,
    Run,
    is_hidden,
)
from grader.judge.other_launch import launch_to_blame
from grader.judge.record import PartResult
from grader.questions import Case, Part, reach

A_WHILE_S = 3.0  # of processor time, after which one whole corner is enough
SEARCHED = 16  # public seeds that are looked through for a case of a kind
MORE = {
    OWN_NUMBERS: "a case with inputs near numbers of the cell",
    **dict.fromkeys(OWN_SCALARS, "a case with a scalar between numbers of the cell"),
    METERED: "the metered case",
    CORNER: "programs of a large case",
    **dict.fromkeys(FARS, "programs of a case that is larger than memory"),
    **dict.fromkeys((*WHOLE, WAITING, EVERY_PROGRAM), "a case with several axes long"),
    **dict.fromkeys(AT_SMS, "the metered case on other numbers of multiprocessors"),
    **dict.fromkeys(ON_EDGE, "a case at which numbers of the cell meet"),
    **dict.fromkeys(AT_NUMBER, "a case at a number of the cell"),
    **dict.fromkeys(ON_CONDITION, "a case that a condition of the cell names"),
}


def judge(evidence: KernelEvidence, part: Part, result: PartResult) -> None:
    result.evidence = "run here on the CPU"
    public, hidden = evidence.public, evidence.hidden
    runs = judge_public(evidence, public)
    if evidence.eager:
        sampled.begin_compiled(evidence)
        evidence.go_on()
    hidden_failure.raise_what_can_be_shown(hidden_failures(evidence, runs))
    budgets_at_scale.begin(evidence)
    if COMPILED in evidence.cases:
        evidence.say("running the compiled case")
        sampled.judge_compiled_case(evidence)
    if evidence.on_gpu is not None:
        on_gpu.judge_runs(evidence, runs, result)
    rounded.judge(evidence)
    pipelined.judge(evidence)
    if evidence.doubt is not None:  # said once nothing is wrong that can be seen
        raise evidence.doubt
    result.came = f"{len(public)} public and {len(hidden)} hidden cases agree with the reference"


def hidden_failures(evidence: KernelEvidence, runs: list[Run]) -> Iterator[HiddenFailure]:
    """Run the hidden cases and the metered one, and add the hidden ones to `runs`."""
    public, hidden = list(runs), evidence.hidden
    more = {purpose: said for purpose, said in MORE.items() if purpose in evidence.cases}
    alone = [purpose for purpose in IN_PART if sampled.affordable(evidence, purpose)]
    whole = (EVERY_PROGRAM,) if CORNER in alone else sampled.whole_corners(evidence)
    whole = (*whole, *sampled.whole_on_condition(evidence))
    for purpose in (*IN_PART, *WHOLE, WAITING, EVERY_PROGRAM):
        if purpose not in (*alone, *whole):
            more.pop(purpose, None)
    early = [one for one in more if one not in (*alone, *WHOLE[1:], EVERY_PROGRAM)]
    evidence.run_ahead([*(one for one in early if one in WHOLE), *hidden, *early])  # the longest first
    sampled.begin(evidence, [one for one in alone if shared(evidence, one)])
    for number, purpose in enumerate([*hidden, *more]):
        evidence.say(f"running {more.get(purpose) or f'{len(hidden)} hidden cases … {number}/{len(hidden)}'}")
        if purpose in hidden:
            runs.append(evidence.run(purpose))
        try:
            judge_one(evidence, purpose, runs)
        except Failed as failed:
            known, kind = failed.look if failed.facts.get("known") else "", evidence.cases[purpose].kind
            yield HiddenFailure(kind, failed, partial(drawn_anew, evidence, purpose, public), known)
        except Unclear as doubt:
            evidence.doubt = evidence.doubt or doubt
        if purpose in hidden:
            runs[-1].without_counts()


def shared(evidence: KernelEvidence, purpose: int) -> bool:
    """Return whether enough programs share a large case for drawn ones to be tried."""
    return purpose in PAIRS or not budgets_at_scale.too_few(evidence, purpose)


def judge_one(evidence: KernelEvidence, purpose: int, others: list[Run]) -> None:
    """Judge a case whole, and a corner by drawn programs, unless a part's limit on programs fails it."""
    if purpose == EVERY_PROGRAM and sampled.takes_long(evidence, purpose):
        return
    if (
        purpose in WHOLE[1:]
        and WHOLE[0] in evidence.runs
        and evidence.runs[WHOLE[0]].outcome.cpu_s > A_WHILE_S
    ):
        return
    refuse_changed(evidence, purpose)
    if purpose in IN_PART and sampled.affordable(evidence, purpose):
        if shared(evidence, purpose):
            sampled.judge_drawn(evidence, purpose)
        return
    run = evidence.run(purpose)
    if purpose not in ON_CONDITION or not sampled.ran_out_of(run.outcome, "bytes"):
        judge_case(evidence.question, run, others, evidence)


def refuse_changed(evidence: KernelEvidence, purpose: int) -> None:
    hidden = is_hidden(purpose) and not evidence.shown
    weight_packing.refuse_changed(evidence, purpose, named(evidence.case(purpose), hidden))


def judge_public(evidence: KernelEvidence, public: list[int]) -> list[Run]:
    """Run all public cases, so that a failure can say how many are already right."""
    evidence.run_ahead(public)
    ahead.begin(evidence, "cases", lambda: evidence.cases)
    runs, first, right = [], None, 0
    for number, purpose in enumerate(public):
        evidence.say(f"running {len(public)} public cases … {number}/{len(public)}")
        runs.append(evidence.run(purpose))
    for purpose, run in zip(public, runs, strict=True):
        try:
            refuse_changed(evidence, purpose)
            judge_case(evidence.question, run, runs, evidence)
            right += 1
        except Failed as failed:
            if first is None:
                first, at = failed, purpose
        except Unclear as doubt:
            evidence.doubt = evidence.doubt or doubt
    if first:
        first.look = (
            launch_to_blame(evidence, at, first) or kernel_repair.sentence(evidence, at, first) or first.look
        )
        first.told = ""
        if right:
            first.came = f"{right} of {len(runs)} public cases are right; {first.came}"
        raise first
    return runs


def drawn_anew(evidence: KernelEvidence, purpose: int, public: list[Run]) -> Failed | str:
    """Return how a case like this one fails with a public seed, or else the sizes of one that is right. The sentence must
    hold for the public cases too."""
    told, right = evidence.case(purpose).sm_count, ""
    for again, case in islice(like_it(evidence, purpose), hidden_failure.SHOWN_DRAWS):
        again.cases = {purpose: replace(case, sm_count=told)}
        try:
            again.shown = True
            judge_one(again, purpose, public)
        except Failed as failed:
            if purpose not in IN_PART:  # a whole corner takes too long to try
                failed.look = (
                    launch_to_blame(again, purpose, failed)
                    or kernel_repair.sentence(again, purpose, failed)
                    or failed.look
                )
            failed.came += f"; p.sm_count is {told} there" * ("sm_count" in evidence.source)
            failed.came += weight_packing.said(again, purpose)
            return failed
        except Unclear:
            continue
        right = right if again.few.get(purpose) else in_full(case)
    return right


def like_it(evidence: KernelEvidence, purpose: int) -> Iterator[tuple[KernelEvidence, Case]]:
    """Yield cases of the same kind from public seeds. Not every seed draws every crossing."""
    question, kind = evidence.question, evidence.case(purpose).kind
    for draw in range(SEARCHED):
        seed = hidden_failure.SHOWN_SEED + draw
        if purpose in evidence.hidden:
            drawn = reach.hidden(question, np.random.Generator(np.random.PCG64([seed, 0])))
            of_kind = [case for case in drawn if case.kind == kind]
            if of_kind:
                yield KernelEvidence(question, evidence.source, seed, level=evidence.level), of_kind[0]
            continue
        again = KernelEvidence(question, evidence.source, seed, level=evidence.level)
        case = again.known.get(purpose) or again.cases.get(purpose)
        if case is None or case.kind != kind:
            return
        yield again, case

"""Judge numpy questions by comparing the function's results with the topic's reference."""

import copy
from collections.abc import Iterator
from functools import partial

import numpy as np

from grader.judge import hidden_failure, numpy_evidence, returned, where
from grader.judge.compare import Difference
from grader.judge.diagnose import from_error
from grader.judge.failed import Failed
from grader.judge.hidden_failure import HiddenFailure
from grader.judge.numpy_evidence import NumpyEvidence, written
from grader.judge.pattern import ENOUGH
from grader.judge.record import PartResult
from grader.questions import NO_OUTPUT, Call, Part

TWINS = 2
MOST_KNOWN = 2  # mistakes that are named where several give the same
SOME_CASE = "the formula of {}, worked by hand for this case"


def judge(evidence: NumpyEvidence, part: Part, result: PartResult) -> None:
    result.evidence = "values"
    question = evidence.question
    public, hidden = list(question.public), evidence.hidden_cases()
    hidden += [again for call in hidden[:TWINS] if (again := twin(question, call))]
    judge_public(evidence, public)
    evidence.say(f"calling {question.entry} on {len(hidden)} hidden cases")
    hidden_failure.raise_what_can_be_shown(hidden_failures(evidence, hidden))
    result.came = f"{len(public)} public and {len(hidden)} hidden calls agree with the reference"


def hidden_failures(evidence: NumpyEvidence, hidden: list[Call]) -> Iterator[HiddenFailure]:
    rows = judged(evidence, hidden, True)
    public = right_results(evidence) if any(wrong for _, wrong in rows) else {}
    for call, wrong in rows:
        if wrong:
            seen = wrong.facts.get("seen", {})
            known = known_mistake(evidence.question, seen and seen | public)
            yield HiddenFailure(call.kind, wrong, partial(drawn_anew, evidence, call.kind), known)


def right_results(evidence: NumpyEvidence) -> dict:
    """Return what the public calls gave, because a mistake that would show in them isn't that of an answer that has them
    right."""
    public = list(evidence.question.public)
    outcome = evidence.call(public, True)
    results = outcome.header.get("results", ()) if not outcome.error else ()
    return {
        f"public {number}": (call, encoded, outcome.arrays)
        for number, (call, encoded) in enumerate(zip(public, results, strict=False))
    }


def twin(question, call: Call) -> Call | None:
    """Return the same sizes with other contents, so that no result kept for a shape is right twice."""
    args = tuple(a[::-1].copy() if isinstance(a, np.ndarray) and a.ndim else a for a in call.args)
    if not any(isinstance(a, np.ndarray) and a.ndim for a in args):
        return None
    try:
        question.reference(*copy.deepcopy(args))
    except (ValueError, IndexError):  # its arguments belong together in that order
        return None
    return Call(args, call.kind)


def judge_public(evidence: NumpyEvidence, public: list[Call]) -> None:
    evidence.say(f"calling {evidence.question.entry} on {len(public)} public cases")
    rows = judged(evidence, public, False)
    failures = [(call, wrong) for call, wrong in rows if wrong]
    if failures:
        right = len(rows) - len(failures)
        call, wrong = failures[0]
        count = (
            f"{right} of {len(rows)} public cases are right; " if right and len(rows) == len(public) else ""
        )
        look = confirmed_mistake(evidence, wrong.facts.get("seen", {})) or where.wrong(evidence, call, wrong)
        raise Failed(
            f"{count}{written(evidence.question, call)}: {wrong.came}",
            look or wrong.look,
            **_plain(wrong.facts),
        )


def judged(evidence: NumpyEvidence, group: list[Call], hidden: bool) -> list[tuple[Call, Failed | None]]:
    """Return every call with the fault in its result. A call that raises stops only itself."""
    question = evidence.question
    outcome = evidence.call(group, hidden)
    if not outcome.error:
        return compared(question, group, outcome)
    if len(group) == 1:
        return [(group[0], from_error(outcome.error, ""))]
    rows = []
    for call in group:
        alone = evidence.call([call], hidden)
        rows += [(call, from_error(alone.error, ""))] if alone.error else compared(question, [call], alone)
        if alone.ended:  # a loop that never ends is not waited for again
            return rows
    if outcome.ended and not any(wrong for _, wrong in rows):
        ended = from_error(outcome.error, "")
        ended.came = f"{len(group)} calls, one after the other: {ended.came}"
        return [(group[0], ended)]
    return rows


def compared(question, group: list[Call], outcome) -> list[tuple[Call, Failed | None]]:
    results = outcome.header["results"]
    if outcome.header.get("inputs_changed"):
        look = "work on a copy, or build the result in a new array"
        changed = numpy_evidence.call_of(group, outcome.header["inputs_changed"])
        return [(changed, Failed(f"{question.entry} changed the array it was given", look, changed=True))]
    seen, rows = {}, []
    for number, (call, encoded) in enumerate(zip(group, results, strict=True)):
        want = question.reference(*copy.deepcopy(call.args))
        trouble = returned.of_call(question, call.args, encoded, want, outcome.arrays)
        seen[number] = (call, encoded, outcome.arrays)
        agree = returned.which_agree(question, encoded, want, outcome.arrays) if trouble else ""
        rows.append((call, as_failed(question, trouble, seen, want, agree) if trouble else None))
    return rows


def as_failed(question, trouble: Difference | str, seen: dict, want, agree: str) -> Failed:
    look = SOME_CASE.format(question.entry)
    if isinstance(trouble, str):
        look = f"what {question.entry} returns" if "must" in trouble else look
        return Failed(
            trouble, returned.spelling(trouble) or look, told="values that differ", seen=seen, agree=agree
        )
    return Failed(trouble.sentence(), look, told="values that differ", seen=seen, found=trouble, agree=agree)


def confirmed_mistake(evidence: NumpyEvidence, seen: dict) -> str:
    """Return the sentence of a mistake that gives what these calls gave and what calls like the hidden ones give.

    More calls are drawn until eight wrong elements are explained, or until there are no more calls.
    """
    question, known = evidence.question, dict(seen)
    if not known_mistake(question, seen):
        return ""
    for draw in range(hidden_failure.SHOWN_DRAWS):
        more = judged(evidence, hidden_failure.drawn(question, draw), True)
        also = next((wrong.facts["seen"] for _, wrong in more if wrong and "seen" in wrong.facts), {})
        known |= {f"{draw}, {number}": one for number, one in also.items()}
        if explained(question, known) >= ENOUGH:
            break
    return known_mistake(question, known)


def explained(question, seen: dict) -> int:
    """Count the wrong elements in these results."""
    return sum(
        returned.count_wrong(question, encoded, question.reference(*copy.deepcopy(call.args)), arrays)
        for call, encoded, arrays in seen.values()
    )


def known_mistake(question, seen: dict) -> str:
    """Return the sentence of a mistake that gives all these results and shows in at least one. If two mistakes do, return
    both sentences."""
    known = [
        mistake.sentence
        for mistake in question.mistakes
        if seen and mistake.wrong and all(_gives(question, mistake, *one) for one in seen.values())
    ]
    return "; or: ".join(dict.fromkeys(known[:MOST_KNOWN]))


def _gives(question, mistake, call: Call, encoded, arrays: dict) -> bool:
    try:
        with np.errstate(all="ignore"):
            would = mistake.wrong(*copy.deepcopy(call.args))
        return not returned.compare(question, "x", encoded, would, arrays)
    except NO_OUTPUT:
        return False


def drawn_anew(evidence: NumpyEvidence, kind: str) -> Failed | str:
    """Return how a call of this kind fails with public seeds, or an empty text."""
    question, draws = evidence.question, range(hidden_failure.SHOWN_DRAWS)
    like_it = [one for draw in draws for one in hidden_failure.drawn(question, draw) if one.kind == kind]
    for call, wrong in judged(evidence, like_it, True) if like_it else []:  # its prints would be many
        if wrong:
            wrong.look = where.wrong(evidence, call, wrong) or wrong.look
            wrong.came = f"{written(question, call)}: {wrong.came}"
            return wrong
    return ""


def _plain(facts: dict) -> dict:
    """Return facts that a record can keep."""
    return {name: value for name, value in facts.items() if name not in ("seen", "found", "agree")}

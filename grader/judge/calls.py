"""The judge of numpy questions: what the function returned against the topic's reference."""

import copy

import numpy as np

from grader.judge import returned
from grader.judge.cases import from_error
from grader.judge.compare import Difference
from grader.judge.failed import Failed
from grader.judge.numpy_evidence import NumpyEvidence
from grader.judge.pattern import of_calls
from grader.judge.record import PartResult
from grader.judge.shown import SHOWN_SEED
from grader.questions import Call, Part

TWINS = 2
MOST_SHOWN = 8  # entries of a list; of a longer one the ends
SHOWN_DRAWS = 4  # a mistake need not show in the first
SOME_CASE = "the formula of {}, worked by hand for this case"


def judge(evidence: NumpyEvidence, part: Part, result: PartResult) -> None:
    result.evidence = "values"
    question = evidence.question
    public, hidden = list(question.public), evidence.hidden_cases()
    hidden += [again for call in hidden[:TWINS] if (again := twin(question, call))]
    judge_public(evidence, public)
    evidence.say(f"calling {question.entry} on {len(hidden)} hidden cases")
    for call, wrong in judged(evidence, hidden, True):
        if wrong:
            raise shown_with_another(evidence, call, wrong)
    result.came = f"{len(public)} public and {len(hidden)} hidden calls agree with the reference"


def twin(question, call: Call) -> Call | None:
    """The same sizes with other contents, so that no result kept for a shape is right twice."""
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
        count = f"{right} of {len(rows)} public cases are right; " if right else ""
        look = confirmed_mistake(evidence, wrong.facts.get("seen", {})) or in_common(evidence.question, rows)
        raise Failed(
            f"{count}{written(evidence.question, call)}: {wrong.came}",
            look or wrong.look,
            **_plain(wrong.facts),
        )


def judged(evidence: NumpyEvidence, group: list[Call], hidden: bool) -> list[tuple[Call, Failed | None]]:
    """Every call with what is wrong about its result. A call that raises stops only itself."""
    question = evidence.question
    outcome = evidence.call(group, hidden)
    if not outcome.error:
        return compared(question, group, outcome)
    if outcome.ended or len(group) == 1:  # a loop that never ends is not waited for again
        return [(group[0], from_error(outcome.error, ""))]
    rows = []
    for call in group:
        alone = evidence.call([call], hidden)
        rows += [(call, from_error(alone.error, ""))] if alone.error else compared(question, [call], alone)
        if alone.ended:
            break
    return rows


def compared(question, group: list[Call], outcome) -> list[tuple[Call, Failed | None]]:
    results = outcome.header["results"]
    if outcome.header.get("inputs_changed"):
        look = "work on a copy, or build the result in a new array"
        return [(group[0], Failed(f"{question.entry} changed the array it was given", look))]
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
        return Failed(trouble, look, told="values that differ", seen=seen)
    look = "; ".join(filter(None, (agree, trouble.pattern.sentence()))) or look
    single = None if isinstance(want, tuple | list | dict) or np.ndim(want) else (trouble.got, trouble.want)
    return Failed(trouble.sentence(), look, told="values that differ", seen=seen, single=single)


def in_common(question, rows: list[tuple[Call, Failed | None]]) -> str:
    """What single numbers of several calls have in common."""
    first = next(wrong for _, wrong in rows if wrong)
    if any(wrong and not wrong.facts.get("single") for _, wrong in rows):
        right = next((call for call, wrong in rows if not wrong), None)
        contrast = (
            f"{written(question, right)} is right: what does the wrong call have that it has not?"
            if right
            else ""
        )
        told = "" if first.look == SOME_CASE.format(question.entry) else first.look
        return "; ".join(filter(None, (told, contrast)))
    singles = [(call, *(wrong.facts["single"] if wrong else (0.0, 0.0)), bool(wrong)) for call, wrong in rows]
    return of_calls([(written(question, call), *rest) for call, *rest in singles])


def confirmed_mistake(evidence: NumpyEvidence, seen: dict) -> str:
    """A mistake that gives what these few calls gave, and what calls like the hidden ones give as well."""
    question = evidence.question
    if not known_mistake(question, seen):
        return ""
    more = judged(evidence, drawn_to_show(question), True)
    also = next((wrong.facts["seen"] for _, wrong in more if wrong and "seen" in wrong.facts), {})
    return known_mistake(question, {**seen, **{f"more {number}": one for number, one in also.items()}})


def known_mistake(question, seen: dict) -> str:
    """The sentence of a mistake that gives every one of these results, and shows in at least one."""
    for mistake in question.mistakes:
        if seen and mistake.wrong and all(_gives(question, mistake, *one) for one in seen.values()):
            return mistake.sentence
    return ""


def _gives(question, mistake, call: Call, encoded, arrays: dict) -> bool:
    try:
        with np.errstate(all="ignore"):
            would = mistake.wrong(*copy.deepcopy(call.args))
        return not returned.compare(question, "x", encoded, would, arrays)
    except (ValueError, TypeError, IndexError, ZeroDivisionError, KeyError, OverflowError):
        return False


def drawn_to_show(question, seed: int = 0) -> list[Call]:
    """Calls like the hidden ones, from seeds that are no secret."""
    return question.hidden(np.random.Generator(np.random.PCG64([SHOWN_SEED, seed])))


def shown_with_another(evidence: NumpyEvidence, call: Call, wrong: Failed) -> Failed:
    """A hidden call's failure: its kind alone, and the numbers of a call like it from a seed that is no secret."""
    question = evidence.question
    known = known_mistake(question, wrong.facts.get("seen", {}))
    came = f"a hidden case ({call.kind}): {wrong.told or 'it fails'}"
    like_it = [
        one for seed in range(SHOWN_DRAWS) for one in drawn_to_show(question, seed) if one.kind == call.kind
    ]
    look = SOME_CASE.format(question.entry)
    for other, trouble in judged(evidence, like_it, True) if like_it else []:  # its prints would be many
        if trouble:
            came += f". A case of that kind, drawn anew for you to see: {written(question, other)}: {trouble.came}"
            look = trouble.look
            break
    return Failed(came, known or look, told=came, known=bool(known))


def _plain(facts: dict) -> dict:
    """Facts that a record can keep."""
    return {name: value for name, value in facts.items() if name not in ("seen", "single")}


def written(question, call: Call) -> str:
    """The call as a learner would write it; an array by its shape, a short one in full."""
    return f"{question.entry}({', '.join(map(_shown, call.args))})"


def _shown(value) -> str:
    if isinstance(value, np.ndarray):
        return str(value.tolist()) if value.size <= 6 else f"an array of {' x '.join(map(str, value.shape))}"
    if isinstance(value, list | tuple) and value:
        inner = [_shown(one) for one in value]
        if len(inner) > MOST_SHOWN:
            inner = [*inner[:2], f"... {len(inner) - 3} more ...", inner[-1]]
        inside = ", ".join(inner)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(inner) == 1)})"
    return f"{value:.6g}" if isinstance(value, float) and len(repr(value)) > 8 else repr(value)

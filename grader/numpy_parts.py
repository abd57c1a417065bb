"""The judge of numpy questions: what the function returned against the topic's reference."""

import copy

import numpy as np

from grader.compare import difference
from grader.evidence import Evidence
from grader.questions import Call, Part
from grader.record import PartResult
from grader.sentences import fail, from_error, tell

TWINS = 2


def calls(evidence: Evidence, part: Part, result: PartResult) -> PartResult:
    result.evidence = "values"
    public, hidden = list(evidence.question.public), evidence.hidden_cases()
    hidden += [again for call in hidden[:TWINS] if (again := twin(evidence.question, call))]
    for group, secret in ((public, False), (hidden, True)):
        if group and not _group(evidence, group, secret, result):
            return result
    result.came = f"{len(public)} public and {len(hidden)} hidden calls agree with the reference"
    return result


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


def _group(evidence: Evidence, group: list[Call], secret: bool, result: PartResult) -> bool:
    question = evidence.question
    outcome = evidence.call(group, secret)
    if outcome.error:
        # one call at a time finds which one it was; a loop that never ends is not waited for again
        alone = group[0]
        if not outcome.ended and len(group) > 1:
            alone = next((c for c in group if evidence.call([c], secret).error), alone)
        from_error(outcome.error, result, _name(question, alone, secret))
        if secret:
            tell(result, alone.kind)
        return False
    if outcome.header["inputs_changed"]:
        fail(
            result,
            f"{question.entry} changed the array it was given",
            "work on a copy, or build the result in a new array",
        )
        return False
    for call, encoded in zip(group, outcome.header["results"], strict=True):
        want = question.reference(*copy.deepcopy(call.args))
        trouble = _compare(question, question.entry, encoded, want, outcome.arrays)
        if trouble:
            known = _recognise(question, call, encoded, outcome.arrays)
            fail(
                result,
                f"{_name(question, call, secret)}: {trouble}",
                known or f"the formula of {question.entry}, worked by hand for this case",
                known=bool(known),
            )
            if secret:
                tell(result, call.kind)
            return False
    return True


def _name(question, call: Call, secret: bool) -> str:
    if secret:
        return f"a hidden case ({call.kind})"
    shown = ", ".join(f"array{a.shape}" if isinstance(a, np.ndarray) else repr(a) for a in call.args)
    return f"{question.entry}({shown})"


def _compare(question, name: str, encoded, want, arrays: dict) -> str:
    """Empty where the encoded result equals the wanted one; otherwise what differs."""
    if isinstance(want, tuple | list) and not isinstance(want, np.ndarray) and "list" in encoded:
        if len(encoded["list"]) != len(want):
            return f"{name} has {len(encoded['list'])} items, wanted {len(want)}"
        for i, (e, w) in enumerate(zip(encoded["list"], want, strict=True)):
            if trouble := _compare(question, f"{name}[{i}]", e, w, arrays):
                return trouble
        return ""
    if isinstance(want, dict):
        mine = encoded.get("dict")
        if mine is None or set(mine) != {str(k) for k in want}:
            return f"{name} must be a dict with the keys {', '.join(map(str, want))}, got {sorted(mine) if mine else 'something else'}"
        return next(
            (
                t
                for k, w in want.items()
                if (t := _compare(question, f"{name}[{k!r}]", mine[str(k)], w, arrays))
            ),
            "",
        )
    if isinstance(want, str) or want is None:
        got = encoded.get("plain", "a number")
        return "" if "plain" in encoded and got == want else f"{name} is {got!r}, wanted {want!r}"
    if "array" not in encoded:
        return f"{name} must be {_shape_name(np.asarray(want))}, got {_kind_name(encoded)}"
    got, target = arrays[encoded["array"]], np.asarray(want)
    if got.shape != target.shape:
        return f"{name} has shape {got.shape}, wanted {target.shape}"
    worst = difference(name, got, target, question.atol + question.rtol * np.abs(target.astype(np.float64)))
    return worst.sentence() if worst else ""


def _shape_name(array: np.ndarray) -> str:
    return f"an array of shape {array.shape}" if array.shape else "a number"


def _kind_name(encoded) -> str:
    if "list" in encoded:
        return f"a sequence of {len(encoded['list'])}"
    return "None (is there a return?)" if encoded.get("plain", 0) is None else next(iter(encoded))


def _recognise(question, call: Call, encoded, arrays) -> str:
    for mistake in question.mistakes:
        try:
            if mistake.wrong is not None and not _compare(
                question, "x", encoded, mistake.wrong(*copy.deepcopy(call.args)), arrays
            ):
                return mistake.sentence
        except (ValueError, TypeError, IndexError, ZeroDivisionError):
            continue
    return ""

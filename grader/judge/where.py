"""Find where a numpy answer goes wrong, if no known mistake explains the failure, by elements, by calls, and by the
line that returns."""

import ast
import re

import numpy as np

from grader.box.warm import JailTrouble
from grader.jail.protocol import BadReply
from grader.jail.protocol import returned as ended
from grader.judge import hidden_failure, repair, returned
from grader.judge.compare import Difference, tell_apart
from grader.judge.contrast import Sample, condition, in_common
from grader.judge.failed import Failed
from grader.judge.numpy_evidence import NumpyEvidence, written
from grader.questions import NO_OUTPUT, Call

SLOW_S = 4.0  # of processor time, above which fewer calls are repeated
STEP = re.compile(r"\[(?:(\d+)|'([^']*)')\]")


def wrong(evidence: NumpyEvidence, call: Call, failed: Failed) -> str:
    """Describe a wrong call: its first wrong element, a pattern, what wrong calls share, the line."""
    try:
        return _wrong(evidence, call, failed)
    except (Failed, JailTrouble, BadReply, *NO_OUTPUT):  # no time is left, or it differs from run to run
        return ""


def _wrong(evidence: NumpyEvidence, call: Call, failed: Failed) -> str:
    found, agree = failed.facts.get("found"), failed.facts.get("agree", "")
    if failed.facts.get("error") or failed.facts.get("changed"):
        return failed.look
    known, samples = several(evidence, found)
    single = found is not None and not found.index
    if single and all(np.isfinite([one.came, one.want]).all() for one in samples):
        shared = in_common(samples)
    else:
        shared = condition(known)
    pattern = found.pattern.sentence() if found is not None and found.index else ""
    formula = shared if single else ""
    if not formula and (changed := repair.sentence(evidence, [call, *calls_to_show(evidence)])):
        return "; ".join(filter(None, (returned.spelling(failed.came), agree, changed)))
    said = [agree, found.first() if found is not None else "", pattern, shared]
    if single and not shared:
        said += [not_finite(found, samples) or beside_a_right_one(evidence, found, known, samples)]
    if "must" in failed.came:
        said = [failed.look, shared]
    else:
        said += [line_of(evidence, call)]
        said = [returned.spelling(failed.came), *said]
    return "; ".join(filter(None, said))


def several(evidence: NumpyEvidence, found: Difference | None) -> tuple[list[Sample], list[Sample]]:
    """Return samples of the public calls and of more that may be shown, and the same of the wrong number alone."""
    question, names, calls = evidence.question, arguments(evidence), calls_to_show(evidence)
    outcome = evidence.call(calls, True)
    known, samples = [], []
    if outcome.error:
        return known, samples
    path = STEP.findall(found.name) if found is not None else []
    for call, encoded in zip(calls, outcome.header["results"], strict=True):
        want = question.reference(*call.args)
        is_wrong = bool(returned.of_call(question, call.args, encoded, want, outcome.arrays))
        given = dict(zip(names, call.args, strict=True))
        kind = call.kind or written(question, call)
        known.append(Sample(given, 0.0, 0.0, is_wrong, kind))
        pair = returned.numbers_at(path, encoded, want, outcome.arrays)
        if pair is not None:
            apart = returned.differs(
                question, "", *returned.step_to(path, encoded, want, outcome.arrays), outcome.arrays
            )
            samples.append(Sample(given, *pair, bool(apart), kind))
    return known, samples


def calls_to_show(evidence: NumpyEvidence) -> list[Call]:
    """Return the public calls, and calls like the hidden ones from public seeds."""
    draws = range(1 if evidence.spent_s > SLOW_S else hidden_failure.SHOWN_DRAWS)
    more = [one for draw in draws for one in hidden_failure.drawn(evidence.question, draw)]
    return [one for one in evidence.question.public if tells(one)] + more


def arguments(evidence: NumpyEvidence) -> list[str]:
    """Return the parameters of the answer's function, as the learner named them."""
    question = evidence.question
    count = len(question.public[0].args)
    for node in ast.walk(ast.parse(evidence.source)):
        if isinstance(node, ast.FunctionDef) and node.name == question.entry and len(node.args.args) == count:
            return [one.arg for one in node.args.args]
    return [f"argument {place}" for place in range(1, count + 1)]


def tells(call: Call) -> bool:
    """Return whether a right call says anything. On empty arguments every answer is right."""
    held = [one for one in call.args if isinstance(one, np.ndarray | list | tuple | dict)]
    return not held or any(one.size if isinstance(one, np.ndarray) else len(one) for one in held)


def not_finite(found: Difference, samples: list[Sample]) -> str:
    """Say what usually gives a number that is none."""
    if np.isnan(found.got) and not np.isnan(found.want):
        return "NaN comes from 0 / 0, from infinity - infinity or infinity / infinity: exp() of more than 709 is infinity"
    if np.isinf(found.got) and np.isfinite(found.want) and not any(np.isinf(one.want) for one in samples):
        return "an infinity comes from a division by 0, log(0), or exp() of more than 709"
    return ""


def beside_a_right_one(evidence: NumpyEvidence, found: Difference, known: list, samples: list[Sample]) -> str:
    """Show another call with both of its numbers, a right one if there is any, else a second wrong one."""
    rows = [one for one in samples if np.isfinite([one.came, one.want]).all()]
    rows = [one for one in rows if (one.came, one.want) != (found.got, found.want)]
    chosen = next((one for one in rows if not one.wrong), None) or next(iter(rows), None)
    if chosen is None:
        return ""
    call = written(evidence.question, Call(tuple(chosen.arguments.values())))
    came, want = tell_apart(chosen.came, chosen.want)
    return (
        f"{call} gives {want}, which is right" if not chosen.wrong else f"{call} gives {came}, wanted {want}"
    )


def line_of(evidence: NumpyEvidence, call: Call) -> str:
    """Name the line that returns the wrong result, with the values of the function's names at that line."""
    outcome = evidence.call([call], True, watched=True)
    if outcome.error or not (rows := ended(outcome.header)):
        return ""
    names = ", ".join(f"{name} = {shortened(value)}" for name, value in rows[-1].names)
    return f"line {rows[-1].line} returns the wrong result" + f", where {names}" * bool(names)


def shortened(text: str) -> str:
    return f"{float(text):.6g}" if "." in text else text

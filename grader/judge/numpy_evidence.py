"""Judge a numpy answer: ordinary Python in the jail, checked only by the values that it returns."""

from itertools import count

import numpy as np

from grader.box.warm import Outcome
from grader.jail import host
from grader.judge.evidence import Evidence
from grader.questions import Call

MOST_SHOWN = 8  # entries of a list, beyond which it shows its ends


def named(calls: list[Call]) -> list[dict[int, str]]:
    """Return the names of each call's arrays, by argument index."""
    numbers = count()
    return [
        {place: f"a{next(numbers)}" for place, one in enumerate(call.args) if isinstance(one, np.ndarray)}
        for call in calls
    ]


def call_of(calls: list[Call], arrays: list[str]) -> Call:
    """Return the first call that received any of these arrays."""
    found = (
        call for call, names in zip(calls, named(calls), strict=True) if set(arrays) & set(names.values())
    )
    return next(found, calls[0])


def written(question, call: Call) -> str:
    """Return the call as a learner would type. An array is shown by its shape, a short one in full."""
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
    return _short(value) if isinstance(value, float) and len(repr(value)) > 8 else repr(value)


def _short(value: float) -> str:
    """Return six digits, or all of them where six would show a whole number that the value is not."""
    text = f"{value:.6g}"
    return repr(value) if float(text).is_integer() and not value.is_integer() else text


def encoded_calls(calls: list[Call]) -> tuple[list[list[dict]], dict[str, np.ndarray]]:
    """Return the arguments of each call as the jail takes them, and the arrays among them by name."""
    arrays, encoded = {}, []
    for call, names in zip(calls, named(calls), strict=True):
        arrays |= {name: call.args[place] for place, name in names.items()}
        encoded.append(
            [{"array": names[i]} if i in names else {"value": value} for i, value in enumerate(call.args)]
        )
    return encoded, arrays


class NumpyEvidence(Evidence):
    def call(self, calls: list, hidden: bool, watched: bool = False) -> Outcome:
        encoded, arrays = encoded_calls(calls)
        asked = {"level": self.level, "watched": watched}
        outcome = self.count(host.call(self.source, self.question.entry, encoded, arrays, **asked))
        if not hidden:
            self.heard(outcome.header.get("printed"))
        return outcome

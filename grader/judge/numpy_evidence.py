"""A numpy answer: ordinary Python in the jail, judged by the values that it returns alone."""

from itertools import count

import numpy as np

from grader.box.warm import Outcome
from grader.jail import host
from grader.judge.evidence import Evidence
from grader.questions import Call


def named(calls: list[Call]) -> list[dict[int, str]]:
    """For each call the names of its arrays, by their place among the arguments."""
    numbers = count()
    return [
        {place: f"a{next(numbers)}" for place, one in enumerate(call.args) if isinstance(one, np.ndarray)}
        for call in calls
    ]


def call_of(calls: list[Call], arrays: list[str]) -> Call:
    """The first call that was given one of these arrays."""
    found = (
        call for call, names in zip(calls, named(calls), strict=True) if set(arrays) & set(names.values())
    )
    return next(found, calls[0])


class NumpyEvidence(Evidence):
    def call(self, calls: list, hidden: bool) -> Outcome:
        arrays, encoded = {}, []
        for call, names in zip(calls, named(calls), strict=True):
            arrays |= {name: call.args[place] for place, name in names.items()}
            encoded.append(
                [{"array": names[i]} if i in names else {"value": value} for i, value in enumerate(call.args)]
            )
        outcome = self.count(host.call(self.source, self.question.entry, encoded, arrays, level=self.level))
        if not hidden:
            self.heard(outcome.header.get("printed"))
        return outcome

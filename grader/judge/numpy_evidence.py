"""A numpy answer: ordinary Python in the jail, judged by the values that it returns alone."""

import numpy as np

from grader.box.warm import Outcome
from grader.jail import host
from grader.judge.evidence import Evidence


class NumpyEvidence(Evidence):
    def call(self, calls: list, hidden: bool) -> Outcome:
        arrays, encoded = {}, [[] for _ in calls]
        for row, call in zip(encoded, calls, strict=True):
            for argument in call.args:
                if isinstance(argument, np.ndarray):
                    name = f"a{len(arrays)}"
                    arrays[name] = argument
                    row.append({"array": name})
                else:
                    row.append({"value": argument})
        outcome = self.count(host.call(self.source, self.question.entry, encoded, arrays, level=self.level))
        if not hidden:
            self.heard(outcome.header.get("printed"))
        return outcome

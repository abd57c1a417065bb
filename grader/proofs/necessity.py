"""Count how often one check's hidden cases catch each mistake of each question, to show which cases are necessary.

    python -m grader necessity [QUESTION ...] [--seeds 3000] [--least 0.999]

No kernel runs, because numpy computes a mistake's whole output (`wrong` and its variants), and a shortcut (SHORTCUTS
of the topic) decides whether a case gives it away. Public cases don't count, because every student sees them.
"""

import argparse
import copy
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from grader import questions, verdicts
from grader.judge.compare import difference
from grader.questions import NO_OUTPUT, Question
from grader.questions.draws import where_finite

LEAST = 0.999


@dataclass
class Row:
    """Hold one mistake, and the kinds of cases that caught the mistake. "" counts the seeds where none did."""

    question: str
    name: str
    by: Counter = field(default_factory=Counter)

    @property
    def seeds(self) -> int:
        return self.by.total()

    @property
    def caught(self) -> float:
        return 1 - self.by[""] / self.seeds

    def words(self) -> str:
        kinds = ", ".join(f"{kind} {n}" for kind, n in self.by.most_common(2) if kind)
        return f"{self.question:34} {self.name:44} {self.caught:8.4f}  {kinds}"


def ways(question: Question) -> Iterator[tuple[str, Callable, bool]]:
    """(name, function, whether it looks at the case alone) for every mistake, variant and shortcut of a question."""
    for mistake in question.mistakes:
        for number, output in enumerate(mistake.outputs, 1):
            yield mistake.name + (f" ({number})" if mistake.variants else ""), output, False
    for name, function in getattr(questions.part_of(question.id, "mistakes"), "SHORTCUTS", {}).items():
        yield f"{name}, a shortcut", function, question.compiles and not computes(function)


def computes(function: Callable) -> bool:
    """Return whether a shortcut gives outputs, which it declares by computes = True."""
    return getattr(function, "computes", False)


class Drawn:
    """The hidden cases of one check, each with its inputs and what is wanted, computed when first asked for."""

    def __init__(self, question: Question, seed: int):
        self.question, self.seed = question, seed
        self.cases = list(question.hidden(np.random.default_rng([seed, 0])))
        self._prepared = {}

    def prepared(self, i: int) -> tuple:
        if i not in self._prepared:
            question, case = self.question, self.cases[i]
            inputs = question.drawn(case, np.random.default_rng([self.seed, 1, i]))
            want = question.reference(inputs, case)
            allowed = None if question.agree else question.tolerance(inputs, case, want)
            self._prepared[i] = inputs, case, want, allowed
        return self._prepared[i]

    def catches(self, i: int, function: Callable, on_case: bool) -> bool:
        if on_case:
            return function(self.question, self.cases[i])
        if not self.question.compiles:
            return _call_differs(self.question, self.cases[i].args, function)
        inputs, case, want, allowed = self.prepared(i)
        with np.errstate(all="ignore"):
            got = function(inputs, case)
            if self.question.agree:
                return bool(self.question.agree(inputs, case, got, want))
            return any(difference(name, got[name], want[name], allowed[name]) for name in got)


def _call_differs(question: Question, args: tuple, wrong: Callable) -> bool:
    want = question.reference(*copy.deepcopy(args))
    try:
        with np.errstate(all="ignore"):
            got = wrong(*copy.deepcopy(args))
        if question.agree:
            return np.shape(got) != np.shape(want) or bool(question.agree(*args, np.asarray(got, float)))
        return _unlike(question, got, want)
    except NO_OUTPUT:
        return True  # an answer that ends in an exception is wrong


def _unlike(question: Question, got, want) -> bool:
    if isinstance(want, tuple | list):
        return len(got) != len(want) or any(_unlike(question, g, w) for g, w in zip(got, want, strict=True))
    if isinstance(want, str):
        return got != want
    got, want = np.asarray(got), np.asarray(want)
    allowed = question.atol + question.rtol * np.abs(want.astype(np.float64))
    return got.shape != want.shape or difference("", got, want, where_finite(allowed, want)) is not None


def _work(case) -> int:
    return math.prod(case.sizes.values()) if hasattr(case, "sizes") else 0


def measured(question: Question, seeds: range, say=lambda row: None, every: int = 1) -> list[Row]:
    found = [(Row(question.id, name), function, on_case) for name, function, on_case in ways(question)][
        ::every
    ]
    last = dict.fromkeys(
        range(len(found)), 0
    )  # the case that caught it last time goes first, then small ones
    for seed in seeds:
        drawn = Drawn(question, seed)
        for number, (row, function, on_case) in enumerate(found):
            order = sorted(range(len(drawn.cases)), key=lambda i: (i != last[number], _work(drawn.cases[i])))
            by = next((i for i in order if drawn.catches(i, function, on_case)), None)
            row.by["" if by is None else drawn.cases[by].kind] += 1
            last[number] = last[number] if by is None else by
    for row, _, _ in found:
        say(row)
    return [row for row, _, _ in found]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader necessity", description=__doc__.split("\n")[0])
    parser.add_argument("question", nargs="*", help="questions, or topics, by default all")
    parser.add_argument("--seeds", type=int, default=3000, help="checks to draw for each question")
    parser.add_argument("--least", type=float, default=LEAST, help="the share that must be caught")
    asked = parser.parse_args(words)
    known = {name for q in questions.load().values() for name in (q.id, q.slug)}
    if unknown := sorted(set(asked.question) - known):
        print(
            f"python -m grader necessity: question must be a question or a topic, got {unknown[0]!r}. "
            "`python -m grader questions` lists them",
            file=sys.stderr,
        )
        return verdicts.WRONG_USAGE
    chosen = [
        q for q in questions.load().values() if not asked.question or {q.id, q.slug} & set(asked.question)
    ]
    rows = [
        row
        for q in chosen
        for row in measured(q, range(asked.seeds), lambda row: print(row.words(), flush=True))
    ]
    low = [row for row in rows if row.caught < asked.least]
    print(
        f"{len(rows)} ways of being wrong, {asked.seeds} checks each. {len(low)} caught in less than {asked.least:g}"
    )
    return 1 if low or not rows else 0

"""Gather what every kind of question needs: the answer's text, its secret seed, and a listener for progress."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from grader.box.serve.printed import shortened
from grader.box.warm import Outcome, width
from grader.judge.failed import Failed
from grader.questions import Question, reach

MOST_PRINTED = 4000  # characters that a record keeps
MOST_CPU_S = 150.0  # of all that one check runs of an answer


@cache
def background_pool() -> ThreadPoolExecutor:
    """Return the pool for background work: compiling, the GPU's side, and cases if there are cores for them."""
    return ThreadPoolExecutor(3 + width(), "beside")


def say_nothing(sentence: str) -> None:
    """Report nothing, because there is no listener."""


@dataclass
class Evidence:
    question: Question
    source: str
    seed: int
    mode: str = "cpu"
    level: int | None = None
    eager: bool = False  # work ahead on other cores, which a wrong answer partly wastes
    say: Callable[[str], None] = say_nothing  # progress for the person who waits, never part of a record
    printed: str = ""  # from public cases only, because an answer's prints could give a hidden one away
    spent_s: float = 0.0
    facts: dict = field(default_factory=dict)  # what a whole report shows once

    def rng(self, purpose: int) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([self.seed, purpose]))

    def hidden_cases(self) -> list:
        return reach.hidden(self.question, self.rng(0))

    def begin(self) -> None:
        """Start the work that can go on while the judges run."""

    def end(self) -> None:
        """Drop work that hasn't begun, because its result is no longer needed."""

    def count(self, outcome: Outcome) -> Outcome:
        """Set one deadline for all of a check, in processor seconds, so that many slow cases add up to one failure."""
        self.spent_s += outcome.cpu_s
        if self.spent_s > MOST_CPU_S:
            raise Failed(
                f"all cases together took more than {MOST_CPU_S:.0f} s of processor time",
                "is there a loop that never ends, or far too many programs?",
            )
        return outcome

    def heard(self, text, left_out: int = 0) -> None:
        """Return what a shown case printed, and how many of its lines were already left out."""
        if not self.printed:
            self.printed = shortened(str(text or "").strip("\n"), MOST_PRINTED, left_out)

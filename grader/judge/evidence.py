"""What every kind of question gathers alike: the answer's text, its secret seed, who is told where it stands."""

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
    """For what goes on beside the judge: compiling, the GPU's side, and cases where there are cores for them."""
    return ThreadPoolExecutor(3 + width(), "beside")


def say_nothing(sentence: str) -> None:
    """Where nobody watches."""


@dataclass
class Evidence:
    question: Question
    source: str
    seed: int
    mode: str = "cpu"
    level: int | None = None
    eager: bool = False  # work ahead on other cores; a wrong answer then wastes some
    say: Callable[[str], None] = say_nothing  # where it stands, for who waits; never part of a record
    printed: str = ""  # by public cases alone: what an answer prints of a hidden one would give it away
    spent_s: float = 0.0
    facts: dict = field(default_factory=dict)  # what a whole report shows once

    def rng(self, purpose: int) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([self.seed, purpose]))

    def hidden_cases(self) -> list:
        return reach.hidden(self.question, self.rng(0))

    def begin(self) -> None:
        """Starts what can go on beside the judges."""

    def end(self) -> None:
        """Nobody waits for what has not been done yet."""

    def count(self, outcome: Outcome) -> Outcome:
        """One deadline for all of a check, in processor seconds, so that many slow cases add up to one failure."""
        self.spent_s += outcome.cpu_s
        if self.spent_s > MOST_CPU_S:
            raise Failed(
                f"all cases together took more than {MOST_CPU_S:.0f} s of processor time",
                "is there a loop that never ends, or far too many programs?",
            )
        return outcome

    def heard(self, text, left_out: int = 0) -> None:
        """What a shown case printed, and how many lines of it were left out already."""
        if not self.printed:
            self.printed = shortened(str(text or "").strip("\n"), MOST_PRINTED, left_out)

"""Report a failed hidden case without giving it away: its kind alone, and the numbers of a similar case from a public
seed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from grader.judge.failed import Failed
from grader.questions import reach

SHOWN_SEED = 20_26
SHOWN_DRAWS = 4  # a mistake need not show in the first
NOTHING_SHOWN = "what this kind of case changes, compared with the public ones"
RIGHT = "; a case of that kind drawn for you to see, {}, is right"


@dataclass(frozen=True)
class HiddenFailure:
    """Hold a hidden case that failed. `anew` returns the failure of a public case of its kind, if one fails, or else the
    sizes of one that is right. `known` is the sentence of a mistake that explains the failure."""

    kind: str
    failed: Failed
    anew: Callable[[], Failed | str]
    known: str = ""


def drawn(question, draw: int) -> list:
    """Return cases like the hidden ones that may be shown."""
    return reach.hidden(question, np.random.Generator(np.random.PCG64([SHOWN_SEED, draw])))


def raise_what_can_be_shown(failures: Iterable[HiddenFailure]) -> None:
    """Raise the first failure that may be described. A kind that fails only with rare numbers is named only if no
    other kind fails."""
    silent = None
    for failure in failures:
        told, speaks = in_words(failure)
        if speaks:
            raise told from None
        silent = silent or told
    if silent:
        raise silent


def in_words(failure: HiddenFailure) -> tuple[Failed, bool]:
    """Return (the text for the learner, whether it says more than the kind)."""
    came, shown = f"a hidden case ({failure.kind}): {failure.failed.told or 'it fails'}", failure.anew()
    again = shown if isinstance(shown, Failed) else None
    if shown and not again:
        came += RIGHT.format(shown)
    if again:
        came += f". A case of that kind, drawn anew for you to see: {again.came}"
    look = failure.known or (again.look if again else NOTHING_SHOWN)
    return Failed(came, look, told=came, known=bool(failure.known)), bool(again or failure.known)

"""Compare results with expected values in float64, and find the worst element."""

from dataclasses import dataclass, field

import numpy as np

from grader.judge.pattern import Pattern, number


@dataclass(frozen=True)
class Difference:
    """Hold the worst element of an array that is not within its tolerance."""

    name: str
    index: tuple[int, ...]
    got: float
    want: float
    allowed: float
    wrong: int
    size: int
    pattern: Pattern = field(repr=False, compare=False)
    flags: bool = False  # True and False are wanted

    @property
    def place(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.index))}]" if self.index else self.name

    def sentence(self) -> str:
        share = f"; {self.wrong:,} of {self.size:,} elements are off" if self.size > 1 else ""
        got, want = self.in_words(self.got, self.want)
        within = f" within {self.allowed:.2g}" if self.allowed else ""
        return f"{self.place} is {got}, wanted {want}{within}{share}"

    def first(self) -> str:
        """Show the first wrong element, where it is not the worst."""
        index = tuple(int(i) for i in np.argwhere(self.pattern.wrong)[0])
        if index == self.index:
            return ""
        got, want = self.in_words(float(self.pattern.came[index]), float(self.pattern.want[index]))
        return f"the first wrong one is {self.name}[{', '.join(map(str, index))}], {got} instead of {want}"

    def in_words(self, got: float, want: float) -> tuple[str, str]:
        if self.flags and {got, want} == {0.0, 1.0}:
            return str(bool(got)), str(bool(want))
        return tell_apart(got, want)


def tell_apart(got: float, want: float) -> tuple[str, str]:
    """Write both numbers with enough digits to see that they differ."""
    for digits in range(6, 18):
        texts = tuple(number(value, digits) for value in (got, want))
        if texts[0] != texts[1]:
            break
    return texts


def difference(name: str, got, want, allowed, signed: bool = False) -> Difference | None:
    """Return None if every element is within `allowed`. The comparison is written so that a NaN never passes for a
    number. If `signed`, a zero must have its sign."""
    flags = np.asarray(want).dtype.kind == "b"
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    allowed = np.broadcast_to(np.asarray(allowed, np.float64), want.shape)
    with np.errstate(invalid="ignore"):
        error = np.abs(got - want)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        ok = same | (error <= allowed)
        if signed:
            ok &= (got != 0) | (want != 0) | (np.signbit(got) == np.signbit(want))
    if ok.all():
        return None
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # a large error where none is allowed is as bad as can be
        badness = np.where(
            ok, -1.0, np.where(np.isfinite(error), error / np.maximum(allowed, 1e-300), np.inf)
        )
    worst = np.unravel_index(int(np.argmax(badness)), want.shape) if want.shape else ()
    index = tuple(int(i) for i in worst)
    return Difference(
        name,
        index,
        got=float(got[index]),
        want=float(want[index]),
        allowed=float(allowed[index]),
        wrong=int((~ok).sum()),
        size=want.size,
        pattern=Pattern(name, got, want, ~ok),
        flags=flags,
    )

"""Describe wrong elements in one short sentence: their positions, and their relation to the right ones."""

from dataclasses import dataclass

import numpy as np

WORDS = {1: ("element",), 2: ("row", "column")}
FACTORS = {
    "ln 2": np.log(2),
    "log2 e": 1 / np.log(2),
    "the root of 2": 2**0.5,
    "1 / the root of 2": 0.5**0.5,
    "e": np.e,
    "1 / e": 1 / np.e,
    "-1": -1.0,
}
ALIKE = 1e-3  # how far a factor may vary in fp32
ALIKE_HALF = 1e-2  # and in 16 bits
ONE_NUMBER = 0.1  # how far an offset may vary, against itself
LISTED = 4  # positions listed one by one
MOSTLY = 0.8  # of a side of the diagonal
NEARLY = 0.02  # of the largest, since a smaller difference is rounding, not another number
LEAST_ROUNDING = 1e-12  # of the largest, below which no rounding of fp32 or a sum of it is
MADE_OF = "0 times an infinity or a NaN makes one, and so do infinity less infinity and 0 / 0"
EMPTY = 2**31 - 1
FEW = 3  # fewer agree by chance
ENOUGH = 8  # elements that a guess about positions has to explain
WHOLE_ROW = 0.9  # of its elements are wrong, where the row itself is
SIGNS = "only the sign of zeros is wrong: -0 and 0 are two numbers here"


@dataclass(frozen=True)
class Pattern:
    """Hold one output, with the result, the expected result, and the wrong elements."""

    name: str
    came: np.ndarray
    want: np.ndarray
    wrong: np.ndarray
    axes: tuple[str, ...] = ()
    stored: np.ndarray | None = (
        None  # whether anything was stored there, of an output that is written in part
    )

    @property
    def tried(self) -> np.ndarray:
        """Return the elements that can tell a right place from a wrong one."""
        everywhere = np.ones(self.want.shape, bool)
        return everywhere if self.stored is None else self.stored | self.wrong

    def sentence(self, given: dict | None = None) -> str:
        """Return the sentence, or an empty text if no pattern shows. `given` holds numbers that belong to each row,
        by name."""
        if not self.wrong.any():
            return ""
        place, relation = self.place(), self._relation()
        owed = self._owed(given or {})
        said = [part for part in (owed or place, relation) if part]
        return "; ".join(said)

    def _word(self, axis: int) -> str:
        """Return the words before an index along an axis: "row ", "column ", "m = "."""
        words = WORDS.get(self.want.ndim)
        if words:
            return f"{words[axis]} "
        return f"{self.axes[axis]} = " if axis < len(self.axes) else f"index {axis} = "

    def place(self) -> str:
        """Say which elements are wrong, if everything else is right."""
        if self.want.ndim == 0 or self.wrong[self.tried].all():
            return ""
        side = self._side()
        parts = [part for axis in range(self.want.ndim) if (part := self._along(axis))]
        return f"{self.name} is wrong only {side or ', '.join(parts)}" if side or parts else ""

    def _side(self) -> str:
        """Say which side of the diagonal is wrong, if the other is right."""
        if self.want.ndim < 2 or min(self.want.shape[-2:]) < FEW:
            return ""
        row, column = np.indices(self.want.shape)[-2:]
        for words, side in (("above", column > row), ("below", column < row), ("on", column == row)):
            beside = self.tried & ~side
            # whole rows or columns past a corner are no triangle: both must meet within a row
            both = (self.wrong & side).any(axis=-1) & (self.tried & ~self.wrong).any(axis=-1)
            if (
                both.sum() >= min(FEW - 1, min(self.want.shape[-2:]) - 1)
                and not self.wrong[beside].any()
                and self.wrong[side & self.tried].mean() > MOSTLY
            ):
                return f"{words} the diagonal"
        return ""

    def _along(self, axis: int) -> str:
        size, word = self.want.shape[axis], self._word(axis)
        others = tuple(a for a in range(self.want.ndim) if a != axis)
        hit = np.flatnonzero(self.wrong.any(axis=others))
        if len(hit) == self.tried.any(axis=others).sum():
            return ""
        first, last = int(hit[0]), int(hit[-1])
        if len(hit) == 1:
            extra = ", the last" if first == size - 1 else ", the first" if first == 0 else ""
            return f"at {word}{first}{extra}"
        if len(hit) == last - first + 1:
            if last == size - 1:
                return f"from {word}{first} on"
            return f"up to {word}{last}" if first == 0 else f"from {word}{first} to {last}"
        step = np.unique(np.diff(hit))
        if len(step) == 1 and len(hit) >= FEW:
            return f"at {word}{first} and every {int(step[0])} further"
        return f"at {word}{', '.join(map(str, hit))}" if len(hit) <= LISTED and size > 2 * LISTED - 1 else ""

    def _relation(self) -> str:
        came, want = self.came[self.wrong], self.want[self.wrong]
        finite = np.isfinite(came) & np.isfinite(want)
        everywhere = f"each element of {self.name}" if self.wrong.all() else "each of them"
        everywhere = everywhere if self.want.ndim else "it"
        if np.isnan(came).all():
            said = f"what is wrong is NaN ({len(came):,} of {self.want.size:,})"
            return f"{said}: {MADE_OF}" if np.isfinite(want).all() else said
        if (came == EMPTY).all() and self.want.ndim:
            return f"{EMPTY:,} is what the smallest of no numbers gives: no place was found"
        if np.isnan(came).any() and not np.isnan(self.want).any():  # else they may have come from the input
            return f"{np.isnan(came).sum():,} of {self.want.size:,} elements are NaN"
        if not came.any() and not want.any():
            return SIGNS
        if len(came) >= FEW and np.all(came == came[0]) and len(np.unique(want)) > 1:
            return f"all that is wrong is {_number(came[0])}"
        if not finite.all():
            return self._same_numbers()
        return (
            self._elsewhere()
            or _factor(came, want, everywhere)
            or _offset(came, want, everywhere)
            or self._rounded(came, want)
            or self._by_row()
        )

    def _elsewhere(self) -> str:
        """Find the right numbers at other positions."""
        came, want = self.came, self.want
        if (
            want.ndim == 0
            or _near(came, want)
            or len(np.unique(want)) < FEW
            or self.wrong.sum() < ENOUGH
            or not np.isfinite(came).all()
            or not np.isfinite(want).all()
        ):
            return ""
        if want.ndim >= 2 and want.shape[-1] == want.shape[-2] and _near(came, np.swapaxes(want, -1, -2)):
            return f"{self.name} is transposed"
        for axis in range(want.ndim):
            word = self._word(axis)
            if want.shape[axis] < FEW:
                continue
            if _near(came, np.flip(want, axis)):
                return f"{self.name} stands in the opposite order: {word}0 holds what the last should"
            for by in (1, -1, 2, -2):
                here, there = _shifted(want.shape[axis], by)
                if len(here) * want.size // want.shape[axis] >= ENOUGH and _near(
                    came.take(here, axis), want.take(there, axis)
                ):
                    return f"{word}{here[0]} of {self.name} holds what {word}{there[0]} should, and so on"
        if _near(np.sort(came, None), np.sort(want, None)):
            return self._in_other_places()
        return ""

    def _same_numbers(self) -> str:
        """Say that a result with NaN or infinity among its right numbers holds just these."""
        enough = self.wrong.sum() >= ENOUGH and len(np.unique(self.want)) >= FEW
        same = enough and np.array_equal(np.sort(self.came, None), np.sort(self.want, None), equal_nan=True)
        return self._in_other_places() if same else ""

    def _in_other_places(self) -> str:
        which = ": the indices of a load or of the store" if self.axes else ""
        return f"{self.name} holds the right numbers in other places{which}"

    def _by_row(self) -> str:
        if self.want.ndim < 2 or self.want.shape[-1] < FEW:
            return ""
        rows = self.wrong.reshape(-1, self.want.shape[-1])
        share = rows.mean(-1)
        if self.wrong.sum() < ENOUGH or (share[share > 0] < WHOLE_ROW).any():
            return ""
        came, want = (a.reshape(rows.shape)[rows.any(-1)] for a in (self.came, self.want))
        if len(came) < 2 or not np.ptp(np.nan_to_num(want), axis=-1).any():  # of equal numbers, all are so
            return ""
        for kind, apart in (("factor", _ratios), ("number", np.subtract)):
            each = apart(came, want)
            if np.isfinite(each).all() and _steady(
                each, axis=-1, relative=kind == "factor", largest=np.abs(want).max()
            ):
                verb = "multiplied by" if kind == "factor" else "moved by"
                return f"each row is {verb} a {kind} of its own, one and the same all along it: look at what is computed once for a row"
        return ""

    def rounding(self) -> str:
        """Return the sentence for errors that are all small."""
        came, want = self.came[self.wrong], self.want[self.wrong]
        return self._rounded(came, want) if np.isfinite(came).all() and np.isfinite(want).all() else ""

    def _rounded(self, came, want) -> str:
        if len(came) and not came.any() and not want.any():
            return SIGNS
        share = np.abs(came - want).max() / max(
            np.abs(self.want[np.isfinite(self.want)]).max(initial=0.0), 1e-300
        )
        if not LEAST_ROUNDING < share <= NEARLY or len(came) < FEW:
            return ""
        return (
            f"nothing is off by more than {100 * share:.2g}% of the largest: something is rounded on its way, a few terms "
            "are missing, or large numbers cancel"
        )

    def _owed(self, given: dict) -> str:
        """Return a number that each row was given, and that tells the wrong rows from the right ones."""
        if self.want.ndim == 0:
            return ""
        bad = self.wrong.reshape(self.want.shape[0], -1).any(axis=-1)
        if bad.all() or bad.sum() < 2 or len(bad) < FEW:
            return ""
        for name, values in given.items():
            values = np.asarray(values)
            if values.shape != bad.shape or values.dtype.kind not in "fiub":
                continue
            ill, well = values[bad], values[~bad]
            if len(set(ill.tolist())) == 1 and ill[0] not in well:
                return f"the wrong rows are those whose {name} is {_number(ill[0])}"
            if (
                len(set(well.tolist())) == 1
                and well[0] >= 0
                and well[0] not in ill
                and len(np.unique(self.want[~bad])) > 1
            ):
                return f"the right rows are those whose {name} is {_number(well[0])}"
        return ""


def _factor(came, want, what: str, few: int = FEW) -> str:
    telling = np.abs(want) > 1e-3 * np.abs(want).max(initial=0.0)
    ratio = _ratios(came[telling], want[telling])
    if len(ratio) < few or not _steady(ratio) or len(np.unique(want[telling])) == 1:
        return ""
    by = float(np.median(ratio))
    if abs(by - 1) < NEARLY:
        return ""
    if by == 0:
        return "nearly all that is wrong is 0"
    return f"{what} is {_named(by)} what it should be"


def _offset(came, want, what: str, few: int = FEW) -> str:
    by = came - want
    if (
        len(by) < few
        or not _steady(by, relative=False, largest=np.abs(want).max())
        or len(np.unique(want)) == 1
    ):
        return ""
    middle = float(np.median(by))
    if np.median(np.abs(by - middle)) > ONE_NUMBER * abs(middle):
        return ""  # small errors of all sizes
    return f"{what} is {_number(abs(middle))} too {'much' if middle > 0 else 'little'}"


def _named(by: float) -> str:
    """Write 0.693 as "ln 2 (0.693) times", 3 as "3 times", a third as "1/3 of"."""
    for name, value in FACTORS.items():
        if abs(by / value - 1) < 2e-3:
            return f"{name} times" if name == "-1" else f"{by:.4g} ({name}) times"
    for whole in range(2, 257):
        for value, words in ((whole, f"{whole} times"), (1 / whole, f"1/{whole} of")):
            if abs(by / value - 1) < 1e-3:
                return words
    return f"{by:.4g} times"


def _ratios(came, want):
    with np.errstate(divide="ignore", invalid="ignore"):
        return came / want


def _steady(values, axis=None, relative=True, largest=1.0) -> bool:
    """Return whether all are one number, except for rounding."""
    middle = np.median(values, axis=axis, keepdims=axis is not None)
    spread = np.abs(values - middle)
    room = ALIKE_HALF * np.abs(middle) + (0 if relative else ALIKE * largest * 0.1)
    return bool(
        np.isfinite(values).all()
        and (spread <= room).mean() > 0.98
        and np.median(spread) <= np.max(ALIKE * np.abs(middle)) + (0 if relative else 1e-6 * largest)
    )


def _near(a, b) -> bool:
    """Return whether all numbers are alike except for rounding. Next to an infinity not every number is small."""
    largest = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=ALIKE_HALF, atol=ALIKE * largest))


def _shifted(size: int, by: int) -> tuple[np.ndarray, np.ndarray]:
    """Return positions, and the positions whose values they hold when everything has moved by `by`."""
    here = np.arange(max(0, -by), size - max(0, by))
    return here, here + by


def number(value: float, digits: int) -> str:
    if not np.isfinite(value):
        return {"inf": "infinity", "-inf": "minus infinity"}.get(str(float(value)), "NaN")
    if value == 0:
        return "-0" if np.signbit(value) else "0"
    return f"{int(value)}" if value == int(value) and abs(value) < 1e15 else f"{value:.{digits}g}"


def _number(value: float) -> str:
    """Return a number as a sentence writes it, with few digits and separated thousands."""
    whole = np.isfinite(value) and value == int(value) and abs(value) < 1e15
    return f"{int(value):,}" if whole else number(value, 4)

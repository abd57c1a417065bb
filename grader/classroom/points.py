"""Format points in one way wherever people read them: the total, then its parts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Points:
    """A student's points in one lab. `got` includes bonus points and excludes nothing."""

    got: float
    of: float
    bonus: float = 0.0  # part of `got`, on top of `of`
    penalty: float = 0.0  # taken off for late work
    late_s: float = 0.0  # seconds after the due date, any extension included

    @property
    def total(self) -> float:
        return max(0.0, self.got - self.penalty)

    def __str__(self) -> str:
        """Return such as '34.2 of 38, 6 of them bonus, 3.8 taken off for 18 h late'."""
        words = [f"{number(self.total)} of {number(self.of)}"]
        words += [f"{number(self.bonus)} of them bonus"] * bool(self.bonus)
        words += [self.lateness()] * (self.late_s > 0 or self.penalty > 0)
        return ", ".join(words)

    def lateness(self) -> str:
        late = f"{duration(self.late_s)} late" if self.late_s > 0 else "late work"
        return f"{number(self.penalty)} taken off for {late}" if self.penalty else late


def number(value: float) -> str:
    """Return at most four digits after the point and no trailing zeros, with a point whatever the machine's language."""
    return f"{value:.4f}".rstrip("0").rstrip(".")


def duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [f"{n} {unit}" for n, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if n]
    return " ".join(parts[:2]) or "less than a minute"

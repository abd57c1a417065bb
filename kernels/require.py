"""Check numbers once, with errors of one form: `<name> must be <rule>, got <value>; <what to do>`."""

import math
from collections.abc import Collection
from numbers import Integral, Real


def _refuse(name: str, rule: str, value, advice: str):
    raise ValueError(f"{name} must be {rule}, got {value!r}; {advice}")


def must(holds: bool, name: str, rule: str, got: object, advice: str) -> None:
    """Check one rule about one argument that no other function here checks. It prints as it is."""
    if not holds:
        raise ValueError(f"{name} must be {rule}, got {got}; {advice}")


def _is_number(value) -> bool:
    if type(value) in (float, int):  # the usual case, because the abstract class takes ten times longer
        return math.isfinite(value)
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def positive(**values) -> None:
    for name, value in values.items():
        if not _is_number(value) or value <= 0:
            _refuse(name, "a finite number above 0", value, "give a size, rate or time that can exist")


def not_negative(**values) -> None:
    for name, value in values.items():
        if not _is_number(value) or value < 0:
            _refuse(name, "a finite number of at least 0", value, "use 0 to leave it out")


def share(**values) -> None:
    for name, value in values.items():
        if not _is_number(value) or not 0 <= value <= 1:
            _refuse(name, "a share from 0 to 1", value, "divide a percentage by 100")


def whole(least: int = 0, **values) -> None:
    for name, value in values.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            _refuse(name, f"a whole number of at least {least}", value, "count in whole pieces")


def count(**values) -> None:
    whole(1, **values)


def at_most(limit: float, advice: str, **values) -> None:
    for name, value in values.items():
        if value > limit:
            _refuse(name, f"at most {limit:g}", value, advice)


def one_of(choices: Collection, **values) -> None:
    for name, value in values.items():
        if value not in choices:
            listed = ", ".join(str(choice) for choice in choices)
            _refuse(name, f"one of {listed}", value, "pick a listed one")


def not_empty(**values) -> None:
    for name, value in values.items():
        if not len(value):
            _refuse(name, "non-empty", value, "give at least one entry")

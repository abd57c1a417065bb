"""Declare controls as data, and check the values that come in through them.

Each constructor takes name, label and default, then its range. All take `unit=`, `help=` and `more=True` (folded
away, since at most four are in view).
"""

import math
import reprlib
from dataclasses import dataclass
from typing import Any

from widgets import units


class InputError(ValueError):
    """Tell the learner in a sentence which value is wrong. `control` names the control next to which it is shown."""

    def __init__(self, message: str, control: str = ""):
        super().__init__(message)
        self.control = control


@dataclass(frozen=True)
class Control:
    kind: str  # slider, number, select, toggle
    name: str
    label: str
    default: Any
    min: float | None = None
    max: float | None = None
    step: float | None = None
    stops: tuple = ()  # the options of a select, or the only stops of a slider
    texts: tuple[str, ...] = ()  # what the stops are called
    unit: str = ""
    help: str = ""
    more: bool = False
    whole: bool = False

    def rule(self) -> str:
        if self.kind == "toggle":
            return "on (true) or off (false)"
        if self.kind == "select":
            return f"one of {', '.join(map(str, self.stops))}"
        unit = f" {self.unit}" if self.unit else ""
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {units.number(self.min)} to {units.number(self.max)}{unit}"

    def values(self, most: int = 121) -> list:
        """Return the stops of a slider in order. If there are very many, they are evenly spaced ones with both ends."""
        if self.kind == "toggle":
            return [False, True]
        if self.stops:
            return list(self.stops)
        halts = round((self.max - self.min) / self.step)
        apart = max(1, math.ceil(halts / (most - 1)))
        places = [*range(0, halts, apart), halts]
        return [
            round(self.min + at * self.step, 9) if not self.whole else self.min + at * self.step
            for at in places
        ]

    def check(self, value):
        """Return the value, whole where it must be, or raise an InputError that says the rule."""
        if not self._takes(value):
            got = "nothing" if value is None or value == "" else reprlib.repr(value)
            raise InputError(f"{self.label} must be {self.rule()}, got {got}; give one of these", self.name)
        return int(value) if self.whole else value

    def _takes(self, value) -> bool:
        if self.kind == "toggle":
            return isinstance(value, bool)
        if self.kind == "select":
            return any(value == stop and type(value) is type(stop) for stop in self.stops)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        # NaN fails every comparison, so this refuses it too
        return self.min <= value <= self.max and (not self.whole or value == int(value))


def slider(name: str, label: str, default, min, max, step=1, **about) -> Control:
    whole = _whole(default, min, max, step)
    return Control("slider", name, label, default, min, max, step, whole=whole, **about)


def number(name: str, label: str, default, min, max, step=1, **about) -> Control:
    """Return a field to type into, where the exact value matters more than the feel of a slider."""
    whole = _whole(default, min, max, step)
    return Control("number", name, label, default, min, max, step, whole=whole, **about)


def steps(name: str, label: str, default, stops, show=None, **about) -> Control:
    """Return a slider over given stops. Code may give values between them. show(stop) is a stop's text."""
    stops = tuple(stops)
    show = show or (lambda stop: _with_unit(stop, about.get("unit", "")))
    ends = {"min": stops[0], "max": stops[-1], "stops": stops, "texts": tuple(map(show, stops))}
    return Control("slider", name, label, default, whole=_whole(*stops), **ends, **about)


def log_slider(name: str, label: str, default, min, max, per_decade: int = 10, show=None, **about) -> Control:
    """Return a slider with even steps on a log scale, at round numbers. Its ends and its default are always among them."""
    rungs = math.ceil(per_decade * math.log10(max / min))
    whole = _whole(default, min, max)
    ladder = {_round_to_two(min * (max / min) ** (i / rungs), whole) for i in range(rungs + 1)}
    stops = sorted({value for value in ladder if min <= value <= max} | {min, max, default})
    return steps(name, label, default, stops, show, **about)


def powers_of_two(name: str, label: str, default: int, min: int, max: int, show=None, **about) -> Control:
    stops = [1 << k for k in range(min.bit_length() - 1, max.bit_length())]
    return steps(name, label, default, stops, show, **about)


def select(name: str, label: str, default, options, **about) -> Control:
    """Return a choice. `options` is a list of values, or {value: its name}. A few short ones become radio buttons."""
    named = options if isinstance(options, dict) else {value: str(value) for value in options}
    texts = tuple(named.values())
    return Control("select", name, label, default, stops=tuple(named), texts=texts, **about)


def toggle(name: str, label: str, default: bool = False, **about) -> Control:
    return Control("toggle", name, label, default, **about)


def _whole(*values) -> bool:
    return all(isinstance(v, int) and not isinstance(v, bool) for v in values)


def _with_unit(value, unit: str) -> str:
    gap = "" if unit in ("", "%", "×") else units.GAP
    return f"{units.number(value, 4)}{gap}{unit}"


def _round_to_two(value: float, whole: bool):
    rounded = round(value, 1 - math.floor(math.log10(value)))
    return int(rounded) if whole else rounded

"""Write numbers as people read them, with three significant digits, a unit, and a thin gap between the two."""

import math
from functools import lru_cache

GAP = "\u202f"  # narrow no-break space, so a number never parts from its unit
_SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"), (1, ""))
_TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))

_SAID = lru_cache(maxsize=8192)  # a picture says the same few numbers again and again


@_SAID
def number(value: float, digits: int = 3) -> str:
    """Format 1365.33 as '1,365', 0.0512 as '0.0512', 64.0 as '64', never with an exponent."""
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def fixed(places: int):
    """Return a format with a fixed number of decimals, for columns and for numbers that change under the eye."""
    return lambda value: f"{value:,.{places}f}"


def count(value: float) -> str:
    return f"{round(value):,}"


def counted(value: float, noun: str, several: str = "") -> str:
    """Count things in words, such as '1 guess' or '5 guesses'."""
    return f"{count(value)} {noun if round(value) == 1 else several or noun + 's'}"


def percent(share: float, places: int = 1) -> str:
    """Format a share of one, such as 0.821 as '82.1%'."""
    return f"{100 * share:.{places}f}%"


def times(ratio: float, digits: int = 3) -> str:
    return f"{number(ratio, digits)}×"


def with_unit(value: float, unit: str, digits: int = 3) -> str:
    return f"{number(value, digits)}{GAP}{unit}"


def _scaled(value: float, steps, unit: str, digits: int) -> str:
    size, nearly = abs(value), 1 - 0.5 * 10**-digits  # what rounds up to the next prefix takes it
    scale, prefix = next((step for step in steps if size >= step[0] * nearly), steps[-1])
    return with_unit(value / scale, prefix + unit, digits)


@_SAID
def si(value: float, unit: str = "", digits: int = 3) -> str:
    """Format with an SI prefix, such as 1.374e11 'FLOP' as '137 GFLOP'."""
    return _scaled(value, _SI, unit, digits).rstrip(GAP)


def si_bytes(value: float, digits: int = 3) -> str:
    return si(value, "B", digits)


@_SAID
def binary_bytes(value: float, digits: int = 3) -> str:
    return _scaled(value, _BINARY, "B", digits)


@_SAID
def seconds(value: float, digits: int = 3) -> str:
    return _scaled(value, _TIME, "", digits) if value else f"0{GAP}s"

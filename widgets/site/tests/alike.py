"""Two answers of one model, from two Pythons."""

import math
import re

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def same(one, other, where="") -> None:
    """Equal up to the last digit shown: the Python of the pages is newer, and it sums floats more exactly."""
    if isinstance(one, float | int) and isinstance(other, float | int):
        assert math.isclose(one, other, abs_tol=0.011), (where, one, other)  # coordinates, in hundredths
    elif isinstance(one, str) and isinstance(other, str):
        assert NUMBER.sub("#", one) == NUMBER.sub("#", other), (where, one, other)
        for pair in zip(NUMBER.findall(one), NUMBER.findall(other), strict=True):
            digits = max(len(number.partition(".")[2]) for number in pair)
            first, second = (float(number.replace(",", "")) for number in pair)
            assert math.isclose(first, second, abs_tol=1.01 * 10**-digits), (where, one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one.keys() - {"raw"}:
            same(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for i, pair in enumerate(zip(one, other, strict=True)):
            same(*pair, f"{where}[{i}]")
    else:
        assert one == other, (where, one, other)

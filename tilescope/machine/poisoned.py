"""Find masked loads without `other` that reach a result.
A second run fills their lanes differently, and any change in the outputs gives them away."""

from collections.abc import Callable

import numpy as np

from .report import Report

MOST_LINES = 16


def reaching(
    again: Callable[[tuple[int, ...]], tuple[Report, dict[str, np.ndarray]]], lines: list[int]
) -> list[dict]:
    """Return, for each line that matters, the outputs that changed, or the error that appeared or vanished.
    `again(lines)` repeats the run with other content in these lines' masked lanes."""
    if not lines:
        return []
    base, other = again(()), again(tuple(lines))
    whole = difference(base, other)
    if not whole:
        return []
    found = []
    for line in lines[:MOST_LINES]:
        # A product of two NaNs stays NaN when one is replaced, so each line also keeps its content once while
        # the others change.
        rest = tuple(one for one in lines if one != line)
        changed = difference(base, again((line,))) or (rest and difference(other, again(rest)))
        if changed:
            found.append({"line": line, **changed})
    return found or [{"line": lines[0], **whole}]


def difference(one: tuple, other: tuple) -> dict:
    (report, outputs), (report2, outputs2) = one, other
    if messages(report) != messages(report2):
        return {"outputs": [], "error": True}
    changed = [n for n, a in outputs.items() if a.tobytes() != outputs2[n].tobytes()]
    return {"outputs": changed, "error": False} if changed else {}


def messages(report: Report) -> list:
    return [(report.error or {}).get("message"), *(mistake["message"] for mistake in report.mistakes)]

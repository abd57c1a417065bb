"""Call launch(p) again for every case, after other cases and in another order. Its result may depend on p alone."""

import contextlib
import sys
import time
from collections.abc import Iterator

from .answer_module import AnswerError
from .bind import make_plan

AGAIN = 200  # calls for one case, before any other
MOST_LINES, MOST_S = 10_000, 0.5  # of Python for one p that no case has, and for all such p
KEEPS = (
    "launch(p) returns another plan for the same p when it is called again, after other cases: all that it returns must "
    "follow from p"
)


class TooLong(Exception):
    """launch(p) takes more lines than it has for a p that no case has."""


def changed(module, task: dict, rows: list[dict]) -> list[dict]:
    """Return for each row its replacement, {"error"} where a fresh copy of the cell gives another plan, else nothing."""
    printed, until = sys.stdout, time.monotonic() + MOST_S
    sys.stdout = sys.stderr = type(printed)()
    found: list[dict] = [{} for _ in rows]
    planned = [number for number, row in enumerate(rows) if "plan" in row]
    for _ in range(AGAIN):
        if time.monotonic() < until:
            call(module, task["entry"], task["cases"][planned[0]])
    for number in reversed(planned):
        case = task["cases"][number]
        for twin in twins(case, task["cases"]):
            if time.monotonic() < until:
                call(module, task["entry"], twin)
        try:
            same = make_plan(module, task["entry"], case).as_json() == rows[number]["plan"]
        except AnswerError:
            same = False
        if not same:
            found[number] = {"error": AnswerError("launch", KEEPS, kind="KeepsState").report}
    sys.stdout = sys.stderr = printed
    return found


def twins(case: dict, cases: list[dict]) -> Iterator[dict]:
    """Yield a case like this one for each size, and for dtypes with strides, that differs in nothing else."""
    for name, size in case["sizes"].items():
        others = (one["sizes"][name] for one in cases if one["sizes"].get(name, size) != size)
        yield from ({**case, "sizes": {**case["sizes"], name: other}} for other in [*others][:1])
    others = (one["tensors"] for one in cases if one["tensors"] != case["tensors"])
    yield from ({**case, "tensors": other} for other in [*others][:1])


def call(module, entry: str, case: dict) -> None:
    """Call launch(p) for a p that no case has. It may fail there, or never end."""
    left = MOST_LINES

    def count(frame, event, argument):
        nonlocal left
        left -= 1
        if left < 0:
            raise TooLong
        return count

    sys.settrace(count)
    with contextlib.suppress(Exception):
        make_plan(module, entry, case)
    sys.settrace(None)

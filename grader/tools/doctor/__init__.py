"""Report what this machine can do, what is missing and how to get it (python -m grader doctor [--json]).

It looks without loading torch, triton, Jupyter, or anything else outside the standard library.
"""

import argparse
import json
from dataclasses import asdict

MARKS = {"ok": "ok ", "note": "-  ", "missing": "!! "}


def look() -> list:
    """Return every row of the report. A look that fails is a row of its own, never a traceback."""
    from . import machine, packages
    from .row import missing

    found, locked = machine.gpus(), packages.pins()
    looks = (
        packages.python,
        lambda: machine.graphics(found),
        lambda: packages.pinned("numpy", locked, "everything needs it. Run make setup", needed=True),
        lambda: packages.pinned("torch", locked, "the kernel labs need it. Run make setup"),
        lambda: packages.pinned(
            "triton", locked, "the kernel labs need it. Run make setup, or python -m grader work"
        ),
        lambda: machine.triton_mode(found),
        machine.box_of_answers,
        lambda: packages.notebooks(locked),
        packages.shadowed,
        machine.chromium,
        machine.room,
    )
    rows = []
    for one in looks:
        try:
            seen = one()
        except Exception as error:  # the doctor reports, it does not fall ill
            seen = missing(
                "doctor", f"{type(error).__name__}: {error}", "this look failed. The other rows are valid"
            )
        rows += seen if isinstance(seen, list) else [seen]
    return rows


def show() -> None:
    """Print the report. The start page calls this function."""
    _print(look())


def _print(rows: list) -> None:
    for row in rows:
        print(f"{MARKS[row.state]}{row.name:<12} {row.found}" + (f"  ->  {row.advice}" if row.advice else ""))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m grader doctor", description="Show the abilities of this machine."
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    as_json, rows = parser.parse_args(argv).json, look()
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        _print(rows)
    return 1 if any(row.state == "missing" for row in rows) else 0

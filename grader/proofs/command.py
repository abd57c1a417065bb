"""python -m grader suites [SUITE ...] [--all] [--json]

Without --all a fixed sample runs, as in continuous integration. Ends with 1 if the grader did not keep its word.
"""

import argparse
import importlib
import inspect
import json
import sys
import time
from pathlib import Path

from grader.box import warm
from grader.proofs import pool

SUITES = {
    "exploits": "exploits",
    "zoo": "wrong",
    "honest": "honest",
    "class": "classes",
    "closed": "closed",
    "skips": "skips",
    "scale": "scale",
    "front-ends": "front_ends",
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader suites", description=__doc__)
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}, or all if left out"
    )
    parser.add_argument("--all", action="store_true", help="everything, not the sample")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--question", help="only what is about this question")
    parser.add_argument(
        "--jobs", type=int, default=pool.cores(), metavar="N", help="answers judged in parallel"
    )
    parser.add_argument("--students", type=int, metavar="N", help="of the class in the suite scale")
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="of the suites closed, skips and front-ends, kept so that the next run resumes",
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="of honest: each right answer in N checks")
    parser.add_argument("--answers-each", type=int, metavar="N", help="of a question, in front-ends --all")
    wants = parser.parse_args(argv)
    if unknown := set(wants.suites) - set(SUITES):
        parser.error(f"SUITE must be one of {', '.join(SUITES)}, got {', '.join(sorted(unknown))}")
    found = {}
    for name in wants.suites or SUITES:
        started = time.monotonic()
        suite = importlib.import_module(f"grader.proofs.{SUITES[name]}")
        taken = inspect.signature(suite.run).parameters
        given = ("jobs", "students", "record", "answers_each", "seeds")
        more = {name: getattr(wants, name) for name in given if name in taken}
        rows, broken = suite.run(wants.all, _say(wants.json, suite), wants.question, **more)
        warm.stop_all()
        found[name] = {"rows": rows, "broken": broken, "seconds": round(time.monotonic() - started, 1)}
        if not wants.json:
            print(f"\n{name}: {summary(rows, broken)} ({found[name]['seconds']:.0f} s)\n")
            print("\n".join(broken), end="\n" if broken else "")
    if wants.json:
        print(json.dumps(found, indent=1))
    return 1 if any(suite["broken"] for suite in found.values()) else 0


def summary(rows: list[dict], broken: list[str]) -> str:
    return f"{len(rows)} rows, " + (f"{len(broken)} BROKEN PROMISES" if broken else "every promise held")


def _say(as_json: bool, suite):
    """Prints rows as they come, in the suite's own words where it has any."""

    def say(row: dict) -> None:
        plain = [str(v) if isinstance(v, str | int | float) else json.dumps(v) for v in row.values()]
        words = suite.words(row) if hasattr(suite, "words") else plain
        print("  ".join(f"{word:<{width}}" for word, width in zip(words, WIDTHS, strict=False)), flush=True)

    return (lambda row: None) if as_json else say


WIDTHS = (30, 44, 28, 8, 16, 8)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""python -m grader.suites [SUITE ...] [--all] [--json]

Without --all a fixed sample, as continuous integration runs it. Ends with 1 where the grader did not keep its word.
"""

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

from grader import jailer

PLACES = {"exploits": "exploits", "zoo": "zoo.run", "honest": "honest.run", "class": "classes"}
SUITES = {
    name: module
    for name, module in PLACES.items()
    if (Path(__file__).parent / f"{module.replace('.', '/')}.py").exists()
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader.suites", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}; all if left out")
    parser.add_argument("--all", action="store_true", help="everything, not the sample")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--question", help="only what is about this question")
    wants = parser.parse_args(argv)
    if unknown := set(wants.suites) - set(SUITES):
        parser.error(f"SUITE must be one of {', '.join(SUITES)}, got {', '.join(sorted(unknown))}")
    found = {}
    for name in wants.suites or SUITES:
        started = time.monotonic()
        suite = importlib.import_module(f"grader.suites.{SUITES[name]}")
        rows, broken = suite.run(wants.all, _say(wants.json), wants.question)
        jailer.stop_all()
        found[name] = {"rows": rows, "broken": broken, "seconds": round(time.monotonic() - started, 1)}
        if not wants.json:
            print(f"\n{name}: {summary(rows, broken)} ({found[name]['seconds']:.0f} s)\n")
            print("\n".join(broken), end="\n" if broken else "")
    if wants.json:
        print(json.dumps(found, indent=1))
    return 1 if any(suite["broken"] for suite in found.values()) else 0


def summary(rows: list[dict], broken: list[str]) -> str:
    return f"{len(rows)} rows, " + (f"{len(broken)} BROKEN PROMISES" if broken else "every promise held")


def _say(as_json: bool):
    """Prints rows as they come, in columns as wide as the first row's."""

    def say(row: dict) -> None:
        words = [str(v) if isinstance(v, str | int | float) else json.dumps(v) for v in row.values()]
        print("  ".join(f"{word:<{width}}" for word, width in zip(words, WIDTHS, strict=False)), flush=True)

    return (lambda row: None) if as_json else say


WIDTHS = (28, 42, 24, 22, 10, 10)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

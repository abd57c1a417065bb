"""Make the student edition from a list of its allowed files (python -m grader release DIR)."""

import argparse
import sys
from pathlib import Path

from grader.judge import record
from grader.notebooks import make
from grader.paths import ROOT
from grader.release import edition
from grader.release.leaks import leaks
from grader.release.smoke_test import tried
from grader.tools.progress import Progress

MOST_NAMED = 10  # files that may not leave


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(record.WRONG_USAGE, f"{self.prog}: {message}\n")


def main(argv: list[str], root: Path = ROOT) -> int:
    parser = Parser(prog="python -m grader release", description=__doc__)
    parser.add_argument("folder", metavar="DIR", type=Path, help="a new or empty folder")
    parser.add_argument(
        "--try",
        dest="tries",
        action="store_true",
        help="set up a copy by make lab and make test (some minutes and 2 GB, removed afterwards)",
    )
    wants = parser.parse_args(argv)
    target = wants.folder.absolute()
    try:
        edition.require_empty(target)
        with Progress() as say:
            files = edition.make(root, say=say)
        _refuse_leaks(root, files)
        edition.put(files, target)
    except (edition.Refused, OSError) as error:
        print(f"python -m grader release: {error}", file=sys.stderr)
        return record.WRONG_USAGE
    size = sum(map(len, files.values()))
    print(
        f"{len(files)} files, {size / 1e6:.1f} MB, in {wants.folder}: no solutions, no tuned kernels, no history"
    )
    if wants.tries and (trouble := tried(target, _say)):
        print(f"python -m grader release: {trouble}", file=sys.stderr)
        return record.EXIT[record.FAIL]
    return 0


def _refuse_leaks(root: Path, files: dict[str, bytes]) -> None:
    """Raise Refused, which names them, if files would leave that students must not have."""
    built = make.make(root, [])
    found = built.refused or leaks(root, built, files)
    if found:
        more = [f"and {len(found) - MOST_NAMED} more"] * (len(found) > MOST_NAMED)
        raise edition.Refused("\n  ".join(["nothing was made, because", *found[:MOST_NAMED], *more]))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

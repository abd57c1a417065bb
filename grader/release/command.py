"""python -m grader release DIR: the student edition, made from a list of what it may hold."""

import argparse
import sys
from pathlib import Path

from grader.judge import record
from grader.places import ROOT
from grader.release import edition, recording


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(record.WRONG_USAGE, f"{self.prog}: {message}\n")


def main(argv: list[str], root: Path = ROOT) -> int:
    parser = Parser(prog="python -m grader release", description=__doc__)
    parser.add_argument("folder", metavar="DIR", type=Path, help="a new or empty folder")
    target = parser.parse_args(argv).folder.absolute()
    try:
        files = edition.make(root, say=lambda line: print(line, file=sys.stderr, flush=True))
        edition.put(files, target)
    except (edition.Refused, recording.Mixed, OSError) as error:
        print(f"python -m grader release: {error}", file=sys.stderr)
        return record.WRONG_USAGE
    size = sum(map(len, files.values()))
    print(f"{len(files)} files, {size / 1e6:.1f} MB, in {target}: no solutions, no tuned kernels, no history")
    return 0

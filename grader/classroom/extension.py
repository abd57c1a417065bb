"""Give students more time for a lab, before or after they hand in (python -m grader extension LAB NAME --hours 12)."""

import argparse
import sys
from datetime import timedelta
from pathlib import Path

from grader.classroom import carried, lock, marks
from grader.judge.report import visible
from grader.paths import ROOT
from grader.verdicts import EXIT, INCONCLUSIVE, WRONG_USAGE


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader extension", description=__doc__)
    parser.add_argument("lab", metavar="LAB", help="a folder of labs/, such as 01_gemm_tiling")
    parser.add_argument("students", nargs="+", metavar="NAME")
    parser.add_argument(
        "--hours",
        type=float,
        required=True,
        help="after the due date, instead of any earlier extension. 0 removes the extension",
    )
    wants = parser.parse_args(argv)
    try:
        with lock.held(ROOT, f"extending {wants.lab}", print):
            print(*extend(ROOT, wants.lab, wants.students, wants.hours), sep="\n")
    except lock.Busy as busy:
        print(f"python -m grader extension: {busy}", file=sys.stderr)
        return EXIT[INCONCLUSIVE]
    except ValueError as error:
        print(f"python -m grader extension: {error}", file=sys.stderr)
        return WRONG_USAGE
    return 0


def extend(root: Path, lab: str, students: list[str], hours: float) -> list[str]:
    """Return a line for each student. nbgrader extends what is in the gradebook alone, so the rest is kept until
    then."""
    from nbgrader.api import MissingEntry

    if not 0 <= hours < 24 * 366:
        raise ValueError(f"--hours must be from 0 to a year, got {hours:g}")
    marks.standings(root, lab)  # which says what is wrong with the lab's name
    said = []
    with marks.opened(root) as gradebook:
        due = gradebook.find_assignment(lab).duedate
        if due is None:
            raise ValueError(
                f"{lab} must have a due date to be extended, got none. Run "
                f'nbgrader db assignment add {lab} --duedate "2026-11-20 23:59 UTC"'
            )
        for student in students:
            line = f"{visible(student)}: due {due + timedelta(hours=hours):%Y-%m-%d %H:%M} UTC"
            try:
                gradebook.grant_extension(lab, student, hours=hours)
                line += f". Now run python -m grader class {lab}"
            except MissingEntry:
                carried.extend(root, lab, student, 3600 * hours)
                line += ", kept until a student of this name has handed in"
            said.append(line)
    return said

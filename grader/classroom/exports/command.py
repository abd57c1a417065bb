"""Write the grades of a lab to a file that a learning platform imports (python -m grader export LAB --format
canvas)."""

import argparse
import csv
import io
import shlex
import sys
from pathlib import Path

from grader.classroom import grading_round, marks, people, storage_errors
from grader.classroom.exports.tables import FORMATS, Wanted
from grader.classroom.marks import Standing
from grader.judge.report import visible
from grader.paths import ROOT, from_here
from grader.verdicts import EXIT, FAIL

PLACE = Path("work/grades")  # below the course's root, where git ignores it
MOST_NAMED = 10
GRADE = "Grade the cells that wait in Formgrader."
CLASS = "Run python -m grader class {lab}, which enters all that is new."
UNREADABLE = 'Ask for the notebook, or decide that the hand-in counts as an empty lab: python -m grader class {lab} --as-empty {who} --why "..."'
GONE = "Put the folder back, or remove that student's remaining data: python -m grader student NAME --delete"
REST = ("Or export the others: --except {names}", "Or export a provisional table: --unfinished")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader export", description=__doc__)
    parser.add_argument("lab", metavar="LAB", help="a folder of labs/, such as 01_gemm_tiling")
    parser.add_argument("--format", choices=sorted(FORMATS), default="csv")
    parser.add_argument("--names", type=Path, help="a CSV that says who a student is on the platform")
    parser.add_argument("--title", help="of the grade's column, for Canvas 'Lab 1 (4711)' with its number")
    parser.add_argument("--to", type=Path, metavar="FILE", help=f"instead of {PLACE}/LAB.FORMAT.csv")
    parser.add_argument(
        "--unfinished", action="store_true", help="export although a person still has to grade"
    )
    parser.add_argument(
        "--except",
        dest="without",
        nargs="+",
        default=[],
        metavar="NAME",
        help="students to leave out, such as those whose hand-in can't be entered",
    )
    parser.add_argument(
        "--missing-as-zero",
        action="store_true",
        help="0 points for students who handed in nothing, who are left out otherwise",
    )
    wants = parser.parse_args(argv)
    try:
        return export(ROOT, wants)
    except (ValueError, OSError) as error:
        return storage_errors.refused("export", error)


def export(root: Path, wants) -> int:
    found = marks.standings(root, wants.lab)
    handed_in = marks.not_judged(root, wants.lab, found)
    if not handed_in and not any(one.entered for one in found) and not wants.missing_as_zero:
        raise ValueError(f"lab must be one that a student handed in, got {wants.lab!r}. See submitted/")
    known_here = {one.student for one in found} | set(handed_in)
    if unknown := sorted(set(wants.without) - known_here):
        raise ValueError(
            f"--except must name students of this lab, got {_few(unknown)}. Leave these names out"
        )
    found = [one for one in found if one.student not in wants.without]
    handed_in = {student: why for student, why in handed_in.items() if student not in wants.without}
    known = people.read(wants.names) if wants.names else {}
    open_ = unfinished(root, wants.lab, found, handed_in)
    if open_ and not wants.unfinished:
        print(refusal(wants.lab, open_, wants.without), file=sys.stderr)
        return EXIT[FAIL]
    missing = [one.student for one in found if not one.entered and one.student not in open_]
    chosen = [one for one in found if one.entered or wants.missing_as_zero and one.student in missing]
    table = FORMATS[wants.format](Wanted(wants.lab, wants.title or wants.lab, chosen, known))
    kind = f".{wants.format}" if wants.format != "csv" else ""
    path = wants.to or root / PLACE / f"{wants.lab}{kind}{'.provisional' if open_ else ''}.csv"
    _write(path, table)
    print(
        "\n".join(
            [f"{from_here(path)}: {len(chosen)} students", *_remarks(wants, chosen, missing, open_, known)]
        )
    )
    return 0


def unfinished(
    root: Path, lab: str, found: list[Standing], handed_in: dict[str, str]
) -> dict[str, tuple[str, str]]:
    """Return the students whose points are not final, with the reason and the remedy. `handed_in` are those who
    aren't judged."""
    said = {
        student: (why, CLASS if why != marks.NO_NOTEBOOK else UNREADABLE)
        for student, why in handed_in.items()
    }
    for one in (one for one in found if one.waiting and one.student not in handed_in):
        count = "1 cell waits" if len(one.waiting) == 1 else f"{len(one.waiting)} cells wait"
        gone = not (root / "submitted" / one.student / lab).exists()
        said[one.student] = (
            f"{count} for a person ({_few(one.waiting, 3)})" + ", and submitted/ has no folder" * gone,
            GONE if gone else GRADE,
        )
    return said


def refusal(lab: str, open_: dict[str, tuple[str, str]], without: list[str]) -> str:
    """Say who is not final and what to do. `without` are left out already."""
    lines = [f"{lab} is not finished, so nothing was exported. Not final:"]
    lines += [f"  {visible(student)}: {why}" for student, (why, _) in list(open_.items())[:MOST_NAMED]]
    lines += [f"  and {len(open_) - MOST_NAMED} more"] * (len(open_) > MOST_NAMED)
    whose = {todo: [name for name, (_, its) in open_.items() if its == todo] for _, todo in open_.values()}
    todo = [one.format(lab=lab, who=_quoted(names)) for one, names in whose.items()]
    rest = [one.format(names=_quoted([*without, *open_])) for one in REST]
    return "\n".join([*lines, "Next steps:", *(f"  - {one}" for one in [*todo, *rest])])


def _quoted(names) -> str:
    return " ".join(shlex.quote(visible(name)) for name in names)


def _remarks(wants, chosen: list[Standing], missing: list[str], open_: dict, known: dict) -> list[str]:
    """Return what an instructor should know before importing the file."""
    said = [f"provisional, since these are not final: {_all(open_)}"] * bool(open_)
    if wants.without:
        said.append(f"left out by --except: {_all(sorted(set(wants.without)))}")
    if missing:
        what = "written as 0" if wants.missing_as_zero else "left out (--missing-as-zero writes 0)"
        said.append(f"nothing handed in, {what}: {_all(missing)}")
    if strangers := [one.student for one in chosen if known and one.student not in known]:
        said.append(f"not in {wants.names}, so under their own names: {_few(strangers)}")
    above = [one.student for one in chosen if one.points > one.of]
    if above and wants.format == "moodle":
        said.append(
            f"above the maximum by bonus points: {_few(above)}. Moodle cuts such points off unless it allows grades above"
        )
    if wants.format == "canvas" and not (wants.title or "").rstrip().endswith(")"):
        said.append("Canvas makes a new assignment of a title without its number: --title 'Lab 1 (4711)'")
    if wants.format == "moodle":
        said.append(
            "Moodle: Grades > Import > CSV file, separator comma, and say which column names the user"
        )
    return said


def _all(names) -> str:
    return _few(list(names), len(names))


def _few(names: list[str], most: int = MOST_NAMED) -> str:
    more = len(names) - most
    return ", ".join(visible(name) for name in names[:most]) + (f" and {more} more" if more > 0 else "")


def _write(path: Path, table: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    grading_round.write(path, text.getvalue(), replace=True)

"""Show all of a class's data about a student, or delete the data (python -m grader student NAME [--delete])."""

import argparse
import sys
from pathlib import Path

from grader.classroom import lock
from grader.classroom.student import traces
from grader.classroom.student.forget import forget
from grader.classroom.student.traces import Traces
from grader.classroom.submission import STUDENT
from grader.judge.report import visible
from grader.paths import ROOT
from grader.verdicts import EXIT, FAIL, WRONG_USAGE


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader student", description=__doc__)
    parser.add_argument("name", metavar="NAME", help="as the folder below submitted/ is called")
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--show", action="store_true", help="list it, as without a flag")
    does.add_argument("--delete", action="store_true", help="delete it, after you have typed the name again")
    parser.add_argument("--yes", action="store_true", help="delete without asking")
    wants = parser.parse_args(argv)
    try:
        if not STUDENT.fullmatch(wants.name):
            raise ValueError(f"NAME must be a student's, as below submitted/, got {wants.name!r}")
        return run(ROOT, wants)
    except (ValueError, OSError, lock.Busy) as error:
        print(f"python -m grader student: {error}", file=sys.stderr)
        return WRONG_USAGE


def run(root: Path, wants) -> int:
    found = traces.find(root, wants.name, say=lambda line: print(visible(line), file=sys.stderr, flush=True))
    if not found:
        raise ValueError(
            f"NAME must be of a student whom the class knows, got {wants.name!r}. See submitted/"
        )
    print(shown(root, found))
    if not wants.delete:
        return 0
    if not wants.yes and not confirmed(found):
        print("nothing was deleted")
        return EXIT[FAIL]
    with lock.held(root, f"deletion of {found.student}"):
        kept = forget(root, found)
    if kept:
        print(*(f"not deleted: {visible(why)}" for why in kept), sep="\n")
        print("run this as its owner or root to delete the rest")
    if rest := traces.left(root, wants.name):
        print(f"deleted. {wants.name} is still named in:", *(f"  {path}" for path in rest), sep="\n")
        return EXIT[FAIL]
    print(f"deleted: nothing below {root} names {wants.name} any more. {BEYOND}")
    return 0


BEYOND = (
    "Files elsewhere are yours to delete: copies and backups, reports and exports that you wrote to other folders, "
    "grades that a learning platform imported, and the student's own home."
)


def confirmed(found: Traces) -> bool:
    """Have a person type the name again, because only a backup restores deleted data."""
    if not sys.stdin.isatty():
        raise ValueError("--delete must be confirmed at a terminal, or with --yes")
    return input(f"Type {found.student} to delete all of this: ").strip() == found.student


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def shown(root: Path, found: Traces) -> str:
    lines = [f"The class's data about {visible(found.student)}"]
    for folder in found.folders:
        files = [] if folder.is_symlink() else [path for path in folder.rglob("*") if path.is_file()]
        lines.append(
            f"  {_place(root, folder)}  {'a link' if folder.is_symlink() else _count(len(files), 'file', 'files')}"
        )
    lines += [f"  gradebook  {visible(line)}" for line in found.grades]
    lines += ["  gradebook  the name, without a submission"] * (found.known and not found.grades)
    if alone := len(found.records) - found.ownerless:
        lines.append(
            f"  {_count(alone, 'record', 'records')} of answers that no other student has handed in (they contain no names)"
        )
    if found.ownerless:
        lines.append(
            f"  {_count(found.ownerless, 'record', 'records')} of answers that were replaced, perhaps this student's, which are deleted too"
        )
    if found.shared:
        lines.append(
            f"  {_count(found.shared, 'record', 'records')} of answers that others have handed in too, which stay"
        )
    lines += [f"  {_place(root, path)}  feedback in the exchange" for path in found.released]
    lines += [f"  {_place(root, path)}  an entry" for path in found.kept]
    lines += [
        f"  {_place(root, path)}  {_count(count, 'entry', 'entries')} of the log"
        for path, count in found.logs.items()
    ]
    lines += [f"  {_place(root, path)}  made from the gradebook, to be made again" for path in found.made]
    return "\n".join(lines)


def _place(root: Path, path: Path) -> str:
    return visible(str(path.relative_to(root) if path.is_relative_to(root) else path))

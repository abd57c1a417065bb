"""Log who had something judged again, when and why, with points before and after. The log only grows.

    python -m grader regrades [LAB] [--student NAME] [--json]

A line holds the hash of the line before it, so that a line that is changed or left out later is noticed.
"""

import argparse
import hashlib
import json
import os
import secrets
import sys
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from grader.classroom.atomic_file import PLACE, write
from grader.classroom.points import Points
from grader.judge.report import visible
from grader.paths import ROOT

FILE = "regrades.jsonl"
FIRST = "0" * 16
BEGUN, DONE = "begun", "done"
GONE = ""  # the name of a student whose data was deleted. Numbers stay, and all remarks about the student go


class Damaged(ValueError):
    """The log is not as it was written."""


def read(root: Path) -> list[dict]:
    """Return every line of the log. Raise Damaged if a line doesn't follow from its predecessor. A torn last line is
    dropped."""
    path = root / PLACE / FILE
    if not path.exists():
        return []
    facts = path.stat()
    return _parsed(path, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=4)
def _parsed(path: Path, mtime_ns: int, size: int) -> list[dict]:
    found, chain = [], FIRST
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        try:
            row = json.loads(line)
            if row["follows"] != chain:
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise Damaged(
                f"{PLACE / FILE} must be as the grader wrote it, got a line {number} that does not follow from those "
                "before it. Put a copy of the file back"
            ) from None
        chain = _hash(line)
        found.append(row)
    return found


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[: len(FIRST)]


def _add(root: Path, rows: list[dict]) -> None:
    path, when = root / PLACE / FILE, datetime.now(UTC).isoformat(timespec="seconds")
    path.parent.mkdir(parents=True, exist_ok=True)
    read(root)
    with open(path, "ab+") as file:
        file.seek(0)
        whole, _, torn = file.read().rpartition(b"\n")
        if torn:  # what a kill in the middle of a write left
            file.truncate(len(whole) + 1 if whole else 0)
        last = whole.rpartition(b"\n")[2]
        chain = _hash(last) if last else FIRST
        for row in rows:
            line = json.dumps({**row, "when": when, "follows": chain}).encode()
            file.write(line + b"\n")
            chain = _hash(line)
        file.flush()
        os.fsync(file.fileno())


def forget(root: Path, student: str) -> None:
    """Return the log without its words about a student, rechained."""
    rows = read(root)
    theirs = {row["number"] for row in rows if row.get("student") == student}
    emptied = {"student": GONE, "why": "", "before": None, "salt": ""}
    chain, lines = FIRST, []
    for row in rows:
        gone = row["number"] in theirs
        kept = {
            **row,
            **(({"after": None} if row["state"] == DONE else emptied) if gone else {}),
            "follows": chain,
        }
        lines.append(json.dumps(kept).encode())
        chain = _hash(lines[-1])
    write(root / PLACE / FILE, "".join(f"{line.decode()}\n" for line in lines), replace=True)


def begin(round_, before: dict[str, dict | None], who: str, why: str, alone: bool) -> None:
    """Give these students' answers hidden cases of their own (`alone`), or everyone new ones, from now on.

    `before`: student -> the gradebook's content for that student.
    """
    first = sum(row["state"] == BEGUN for row in read(round_.root)) + 1
    same = {"state": BEGUN, "lab": round_.lab, "epoch": round_.epoch, "who": who, "why": why}
    rows = [
        {
            **same,
            "number": number,
            "student": name,
            "before": held,
            "salt": secrets.token_hex(8) if alone else "",
        }
        for number, (name, held) in enumerate(before.items(), first)
    ]
    _add(round_.root, rows)


def finish(root: Path, after: dict[int, dict]) -> None:
    """Write the end of a regrade. `after`: number of a regrade -> the gradebook's content now."""
    _add(root, [{"state": DONE, "number": number, "after": held} for number, held in after.items()])


def all_of(root: Path, lab: str | None = None, student: str | None = None) -> list[dict]:
    """Return every regrade with its before and after, oldest first. `after` is None until it is finished."""
    rows = read(root)
    after = {row["number"]: row for row in rows if row["state"] == DONE}
    found = []
    for row in (row for row in rows if row["state"] == BEGUN and row["student"] != GONE):
        end = after.get(row["number"], {})
        if lab in (None, row["lab"]) and student in (None, row["student"]):
            found.append({**row, "after": end.get("after"), "done": end.get("when")})
    return found


def salts(root: Path, lab: str, epoch: str) -> dict[str, str]:
    """student -> what sets their hidden cases apart in this round, by the last regrade of their own."""
    return {row["student"]: row["salt"] for row in all_of(root, lab) if row["epoch"] == epoch and row["salt"]}


def words(row: dict) -> str:
    """One regrade in one line."""
    before = _points(row["before"]) if row["before"] else "nothing entered"
    after = _points(row["after"]) if row["after"] else "not done yet: run the class command again"
    change = f"{before}, as before" if row["after"] and not changed(row) else f"{before} -> {after}"
    why = visible(row["why"]).replace("\n", " ")[:200] or "no reason given"
    return f"judged again {row['when'][:16].replace('T', ' ')} UTC by {visible(row['who'])} ({why}): {change}"


def changed(row: dict) -> bool:
    """Return whether any cell has other points than before."""
    before, after = row["before"] or {}, row["after"] or {}
    return before.get("points") != after.get("points") or before.get("scores") != after.get("scores")


def _points(entry: dict) -> str:
    return str(Points(entry["points"], entry["of"], entry.get("bonus", 0.0)))


def _changes(row: dict) -> list[str]:
    before, after = (row["before"] or {}).get("scores", {}), (row["after"] or {}).get("scores", {})
    names = [name for name in after if before.get(name) != after[name]] if before else []
    return [f"{name}: {before.get(name, 0):g} -> {after[name]:g}" for name in names]


def main(argv: list[str]) -> int:
    from grader.verdicts import WRONG_USAGE

    parser = argparse.ArgumentParser(
        prog="python -m grader regrades",
        description="List the answers that were judged again, by whom and why.",
    )
    parser.add_argument("lab", nargs="?", metavar="LAB")
    parser.add_argument("--student")
    parser.add_argument("--json", action="store_true")
    wants = parser.parse_args(argv)
    try:
        found = all_of(ROOT, wants.lab, wants.student)
    except Damaged as trouble:
        print(f"python -m grader regrades: {trouble}", file=sys.stderr)
        return WRONG_USAGE
    if wants.json:
        print(json.dumps(found, indent=1))
        return 0
    for row in found:
        print(f"{row['number']}  {row['lab']}  {visible(row['student'])}  {words(row)}")
        print(*(f"    {line}" for line in _changes(row)), sep="\n", end="\n" if _changes(row) else "")
    if not found:
        print("nothing was judged again")
    return 0

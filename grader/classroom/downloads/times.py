"""Read hand-in times from a learning platform's list, because its zip of all submissions has none.

Moodle: the assignment's "Download grading worksheet", a CSV whose column Identifier holds "Participant 4711" and
whose column "Last modified (submission)" holds a date in words. Canvas: the response of
/api/v1/courses/COURSE/assignments/ASSIGNMENT/submissions?per_page=100, which a teacher can open in a browser: a list
of JSON with user_id and submitted_at. Neither was tried with a real server."""

import csv
import json
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from grader.classroom import people
from grader.classroom.people import Person

MOODLE = "Last modified (submission)"
NEVER = ("", "-", "never", "null", "none")
CLEAR = re.compile(
    r"^\s*\d{4}-\d\d?-\d\d?(?!\d)|(?i:\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*\b\d{4}\b)"
)
FORM = "%Y-%m-%d %H:%M:%S UTC"


def read(path: Path, zone: str, known: dict[str, Person]) -> dict[str, str]:
    """Return student -> the time of the newest hand-in, in timestamp.txt's form. ValueError says what is wrong."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--times must be a file in UTF-8, got {path} ({error})") from None
    where, found = _zone(zone), {}
    for student, words in _rows(path, text, known):
        if student and words.strip().lower() not in NEVER:
            when = _parsed(words, where, path.name)
            found[student] = max(when, found.get(student, when))
    if not found:
        raise ValueError(
            f"{path.name} must hold a time of a student, got none that is known. Give --names too"
        )
    return {student: when.strftime(FORM) for student, when in found.items()}


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"--zone must be a time zone such as Europe/Berlin, got {name!r}") from None


def _rows(path: Path, text: str, known: dict[str, Person]) -> Iterator[tuple[str, str]]:
    """(student, time in the platform's words) of each line."""
    if text.lstrip()[:1] == "[":
        yield from _canvas(path, text, known)
        return
    table = csv.DictReader(text.splitlines())
    heads = [(head or "").strip() for head in table.fieldnames or []]
    table.fieldnames = heads
    if MOODLE in heads and "Identifier" in heads:
        yield from _moodle(table, known)
    elif {"student", "time"} <= set(heads):
        yield from ((row["student"] or "", row["time"] or "") for row in table)
    else:
        raise ValueError(
            f"{path.name} must be Moodle's grading worksheet, Canvas's submissions in JSON or a CSV with student and time, "
            f"got the columns {', '.join(heads)[:200] or 'none'}"
        )


def _canvas(path: Path, text: str, known: dict[str, Person]) -> Iterator[tuple[str, str]]:
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path.name} must be JSON, got a mistake in it ({error})") from None
    numbers = people.by("id", known)
    for row in rows:
        if not isinstance(row, dict) or "user_id" not in row:
            raise ValueError(f"{path.name} must be a list of submissions with user_id and submitted_at")
        user = str(row["user_id"])
        yield numbers.get(user) or ("" if known else user), str(row.get("submitted_at") or "")


def _moodle(table: Iterable[dict], known: dict[str, Person]) -> Iterator[tuple[str, str]]:
    numbers, names = people.by("identifier", known), people.by("name", known, "identifier")
    for row in table:
        number = re.sub(r"\D", "", row["Identifier"] or "")
        student = numbers.get(number) or names.get((row.get("Full name") or "").strip(), "")
        yield student, row[MOODLE] or ""


def _parsed(words: str, where: tzinfo, name: str) -> datetime:
    from dateutil import parser

    try:
        if not CLEAR.search(words):  # 05/12/2026 does not say which number is the month
            raise ValueError
        with warnings.catch_warnings():
            warnings.simplefilter("error", parser.UnknownTimezoneWarning)
            when = parser.parse(words)
    except (ValueError, OverflowError, parser.UnknownTimezoneWarning):
        raise ValueError(
            f"{name} must hold times that can be read, got {words[:60]!r}. Write 2026-11-20 18:00 UTC, or +01:00 instead of UTC, "
            "or 20 November 2026 in English"
        ) from None
    return (when if when.tzinfo else when.replace(tzinfo=where)).astimezone(UTC)


def in_zip(archive: zipfile.ZipFile, zone: str, members: dict[str, list[str]]) -> dict[str, str]:
    """Return the newest time of each student's files in the zip. Raise ValueError if they only say when it was
    packed."""
    where = _zone(zone)
    found = {
        student: max(datetime(*archive.getinfo(one).date_time, tzinfo=where) for one in own)
        for student, own in members.items()
        if own
    }
    if len(found) > 1 and (max(found.values()) - min(found.values())).total_seconds() < 120:
        raise ValueError(
            "the zip's files must have times of their own, got the minute in which it was packed. Give --times a file"
        )
    return {student: when.astimezone(UTC).strftime(FORM) for student, when in found.items()}

"""Map nbgrader's student names to those of Canvas or Moodle, by a small CSV."""

import csv
from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class Person:
    """One row. Columns that a learning platform doesn't need may be left out."""

    student: str  # the folder's name below submitted/
    name: str = ""  # as the platform shows it
    id: str = ""  # Canvas: its own number for the user, which is part of the names of downloads
    sis_user_id: str = ""
    login: str = ""  # Canvas: SIS Login ID
    section: str = ""
    username: str = ""  # Moodle
    idnumber: str = ""  # Moodle: ID number in the profile
    email: str = ""
    lti: str = ""  # the platform's number of the user in an LTI launch (its claim sub)
    identifier: str = (
        ""  # Moodle: number of the participant in this assignment, part of the names of downloads
    )


COLUMNS = tuple(field.name for field in fields(Person))


def read(path: Path) -> dict[str, Person]:
    """Return student -> Person. ValueError says which line is wrong and how."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"names must be a CSV file in UTF-8, got {path} ({error})") from None
    rows = csv.DictReader(text.splitlines())
    heads = [(head or "").strip() for head in rows.fieldnames or []]
    if "student" not in heads or set(heads) - set(COLUMNS):
        odd = ", ".join(sorted(set(heads) - set(COLUMNS))) or "no column student"
        raise ValueError(
            f"{path.name} must have the column student and of the others only {', '.join(COLUMNS[1:])}, got {odd}"
        )
    rows.fieldnames = heads
    found = {}
    for row in rows:
        if None in row or None in row.values():
            raise ValueError(
                f"{path.name}:{rows.line_num} must have {len(heads)} fields as its first line has"
            )
        person = Person(**{key: value.strip() for key, value in row.items()})
        if not person.student or person.student in found:
            raise ValueError(
                f"{path.name}:{rows.line_num} must name a student once, got {person.student!r} "
                + ("again" if person.student else "")
            )
        found[person.student] = person
    return found


def by(column: str, people: dict[str, Person], unless: str = "") -> dict[str, str]:
    """Return value of one column -> student. A value that two students share is refused, unless another column tells
    them apart."""
    found: dict[str, list[Person]] = {}
    for person in people.values():
        found.setdefault(getattr(person, column), []).append(person)
    for value, same in found.items():
        if value and len(same) > 1 and not (unless and all(getattr(one, unless) for one in same)):
            raise ValueError(
                f"names must have every {column} once, got {value!r} for {same[0].student} and {same[1].student}"
                + f". Give each of these students the {unless}" * bool(unless)
            )
    return {value: same[0].student for value, same in found.items() if value and len(same) == 1}

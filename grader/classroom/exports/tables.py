"""Write a lab's points as rows of a CSV, in one form for each platform.

Canvas: the header that its importer looks for is Student, ID, then SIS User ID, SIS Login ID and Section, then one
column an assignment, "Title (id)" or a title. A row whose first cell says Points Possible holds the maxima. A
student is found by ID, else SIS User ID, else SIS Login ID, else the name. Source: lib/gradebook_importer.rb of
instructure/canvas-lms, and the guide "How do I import grades in the Gradebook?".

Moodle: Grades > Import > CSV file. The teacher says which column names the user (username, ID number or email
address) and which is which grade item. An unknown user ends the import, and an empty grade or "-" enters nothing.
Source: grade/import/csv/classes/load_data.php of moodle/moodle, and the page "Grade import" of its documentation.
"""

from collections.abc import Callable
from dataclasses import dataclass

from grader.classroom.marks import Standing
from grader.classroom.people import Person
from grader.classroom.points import number

Rows = list[list[str]]


@dataclass(frozen=True)
class Wanted:
    """Holds the contents of a table: its students, their names in it, and the title of the grade's column."""

    lab: str
    title: str
    standings: list[Standing]
    people: dict[str, Person]

    def person(self, one: Standing) -> Person:
        return self.people.get(one.student) or Person(
            one.student, name=_name(one), email=one.email, id=one.student if one.student.isdigit() else ""
        )


def _name(one: Standing) -> str:
    return ", ".join(filter(None, (one.last_name, one.first_name)))


def plain(wanted: Wanted) -> Rows:
    """nbgrader's columns, and of what the total is made."""
    rows = [
        [
            "assignment",
            "student_id",
            "last_name",
            "first_name",
            "email",
            "timestamp",
            "raw_score",
            "bonus",
            "late_submission_penalty",
            "hours_late",
            "score",
            "max_score",
            "status",
        ]
    ]
    for one in wanted.standings:
        who = [wanted.lab, one.student, one.last_name, one.first_name, one.email, one.handed_in_at]
        counts = [number(n) for n in (one.raw, one.bonus, one.penalty, one.late_s / 3600, one.points, one.of)]
        state = "nothing handed in" if not one.entered else "provisional" if one.waiting else "final"
        rows.append([*who, *counts, state])
    return rows


def canvas(wanted: Wanted) -> Rows:
    rows = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", wanted.title]]
    most = wanted.standings[0].of if wanted.standings else 0.0
    rows.append(["    Points Possible", "", "", "", "", number(most)])
    for one in wanted.standings:
        person = wanted.person(one)
        login = person.login or ("" if person.id or person.sis_user_id else one.student)
        name = person.name or one.student
        rows.append([name, person.id, person.sis_user_id, login, person.section, number(one.points)])
    return rows


def moodle(wanted: Wanted) -> Rows:
    """Write only the identifying columns that every student has, because a gap in the mapped one ends Moodle's
    import."""
    people = [wanted.person(one) for one in wanted.standings]
    names = [person.username or one.student for person, one in zip(people, wanted.standings, strict=True)]
    columns = {"Username": names}
    for head, key in (("ID number", "idnumber"), ("Email address", "email")):
        values = [getattr(person, key) for person in people]
        if values and all(values):
            columns[head] = values
    columns[wanted.title] = [number(one.points) for one in wanted.standings]
    return [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]


FORMATS: dict[str, Callable[[Wanted], Rows]] = {"csv": plain, "canvas": canvas, "moodle": moodle}

"""What timestamp, due date, extension and policy say counts at every run, and judges nobody anew."""

import json
from datetime import timedelta

import pytest

from grader.classroom import extension as extending
from grader.classroom import gradebooks, late, marks
from grader.classroom.points import duration
from grader.classroom.tests.conftest import LAB, RIGHT, WRONG, grade_by_hand
from grader.judge import referee
from grader.verdicts import WRONG_USAGE

DUE = "2026-11-20 11:00:00 UTC"  # an hour before all hand in


def policy(course, method: str) -> None:
    text = (gradebooks.ROOT / gradebooks.CONFIG).read_text()
    (course.root / gradebooks.CONFIG).write_text(
        f"{text}\nc.LateSubmissionPlugin.penalty_method = {method!r}\n"
    )


def due(course, when: str | None) -> None:
    with gradebooks.opened(course.root, LAB) as gradebook:
        gradebook.update_or_create_assignment(LAB, duedate=when)


def stamp(course, student: str, when: str) -> None:
    (course.place(student).parent / "timestamp.txt").write_text(when)


def extension(course) -> None:
    with gradebooks.opened(course.root, LAB) as gradebook:
        gradebook.grant_extension(LAB, "ada", hours=2)


CHANGES = {  # after a first run in which ada was late and lost all: what gives her the points back
    "timestamp": lambda course: stamp(course, "ada", "2026-11-20 10:59:00 UTC"),
    "due date": lambda course: due(course, "2026-11-21 00:00:00 UTC"),
    "extension": extension,
    "policy": lambda course: policy(course, "none"),
}


def test_time_is_part_of_what_a_grade_stands_on(course, monkeypatch):
    for name in ("ada", "bob"):
        course.hand_in(name, RIGHT)
    row = course.grade()["ada"]
    assert (row.points, row.penalty, row.late_s) == (5, 0, 0)
    grade_by_hand(course, "ada", "why", 2)
    monkeypatch.setattr(referee, "grade_one", None)  # from here on nothing is judged
    monkeypatch.setattr(gradebooks, "autograde", None)  # nor entered anew
    stamp(course, "bob", "2026-11-20 10:00:00 UTC")
    make_late(course)
    rows = course.grade()
    assert (rows["ada"].points, rows["ada"].penalty, rows["ada"].late_s) == (7, 7, 3600)
    assert (
        not rows["ada"].unchanged
        and str(rows["ada"].total) == "0 of 10, 7 taken off for 1 h late"
        and rows["bob"].unchanged
    )
    for name, change in CHANGES.items():
        make_late(course)
        found = late.settle(course.root, LAB, ["ada", "bob"])
        assert (found["ada"].penalty, found["bob"].penalty) == (7, 0), name
        assert not late.settle(course.root, LAB, ["ada"])["ada"].changed, name
        change(course)
        found = late.settle(course.root, LAB, ["ada"])["ada"]
        assert (found.penalty, found.changed) == (0, True), name
        assert "0 taken off, 7 before" in found.said[-1], name
    row = course.grade()["ada"]
    assert row.points == 7 and not row.penalty, "what a person gave is there still"


def make_late(course) -> None:
    """Ada by an hour, which costs her everything."""
    policy(course, "zero")
    stamp(course, "ada", "2026-11-20 12:00:00 UTC")
    due(course, DUE)
    with gradebooks.opened(course.root, LAB) as gradebook:
        gradebook.grant_extension(LAB, "ada")


def test_more_time_is_given_before_and_after_the_hand_in(course, monkeypatch, capsys):
    monkeypatch.setattr(extending, "ROOT", course.root)
    assert extending.main([LAB, "ada", "--hours", "2"]) == WRONG_USAGE
    assert "must have a due date to be extended" in capsys.readouterr().err
    due(course, DUE)
    assert extending.main([LAB, "ada", "--hours", "2"]) == 0
    assert "ada: due 2026-11-20 13:00 UTC, kept until" in capsys.readouterr().out
    for name in ("ada", "bob"):
        course.hand_in(name, RIGHT)
    rows = course.grade()
    assert (rows["ada"].late_s, rows["bob"].late_s) == (0, 3600)
    for hours, late_s in (("0", 3600), ("0.5", 1800)):
        assert extending.main([LAB, "ada", "bob", "--hours", hours]) == 0
        assert "bob: due 2026-11-20 11:" in (said := capsys.readouterr().out) and said.count("Now run") == 2
        assert {row.late_s for row in course.grade().values()} == {late_s}
    assert extending.main([LAB, "ada", "--hours", "-1"]) == WRONG_USAGE
    assert extending.main(["02_nothing", "ada", "--hours", "1"]) == WRONG_USAGE


def test_a_clock_that_is_wrong_is_said_and_changes_no_verdict(course):
    course.hand_in("ada", RIGHT)
    course.grade()
    stamp(course, "ada", "2099-01-01 00:00:00 UTC")
    row = course.grade()["ada"]
    assert "One of the two is wrong" in row.said[0] and row.points == 5
    stamp(course, "ada", "no time at all")
    assert course.grade()["ada"].points == 5


def test_a_hand_in_without_a_time_is_said_once_there_is_a_due_date(course):
    course.hand_in("ada", RIGHT)
    (course.place("ada").parent / "timestamp.txt").unlink()
    assert course.grade()["ada"].said == []
    due(course, DUE)
    said = ["no timestamp.txt says when it was handed in, so it counts as in time."]
    assert course.grade()["ada"].said == said
    stamp(course, "ada", "2026-11-20 10:00:00 UTC")
    assert course.grade()["ada"].said == []


@pytest.mark.parametrize(
    "seconds, words",
    [(30, "less than a minute"), (3600, "1 h"), (100_000, "1 d 3 h"), (12_000, "3 h 20 min")],
)
def test_durations_are_words(seconds, words):
    assert duration(timedelta(seconds=seconds).total_seconds()) == words


def test_late_work_is_said_with_and_without_a_penalty(course, monkeypatch):
    course.hand_in("ada", RIGHT)
    course.grade()
    stamp(course, "ada", "2026-11-22 05:00:00 UTC")
    due(course, DUE)
    row = course.grade()["ada"]
    assert str(row.total) == "5 of 10, 1 d 18 h late" and row.penalty == 0
    assert (
        "concepts: 5 of 10, 1 d 18 h late, not final" in (course.pages("ada") / "concepts.html").read_text()
    )

    text = (gradebooks.ROOT / gradebooks.CONFIG).read_text()
    line = "c.Penalty.percent_a_day = 10"
    assert text.count(f"# {line}\n") == 1, "the one line that the page names"
    (course.root / gradebooks.CONFIG).write_text(text.replace(f"# {line}", line))
    lines = marks.not_judged(course.root, LAB, marks.standings(course.root, LAB))
    assert lines == {"ada": marks.OUTDATED}, "so an export with the old penalty is refused"
    row = course.grade()["ada"]
    assert not marks.not_judged(course.root, LAB, marks.standings(course.root, LAB))
    assert str(row.total) == "4 of 10, 1 taken off for 1 d 18 h late", "10% of 5 for each of two days begun"
    assert (
        "4 of 10, 1 taken off for 1 d 18 h late"
        in (course.root / f"feedback/ada/{LAB}/concepts.html").read_text()
    )
    copied = (course.root / f"autograded/ada/{LAB}/timestamp.txt").read_text()
    assert copied == "2026-11-22 05:00:00 UTC", "so that an export does not take it for a newer hand-in"

    with gradebooks.opened(course.root, LAB) as gradebook:
        gradebook.grant_extension(LAB, "ada", hours=24)
    page = (course.pages("ada") / "concepts.html").read_text()
    assert "4.5 of 10, 0.5 taken off for 18 h late" in page, "nbgrader's own command sees the extension, too"


def handed_in(course, when: str, answers: dict) -> None:
    """As nbgrader submit leaves it in the exchange."""
    import getpass

    name = f"{getpass.getuser()}+{LAB}+{when}+0a1b2c"
    folder = course.root / "work/exchange/tile-by-tile/inbound" / name
    folder.mkdir(parents=True)
    (folder / "concepts.ipynb").write_text(json.dumps(course.notebook(answers)))
    (folder / "timestamp.txt").write_text(when)


def collect(course) -> None:
    from nbgrader.exchange import ExchangeFactory

    config = gradebooks.settings(course.root, LAB)
    config.Exchange.root = str(course.root / "work/exchange")
    log, _ = gradebooks.logger(None)
    coursedir = gradebooks.course(config, log)
    factory = ExchangeFactory(config=config)
    with gradebooks.quiet():
        factory.Collect(coursedir=coursedir, authenticator=None, config=config, parent=None).start()


def test_collecting_again_takes_what_was_handed_in_again(course):
    import getpass

    me = getpass.getuser()
    (course.root / "work/exchange").mkdir(parents=True, exist_ok=True)
    handed_in(course, "2026-11-20 09:00:00.000000 UTC", WRONG)
    collect(course)
    assert course.grade()[me].points == 2
    handed_in(course, "2026-11-20 10:00:00.000000 UTC", RIGHT)
    row = course.grade()[me]
    assert row.said == [
        "handed in 2 times: the one of 2026-11-20 09:00 UTC counts",
        f"a newer hand-in of 2026-11-20 10:00 UTC is in the exchange: run nbgrader collect {LAB}",
    ]
    collect(course)
    row = course.grade()[me]
    assert row.points == 5 and row.said == ["handed in 2 times: the one of 2026-11-20 10:00 UTC counts"]

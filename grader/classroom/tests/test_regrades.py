"""A student's work is judged anew: who wanted it, when, why, before and after are kept, and the others stay as they are."""

import json

import pytest

from grader.classroom import command, grade_class, gradebooks, grading_round, jobs, regrades
from grader.classroom.tests.conftest import LAB, RIGHT, WRONG, grade_by_hand
from grader.judge import record, referee


def test_one_student_is_judged_anew_and_it_is_kept_who_and_why(course, monkeypatch, capsys):
    monkeypatch.setattr(command, "ROOT", course.root)
    monkeypatch.setattr(regrades, "ROOT", course.root)
    for name, answers in {"ada": WRONG, "bob": WRONG}.items():
        course.hand_in(name, answers)
    course.grade()
    grade_by_hand(course, "ada", "why", 2.5)
    before = grading_round.open_round(course.root, LAB)
    seeds, judged = [], referee.grade_one
    monkeypatch.setattr(
        referee, "grade_one", lambda *a, seed, **more: seeds.append(seed) or judged(*a, seed=seed, **more)
    )

    assert command.main([LAB, "--student", "ada", "--anew"]) == record.WRONG_USAGE
    assert "why must be given" in capsys.readouterr().err and not regrades.read(course.root)
    course.hand_in("ada", RIGHT)
    why = ["--why", "tile_loads was read\nwrongly", "--by", "prof. noether"]
    assert command.main([LAB, "--student", "ada", "--anew", *why, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["students"]
    assert row["points"] == 7.5 and "concepts: why" not in row["by_hand"], "a person's points stay settled"
    assert "by prof. noether (tile_loads was read wrongly): 4.5 of 10 -> 7.5 of 10" in row["regraded"][0]
    assert len(seeds) == 2 and before.seed("gemm_tiling.reuse") not in seeds, "hidden cases of her own"

    rows = course.grade()
    assert len(seeds) == 2 and rows["ada"].unchanged and rows["bob"].unchanged and not rows["bob"].regraded
    assert rows["ada"].regraded == row["regraded"]
    assert regrades.main([LAB]) == 0
    said = capsys.readouterr().out
    assert "prof. noether" in said and "concepts: check_tile_loads: 0 -> 3" in said
    assert regrades.main(["--json"]) == 0
    (kept,) = json.loads(capsys.readouterr().out)
    assert (kept["who"], kept["before"]["points"], kept["after"]["points"]) == ("prof. noether", 4.5, 7.5)
    assert kept["after"]["verdicts"]["gemm_tiling.tile_loads"] == "PASS"


def test_a_regrade_that_was_killed_is_gone_on_with(course):
    course.hand_in("ada", RIGHT)
    course.grade()

    def killed(found):
        raise KeyboardInterrupt
        yield

    anew = grade_class.Anew("emmy", "asked for")
    with pytest.raises(KeyboardInterrupt):
        course.grade(only=["ada"], anew=anew, each=killed)
    (open_,) = regrades.all_of(course.root)
    assert open_["after"] is None and "not done yet" in regrades.words(open_)
    judged = []
    row = course.grade(each=lambda found: judged.extend(found) or jobs.job.one_by_one(found))["ada"]
    assert len(judged) == 2 and "5 of 10, as before" in row.regraded[0]


def test_the_log_is_only_added_to(tmp_path):
    round_ = grading_round.open_round(tmp_path, LAB, "cpu")
    for number, name in enumerate(("ada", "bob", "cy"), 1):
        regrades.begin(round_, {name: None}, "emmy", "asked", alone=True)
        assert [row["number"] for row in regrades.read(tmp_path)] == list(range(1, number + 1))
    path = tmp_path / grading_round.PLACE / regrades.FILE
    whole = path.read_text()
    path.write_text(whole + '{"state": "begun", "lab": "torn by a ki')
    regrades.begin(round_, {"dan": None}, "emmy", "asked", alone=True)
    assert path.read_text().startswith(whole) and len(regrades.read(tmp_path)) == 4
    for changed in (whole.replace('"bob"', '"eve"'), "".join(whole.splitlines(True)[::2])):
        path.write_text(changed)
        with pytest.raises(regrades.Damaged, match="does not follow from those before"):
            regrades.begin(round_, {"eve": None}, "emmy", "asked", alone=True)


def test_points_by_hand_are_looked_at_again_where_the_text_is_new(course):
    course.hand_in("ada", RIGHT)
    course.grade()
    grade_by_hand(course, "ada", "why", 2)
    course.hand_in("ada", {**RIGHT, "why": "Another reason."})
    assert "concepts: why" in course.grade()["ada"].by_hand
    held = {g.name: g.score for _, g in gradebooks.grades(course.root, LAB, "ada")}
    assert held["why"] == 2

"""What a lab says about its judging is what the question says, and is written nowhere else."""

import pytest

from grader import questions
from grader.notebooks import filled, judged, make
from grader.paths import ROOT
from grader.questions import criteria_text

TEXTS = sorted(path.relative_to(ROOT) for path in ROOT.glob("solutions/*/*.md"))
MARKED = [
    (path, name) for path in TEXTS for name in judged.MARK.findall((ROOT / path).read_text(encoding="utf-8"))
]


def test_labs_have_such_tables():
    assert len(MARKED) > 15


@pytest.mark.parametrize("path, name", MARKED, ids=lambda value: str(value))
def test_each_part_says_what_it_asks(path, name):
    question = questions.find(f"{make.topic(path)}.{name}")
    rows = criteria_text.table(question).splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == [f"{part.points:g}" for part in question.parts]
    assert all(len(row.split(" | ")[2]) > 20 and "{" not in row for row in rows)


@pytest.mark.parametrize("path, name", MARKED, ids=lambda value: str(value))
def test_counted_limits_are_folded_below_the_table(path, name):
    question = questions.find(f"{make.topic(path)}.{name}")
    counted = [row for part in question.parts for row in criteria_text.counted(question, part)]
    made = judged.table(make.topic(path), name)
    shown, fold, folded = made.partition("<details>")
    assert bool(fold) == bool(counted)
    assert all(row not in shown and row in folded.splitlines() for row in counted)


def test_launches_are_among_the_limits():
    question = questions.find("roofline.doubled")
    assert "  - one launch at most" in criteria_text.counted(question, question.parts[1])


def test_a_limit_has_the_number_of_a_drawn_size():
    question = questions.find("roofline.doubled")
    n = criteria_text.one_size(question).sizes["N"]
    assert f"  - read of x: {n} elements of 4 bytes, once" in criteria_text.limits(question).splitlines()
    assert f"N = {n:,}." in criteria_text.limits(question)


def test_sizes_begin_at_0_where_a_case_has_none():
    assert "T from 0 to" in criteria_text.table(questions.find("moe_routing.order"))
    assert "N from 1 to" in criteria_text.table(questions.find("roofline.differences"))
    assert "N from 64 to" in criteria_text.table(questions.find("roofline.doubled"))


def test_a_number_stands_in_the_question_alone():
    question = questions.find("gemm_tiling.tiled_gemm")
    said = {part.name: part.asks for part in question.parts}
    assert "{public}" in said["values"] and "{spills}" in said["compiled"] and "{full_speed}" in said["speed"]
    told = criteria_text.numbers(question)
    assert told["public"] == "4 cases" and told["spills"].startswith(
        "at most 64 bytes of registers spilled (1,536"
    )
    assert (told["full_speed"], told["none_speed"], told["targets"]) == ("70%", "35%", "sm_90 and sm_80")


def test_a_mark_becomes_its_table_and_lines_stay_those_of_the_text():
    made = filled.fill("one\n\n<!-- judged=tiled_gemm -->\n\nfive\n", "gemm_tiling")
    assert not made.complaints and "| values | 4 |" in made.text
    at = made.text.splitlines().index("five")
    assert at > 4 and made.lines[at] == 5


@pytest.mark.parametrize(
    "name, said", [("tiled_gem", "must name a question"), ("reuse", "must say what it asks")]
)
def test_a_mark_that_leads_to_no_table_is_named_by_its_line(name, said):
    made = filled.fill(f"one\n<!-- judged={name} -->\n", "gemm_tiling")
    ((line, what),) = made.complaints
    assert line == 2 and said in what and "<!-- judged=" in made.text


@pytest.mark.parametrize("path", TEXTS, ids=str)
def test_no_table_is_written_by_hand(path):
    assert not judged.TABLE.search((ROOT / path).read_text(encoding="utf-8"))

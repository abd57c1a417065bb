"""A class on one page: its numbers, its names, and nothing that could run or leave."""

import html
import json
import re
from types import SimpleNamespace

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from grader import questions
from grader.classroom.report import command, facts, plots, side_by_side
from grader.classroom.tests.afterwards.conftest import RENAMED, by_hand
from grader.classroom.tests.conftest import LAB, RIGHT
from grader.verdicts import WRONG_USAGE


@pytest.fixture
def report(graded, monkeypatch, capsys):
    monkeypatch.setattr(command, "ROOT", graded.root)

    def run(*options):
        assert command.main([LAB, *options]) == 0, capsys.readouterr().err
        place = graded.root / command.PLACE
        return (place / f"{LAB}.html").read_text(), json.loads((place / f"{LAB}.json").read_text())

    return run


def words(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page.partition("<body")[2])))


def test_what_the_class_did_stands_on_the_page(graded, report):
    by_hand(graded.root, {("ada", "why"): 3, ("bob", "why"): 1.5})
    page, data = report()
    asked = {one["question"]: one for one in data["questions"]}
    assert {name: one["states"] for name, one in asked.items()} == {
        "gemm_tiling.reuse": {"full": 3, "part": 0, "none": 1, "not begun": 1, "open": 0},
        "gemm_tiling.tile_loads": {"full": 2, "part": 0, "none": 2, "not begun": 1, "open": 0},
        "why": {"full": 1, "part": 1, "none": 0, "not begun": 0, "open": 3},
        "draw": {"full": 0, "part": 0, "none": 0, "not begun": 0, "open": 5},
    }
    seen = words(page)
    assert "5 handed in and judged" in seen and "5 have cells that wait for a person" in seen
    assert "No student has all points: of no question" in seen
    assert "ada 1 concepts: draw" in seen and "eve 2 concepts: draw, concepts: why" in seen
    bars = (
        "1 with 0 to 0.833, 1 with 1.67 to 2.5, 1 with 2.5 to 3.33, 1 with 3.33 to 4.17, 1 with 7.5 to 8.33"
    )
    assert f'aria-label="The whole lab: {bars}"' in page, "dee, cy, eve, bob, ada"


def test_a_recognised_mistake_is_counted_by_its_sentence(report):
    _, data = report()
    found = next(one for one in data["questions"] if one["question"] == "gemm_tiling.tile_loads")["mistakes"]
    known = {mistake.sentence for mistake in questions.find("gemm_tiling.tile_loads").mistakes}
    assert len(found) == 1 and found[0]["what"] in known
    assert (found[0]["recognised"], found[0]["students"]) == (True, 2)


def test_renamed_copies_are_shown_side_by_side_and_cost_nothing(graded, report):
    before = {row.student: row.points for row in graded.grade().values()}
    page, data = report()
    loads = next(one for one in data["questions"] if one["question"] == "gemm_tiling.tile_loads")
    assert ["bob", "cy"] in loads["identical"]
    assert "None of this is a grade" in words(page)
    assert {row.student: row.points for row in graded.grade().values()} == before


def test_answers_of_an_earlier_term_are_compared_and_left_alone(
    graded, report, tmp_path, monkeypatch, capsys
):
    term = tmp_path / "spring"
    for student, answers in {"old1": RENAMED, "old2": RENAMED, "old3": {}}.items():
        path = term / "submitted" / student / LAB / "concepts.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(graded.notebook(answers)))
    before = sorted((path, path.stat().st_mtime_ns) for path in term.rglob("*"))
    page, data = report("--earlier", str(term))
    loads = next(one for one in data["questions"] if one["question"] == "gemm_tiling.tile_loads")
    assert ["bob", "cy", "old1 (spring)", "old2 (spring)"] in loads["identical"]
    assert all(any("(" not in name for name in one["students"]) for one in loads["alike"])
    assert len(data["students"]) == 5 and "old1 (spring)" in words(page)
    assert sorted((path, path.stat().st_mtime_ns) for path in term.rglob("*")) == before
    capsys.readouterr()
    assert command.main([LAB, "--earlier", str(tmp_path / "course")]) == WRONG_USAGE
    said = capsys.readouterr().err
    assert f"must be a folder with STUDENT/{LAB} in it" in said and "reading" not in said, "said at once"


def test_one_question_is_shown_across_all_students(graded, monkeypatch, capsys):
    monkeypatch.setattr(command, "ROOT", graded.root)
    by_hand(graded.root, {("ada", "why"): 3})
    graded.hand_in("zed", RIGHT)
    graded.grade(only=["zed"])
    assert command.main([LAB, "--question", "reuse"]) == 0, "without its topic, too"
    assert command.main([LAB, "--question", "gemm_tiling.reuse"]) == 0
    seen = words((graded.root / command.PLACE / f"{LAB}.concepts.reuse.html").read_text())
    assert "2 different answers of 5 students" in seen
    assert seen.index("eve 0 of 2") < seen.index("ada, bob, cy, zed 2 of 2"), (
        "those who lost points come first"
    )
    assert "Nothing written dee" in seen and "return max(bm, bn)" in seen
    assert command.main([LAB, "--question", "gemm_tiling.why"]) == 0, "as the list of questions names it"
    assert command.main([LAB, "--question", "why"]) == 0
    seen = words((graded.root / command.PLACE / f"{LAB}.concepts.why.html").read_text())
    assert "dee no points yet" in seen and "Not begun, but I have thought." in seen and "3 of 3" in seen
    assert command.main([LAB, "--question", "shoe"]) == WRONG_USAGE
    assert (
        "--question must be one of gemm_tiling.reuse, gemm_tiling.tile_loads, why, draw, got 'shoe'"
        in capsys.readouterr().err
    )


def test_an_answer_belongs_to_the_notebook_that_it_is_in():
    def notebook(**sources):
        marks = {name: {"nbgrader": {"grade_id": name, "solution": True}} for name in sources}
        cells = [new_markdown_cell(text, metadata=marks[name]) for name, text in sources.items()]
        return new_notebook(cells=cells)

    stubs = {("concepts", "proof"): "", ("concepts", "reflect"): "", ("kernel", "reflect"): ""}
    came_in = [notebook(proof="p", reflect="of concepts"), notebook(reflect="of kernel")]
    assert [(place, text) for place, text, _ in facts._sources(came_in, stubs)] == [
        (("concepts", "proof"), "p"),
        (("concepts", "reflect"), "of concepts"),
        (("kernel", "reflect"), "of kernel"),
    ]


def test_a_cell_that_several_notebooks_have_is_found_in_all():
    names = (("concepts", "reflect"), ("kernel", "reflect"), ("kernel", "gemm_tiling.reuse"))
    asked = [SimpleNamespace(notebook=notebook, name=name) for notebook, name in names]
    found = SimpleNamespace(lab=LAB, asked=asked)
    for name, wanted in {
        "reflect": asked[:2],
        "gemm_tiling.reflect": asked[:2],
        "kernel: reflect": asked[1:2],
        "kernel: reuse": asked[2:],
    }.items():
        assert side_by_side.find(found, name) == wanted, name


def test_a_question_that_everybody_passes_is_named(graded, report):
    for student in ("bob", "cy", "dee", "eve"):
        graded.hand_in(student, RIGHT)
    graded.grade()
    page, _ = report()
    assert "All students have all points: gemm_tiling.reuse , gemm_tiling.tile_loads ." in words(page)


def test_nothing_of_a_student_runs_on_the_page(graded, report):
    hostile = '</pre><script>alert(1)</script><img src=x onerror="alert(2)">'
    graded.hand_in("dee", {**RIGHT, "why": f"{hostile} " + "one two three four five six " * 9})
    graded.hand_in("eve", {**RIGHT, "why": f"{hostile} " + "one two three four five six " * 9})
    graded.grade(only=["dee", "eve"])
    page, _ = report()
    assert "<script" not in page and "<img" not in page and "onerror=&quot;" in page
    assert "default-src 'none'" in page and "http://" not in page and "https://" not in page


def test_trouble_and_late_hand_ins_are_listed(graded, report):
    graded.hand_in("fay", RIGHT)
    _, data = report()
    assert data["not_judged"] == {"fay": "handed in and not judged yet"}


def test_what_cannot_be_read_is_named_as_that(graded, report):
    """It is no trouble of the grader's own, and its writer may have written something."""
    graded.place("fay").write_text("no notebook")
    graded.grade(only=["fay"])
    page, data = report()
    assert data["inconclusive"] == []
    assert "Notebooks that can't be read fay: concepts.ipynb is not a notebook: no JSON (line 1)" in words(
        page
    )
    assert command.main([LAB, "--question", "reuse"]) == 0
    seen = words((graded.root / command.PLACE / f"{LAB}.concepts.reuse.html").read_text())
    assert "Could not be read fay Nothing written dee" in seen


def test_names_are_whole_where_two_notebooks_share_one():
    asked = [facts.Asked("reflect", place, 4, True) for place in ("concepts", "kernel")]
    asked.append(facts.Asked("gemm_tiling.reuse", "concepts", 2, False))
    found = facts.Facts(LAB, "cpu", [], asked, [], {})
    assert [found.name(one) for one in asked] == ["concepts: reflect", "kernel: reflect", "gemm_tiling.reuse"]


def test_what_was_never_judged_has_no_report(graded, monkeypatch, capsys):
    monkeypatch.setattr(command, "ROOT", graded.root)
    for lab in ("02_nothing", "../x"):
        assert command.main([lab]) == WRONG_USAGE
        assert "lab must be one that was judged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "most", "expected"),
    (
        ([], 3, [0, 0, 0, 0]),
        ([0, 3, 3, 5], 3, [1, 0, 0, 2, 0, 1]),
        ([0.5, 24.0, 12.0], 24, [1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]),
    ),
)
def test_every_student_is_in_one_bar(values, most, expected):
    assert [count for *_, count in plots.bins(values, most)] == expected


def test_states_of_a_question_fill_its_bar(graded):
    found = facts.gather(graded.root, LAB)
    counts = {state: found.asked[0].count(state) for state in facts.STATES}
    widths = map(float, re.findall(r'width="([\d.]+)" height="10"', plots.shares(counts, "x")))
    assert sum(widths) == pytest.approx(100, abs=0.01)

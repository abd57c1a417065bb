"""Sentences take their figures from the record and the formulas when the notebook is built."""

import pytest

from grader.notebooks import command, filled
from grader.paths import ROOT
from kernels.sampling_fusion import cost

TOPIC = "sampling_fusion"


def said(words: str, topic: str = TOPIC) -> str:
    made = filled.fill(words, topic)
    assert made.complaints == []
    return made.text


def complaint(words: str) -> tuple[int, str]:
    (found,) = filled.fill(words, TOPIC).complaints
    return found


def test_a_number_comes_from_the_record_and_is_written_as_asked():
    row = filled.record(TOPIC).rows[0]
    text = said("took {{row('" + row.case + "').us:.0f}} µs, {{row('" + row.case + "').share:.2%}}\n")
    assert text == f"took {row['us']:.0f} µs, {row['share']:.2%}\n"


def test_a_number_may_come_from_another_topics_record():
    row = filled.record("roofline").rows[0]
    given = f"{row['case']!r}, of='roofline', op={row['op']!r}"
    assert said("{{row(" + given + ").us:.1f}}\n") == f"{row['us']:.1f}\n"
    assert said("{{record(of='roofline').date}}\n") == filled.record("roofline").date + "\n"
    assert said("{{module('cost', of='gemm_tiling').__name__}}\n") == "kernels.gemm_tiling.cost\n"


def test_a_record_that_is_not_kept_yet_is_none():
    assert said("{{'there' if kept('h200', of='roofline') else 'none'}}\n") == "there\n"
    assert said("{{'there' if kept('b300') else 'none'}}\n") == "none\n"


def test_a_number_comes_from_the_formula():
    assert said("{{cost.launches(cost.naive_chain(1, 128256)):d}} launches") == "13 launches"
    assert said("{{cost.reads_of_nucleus(0.9):.1f}}") == f"{cost.reads_of_nucleus(0.9):.1f}"


def test_names_are_given_once_for_a_page_and_leave_no_line_behind():
    text = "# A\n\n<!-- let\nx = [1, 2,\n     3]\ny = sum(x)\n-->\n\nThe sum is {{y:d}}, {{max(x):.1f}} at most.\n"
    made = filled.fill(text, TOPIC)
    assert made.text == "# A\n\nThe sum is 6, 3.0 at most.\n" and not made.complaints
    assert made.lines[:3] == [1, 2, 9], "lines are those of the text"


def test_code_is_left_alone():
    text = "```python\nprint(f'{{x}} {y}')\n```\n\n````md\n```\n{{z}}\n```\n````\n"
    assert said(text) == text


def test_a_table_is_one_place_of_many_lines():
    made = filled.fill("{{table(['n', 'n²'], [[str(n), f'{n * n}'] for n in (2, 3)])}}\nend\n", TOPIC)
    assert made.text == "| n | n² |\n| --- | ---: |\n| 2 | 4 |\n| 3 | 9 |\nend\n"
    assert made.lines == [1, 1, 1, 1, 2, 3]


@pytest.mark.parametrize(
    "value, digits, words",
    [
        (1234567, 2, "1,200,000"),
        (0.01234, 1, "0.01"),
        (99.6, 2, "100"),
        (0, 1, "0"),
        (598_214.0, 1, "600,000"),
    ],
)
def test_about_rounds_to_significant_digits(value, digits, words):
    assert filled.about(value, digits) == words
    assert said("{{about(" + repr(value) + f", {digits})" + "}}") == words


@pytest.mark.parametrize(
    "words, why",
    [
        ("{{nothing:.0f}}", "NameError: name 'nothing' is not defined"),
        ("{{cost.GROUP}}", "must say how it is written"),
        ("{{row('nope').us:.0f}}", "0 rows of h200.json have the case 'nope'"),
        ("{{row('greedy B32 fp32').time:.0f}}", "has no 'time' there, it has topic, op, case"),
        ("{{record('b300').date}}", "has no recorded run 'b300'"),
        ("{{record().date:.0f}}", "ValueError"),
        ("{{record().rows}}", "must be a number or words, got list"),
        ("{{float('nan'):.0f}}", "must be a finite number"),
        ("{{1 +:.0f}}", "SyntaxError"),
        ("{{table(['a'], [[1]])}}", "cells must be words, got 1"),
        ("{{table(['a'], [['1', '2']])}}", "rows must have 1 cells"),
        ("{{cost.GROUP:d", "must be closed by }} on its line"),
        ("<!-- let x = -->", "SyntaxError"),
        ("<!-- let import os -->", "must be assignments"),
        ("<!-- let x = 1\n", "must be closed by -->"),
    ],
)
def test_what_cannot_be_filled_in_is_named_with_its_line(words, why):
    line, what = complaint(f"one\n\n{words}\n")
    assert line == 3 and why in what, what


def test_the_build_refuses_it_with_page_and_line(tmp_path, capsys):
    (tmp_path / "course").mkdir()
    (tmp_path / f"course/06_{TOPIC}.md").write_text("# Toy\n\nIt took {{us:.0f}} µs.\n")
    assert command.main([], tmp_path) == 1
    assert f"course/06_{TOPIC}.md:3: {{{{us:.0f}}}}: NameError" in capsys.readouterr().out
    assert not (tmp_path / f"course/06_{TOPIC}.ipynb").exists()


def test_no_built_notebook_has_an_open_place():
    built = [*ROOT.glob("course/**/*.ipynb"), *ROOT.glob("labs/*/*.ipynb")]
    texts = [path for path in built if '"way"' in path.read_text(encoding="utf-8")]
    assert len(built) > 40 and len(texts) >= 6
    assert [path for path in texts if "{{" in path.read_text(encoding="utf-8")] == []

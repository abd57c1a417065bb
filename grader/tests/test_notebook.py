"""What a notebook calls beside `check`: the sentence that ends a lab whose package is missing."""

import sys

import numpy as np
import pytest

import grader
from grader import trial
from grader.notebook import Stop
from grader.proofs.right import edited, right


def test_a_lab_whose_package_is_missing_ends_in_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(Stop) as stopped:
        grader.needs("triton")
    lines = stopped.value._render_traceback_()
    assert len(lines) == 1 and lines[0].startswith("This lab needs triton, which is not installed here")


def test_a_package_that_is_there_is_no_reason_to_stop():
    assert grader.needs("numpy") is None


def test_run_finds_a_question_by_its_function_where_only_one_has_that_name():
    def launch_doubled(p):
        return {"steps": []}

    def launch(p):
        return {"steps": []}

    assert trial.only_one(launch_doubled).id == "roofline.doubled"
    with pytest.raises(ValueError, match="question must be named"):
        trial.only_one(launch)


def test_run_shows_the_values_of_a_small_result():
    cell = "def product_intensity(m, n, k, itemsize):\n    return 5.25\n"
    tried = trial.run(cell, 0, question="roofline.product_intensity")
    assert "r0 = 5.25, float64" in str(tried) and "shape ()" not in str(tried)
    assert "r0 = 5.25, float64" in tried._repr_html_()
    assert trial.in_short("x", np.arange(4)) == "x = [0, 1, 2, 3], shape (4,), int64"
    assert trial.in_short("x", np.zeros((3, 4))) == "x: shape (3, 4), float64"


def test_a_warning_of_the_compiler_is_not_among_the_prints():
    edits = [
        ("mask = offs < M", "mask = (offs < M) and (offs >= 0)"),
        ("def launch_smoothed(p):\n", "def launch_smoothed(p):\n    print('mine')\n"),
    ]
    tried = trial.run(edited(right("roofline.smoothed"), edits), 0, question="roofline.smoothed")
    said = "a warning, which costs no points: line 4: join masks with & and |"
    assert str(tried).count(said) == 1 and str(tried).endswith("your prints:\nmine"), str(tried)
    assert said.replace("&", "&amp;") in tried._repr_html_()


def test_run_shows_results_of_shapes_that_differ():
    cell = "def quantize_groups(w, group, zero_points):\n    return w, w[:, ::group], w[:, ::group]\n"
    tried = trial.run(cell, 1, question="quantization_layouts.quantize_groups")
    assert [part.shape for part in tried.want.values()] == [(2, 64), (2, 2), (2, 2)]
    assert "quantize_groups[0]" in tried.error

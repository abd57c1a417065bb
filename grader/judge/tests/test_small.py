"""The small pieces: comparison, statistics, the ramp, finding and normalising an answer."""

import io
import math
import random
from types import SimpleNamespace

import numpy as np
import pytest

from grader.judge import (
    answer,
    diagnose,
    every_case,
    numpy_values,
    rank_values,
    record,
    registers,
    returned,
    sampled,
    source,
    statistics,
)
from grader.judge.compare import difference
from grader.questions import Call, Mistake
from grader.questions.memory import strides
from grader.questions.model import SPILLS_ELSEWHERE, Speed
from grader.tools.progress import Progress


@pytest.mark.parametrize("got", [np.nan, np.inf, 2.0])
def test_nothing_but_the_wanted_number_passes(got):
    assert difference("x", got, 1.0, 1e-3).got == pytest.approx(got, nan_ok=True)


def test_a_wanted_nan_or_infinity_must_be_that():
    assert difference("x", [np.nan, np.inf], [np.nan, np.inf], 0) is None
    assert difference("x", [0.0, -np.inf], [np.nan, np.inf], 1.0).wrong == 2


@pytest.mark.filterwarnings("error")
def test_a_large_error_where_none_is_allowed_is_no_warning():
    assert difference("x", [1e300, 1.0], [0.0, 0.0], 0.0).index == (0,)


def test_the_worst_element_is_relative_to_its_tolerance():
    worst = difference("c", [[1.5, 100.0]], [[1.0, 90.0]], [[0.1, 9.0]])
    assert worst.index == (0, 0) and worst.wrong == 2


def test_flags_are_said_as_true_and_false():
    wrong = difference("survivors", [True, False], [True, True], 0.0)
    assert wrong.sentence() == "survivors[1] is False, wanted True; 1 of 2 elements are off"
    assert "is 0, wanted 1" in difference("x", [1, 0], [1, 1], 0.0).sentence()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("m = (a < M) & b < N", True),
        ("m = a < N & b > 0", True),
        ("m = a < N | b", True),
        ("m = (a < M) & b == N", True),
        ("m = (a < M) & (b < N)", False),
        ("m = a < (b & c)", False),
        ("m = (a & 7) < 3", False),
        ("m = a & 1 == 0", False),
        ("m = (a >> 23) & 255 > 40", False),
        ("m = a >> 4 & b < N", False),
        ("m = a & b < N", True),
    ],
)
def test_a_comparison_without_parentheses_is_found(code, said):
    assert bool(found := source.missing_parentheses(f"def f(a, b):\n    {code}\n")) == said
    assert not said or found.startswith("line 2 of the cell: Python's & and | bind tighter")


def noise(ratio, quads=40, jitter=0.01, seed=0):
    rng = random.Random(seed)
    return [
        [ratio * math.exp(rng.gauss(0, jitter)) for _ in "aa"]
        + [math.exp(rng.gauss(0, jitter)) for _ in "bb"]
        for _ in range(quads)
    ]


def test_the_interval_holds_the_true_ratio():
    inside = [statistics.ratio(noise(1.2, seed=s)) for s in range(60)]
    assert sum(r.low <= 1.2 <= r.high for r in inside) >= 57
    assert all(r.high - r.low < 0.03 for r in inside)


def test_unsteady_quads_are_dropped_and_too_many_make_it_unusable():
    rows = noise(1.0)
    for row in rows[:20]:
        row[3] *= 2
    assert statistics.ratio(rows).dropped == 20 and not statistics.ratio(rows).usable
    assert statistics.ratio(noise(1.0)).usable


def test_the_ramp_is_full_then_falls_to_nothing():
    ladder = ((1.8, 0.75), (2.8, 0.25))
    on_steps = [statistics.share_of_points(r, 1.4, 2.8, ladder) for r in (1.0, 1.4, 1.5, 1.8, 2.0, 2.8, 5.0)]
    assert on_steps == [1, 1, 0.75, 0.75, 0.25, 0.25, 0]
    assert Speed("matmul", None, 1.4, 2.8, steps=ladder).steps == ladder
    for wrong in (
        ((1.2, 0.5),),
        ((3.0, 0.5),),
        ((1.8, 0.25), (2.0, 0.75)),
        ((1.8, 1.0),),
        ((2.0, 0.5), (1.8, 0.2)),
    ):
        with pytest.raises(ValueError, match="steps must rise from above full"):
            Speed("matmul", None, 1.4, 2.8, steps=wrong)
    shares = [statistics.share_of_points(r, 1.4, 2.8) for r in (1.0, 1.4, 2.0, 2.8, 5.0)]
    assert shares[:2] == [1, 1] and 0.4 < shares[2] < 0.6 and shares[3:] == [0, 0]


def test_the_stated_bound_is_what_the_trials_support():
    assert statistics.upper_bound(0, 500) == pytest.approx(0.00597, abs=1e-4)
    assert statistics.upper_bound(0, 3000) == pytest.approx(0.000998, abs=1e-5)


def test_one_text_for_one_answer():
    cell = "def f(x):\r\n    ### BEGIN SOLUTION\r\n    return x  \r\n    ### END SOLUTION\r\n\r\n"
    assert answer.normalise(cell) == answer.normalise("def f(x):\n    return x\n")


def test_an_answer_that_is_no_function_is_explained():
    with pytest.raises(answer.NotFound, match="pass its name without brackets"):
        answer.of_object(3.0)


def test_a_dict_of_many_keys_floods_no_message():
    came = {
        "dict": {f"a key that is long enough to fill a page, {i}": {"plain": None} for i in range(10_000)}
    }
    said = returned.compare(SimpleNamespace(atol=0, rtol=0), "f", came, {"a": 1.0}, {})
    assert "and 9992 more" in said and len(said) < 600


def test_a_call_with_a_long_list_is_shown_by_its_ends():
    events = [("norm", 10.123456789, 2.0)] * 40 + [("moe.experts", 1.5, 1 / 3)]
    said = numpy_values.written(SimpleNamespace(entry="f"), Call((events, (4,), 2)))
    assert said == (
        "f([('norm', 10.1235, 2.0), ('norm', 10.1235, 2.0), ... 38 more ..., ('moe.experts', 1.5, 0.333333)], (4,), 2)"
    )


def test_layouts():
    assert strides((4, 6), "") == (6, 1)
    assert strides((4, 6), "transposed") == (1, 4)
    assert strides((4, 6), "padded") == (31, 1)
    assert strides((2, 4, 6), "transposed") == (24, 1, 4)
    assert strides((2, 4, 6), "transposed padded") == (174, 1, 29)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_one_line_of_a_terminal_and_nothing_elsewhere():
    terminal, file = Terminal(), io.StringIO()
    with Progress(stream=terminal) as say, Progress(stream=file) as say_nothing:
        say("compiling 12 kernels for sm_90 … 5/12")
        say_nothing("compiling")
    assert "… 5/12" in terminal.getvalue() and terminal.getvalue().endswith("\r\x1b[K")
    assert "\n" not in terminal.getvalue() and file.getvalue() == ""


def test_progress_in_lines_carries_the_second_and_keeps_its_distance():
    file = io.StringIO()
    with Progress(lines=True, every=60.0, stream=file) as say:
        say("one trial")
        say("two trials")
    assert file.getvalue().endswith(" s  one trial\n") and file.getvalue().count("\n") == 1


def test_what_drawn_programs_must_have_written():
    """28 programs drawn from a grid that fills 512 tiles of 100 elements."""

    def too_little(wrote, grid, most=100):
        return sampled.too_little(wrote, most, grid, 51_200)

    alike, one_idle = np.full(28, 100), np.r_[np.full(27, 100), 0]
    half_idle, few = np.resize([100, 0], 28), np.r_[100, np.zeros(27)]
    assert not too_little(alike, 512) and too_little(alike, 511)  # a single tile that nobody writes
    assert too_little(alike - 1, 512, 99) and too_little(np.array([99]), 512, 99)
    assert not too_little(one_idle, 530) and not too_little(half_idle, 1024)
    assert not too_little(few, 512 * 64)  # a grid of which most has nothing to do
    assert too_little(half_idle, 512) and too_little(alike / 2, 512)
    assert not too_little(np.resize([400, 400, 400, 300], 28), 132, 400)  # persistent programs
    assert not too_little(
        np.array([99.9, 99.7, 99.9, 99.2]), 512, 99.9
    )  # the drawn ones have the shorter tiles
    assert not too_little(
        np.full(2, 300), 150, 400
    )  # of which two were drawn that have a tile less than others
    assert too_little(np.full(280, 300), 150, 400)


def test_spills_count_at_the_size_that_is_named_alone():
    """Odd sizes and strides cost registers of their own, so other forms may spill a little."""
    spilled = SimpleNamespace(target=90, shared_bytes=0, spilled_bytes=152)
    assert registers.badly(spilled, 0) and not registers.badly(spilled, SPILLS_ELSEWHERE)
    assert registers.badly(SimpleNamespace(target=90, shared_bytes=0, spilled_bytes=2000), SPILLS_ELSEWHERE)


def test_of_many_records_there_is_a_newest_and_a_best(tmp_path, monkeypatch):
    place = tmp_path / "gemm_tiling.reuse"
    place.mkdir()
    for day, points in ((1, 0), (2, 2), (3, 2), (4, 1)):
        (place / f"2026010{day}T000000-000000000-aaaaaaaa.json").write_text(
            f'{{"points": {points}, "day": {day}}}'
        )
    (place / "20260105T000000-000000000-aaaaaaaa.json").write_text("{ half a rec")
    monkeypatch.setattr("grader.paths.records", lambda: tmp_path)
    assert record.last("gemm_tiling.reuse")["day"] == 4
    assert record.best("gemm_tiling.reuse")["day"] == 3
    assert record.last("nothing.yet") is None and record.best("nothing.yet") is None


@pytest.mark.parametrize(
    "came, said",
    [
        ([1.0, 2.0, 9.0], "the first 2 of its 3 results agree"),
        ([1.0, 9.0, 9.0], "its first result agrees"),
        ([9.0, 2.0, 9.0], "of its 3 results [1] agrees"),
        ([9.0, 2.0, 3.0], "of its 3 results [1], [2] agree"),
        ([9.0, 9.0, 9.0], ""),
        ([1.0, 2.0], ""),
    ],
)
def test_which_of_several_results_agree_is_said(came, said):
    question = SimpleNamespace(atol=0.0, rtol=1e-9)
    encoded = {"list": [{"value": value} for value in came]}
    assert returned.which_agree(question, encoded, (1.0, 2.0, 3.0), {}) == said


@pytest.mark.parametrize(
    "trouble", [ZeroDivisionError, KeyError, IndexError, TypeError, ValueError, OverflowError]
)
def test_a_mistake_whose_formula_breaks_down_gives_no_output(trouble):
    def breaks(*given):
        raise trouble

    mistake = Mistake("breaks", "is never told", wrong=breaks)
    run = SimpleNamespace(inputs={}, case=None, want={}, outcome=SimpleNamespace(header={}))
    meeting = SimpleNamespace(case=SimpleNamespace(each=()), results=[])
    assert not numpy_values._gives(None, mistake, Call((1,)), {}, {})
    assert not diagnose._gives(None, breaks, run) and not rank_values._gives(None, mistake, meeting)


def test_scratch_costs_what_is_asked_for_even_where_no_kernel_touches_it():
    scratch = {"part": {"shape": (4, 700), "dtype": "fp32"}, "flags": {"shape": (9,), "dtype": "i32"}}
    assert every_case.asked_for(SimpleNamespace(plan=SimpleNamespace(scratch=scratch))) == 4 * (4 * 700 + 9)


@pytest.mark.parametrize("made, explains", [(lambda x: 2 * x, True), (np.zeros_like, False)])
def test_a_mistake_that_gives_zeros_alone_explains_nothing(made, explains):
    want = np.arange(1.0, 9.0)
    run = SimpleNamespace(
        inputs=want,
        case=None,
        want={"y": want},
        outcome=SimpleNamespace(header={}),
        output=lambda name: made(want),
    )
    question = SimpleNamespace(agree=None, tolerance=lambda inputs, case, want: {"y": 1e-6})
    assert diagnose._explains(question, lambda inputs, case: {"y": made(inputs)}, [run]) == explains

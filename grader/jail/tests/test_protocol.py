"""A jail that lies: whatever a reply holds, it is plain data of known kinds or it is refused."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from grader.box.serve.frames import DTYPES
from grader.box.warm import Outcome
from grader.jail import protocol

X = {"name": "x", "dtype": "fp16", "shape": [4], "strides": [1], "axes": "m", "role": "in"}
CASE = protocol.ToldCase(sizes={"M": 4}, scalars={"eps": ("fp32", 0.5)}, sm_count=16, tensors=(X,))
STEP = {"kernel": "k", "grid": [2, 1, 1], "constexprs": {"BLOCK": 16}, "num_warps": 4, "num_stages": 3}
SCRATCH = {"part": {"shape": [4, 2], "dtype": "fp32", "fill": "-inf"}}
ROW = {
    "plan": {"scratch": SCRATCH, "steps": [STEP]},
    "kernels": [{"text": 0, "arguments": ["x_ptr", "M", "eps", "stride_xm", "part_ptr", "stride_part1"]}],
    "printed": "hello",
}
REPLY = {"cases": [ROW], "texts": ["module {}"]}


def lowered(reply):
    return protocol.lowered(reply, [CASE], DTYPES)


def test_a_reply_of_the_agreed_form_is_read():
    found = lowered(REPLY)
    (step,) = found.plans[0].steps
    assert (step.name, step.grid, step.num_warps) == ("k", (2, 1, 1), 4) and found.printed == ("hello",)
    assert found.texts == ("module {}",)


LIES = {
    "no cases": lambda r: r.pop("cases"),
    "another number of cases": lambda r: r["cases"].append(ROW),
    "texts that are none": lambda r: r.update(texts=[1]),
    "too many texts": lambda r: r.update(texts=["x"] * (protocol.MOST_TEXTS + 1)),
    "a text without end": lambda r: r.update(texts=["x" * (protocol.MOST_TEXT_BYTES + 1)]),
    "a step without a kernel": lambda r: r["cases"][0]["kernels"].clear(),
    "a text that is not there": lambda r: r["cases"][0]["kernels"][0].update(text=1),
    "a text by a truth value": lambda r: r["cases"][0]["kernels"][0].update(text=True),
    "a tensor of another question": lambda r: r["cases"][0]["kernels"][0].update(arguments=["y_ptr"]),
    "markup for a name": lambda r: r["cases"][0]["plan"]["steps"][0].update(kernel="<script>"),
    "scratch that passes for a tensor": lambda r: r["cases"][0]["plan"].update(
        scratch={"x": SCRATCH["part"]}
    ),
    "markup for scratch": lambda r: r["cases"][0]["plan"].update(scratch={"<b>": SCRATCH["part"]}),
    "a fill that is code": lambda r: r["cases"][0]["plan"]["scratch"]["part"].update(fill="__import__('os')"),
    "a shape without end": lambda r: r["cases"][0]["plan"]["scratch"]["part"].update(
        shape=[1 << 30, 1 << 30]
    ),
    "a dtype of its own": lambda r: r["cases"][0]["plan"]["scratch"]["part"].update(dtype="object"),
    "a grid without end": lambda r: r["cases"][0]["plan"]["steps"][0].update(grid=[1 << 24, 1 << 24, 1]),
    "no grid": lambda r: r["cases"][0]["plan"]["steps"][0].update(grid=[0, 1, 1]),
    "a grid of fractions": lambda r: r["cases"][0]["plan"]["steps"][0].update(grid=[1.5, 1, 1]),
    "warps of no GPU": lambda r: r["cases"][0]["plan"]["steps"][0].update(num_warps=3),
    "stages without end": lambda r: r["cases"][0]["plan"]["steps"][0].update(num_stages=99),
    "steps without end": lambda r: r["cases"][0]["plan"].update(steps=[STEP] * 17),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_refused(name):
    reply = copy.deepcopy(REPLY)
    LIES[name](reply)
    with pytest.raises(protocol.BadReply):
        lowered(reply)


STRANGE = ([], {}, None, True, 1.5, float("nan"), 10**400, -1, "x", "\ud800", [[]], {"a": []})


def places(value, path=()):
    """Every place of a reply, as the keys that lead there."""
    yield path
    for key, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(inner, (*path, key))


def put(reply, path, value):
    for key in path[:-1]:
        reply = reply[key]
    reply[path[-1]] = value


@pytest.mark.parametrize("path", [path for path in places(REPLY) if path], ids=str)
def test_nothing_strange_in_a_reply_is_an_exception_of_ours(path):
    for value in STRANGE:
        reply = copy.deepcopy(REPLY)
        put(reply, path, value)
        try:
            assert isinstance(lowered(reply), protocol.Lowered)
        except protocol.BadReply:
            pass


ARRAYS = {"r0": np.arange(3.0)}
RETURNED = {
    "results": [{"list": [{"array": "r0"}, {"plain": None}, {"dict": {"a": {"array": "r0"}}}]}],
    "inputs_changed": [],
}
CALLED = protocol.CallRequest("", "f", [[{"value": 1}]])


def test_results_of_the_agreed_form_are_held():
    protocol.require_results(CALLED, RETURNED, ARRAYS)


def strange_results() -> dict:
    found = {
        "nothing": {},
        "too few": {**RETURNED, "results": []},
        "no list of inputs": {**RETURNED, "inputs_changed": True},
    }
    deep = {"plain": None}
    for _ in range(protocol.DEEPEST):
        deep = {"list": [deep]}
    ones = {
        "a number of its own": {"value": 1},
        "text for a number": {"value": "x"},
        "an array that never came": {"array": "r1"},
    }
    ones |= {
        "two kinds": {"plain": "x", "array": "r0"},
        "a list of nothing known": {"list": [1, 2]},
        "too deep": deep,
    }
    ones |= {
        "a name that is none": {"array": []},
        "text that is a list": {"plain": ["x"]},
        "a list that is none": {"list": "ab"},
    }
    return found | {name: {**RETURNED, "results": [one]} for name, one in ones.items()}


@pytest.mark.parametrize("name", strange_results())
def test_a_forged_result_is_refused(name):
    with pytest.raises(protocol.BadReply):
        protocol.require_results(CALLED, strange_results()[name], ARRAYS)


def test_an_error_is_held_to_plain_text_and_a_line():
    wild = {"message": ["<b>"], "kind": {"a": 1}, "line": "12", "program": [1, 2]}
    (error,) = lowered({"cases": [{"error": wild}], "texts": []}).plans
    assert set(error) == {"stage", "kind", "message", "line"} and error["line"] is None
    assert all(isinstance(error[name], str) for name in ("stage", "kind", "message"))


def test_two_replies_become_one_with_each_text_once():
    first, second = lowered(REPLY), lowered({**REPLY, "texts": ["module { }", "module {}"]})
    whole = protocol.joined([first, second, protocol.nothing(Outcome(ended="stopped", end="Late"), [CASE])])
    assert whole.texts == ("module {}", "module { }")
    assert [plan.steps[0].text for plan in whole.plans[:2]] == [0, 1]
    assert whole.plans[2]["message"] == "stopped" and whole.printed == ("hello", "hello", "")


PACKS = protocol.Packs("pack", most_arrays=2, most_bytes=64)
PACKED = {"words": {"shape": [4, 2], "dtype": "i32"}, "more": {"shape": [8], "dtype": "u8"}}
OWN_STEP = {"text": 0, "arguments": ["words_ptr", "stride_words1", "x_ptr"]}
OWN_ROW = {"plan": {"scratch": {}, "packed": PACKED, "steps": [STEP]}, "kernels": [OWN_STEP], "printed": ""}


def of_own(packed=PACKED, packs=PACKS):
    row = {**OWN_ROW, "plan": {**OWN_ROW["plan"], "packed": packed}}
    reply, case = {"cases": [row], "texts": ["module {}"]}, replace(CASE, packs=packs)
    return protocol.lowered(reply, [case], DTYPES).plans[0]


def test_packed_arrays_are_arguments_of_known_names():
    plan = of_own()
    assert plan.packed == PACKED and plan.steps[0].arguments == ("words_ptr", "stride_words1", "x_ptr")


PACKED_LIES = {
    "none": {},
    "too many": {**PACKED, "third": {"shape": [1], "dtype": "u8"}},
    "more bytes than are allowed": {"words": {"shape": [4, 4], "dtype": "i32"}, "more": PACKED["more"]},
    "the name of a tensor": {"x": PACKED["more"], "words": PACKED["words"]},
    "markup for a name": {"<b>": PACKED["more"], "words": PACKED["words"]},
    "a dtype of its own": {"words": {"shape": [4, 2], "dtype": "object"}},
    "a shape without end": {"words": {"shape": [1 << 30, 1 << 30], "dtype": "u8"}},
    "no shape": {"words": {"dtype": "u8"}},
}


@pytest.mark.parametrize("name", PACKED_LIES)
def test_a_lie_about_packed_arrays_is_refused(name):
    with pytest.raises(protocol.BadReply):
        of_own(PACKED_LIES[name])


def test_arrays_that_no_question_asks_for_are_refused():
    with pytest.raises(protocol.BadReply):
        of_own(packs=None)


MADE = {"0:words": np.zeros((4, 2), np.int32), "0:more": np.zeros(8, np.uint8)}


def test_what_was_made_is_taken_by_the_plans_names():
    (made,) = protocol.prepared({"cases": [{"printed": "hello"}]}, MADE, [of_own()], DTYPES)
    assert set(made.arrays) == {"words", "more"} and made.error is None and made.printed == "hello"
    (made,) = protocol.prepared({"cases": [{"changed": [1], "line": 4}]}, MADE, [of_own()], DTYPES)
    assert (made.changed, made.line) == ((1,), 4)
    wild = {"cases": [{"error": {"message": ["<b>"], "line": "12"}}]}
    (failed,) = protocol.prepared(wild, {}, [of_own()], DTYPES)
    assert failed.arrays == {} and failed.error["line"] is None


MADE_LIES = {
    "another number of cases": ({"cases": []}, MADE),
    "no rows": ({}, MADE),
    "a row that is none": ({"cases": [1]}, MADE),
    "an array that is missing": ({"cases": [{}]}, {"0:words": MADE["0:words"]}),
    "another shape": ({"cases": [{}]}, {**MADE, "0:more": np.zeros((2, 4), np.uint8)}),
    "changes that are no list": ({"cases": [{"changed": 1}]}, MADE),
    "a change of no argument": ({"cases": [{"changed": ["codes"]}]}, MADE),
    "more changes than arguments": ({"cases": [{"changed": [0] * 1000}]}, MADE),
    "a line that is none": ({"cases": [{"changed": [0], "line": "4"}]}, MADE),
    "a wider dtype": ({"cases": [{}]}, {**MADE, "0:words": np.zeros((4, 2), np.int64)}),
}


@pytest.mark.parametrize("name", MADE_LIES)
def test_a_lie_about_what_was_made_is_refused(name):
    header, arrays = MADE_LIES[name]
    with pytest.raises(protocol.BadReply):
        protocol.prepared(header, arrays, [of_own()], DTYPES)


PLANNED = {"facts": {"0 BLOCK": "16"}, "grids": [[2, 3, 1]]}


def test_plans_of_many_cases_are_short_texts_and_those_that_took_too_long_are_empty():
    found = protocol.planned({"cases": [PLANNED]}, [CASE, CASE])
    assert found == [protocol.Planned({"0 BLOCK": "16"}, (6,)), protocol.Planned()]


@pytest.mark.parametrize(
    "lie",
    [
        {"facts": {"0 BLOCK": 16}},
        {"facts": {"0 BLOCK": "1" * 1000}},
        {"facts": {str(n): "" for n in range(protocol.MOST_FACTS + 1)}},
        {"grids": [[2, 3]]},
        {"grids": [[2, 3, 1]] * 100},
        {"grids": None},
    ],
)
def test_plans_of_another_form_are_refused(lie):
    with pytest.raises(protocol.BadReply):
        protocol.planned({"cases": [PLANNED | lie]}, [CASE])

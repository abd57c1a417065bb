"""The worker's operations as the other side asks them: plain data in, plain data out."""

import json

import numpy as np
import pytest
import triton
import triton.language as tl

from grader.machine.inside import main
from grader.machine.protocol import (
    BadReply,
    PrintRequest,
    RunRequest,
    Step,
    poison_reply,
    print_reply,
    run_reply,
)
from tilescope.lowering import text_of
from tilescope.machine.dtypes import NAMES
from tilescope.tests.lowering_for_tests import compiled

B = 16


@triton.jit
def scaled(x, o, s, n, by, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(s + i, v * by, mask=i < n)
    tl.store(o + i, tl.load(s + i), mask=i < n)


@triton.jit
def careless(x, o, s, n, by, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    w = tl.load(x + i, mask=i < n)
    tl.store(s + i, w, mask=i < n)
    tl.store(o + i, v + tl.sum(tl.where(i < n, w, 0.0), 0) * 0 + tl.sum(v, 0) * by, mask=i < n)


TYPES = {"x": "*fp32", "o": "*fp32", "s": "*fp32", "n": "i32", "by": "fp32", "B": "constexpr"}


def request(kernel=scaled, **more) -> RunRequest:
    tensor = {"dtype": "fp32", "shape": [40], "strides": [1], "axes": "n"}
    arguments = [["tensor", "x"], ["tensor", "o"], ["tensor", "s"], ["i32", 40], ["fp32", 0.5]]
    return RunRequest(
        texts=[text_of(kernel, TYPES, {(5,): B})],
        steps=[Step(0, (3, 1, 1), arguments)],
        tensors=[{"name": "x", "role": "in", **tensor}, {"name": "o", "role": "out", **tensor}],
        scratch={"s": {"shape": [48], "dtype": "fp32", "fill": "nan"}},
        **more,
    )


X = np.arange(40, dtype=np.float32)


def name_of(array):
    return NAMES[array.dtype]


def asked(request, arrays=None):
    """As it crosses the wall: the task as JSON, the arrays read-only."""
    given = {"x": X.copy()} if arrays is None else arrays
    for array in given.values():
        array.flags.writeable = False
    task = json.loads(json.dumps(request.task(), allow_nan=False))
    header, found = main.run(task, given)
    return json.loads(json.dumps(header, allow_nan=False)), found


def test_a_run():
    ask = request()
    report = run_reply(ask, *asked(ask), name_of)
    _, arrays = asked(ask)
    assert report.error is None and not report.races and not report.unwritten
    assert report.ids_read == [[0]]
    assert (arrays["o"] == X / 2).all() and sorted(arrays) == [
        "loads:o",
        "loads:x",
        "o",
        "stores:o",
        "stores:x",
    ]
    assert (
        report.launches[0].tensors["s"]["load"]["requested"] == 192 and report.launches[0].kernel == "scaled"
    )


def test_values_alone():
    ask = request(counting="values")
    header, arrays = asked(ask)
    assert list(arrays) == ["o"] and run_reply(ask, header, arrays, name_of).error is None


def test_some_programs():
    ask = request(programs=[[1]])
    header, arrays = asked(ask)
    report = run_reply(ask, header, arrays, name_of)
    assert (
        report.unwritten == {} and report.launches[0].programs == 1
    )  # what the others would write nobody knows
    assert set(arrays["by:o"].tolist()) == {1} and arrays["by:o"].size == arrays["at:o"].size == 16


def test_an_answer_that_fails_says_so_in_plain_data():
    ask = request()
    ask.steps[0].arguments[3] = ["i32", 48]
    report = run_reply(ask, *asked(ask), name_of)
    assert report.error["kind"] == "OutOfBounds" and "n = 40 of x, which has 40" in report.error["message"]
    assert report.ids_read == [[0]]  # the launch that went wrong counts too


def test_arguments_of_another_type_are_the_texts_fault():
    ask = request()
    ask.steps[0].arguments[3] = ["fp32", 1.0]
    assert asked(ask)[0]["error"]["kind"] == "Arguments"
    ask.steps[0].arguments.pop()
    assert asked(ask)[0]["error"]["kind"] == "Arguments"


def test_a_text_that_is_none():
    ask = RunRequest(**{**vars(request()), "texts": ['"builtin.module"() ({']})
    assert asked(ask)[0]["error"]["stage"] == "text"


@triton.jit
def telling(x, o, s, n, by, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    for _ in range(n):
        tl.store(o + i, tl.where(x.to(tl.int64) > 1 << 46, 0.0, by), mask=i < n)


def test_an_address_as_a_number_is_refused():
    error = asked(request(telling))[0]["error"]
    assert error["stage"] == "text" and "a pointer turned into a number" in error["message"]


def test_which_masked_loads_reach_a_result():
    lines = [
        i
        for i, text in enumerate(open(__file__).read().splitlines(), 1)
        if "v = tl.load(x + i, mask=i < n)" in text
    ]
    task = {**request(careless, operation="poison").task()}
    task["texts"] = [task["texts"][0].replace(f'"{__file__}"', '"<answer>"')]
    header, _ = main.run(task, {"x": X})
    assert poison_reply(header) == [{"line": lines[1], "outputs": ["o"], "error": False}]
    assert main.run({**task, "texts": request().texts}, {"x": X})[0] == {"poison": []}


def test_prints_are_what_the_compiler_takes():
    ask = PrintRequest([request().texts[0], "nonsense"])
    first, second = print_reply(ask, main.run(ask.task(), {})[0])
    assert "scaled" in compiled(first["text"], 90) and second["text"]["error"]["stage"] == "text"
    assert {one.kind for one in first["accesses"]} == {"load", "store"} and second["accesses"] == []
    assert first["steers"] == [] and {one.tensor for one in first["content"]} == {1, 2}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda header, arrays: header.pop("races"),
        lambda header, arrays: header.update(launches="none"),
        lambda header, arrays: header["launches"][0].update(more=1),
        lambda header, arrays: arrays.update(o=arrays["o"][:3]),
        lambda header, arrays: arrays.update(other=arrays["o"]),
        lambda header, arrays: arrays.update(o=arrays["o"].astype(np.float64)),
        lambda header, arrays: arrays.pop("o"),
    ],
)
def test_a_reply_is_held_to_what_was_asked(spoil):
    ask = request()
    header, arrays = asked(ask)
    spoil(header, arrays)
    with pytest.raises(BadReply):
        run_reply(ask, header, arrays, name_of)


def test_the_machine_needs_no_triton_and_its_children_import_nothing():
    """What a child imports it imports in every case. A run of wide blocks by several programs reaches all of it."""
    import subprocess
    import sys

    task = request().task()
    wide = text_of(scaled, TYPES, {(5,): 128})
    tensors = [{**one, "shape": [300]} for one in task["tensors"]]
    scratch = {"s": {**task["scratch"]["s"], "shape": [384]}}
    arguments = [["i32", 300] if one[0] == "i32" else one for one in task["steps"][0]["arguments"]]
    steps = [{**task["steps"][0], "arguments": arguments}]
    given = {**task, "texts": [wide], "tensors": tensors, "scratch": scratch, "steps": steps}
    code = """
import json, sys
import numpy as np
from grader.machine.inside import main
main.prepare()
before = set(sys.modules)
header, found = main.run(json.load(sys.stdin), {"x": np.ones(300, np.float32)})
late = set(sys.modules) - before
print([m for m in sys.modules if m.split(".")[0] in ("triton", "torch")], sorted(late), found["o"].sum())"""
    ran = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(given), capture_output=True, text=True
    )
    assert ran.stdout.strip() == "[] [] 150.0", ran.stdout + ran.stderr

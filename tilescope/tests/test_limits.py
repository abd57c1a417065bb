"""What a run may use up, and what becomes of a run that would use more."""

import time

import numpy as np
import pytest
import triton
import triton.language as tl

from tilescope.machine.limits import Limits

from .machine_for_tests import line_of, on_machine


@triton.jit
def endless(x, o):
    n = tl.load(x)
    while n > 0:
        n += 1
        n = n % 1000 + 1
    tl.store(o, n)


def one(kernel, limits, **more):
    tensors = {"x": np.ones(1, np.int32), "o": np.zeros(1, np.int32)}
    return on_machine(kernel, (1,), tensors, limits=limits, **more).error


def test_processor_seconds():
    started = time.process_time()
    error = one(endless, Limits(seconds=0.3))
    assert error["kind"] == "OverLimit" and error["what"] == "seconds" and "0.3 s" in error["message"]
    assert time.process_time() - started < 2 and error["line"]
    assert "endless, launched as 1 program, was stopped" in error["message"]


def test_operations_on_elements():
    error = one(endless, Limits(seconds=60, operations=10_000))
    assert error["what"] == "operations" and "10,000" in error["message"]


@triton.jit
def heavy(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b, c = i * 2.0, i * 3.0, i * 5.0
    for _ in range(tl.load(x)):
        a, b, c = b + 1, c + 2, a + 3
    tl.store(o, tl.sum(a * b * c, 0).to(tl.int32))


def test_bytes_of_values_are_known_before_anything_runs():
    error = one(heavy, Limits(bytes=16 << 20), constants={"B": 1 << 20})
    assert error["what"] == "bytes" and "16 MiB" in error["message"]
    assert (
        on_machine(
            heavy,
            (1,),
            {"x": np.ones(1, np.int32), "o": np.zeros(1, np.int32)},
            {"B": 1 << 12},
            limits=Limits(bytes=16 << 20),
        ).report.error
        is None
    )


@triton.jit
def nothing(x, o):
    pass


def test_programs_of_a_grid():
    tensors = {"x": np.ones(1, np.int32), "o": np.zeros(1, np.int32)}
    error = on_machine(nothing, (1 << 20, 1 << 10), tensors).error
    assert error["what"] == "programs"


@triton.jit
def chatty(x, o, B: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    tl.device_print("v is", v + tl.program_id(0))
    tl.store(o + tl.program_id(0), tl.sum(v, 0))


def test_prints_come_with_program_and_line_up_to_a_limit():
    tensors = {"x": np.arange(4, dtype=np.int32), "o": np.zeros(10, np.int32)}
    report = on_machine(chatty, (10,), tensors, {"B": 4}, limits=Limits(prints=3)).report
    assert [(p["program"], p["text"]) for p in report.prints] == [
        ([0, 0, 0], "v is: [0 1 2 3]"),
        ([1, 0, 0], "v is: [1 2 3 4]"),
        ([2, 0, 0], "v is: [2 3 4 5]"),
    ]
    assert report.prints_left_out == 7
    assert report.prints[0]["line"] == line_of(chatty, "device_print")


@triton.jit
def honest(x, o, n, B: tl.constexpr):
    tl.assume(n > 2)
    tl.device_assert(tl.program_id(0) < n, "few programs")
    i = tl.multiple_of(tl.load(x + tl.arange(0, B)), 4)
    tl.store(o + tl.arange(0, B), i)


@pytest.mark.parametrize(
    "n, x, kind, words",
    [
        (2, [0, 4], "FalseAssume", "tl.assume"),
        (3, [0, 4], "Assertion", "few programs"),
        (9, [0, 6], "FalseHint", "multiple of 4, and 6 is none"),
    ],
)
def test_what_is_promised_and_not_so(n, x, kind, words):
    tensors = {"x": np.array(x, np.int32), "o": np.zeros(2, np.int32)}
    error = on_machine(honest, (4,), tensors, {"B": 2}, scalars={"n": n}, options={"debug": True}).error
    assert (
        error["kind"] == kind and words in error["message"] and error["line"] >= line_of(honest, "tl.assume")
    )


@triton.jit
def hinted(x, o, B: tl.constexpr, D: tl.constexpr, C: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    i = tl.max_contiguous(tl.multiple_of(i % 24, D), C)
    tl.store(o + tl.program_id(0) * B + tl.arange(0, B), tl.load(x + i))


@pytest.mark.parametrize(
    "block, divisor, run, kind",
    [
        (8, 8, 8, None),
        (8, 4, 8, None),
        (16, 16, 1, "FalseHint"),
        (16, 8, 16, "FalseHint"),
        (8, 16, 8, "FalseHint"),
    ],
)
def test_hints_about_runs_of_indices(block, divisor, run, kind):
    tensors = {"x": np.zeros(24, np.float32), "o": np.zeros(64, np.float32)}
    ran = on_machine(hinted, (64 // block,), tensors, {"B": block, "D": divisor, "C": run})
    assert (ran.report.error or {}).get("kind") == kind

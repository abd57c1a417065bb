"""Programs that part ways: every shape of control flow, each program against plain Python."""

import numpy as np
import pytest
import triton
import triton.language as tl

from tilescope.machine import interpreter

from .machine_for_tests import on_machine

COUNT = 24


@pytest.fixture(params=[1, 3, COUNT, 1 << 19], ids=lambda n: f"chunks of {n}")
def chunks(request, monkeypatch):
    monkeypatch.setattr(interpreter, "CHUNK_ELEMENTS", request.param)


def run(kernel, x, **more):
    out = np.full(len(x), -7, np.int32)
    ran = on_machine(kernel, (len(x),), {"x": np.asarray(x, np.int32), "o": out}, **more)
    assert ran.report.error is None and not ran.report.races, ran.report
    return out.tolist()


@triton.jit
def loops(x, o):
    p = tl.program_id(0)
    n, total = tl.load(x + p), 0
    for i in range(n):
        for j in range(p % 3, i, 2):
            total += i * j
    tl.store(o + p, total)


def test_loops_of_different_lengths(chunks):
    x = [(7 * i) % 11 for i in range(COUNT)]
    wanted = [sum(i * j for i in range(n) for j in range(p % 3, i, 2)) for p, n in enumerate(x)]
    assert run(loops, x) == wanted


@triton.jit
def collatz(x, o):
    p = tl.program_id(0)
    n, steps = tl.load(x + p), 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(o + p, steps)


def steps_to_one(n):
    return 0 if n <= 1 else 1 + steps_to_one(n // 2 if n % 2 == 0 else 3 * n + 1)


def test_whiles_that_end_apart(chunks):
    assert run(collatz, range(1, COUNT + 1)) == [steps_to_one(n) for n in range(1, COUNT + 1)]


@triton.jit
def early(x, o):
    p = tl.program_id(0)
    v = tl.load(x + p)
    if p % 3 == 0:
        return
    if p % 2 == 0:
        tl.store(o + p, v * 2)
        return
    v += p
    tl.store(o + p, v * 3)


def test_returns_before_the_end(chunks):
    x = list(range(100, 100 + COUNT))
    wanted = [-7 if p % 3 == 0 else v * 2 if p % 2 == 0 else (v + p) * 3 for p, v in enumerate(x)]
    assert run(early, x) == wanted


@triton.jit
def nested(x, o):
    p = tl.program_id(0)
    v, kept = tl.load(x + p), 1
    if v > 5:
        if v % 2 == 0:
            kept = v * 10
        else:
            for i in range(v):
                if i % 3 == p % 3:
                    kept += i
    elif v > 2:
        kept = -v
    tl.store(o + p, kept)


def expected_of_nested(p, v):
    if v > 5:
        return v * 10 if v % 2 == 0 else 1 + sum(i for i in range(v) if i % 3 == p % 3)
    return -v if v > 2 else 1


def test_branches_inside_loops_inside_branches(chunks):
    x = [(5 * i) % 12 for i in range(COUNT)]
    assert run(nested, x) == [expected_of_nested(p, v) for p, v in enumerate(x)]


@triton.jit(noinline=True)
def halves(n, by):
    count = 0
    while n > 0:
        n = n // by
        count += 1
    return count


@triton.jit(noinline=True)
def either(n):
    if n % 2 == 0:
        return halves(n, 2)
    return -halves(n, 3)


@triton.jit
def calls(x, o):
    p = tl.program_id(0)
    v = tl.load(x + p)
    tl.store(o + p, either(v) + halves(p, 4))


def count_halves(n, by):
    return 0 if n <= 0 else 1 + count_halves(n // by, by)


def test_functions_that_are_called(chunks):
    x = [(37 * i) % 101 for i in range(COUNT)]
    wanted = [
        (count_halves(v, 2) if v % 2 == 0 else -count_halves(v, 3)) + count_halves(p, 4)
        for p, v in enumerate(x)
    ]
    assert run(calls, x) == wanted


@triton.jit
def grid(x, o, B: tl.constexpr):
    i = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
    tl.store(o + i, tl.program_id(0) * 100 + tl.program_id(1) * 10 + tl.program_id(2))


def test_three_axes_of_a_grid():
    out = np.zeros(24, np.int32)
    on_machine(grid, (2, 3, 4), {"x": np.zeros(1, np.int32), "o": out}, {"B": 1})
    assert out.tolist() == [a * 100 + b * 10 + c for c in range(4) for b in range(3) for a in range(2)]


def test_some_programs_alone():
    out = np.zeros(24, np.int32)
    ran = on_machine(grid, (2, 3, 4), {"x": np.zeros(1, np.int32), "o": out}, {"B": 1}, programs=[[3, 17]])
    assert np.flatnonzero(out).tolist() == [3, 17] and ran.launch.programs == 2


@triton.jit
def backwards(x, o):
    p = tl.program_id(0)
    total = 0
    for i in range(tl.load(x + p), 0, -2):
        total += i
    tl.store(o + p, total)


def test_loops_that_count_down():
    x = [3, 0, 8, -4]
    assert run(backwards, x) == [sum(range(n, 0, -2)) for n in x]

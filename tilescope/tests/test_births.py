"""The birth of a NaN or an infinity: its line, its operands, its lane and its program, and nothing for those that came in."""

import math
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from tilescope.scenes import opening, scene
from tilescope.stepping import Stepping
from tilescope.steps import Steps
from tilescope.watching import watch

B = 32


@triton.jit
def rooted(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=1.0)
    root = tl.sqrt(v)  # nan
    tl.store(out + i, root + 1, mask=i < n)


@triton.jit
def divided(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=1.0)
    part = 1.0 / (v + 3)  # infinity
    tl.store(out + i, part - part, mask=i < n)  # nan


@triton.jit
def narrowed(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=1.0)
    small = (v * -30000).to(tl.float16)  # infinity
    tl.store(out + i, small, mask=i < n)


@triton.jit
def summed(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=1.0)
    signs = tl.where(v < 0, float("-inf"), float("inf"))
    total = tl.sum(signs, 0)  # nan
    tl.store(out + tl.program_id(0), total)


@triton.jit
def apart(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i[None, :], mask=i[None, :] < n, other=1.0)
    least = tl.min(v, 1)
    tl.store(out + i[None, :], v - least[:, None], mask=i[None, :] < n)  # nan


@triton.jit
def passed_on(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=1.0)
    tl.store(out + i, tl.exp(v) * 2, mask=i < n)


def line_of(kernel, mark: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    first = lines.index(f"def {kernel.__name__}(x, out, n, B: tl.constexpr):")
    return 1 + next(i for i, line in enumerate(lines) if i > first and line.endswith(f"# {mark}"))


def births(kernel, x, *looks):
    out = torch.zeros(100)
    with watch(*looks, nan=True) as seen:
        kernel[(4,)](x, out, 100, B=B)
    return seen


def with_one(value: float, at: int = 70) -> torch.Tensor:
    x = torch.ones(100)
    x[at] = value
    return x


CASES = {
    "a root": (rooted, {"nan": "tl.sqrt(v = -3) makes a NaN in lane 6 of program 2"}),
    "a division, and what comes of it": (
        divided,
        {
            "infinity": "1 / 0 makes an infinity in lane 6 of program 2",
            "nan": "(part = inf) - (part = inf) makes a NaN in lane 6 of program 2",
        },
    ),
    "a conversion": (narrowed, {"infinity": "90000 as fp16 makes an infinity in lane 6 of program 2"}),
    "a sum of infinities": (summed, {"nan": "a reduction(signs = -inf to inf) makes a NaN in program 2"}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_birth_is_named(case):
    kernel, wanted = CASES[case]
    seen = births(kernel, with_one(-3.0))
    assert {f.kind: f.message for f in seen.findings} == wanted
    assert [f.line for f in seen.findings] == [line_of(kernel, f.kind) for f in seen.findings]
    assert all(f.programs == [[2, 0, 0]] and f.severity == "warning" for f in seen.findings)


def test_an_operand_in_another_shape_keeps_its_name():
    x = torch.full((100,), -math.inf)
    assert births(apart, x).findings[0].operands == ["v = -inf", "least = -inf"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_came_in_is_not_born(value):
    assert births(passed_on, with_one(value)).findings == []


def test_several_lanes_are_counted_and_memory_stays():
    x = with_one(-3.0)
    x[71] = -4
    before = x.clone()
    seen = births(rooted, x)
    assert seen.findings[0].message.endswith("in lane 6 of program 2, and in 1 more lane")
    assert torch.equal(x, before)
    with watch() as seen:
        rooted[(4,)](x, torch.zeros(100), 100, B=B)
    assert seen.findings == []  # only on request


def test_the_stepper_opens_where_it_was_born():
    seen = births(rooted, with_one(-3.0), Stepping())
    steps = Steps(seen.recording)
    at = opening(steps)
    assert seen.recording.ids == [2, 0, 0] and steps[at].line == line_of(rooted, "nan")
    shown = scene(steps, at)
    assert [m["id"] for m in shown["marks"] if m.get("pick") and m["role"] == "hot"] == ["l0-6"]
    assert shown["warning"] == "tl.sqrt(v = -3) makes a NaN in lane 6 of program 2."

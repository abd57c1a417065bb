"""With which constants a kernel compares numbers."""

import pytest
import triton
import triton.language as tl

from tilescope.lowering import text_of
from tilescope.machine.comparisons import SCALAR, UNKNOWN, WHOLE
from tilescope.machine.influence import steers
from tilescope.machine.read import read

NAMES = "x", "ids", "y", "n", "scale"


@triton.jit
def least_of_five(a, b):
    return tl.minimum(tl.minimum(a, b), 5.0)


@triton.jit
def compared(x, ids, y, n, scale, WAY: tl.constexpr):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    block = tl.load(x + i, mask=i < 1000)
    if WAY == "nothing":
        block = block * scale + 3.0
    if WAY == "the larger of two":
        block = tl.maximum(block, tl.load(x + n + i))
    if WAY == "a maximum over a loop":
        most = tl.full((16,), float("-inf"), tl.float32)
        for turn in range(n):
            most = tl.maximum(most, tl.load(x + turn * 16 + i))
        block = block - most
    if WAY == "a cut-off":
        block = tl.where(block < -30.0, 0.0, block)
    if WAY == "a difference":
        block = tl.where(block - 30.0 < tl.load(x + n + i), 0.0, block)
    if WAY == "a difference of more than nothing":
        block = tl.where(block - 30.0 > 0.0, 0.0, block)
    if WAY == "a maximum in a branch":
        if tl.max(block, 0) > 7.0:
            block = block * 2
    if WAY == "a block of one number":
        block = tl.where(tl.max(block, 0) == tl.min(block, 0), 1.0, block)
    if WAY == "a clamp":
        block = tl.clamp(block, -2.0, 4.0)
    if WAY == "bits":
        block = tl.where(block.to(tl.int32, bitcast=True) > 77, 0.0, block)
    if WAY == "whole numbers":
        block = tl.where(tl.load(ids + i) > 77, 0.0, block)
    if WAY == "a scalar":
        if scale == 1.0:
            block = block * 2
    if WAY == "a multiple of a scalar":
        block = tl.minimum(block, 5.0 * scale)
    if WAY == "a size":
        block = tl.where(block > n.to(tl.float32), 0.0, block)
    if WAY == "zero and no number":
        block = tl.where((block != block) | (block > 0), 0.0, tl.where(block == float("inf"), 1.0, block))
    if WAY == "a step":
        block = tl.where(tl.floor(block * 0.1) > 0, 0.0, block)
    if WAY == "a reduction of its own":
        block = block - tl.reduce(block, 0, least_of_five)
    tl.store(y + i, block)


def found(way: str) -> set:
    types = {"x": "*fp32", "ids": "*i32", "y": "*fp32", "n": "i32", "scale": "fp32"}
    _, _, rows = steers(read(text_of(compared, types, {"WAY": way})))
    assert {one.reduced for one in rows} == ({way in OF_MANY} if rows else set())
    return {(NAMES[one.source], one.constant) for one in rows}


OF_MANY = "a maximum in a branch", "a block of one number"
WAYS = {
    "nothing": set(),
    "the larger of two": set(),
    "a maximum over a loop": set(),
    "a cut-off": {("x", "-30")},
    "a difference": {("x", "30")},
    "a difference of more than nothing": {("x", "30"), ("x", "0")},
    "a maximum in a branch": {("x", "7")},
    "a block of one number": {("x", "")},
    "a clamp": {("x", "-2"), ("x", "4")},
    "bits": {("x", "77")},
    "whole numbers": {("ids", "77")},
    "a scalar": {("scale", "1")},
    "a multiple of a scalar": {("x", SCALAR), ("scale", SCALAR)},
    "a size": {("x", UNKNOWN)},
    "zero and no number": {("x", ""), ("x", "0"), ("x", "inf")},
    "a step": {("x", WHOLE), ("x", "0")},
    "a reduction of its own": {("x", "5")},
}


@pytest.mark.parametrize("way", WAYS)
def test_constants_that_numbers_meet_are_found(way):
    assert found(way) == WAYS[way]

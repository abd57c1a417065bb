"""Which tensors' numbers decide what a kernel loads."""

import pytest
import triton
import triton.language as tl

from tilescope.lowering import text_of
from tilescope.machine.influence import DOT, steers
from tilescope.machine.read import read

NAMES = "x", "ids", "y", "scratch"


@triton.jit(noinline=True)
def loaded(pointer, place):
    return tl.load(pointer + place)


@triton.jit
def moved(x, ids, y, scratch, n, WAY: tl.constexpr):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    block = tl.load(x + i, mask=i < n)
    if WAY == "straight":
        tl.store(y + i, tl.where(block > 0, block, 0.0))
    if WAY == "an address":
        tl.store(y + i, tl.load(x + tl.load(ids + i)))
    if WAY == "an address that is chosen":
        tl.store(y + i, tl.load(x + tl.where(block > 0, i, 0)))
    if WAY == "a mask":
        tl.store(y + i, tl.load(x + n + i, mask=block > 0, other=0.0))
    if WAY == "a branch":
        if tl.max(block, 0) > 0:
            block += tl.load(x + n + i)
        tl.store(y + i, block)
    if WAY == "a branch without a load":
        if tl.max(block, 0) > 0:
            block *= 2
        tl.store(y + i, block)
    if WAY == "a branch within a function":
        total = tl.sum(block, 0)
        if total > 0:
            total += loaded(x, n)
        tl.store(y, total)
    if WAY == "what a branch chose":
        place = 0
        if tl.max(block, 0) > 0:
            place = 1
        tl.store(y, tl.load(ids + place))
    if WAY == "the end of a loop":
        total = 0.0
        for turn in range(tl.load(ids)):
            total += tl.load(x + turn)
        tl.store(y, total)
    if WAY == "a while loop":
        turn, total = 0, 0.0
        while total < 5:
            total += tl.load(x + turn)
            turn += 1
        tl.store(y, total)
    if WAY == "what two loops carry":
        place = 0
        for turn in range(n):
            for _within in range(n):
                place = place + turn + tl.load(ids + place)
        tl.store(y, place)
    if WAY == "an early return":
        if tl.load(ids) == 0:
            return
        tl.store(y, tl.load(x + n))
    if WAY == "scratch":
        tl.store(scratch + i, block)
        tl.debug_barrier()
        tl.store(y + i, tl.load(x + tl.load(scratch + i).to(tl.int32)))
    if WAY == "an atomic":
        turn = tl.atomic_add(scratch, 1)
        if turn == 3:
            tl.store(y, tl.load(x + n))
    if WAY == "an atomic of numbers":
        most = tl.atomic_max(scratch + i, tl.load(ids + i))
        tl.store(y + i, tl.load(x + most))
    if WAY == "a dot in a branch":
        tile = tl.load(x + i[:, None] * 16 + tl.arange(0, 16)[None, :])
        total = tl.zeros((16, 16), tl.float32)
        if tl.load(ids) > 0:
            total = tl.dot(tile, tile, total)
        tl.store(y + i, tl.sum(total, 0))


def found(way: str) -> tuple[set, set]:
    types = {"x": "*fp32", "ids": "*i32", "y": "*fp32", "scratch": "*i32", "n": "i32"}
    rows, content, _ = steers(read(text_of(moved, types, {"WAY": way})))
    ways = {(NAMES[one.source], one.by, "dot" if one.target == DOT else NAMES[one.target]) for one in rows}
    return ways, {(NAMES[one.tensor], NAMES[one.source]) for one in content}


@pytest.mark.parametrize(
    "way, wanted",
    [
        ("straight", set()),
        ("an address", {("ids", "address", "x")}),
        ("an address that is chosen", {("x", "address", "x")}),
        ("a mask", {("x", "mask", "x")}),
        ("a branch", {("x", "branch", "x")}),
        ("a branch without a load", set()),
        ("a branch within a function", {("x", "branch", "x")}),
        ("what a branch chose", {("x", "address", "ids")}),
        ("the end of a loop", {("ids", "branch", "x"), ("ids", "address", "x")}),
        ("a while loop", {("x", "branch", "x"), ("x", "address", "x")}),
        ("what two loops carry", {("ids", "address", "ids")}),
        ("an early return", {("ids", "branch", "x")}),
        ("scratch", {("scratch", "address", "x")}),
        ("an atomic", {("scratch", "branch", "x")}),
        ("an atomic of numbers", {("scratch", "address", "x"), ("ids", "address", "x")}),
        ("a dot in a branch", {("ids", "branch", "dot")}),
    ],
)
def test_what_steers_a_load_is_found(way, wanted):
    assert found(way)[0] == wanted


def test_what_a_tensor_holds_is_known():
    assert found("scratch")[1] == {("scratch", "x"), ("y", "x"), ("y", "scratch")}
    assert ("scratch", "x") not in found("an atomic")[1]
    assert ("scratch", "ids") in found("an atomic of numbers")[1]

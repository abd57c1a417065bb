"""Whole numbers that make addresses, masks and turns of loops are told from those that are stored."""

import numpy as np
import triton
import triton.language as tl

from .machine_for_tests import on_machine


@triton.jit
def unpacked(w, o, N, B: tl.constexpr):
    """Two whole-number operations a lane are stored, and one conversion; the rest is addresses and a mask."""
    offs = tl.program_id(0) * B + tl.arange(0, B)
    words = tl.load(w + offs, mask=offs < N, other=0)
    tl.store(o + offs, ((words >> 4) & 15).to(tl.float32), mask=offs < N)


@triton.jit
def carried(w, o, B: tl.constexpr):
    """What a loop carries to a store counts; the offset that it carries to a load does not."""
    offs = tl.arange(0, B)
    total = tl.zeros((B,), tl.int32)
    for _ in range(4):
        total += tl.load(w + offs)
        offs += B
    tl.store(o + tl.arange(0, B), total)


def test_what_is_stored_counts_apart_from_its_address():
    w, o = np.arange(64, dtype=np.int32), np.zeros(64, np.float32)
    found = on_machine(unpacked, (2,), {"w": w, "o": o}, {"B": 32}, scalars={"N": 64}).launch.operations
    assert found["int"] == 2 * 64 and found["convert"] == 64 and found["address"] > 64 and found["float"] == 0


def test_loops_hand_on_values_and_offsets():
    w, o = np.arange(128, dtype=np.int32), np.zeros(32, np.int32)
    found = on_machine(carried, (1,), {"w": w, "o": o}, {"B": 32}).launch.operations
    assert found["int"] == 4 * 32 and found["address"] >= 4 * 32

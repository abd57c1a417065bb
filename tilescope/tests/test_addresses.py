"""Whole numbers that make addresses, masks and turns of loops are told from those that are stored."""

import numpy as np
import triton
import triton.language as tl

from tilescope.machine.kinds import BARRIER, DIVIDED, IN_FP64, PRINTED

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


@triton.jit
def divided(w, o, N, B: tl.constexpr):
    """A remainder by 7, which a compiler knows, and two by N, one of them in 64 bits."""
    offs = tl.arange(0, B)
    word = tl.load(w + offs)
    tl.store(o + offs, word % 7 + word % N + (word.to(tl.int64) % N + word.to(tl.int64) % 9).to(tl.int32))


@triton.jit
def squared(w, o, B: tl.constexpr, WIDE: tl.constexpr):
    offs = tl.arange(0, B)
    x = tl.load(w + offs).to(WIDE)
    tl.store(o + offs, x * x)


@triton.jit
def slow(w, o, B: tl.constexpr, BARRIERS: tl.constexpr, PRINTS: tl.constexpr):
    offs = tl.arange(0, B)
    x = tl.load(w + offs)
    for _ in range(BARRIERS):
        tl.debug_barrier()
    if PRINTS:
        tl.device_print("x", x)
    tl.store(o + offs, x)


def spent(kernel, dtype=np.int32, scalars=None, **constants) -> dict:
    w, o = np.arange(32, dtype=dtype), np.zeros(32, dtype)
    arguments = {"scalars": scalars} if scalars else {}
    return on_machine(kernel, (1,), {"w": w, "o": o}, {"B": 32, **constants}, **arguments).launch.operations


def test_a_division_of_64_bits_by_what_only_the_run_knows_counts_as_many():
    found = spent(divided, scalars={"N": 5})
    both = sum(DIVIDED.values()) * 32
    assert both < found["int"] < both + 12 * 32


@triton.jit
def apart(w, o, N, B: tl.constexpr, BY: tl.constexpr):
    offs = tl.arange(0, B)
    by = N if BY == 0 else BY
    tl.store(o + offs, tl.load(w + offs // by))


def test_a_division_of_each_lane_isnt_free_in_an_address_either():
    assert spent(apart, scalars={"N": 5}, BY=0)["int"] == DIVIDED["i32"] * 32
    assert not spent(apart, scalars={"N": 5}, BY=5).get("int")


def test_fp64_counts_as_on_most_gpus():
    narrow = spent(squared, np.float32, WIDE=tl.float32)
    wide = spent(squared, np.float32, WIDE=tl.float64)
    assert narrow["float"] == 32 and wide["float"] == 3 * IN_FP64 * 32  # there, the product, and back


def test_a_barrier_and_a_print_take_time():
    none = spent(slow, BARRIERS=0, PRINTS=False)
    assert spent(slow, BARRIERS=3, PRINTS=False)["int"] == none["int"] + 3 * BARRIER
    assert spent(slow, BARRIERS=0, PRINTS=True)["int"] == none["int"] + 32 * PRINTED

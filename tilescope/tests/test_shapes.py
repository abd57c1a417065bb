"""Tensors turned, joined, cut, indexed, folded and scanned, for several programs at once, against numpy."""

import numpy as np
import pytest
import triton
import triton.language as tl

from .machine_for_tests import on_machine

RNG = np.random.default_rng(3)
PROGRAMS, B = 5, 32


def run(kernel, x, outputs: int, constants=None, dtype=np.float32):
    """The kernel on one row of x a program; what it stored, as (program, row, lane)."""
    out = np.zeros((len(x), outputs, x.shape[1]), dtype)
    ran = on_machine(kernel, (len(x),), {"x": x.copy(), "o": out}, {"B": x.shape[1], **(constants or {})})
    assert ran.report.error is None and not ran.report.races, ran.report
    return out


@triton.jit
def turned(x, o, B: tl.constexpr):
    p, i = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + p * B + i)
    row = o + p * 8 * B + i
    tl.store(row, tl.reshape(tl.trans(tl.reshape(v, (4, B // 4))), (B,)))
    tl.store(row + B, tl.reshape(tl.permute(tl.reshape(v, (2, 4, B // 8)), (2, 0, 1)), (B,)))
    a, b = tl.split(tl.reshape(v, (B // 2, 2)))
    tl.store(row + 2 * B, tl.interleave(b, a))
    tl.store(row + 3 * B, tl.cat(a, b, can_reorder=True))
    tl.store(row + 4 * B, tl.gather(v, (i * 7 + p) % B, 0))
    tl.store(row + 5 * B, tl.flip(v, 0))
    tl.store(row + 6 * B, tl.sort(v))
    tl.store(
        row + 7 * B,
        tl.reshape(tl.broadcast_to(tl.sum(tl.reshape(v, (B // 4, 4)), 1)[:, None], (B // 4, 4)), (B,)),
    )


def test_turned_and_joined():
    x = RNG.standard_normal((PROGRAMS, B)).astype(np.float32)
    found = run(turned, x, 8)
    for p, v in enumerate(x):
        even, odd = v[::2], v[1::2]
        wanted = [
            v.reshape(4, -1).T.ravel(),
            v.reshape(2, 4, -1).transpose(2, 0, 1).ravel(),
            np.stack([odd, even], -1).ravel(),
            np.r_[even, odd][::-1],  # can_reorder=True promises no order, so here is another one
            v[(np.arange(B) * 7 + p) % B],
            v[::-1],
            np.sort(v),
            np.repeat(v.reshape(-1, 4).sum(1), 4),
        ]
        np.testing.assert_allclose(found[p], wanted, rtol=1e-6)


@triton.jit
def in_any_order(x, o, B: tl.constexpr):
    p, i = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + p * B + i)
    row = o + p * 4 * B + i
    tl.store(row, tl.reshape(v, (B,), can_reorder=True))
    sums = tl.sum(tl.reshape(v, (2, B // 2), can_reorder=True), 1)
    tl.store(row + B, tl.where(i < B // 2, tl.sum(tl.where(tl.arange(0, 2) == 0, sums, 0)), 0))
    whole = tl.sum(tl.reshape(v, (B,), can_reorder=True)) + tl.sum(tl.reshape(v, (2, B // 2)))
    tl.store(row + 2 * B, whole + tl.zeros((B,), tl.float32))
    tl.store(row + 3 * B, v)


def test_an_order_that_nobody_promised_is_another_one():
    x = RNG.standard_normal((PROGRAMS, B)).astype(np.float32)
    found = run(in_any_order, x, 4)
    np.testing.assert_array_equal(found[:, 0], x[:, ::-1])
    np.testing.assert_allclose(found[:, 1, 0], x[:, B // 2 :].sum(1), rtol=1e-5)
    np.testing.assert_allclose(found[:, 2, 0], 2 * x.sum(1), rtol=1e-5)


@triton.jit
def smaller_first(a, i, b, j):
    first = (a < b) | ((a == b) & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)


@triton.jit
def affine(a1, b1, a2, b2):
    """x -> a x + b, the second after the first: it matters which is which."""
    return a1 * a2, a2 * b1 + b2


@triton.jit
def folded(x, o, B: tl.constexpr):
    p, i = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + p * B + i)
    row = o + p * 10 * B + i
    tl.store(row, tl.sum(v, 0) + tl.zeros((B,), tl.float32))
    tl.store(row + B, tl.max(v, 0) + tl.zeros((B,), tl.float32))
    tl.store(row + 2 * B, tl.argmin(v, 0).to(tl.float32) + tl.zeros((B,), tl.float32))
    least, place = tl.reduce((v, i), 0, smaller_first)
    tl.store(row + 3 * B, least + place.to(tl.float32) + tl.zeros((B,), tl.float32))
    tl.store(row + 4 * B, tl.cumsum(v, 0))
    tl.store(row + 5 * B, tl.cumsum(v, 0, reverse=True))
    tl.store(row + 6 * B, tl.cumprod(v, 0))
    a, b = tl.associative_scan((v * 0 + 0.5, v), 0, affine)
    tl.store(row + 7 * B, b)
    a, b = tl.associative_scan((v * 0 + 0.5, v), 0, affine, reverse=True)
    tl.store(row + 8 * B, b)
    tl.store(row + 9 * B, tl.xor_sum(i * (p + 3), 0).to(tl.float32) + tl.zeros((B,), tl.float32))


def chained(values, half=0.5):
    found, total = [], np.float32(0)
    for value in values:
        total = np.float32(total * half + value)
        found.append(total)
    return np.array(found)


def test_folded_and_scanned_in_order():
    x = RNG.standard_normal((PROGRAMS, B)).astype(np.float32)
    x[1, [4, 9]] = x[1].min() - 1  # a tie: the first place counts
    found = run(folded, x, 10)
    for p, v in enumerate(x):
        ones = np.ones(B)
        wanted = [
            v.sum() * ones,
            v.max() * ones,
            v.argmin() * ones,
            (v.min() + v.argmin()) * ones,
            np.cumsum(v),
            np.cumsum(v[::-1])[::-1],
            np.cumprod(v),
            chained(v),
            chained(v[::-1])[::-1],
            np.bitwise_xor.reduce(np.arange(B) * (p + 3)) * ones,
        ]
        np.testing.assert_allclose(found[p], wanted, rtol=2e-5, atol=2e-5)


@triton.jit
def by_axis(x, o, B: tl.constexpr):
    i, j = tl.arange(0, 4), tl.arange(0, B // 4)
    v = tl.load(x + tl.program_id(0) * B + i[:, None] * (B // 4) + j[None, :])
    row = o + tl.program_id(0) * B
    tl.store(row + j, tl.sum(v, 0))
    tl.store(row + B // 4 + i, tl.max(v, 1))
    tl.store(
        row + B // 2 + i[:, None] * 2 + tl.arange(0, 2)[None, :], tl.sum(tl.reshape(v, (4, 2, B // 8)), 2)
    )


def test_one_axis_at_a_time():
    x = RNG.standard_normal((PROGRAMS, 64)).astype(np.float32)
    out = np.zeros((PROGRAMS, 64), np.float32)
    on_machine(by_axis, (PROGRAMS,), {"x": x, "o": out}, {"B": 64})
    v = x.reshape(PROGRAMS, 4, 16)
    np.testing.assert_allclose(out[:, :16], v.sum(1), rtol=1e-5)
    assert (out[:, 16:20] == v.max(2)).all()
    np.testing.assert_allclose(
        out[:, 32:40].reshape(PROGRAMS, 4, 2), v.reshape(-1, 4, 2, 8).sum(3), rtol=1e-5
    )


@triton.jit
def counted(x, o, B: tl.constexpr, BINS: tl.constexpr):
    p, i = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + p * B + i)
    tl.store(o + p * BINS + tl.arange(0, BINS), tl.histogram(v, BINS, mask=i % 3 > 0))


def test_histogram_counts_what_is_not_masked():
    x = RNG.integers(0, 16, (PROGRAMS, B)).astype(np.int32)
    x[:, ::3] = -1
    out = np.zeros((PROGRAMS, 16), np.int32)
    on_machine(counted, (PROGRAMS,), {"x": x, "o": out}, {"B": B, "BINS": 16})
    for p in range(PROGRAMS):
        kept = [v for i, v in enumerate(x[p]) if i % 3]
        assert out[p].tolist() == np.bincount(kept, minlength=16).tolist()


@pytest.mark.parametrize("beyond", [-1, 16])
def test_a_number_beyond_the_bins_of_a_histogram_is_told(beyond):
    """Compiled code looks at the low bits alone."""
    x = np.zeros((PROGRAMS, B), np.int32)
    x[1, 4] = beyond
    ran = on_machine(
        counted,
        (PROGRAMS,),
        {"x": x, "o": np.zeros((PROGRAMS, 16), np.int32)},
        {"B": B, "BINS": 16},
    )
    assert ran.error["kind"] == "HistogramRange"
    assert f"counts {beyond}, which is none of its 16 bins, in program 1" in ran.error["message"]


@triton.jit
def picked(x, n, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.gather(tl.load(x + i), tl.load(n + i), 0))


def test_a_gather_outside_its_source_is_told():
    n = np.arange(B, dtype=np.int32)
    n[7] = B
    ran = on_machine(
        picked, (1,), {"x": np.zeros(B, np.float32), "n": n, "o": np.zeros(B, np.float32)}, {"B": B}
    )
    assert ran.error["kind"] == "GatherRange" and f"place {B} of an axis that has {B}" in ran.error["message"]


@triton.jit
def steps_to_one(a, b):
    n = 0
    while a > 1:
        a = a // 2 if a % 2 == 0 else 3 * a + 1
        n += 1
    return n, b


@triton.jit
def mapped(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    n, _ = tl.map_elementwise(steps_to_one, v, v)
    tl.store(o + i, n)


def test_lanes_go_their_own_ways():
    x = np.arange(1, 33, dtype=np.int32)
    out = np.zeros(32, np.int32)
    ran = on_machine(mapped, (1,), {"x": x, "o": out}, {"B": 32})
    assert ran.report.error is None, ran.report.error

    def steps(n):
        return 0 if n <= 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert out.tolist() == [steps(int(n)) for n in x]


@triton.jit
def dealt(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.rand(7, i + tl.program_id(0) * B))
    tl.store(o + B + i, tl.randn(7, i))


def test_random_numbers_are_those_of_philox():
    out = np.zeros(2 * 64, np.float32)
    on_machine(dealt, (1,), {"x": out[:1].copy(), "o": out}, {"B": 64})
    assert ((out[:64] >= 0) & (out[:64] < 1)).all() and abs(out[:64].mean() - 0.5) < 0.15
    assert out[0] == pytest.approx(philox_uniform(7, 0), abs=1e-7) and out[9] == pytest.approx(
        philox_uniform(7, 9), abs=1e-7
    )


def philox_uniform(seed: int, offset: int) -> float:
    """Philox 4x32, ten rounds, the first of four numbers, as in its paper."""
    c, key = [offset, 0, 0, 0], [seed, 0]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ key[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    signed = c[0] - (1 << 32) if c[0] >> 31 else c[0]
    return (-signed - 1 if signed < 0 else signed) * 4.6566127342e-10

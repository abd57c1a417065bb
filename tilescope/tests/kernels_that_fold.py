"""Kernels of which Triton's canonicaliser takes something away: (kernel, types, constants)."""

import triton
import triton.language as tl


@triton.jit
def unused(x, o, n):
    tl.load(x + tl.arange(0, 16))
    total = 0.0
    for i in range(n):
        total += tl.load(x + i)
    at = 0
    while at < n:
        total += tl.load(x + at)
        at += 1
    tl.store(o, 1.0)


@triton.jit
def carried(x, o, n):
    one, other, same = 0.0, 0.0, n
    for i in range(n):
        one += tl.load(x + i)
        other += tl.load(x + 2 * i)
        same = same
    tl.store(o + same, other)


@triton.jit
def branches(x, o, n):
    zero, kept, dropped = 0, 1.0, 2.0
    if zero > 3:
        tl.store(o + 1, tl.load(x))
    if n > 3:
        kept = tl.load(x)
        dropped = tl.load(x + 1)
    if n > 4:
        tl.store(o, dropped)
    tl.store(o, kept if zero == 0 else 3.0)


@triton.jit
def best_of(x, n):
    best, who, ever = 0.0, -1, n > 7
    for i in range(n):
        found = tl.load(x + i)
        if found > best:
            best = found
            who = i + 1
            ever = True
    return best, who, ever


@triton.jit
def sides(x, o, n):
    best, who, ever = best_of(x, n)
    found = tl.load(x + 3 + tl.arange(0, 16))
    twice = found + 1.0
    if n > 3:
        found, twice = twice, found
        same = n
    else:
        same = n
    if n > 5:
        twice = found
    tl.store(o + same + who, best)
    tl.store(o + tl.arange(0, 16), found, mask=ever)
    tl.store(o + 16 + tl.arange(0, 16), twice)


@triton.jit
def turns(x, o, n):
    for i in range(0, 1):
        tl.store(o + i, tl.load(x))
    for _ in range(0, 0):
        tl.store(o, tl.load(x))
    for i in range(4, 10, 8):
        tl.store(o + i, tl.load(x))
    for i in range(n, n):
        tl.store(o + i, tl.load(x))


@triton.jit
def masks(x, o, n):
    at = tl.arange(0, 16)
    never, ever = tl.full((16,), 0, tl.int1), tl.full((16,), 1, tl.int1)
    tl.store(o + at, tl.load(x + at, mask=never, other=2.0))
    tl.store(o + at, tl.load(x + at, mask=ever, other=2.0), mask=ever)
    tl.store(o + at, 3.0, mask=never)
    tl.store(o + at, tl.load(x + at, mask=never))


@triton.jit
def numbers(x, o, n):
    at = tl.arange(0, 16)
    k = n + 3 - 5 + 7
    n = (n - tl.program_id(0)) + tl.program_id(0) * 0 + n - n
    m = n - k
    n = (m + k) - m
    k = (2 - (k - 3)) * 3 * 5
    k += n % 1 + tl.arange(0, 1).sum() + (n - n) + (n * 0) + (7 // 2) * (n & 0 | n ^ 0)
    y = tl.zeros((16,), tl.float32) * 2 + tl.full((16,), 1.5, tl.float32) / 4 - at * 0
    y = tl.maximum(y, tl.load(x + at) * 1.0) + tl.full((16,), 3, tl.int32)
    half = tl.zeros((16,), tl.float16) + 1.0
    narrow = tl.full((16,), 0.1, tl.bfloat16)
    tl.store(o + at + k, y + half + narrow + tl.where(k == k, 1.0, 2.0))
    tl.store(
        o + tl.broadcast_to((k + tl.arange(0, 1))[:, None], (4, 4)),
        tl.full((4, 4), -1, tl.int8).to(tl.float32),
    )


@triton.jit
def shifts(x, o, n):
    at = tl.arange(0, 16)
    bits = tl.load(x + at).to(tl.int32, bitcast=True)
    half, byte, other = (bits >> 16).to(tl.int16), (bits >> 24).to(tl.int8), (bits >> 8).to(tl.int8)
    tl.store(o + at, half.to(tl.float32) + byte + other + (bits >> 16) + (n >> 16).to(tl.int16))


@triton.jit
def idle(x, o, n):
    kept, gone, _swapped = tl.load(x), tl.load(x + 1), tl.load(x + 2)
    for i in range(n):
        tl.store(o + i, kept)
        for j in range(n):
            gone = tl.load(x + 3 + j)
        kept, gone, _swapped = tl.load(x + i), tl.load(x + 2 * i), gone


GIVEN = {"x": "*fp32", "o": "*fp32", "n": "i32"}
FOLDED = {
    k.fn.__name__: (k, GIVEN, {})
    for k in (unused, carried, branches, sides, turns, masks, numbers, shifts, idle)
}

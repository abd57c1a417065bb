"""Rows without a top-k of at most 1024: draw from everything first, then ask whether the filters keep it.

The Gumbel-max draw over the kept tokens is the best noisy score among them. If the best of all tokens is kept,
it is that. If not, the kept ones all rank above it, and one more read finds the best among those, together
with how many and how much weight lie above it: what the question needs. The answer is the one a sort would
have given; only the number of reads is left to luck. With top-p alone a read settles it with a chance of p.
"""

import triton
import triton.language as tl

from kernels.sampling_fusion.philox import GUMBEL
from kernels.sampling_fusion.tiles import FLOOR, key_of, noise, ruled, value_of, words_of_tile

STREAM = tl.constexpr(GUMBEL)
NOBODY = tl.constexpr(2147483647)


@triton.jit
def above(
    row, x0, token0, best, inv_t, seed, position, V,
    N: tl.constexpr, NOISE: tl.constexpr, ALLOW: tl.constexpr, BIAS: tl.constexpr, PENALTY: tl.constexpr,
):  # fmt: skip
    """One read: the count and weight of all tokens ranked above (x0, token0), and the best noisy one of them."""
    offs = tl.arange(0, N)
    count = tl.zeros([N], tl.int32)
    weight = tl.zeros([N], tl.float32)
    score = tl.full([N], float("-inf"), tl.float32)
    winner = tl.full([N], NOBODY, tl.int32)
    for start in range(0, V, N):
        token = start + offs
        x = ruled(row, token, token < V, ALLOW, BIAS, PENALTY)
        higher = (x > float("-inf")) & ((x > x0) | ((x == x0) & (token < token0)))
        from_best = tl.where(higher, (x - best) * inv_t, float("-inf"))
        count += higher.to(tl.int32)
        weight += tl.exp(from_best)
        if NOISE:
            noisy = from_best + noise(words_of_tile(start, seed, position, STREAM, N))
            winner = tl.where(noisy > score, token, winner)
            score = tl.maximum(noisy, score)
    most = tl.max(score)
    return tl.sum(count), tl.sum(weight), tl.min(tl.where(score == most, winner, NOBODY))


@triton.jit
def mass_of_kept(
    row, k, least, best, inv_t, V,
    N: tl.constexpr, ALLOW: tl.constexpr, BIAS: tl.constexpr, PENALTY: tl.constexpr,
):  # fmt: skip
    """The weight of the k best tokens that are at least `least`: bisection for the k-th, one read a step."""
    low = tl.full((), FLOOR + 1, tl.int64)
    high = key_of(best).to(tl.int64) + 1
    count = V
    while (high - low > 1) & (count != k):
        middle = (low + high) // 2
        count, _, _ = above(
            row, value_of(middle.to(tl.int32)), NOBODY, best, inv_t, 0, 0, V, N, False, ALLOW, BIAS, PENALTY
        )
        low = tl.where(count >= k, middle, low)
        high = tl.where(count >= k, high, middle)
    x = tl.maximum(value_of(low.to(tl.int32)), least)
    more, weight, _ = above(row, x, -1, best, inv_t, 0, 0, V, N, False, ALLOW, BIAS, PENALTY)
    upto, with_ties, _ = above(row, x, NOBODY, best, inv_t, 0, 0, V, N, False, ALLOW, BIAS, PENALTY)
    share = (tl.minimum(upto, k) - more).to(tl.float32) / tl.maximum(upto - more, 1).to(tl.float32)
    return weight + (with_ties - weight) * share


@triton.jit
def settle(
    row, token, best, total, inv_t, k, top_p, min_p, seed, position, V,
    N: tl.constexpr, MIN_P_FIRST: tl.constexpr, OF_ALL: tl.constexpr,
    ALLOW: tl.constexpr, BIAS: tl.constexpr, PENALTY: tl.constexpr,
):  # fmt: skip
    """From the best noisy token of all to the best noisy token that the filters keep."""
    k = tl.where(k == 0, V, tl.minimum(k, V))
    least = best + tl.log(min_p) / inv_t
    mass = total
    if not OF_ALL:
        survivors_count = (k < V) | ((min_p > 0) & MIN_P_FIRST)
        if survivors_count & (top_p < 1):
            floor = least if MIN_P_FIRST else float("-inf")
            mass = mass_of_kept(row, k, floor, best, inv_t, V, N, ALLOW, BIAS, PENALTY)
    x = ruled(row, token, token < V, ALLOW, BIAS, PENALTY)
    done = (top_p >= 1) & (k == V) & (min_p == 0)
    while not done:
        count, before, winner = above(
            row, x, token, best, inv_t, seed, position, V, N, True, ALLOW, BIAS, PENALTY
        )
        kept = (count < k) & ((before < top_p * mass) | (top_p >= 1)) & (tl.exp((x - best) * inv_t) >= min_p)
        done = kept | (count == 0)
        token = tl.where(done, token, winner)
        x = ruled(row, token, token < V, ALLOW, BIAS, PENALTY)
    return token, x

"""Build the parts of every kernel of this topic: logits under the rules, keys that order them, noise."""

import triton
import triton.language as tl
from triton.language.extra import libdevice

LARGEST = tl.constexpr(3.4028234663852886e38)
FLOOR = tl.constexpr(-2139095041)  # the key of -inf, with which a token takes no part
LARGEST_BELOW_ONE = tl.constexpr(0.999999940395355)
LOG2_E = tl.constexpr(1.4426950408889634)
NOBODY = tl.constexpr(2147483647)  # where no token can be named
UNITS = tl.constexpr(1099511627776.0)  # 2**40


@triton.jit
def bit_of(words_ptr, offs, inside):
    """Bit t % 32 of word t // 32 of a row's mask."""
    word = tl.load(words_ptr + (offs >> 5), mask=inside, other=0)
    return ((word >> (offs & 31)) & 1) != 0


@triton.jit
def clean(x):
    """Clean logits: NaN counts as -inf, +inf as the largest number, and -0 becomes 0, its equal."""
    x = tl.maximum(x.to(tl.float32), float("-inf"))  # of a NaN and a number, the number
    return tl.minimum(x, LARGEST) + 0.0


@triton.jit
def penalise(x, seen, count, presence, frequency, repetition):
    x = tl.where(seen, tl.where(x > 0, x / repetition, x * repetition), x)
    return x - frequency * count.to(tl.float32) - tl.where(count > 0, presence, 0.0)


@triton.jit
def raw(row, offs, inside):
    """Return the unchanged logits at `offs` of a row, or -inf past its end."""
    b, _, _, stride_b, logits_ptr, _, _, _, _, _, _ = row
    x = tl.load(logits_ptr + b.to(tl.int64) * stride_b + offs, mask=inside, other=float("-inf"))
    return x.to(tl.float32)


@triton.jit
def ruled(row, offs, inside, ALLOW: tl.constexpr, BIAS: tl.constexpr, PENALTY: tl.constexpr):
    """The logits at `offs` of a row after mask, bias and penalties. `row` says which row, and of what.

    Bias and counts are as wide as the logits, but only where a bit says that there is one are they read.
    """
    b, V, W, _, _, numbers_ptr, allowed_ptr, biased_ptr, bias_ptr, seen_ptr, counts_ptr = row
    b = b.to(tl.int64)
    x = clean(raw(row, offs, inside))
    if ALLOW:
        x = tl.where(bit_of(allowed_ptr + b * W, offs, inside), x, float("-inf"))
    if BIAS:
        biased = bit_of(biased_ptr + b * W, offs, inside)
        x += tl.load(bias_ptr + b * V + offs, mask=biased, other=0.0)
    if PENALTY:
        seen = bit_of(seen_ptr + b * W, offs, inside)
        count = tl.load(counts_ptr + b * V + offs, mask=seen, other=0)
        presence, frequency = tl.load(numbers_ptr + b * 6 + 3), tl.load(numbers_ptr + b * 6 + 4)
        x = penalise(x, seen, count, presence, frequency, tl.load(numbers_ptr + b * 6 + 5))
    if BIAS or PENALTY:
        x = clean(x)
    return x


@triton.jit
def key_of(x):
    """An int32 that orders as the float does."""
    bits = x.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def value_of(key):
    bits = key ^ ((key >> 31) & 0x7FFFFFFF)
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def exp(x):
    """e to the x, with 0 for what float32 holds in fewer bits. Caring for those would cost three instructions more."""
    return libdevice.exp2(x * LOG2_E)


@triton.jit
def steps(e):
    """Return a number from 0 to 1 in whole steps of 2**-23, as adding 1 leaves it in the mantissa, without a
    conversion."""
    return (1.0 + e).to(tl.int32, bitcast=True) - 0x3F800000


@triton.jit
def units(weight):
    """Return a weight of up to a few thousand in whole units of 2**-40, because sums of integers know no order."""
    return (weight * UNITS).to(tl.int64)


@triton.jit
def mass_of(n):
    return n.to(tl.float32) * (1.0 / UNITS)


@triton.jit
def uniform(word):
    """Return the same number as philox.uniform, in float32, with fine steps near 0."""
    u = word.to(tl.float32) * 2.3283064365386963e-10 + 1.1641532182693481e-10
    return tl.minimum(u, LARGEST_BELOW_ONE)


@triton.jit
def exponential(word):
    """-log(1 - u), good to a few roundings for the smallest u too, and without the branches of tl.log.

    The processor's own logarithm is as good as that from a quarter on, where it is not small. Below, a polynomial is
    within 5e-8 of it.
    """
    u = uniform(word)
    q = u * 0.33570939 + 0.14670347
    q = q * u + 0.25711018
    q = q * u + 0.33293071
    q = q * u + 0.50000727
    return tl.where(u < 0.25, u * q * u + u, libdevice.fast_log2f(1.0 - u) * -0.69314718)


@triton.jit
def noise(word):
    """Gumbel noise."""
    return -tl.log(exponential(word))


@triton.jit
def word_of(token, seed, position, STREAM: tl.constexpr):
    """One random word for each scattered token."""
    quad = (token >> 2).to(tl.uint32)
    at = quad * 0 + position.to(tl.uint32)
    a, b, c, d = tl.philox(seed, quad, at, quad * 0 + STREAM, quad * 0)
    w = token & 3
    return tl.where(w == 0, a, tl.where(w == 1, b, tl.where(w == 2, c, d)))


@triton.jit
def words_of_tile(start, seed, position, STREAM: tl.constexpr, N: tl.constexpr):
    """Return random words for the N tokens from `start` on, a multiple of 4, with one Philox call for every four."""
    quad = ((start >> 2) + tl.arange(0, N // 4)).to(tl.uint32)
    at = quad * 0 + position.to(tl.uint32)
    a, b, c, d = tl.philox(seed, quad, at, quad * 0 + STREAM, quad * 0)
    return tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), [N])


@triton.jit
def noisy_best(x, top, token, words, inv_t, NAMED: tl.constexpr):
    """Return, for each row of x [R, G], whose best is `top` [R], the best of x / T + noise, and its token if NAMED.

    Find the best x / T - log(e) by the least e exp((top - x) / T), for one exponential a token, one logarithm a row.
    """
    from_top = tl.where(top > float("-inf"), top, 0.0)[:, None] - x  # inf where a token takes no part
    least_is_best = exponential(words) * libdevice.exp2(from_top * (inv_t * LOG2_E))
    least = tl.min(least_is_best, axis=1)
    some = least < float("inf")
    score = tl.where(some, top * inv_t - tl.log(least), float("-inf"))
    if NAMED:
        winner = tl.min(tl.where(least_is_best == least[:, None], token, NOBODY), axis=1)
    else:
        winner = tl.full(least.shape, NOBODY, tl.int32)
    return score, tl.where(some, winner, NOBODY)


@triton.jit
def best_of(score, token):
    """Return the token with the best score, the lowest among equals, or NOBODY if all scores are -inf. One reduction."""
    pair = (key_of(score).to(tl.int64) << 32) | (token ^ NOBODY).to(tl.int64)
    most = tl.max(tl.where(score > float("-inf"), pair, -9223372036854775807))
    return tl.where(most == -9223372036854775807, NOBODY, (most & NOBODY).to(tl.int32) ^ NOBODY)

"""What every kernel of this topic is built from: logits under the rules, keys that order them, noise."""

import triton
import triton.language as tl

LARGEST = tl.constexpr(3.4028234663852886e38)
FLOOR = tl.constexpr(-2139095041)  # the key of -inf: a token with this key takes no part
LARGEST_BELOW_ONE = tl.constexpr(0.999999940395355)
SMALL = tl.constexpr(0.03125)


@triton.jit
def bit_of(words_ptr, offs, inside):
    """Bit t % 32 of word t // 32 of a row's mask."""
    word = tl.load(words_ptr + (offs >> 5), mask=inside, other=0)
    return ((word >> (offs & 31)) & 1) != 0


@triton.jit
def clean(x):
    """NaN counts as -inf, +inf as the largest number; -0 becomes 0, its equal."""
    x = tl.where(x == x, x.to(tl.float32), float("-inf"))
    x = tl.minimum(x, LARGEST)
    return tl.where(x == 0, 0.0, x)


@triton.jit
def penalise(x, seen, count, presence, frequency, repetition):
    x = tl.where(seen, tl.where(x > 0, x / repetition, x * repetition), x)
    return x - frequency * count.to(tl.float32) - tl.where(count > 0, presence, 0.0)


@triton.jit
def ruled(row, offs, inside, ALLOW: tl.constexpr, BIAS: tl.constexpr, PENALTY: tl.constexpr):
    """The logits at `offs` of a row after mask, bias and penalties. `row` says which row, and of what.

    Bias and counts are as wide as the logits, but only where a bit says that there is one are they read.
    """
    b, V, W, stride_b, logits_ptr, numbers_ptr, allowed_ptr, biased_ptr, bias_ptr, seen_ptr, counts_ptr = row
    b = b.to(tl.int64)
    x = clean(tl.load(logits_ptr + b * stride_b + offs, mask=inside, other=float("-inf")))
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
def uniform(word):
    """The same number as philox.uniform, to float32: near 0 its steps stay fine."""
    u = word.to(tl.float32) * 2.3283064365386963e-10 + 1.1641532182693481e-10
    return tl.minimum(u, LARGEST_BELOW_ONE)


@triton.jit
def noise(word):
    """Gumbel noise, -log(-log(1 - u)); a series stands in for log1p where 1 - u would lose u's digits."""
    u = uniform(word)
    series = u * (1.0 + u * (0.5 + u * (0.333333333 + u * 0.25)))
    return -tl.log(tl.where(u < SMALL, series, -tl.log(1.0 - u)))


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
    """Random words for the N tokens from `start` on, a multiple of 4: one Philox call for every four."""
    quad = ((start >> 2) + tl.arange(0, N // 4)).to(tl.uint32)
    at = quad * 0 + position.to(tl.uint32)
    a, b, c, d = tl.philox(seed, quad, at, quad * 0 + STREAM, quad * 0)
    return tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), [N])

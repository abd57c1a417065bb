"""Make random numbers without state. Philox4x32-10 turns (seed, counter) into four 32-bit words (Salmon et al.,
2011).

One draw depends on the request's seed, its position and the token alone, so it is the same in any batch,
on any grid and on any number of GPUs. The kernels use Triton's Philox, which gives the same bits.
"""

import numpy as np

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
LARGEST_BELOW_ONE = 1 - 2.0**-24  # in float32, so that log1p(-u) stays finite there too

# The last counter words but one, which of a position's independent streams a number belongs to.
GUMBEL, INVERSE, ACCEPT, RESAMPLE = range(4)


def philox(seed: int, c0, c1, c2, c3=0) -> tuple[np.ndarray, ...]:
    """Four uint32 words for each counter (c0, c1, c2, c3)."""
    c0, c1, c2, c3 = (np.asarray(c, np.uint32).astype(np.uint64) for c in (c0, c1, c2, c3))
    key0, key1 = seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF
    low = np.uint64(0xFFFFFFFF)
    for _ in range(ROUNDS):
        p0, p1 = c0 * np.uint64(MULTIPLIERS[0]), c2 * np.uint64(MULTIPLIERS[1])
        c0, c1, c2, c3 = (
            (p1 >> 32) ^ c1 ^ np.uint64(key0),
            p1 & low,
            (p0 >> 32) ^ c3 ^ np.uint64(key1),
            p0 & low,
        )
        key0, key1 = (key0 + KEY_STEPS[0]) & 0xFFFFFFFF, (key1 + KEY_STEPS[1]) & 0xFFFFFFFF
    return tuple(c.astype(np.uint32) for c in (c0, c1, c2, c3))


def uniform(word) -> np.ndarray:
    """Return the middle of the 2**-32 wide cell that the word names, never 0 and never 1."""
    return np.minimum((np.asarray(word, np.float64) + 0.5) * 2.0**-32, LARGEST_BELOW_ONE)


def token_words(seed: int, position: int, tokens, stream: int) -> np.ndarray:
    """Return one word a token. Four neighbouring tokens share one Philox call."""
    tokens = np.asarray(tokens)
    quad, inverse = np.unique(tokens >> 2, return_inverse=True)
    four = np.stack(philox(seed, quad, position, stream), axis=-1)
    return four[inverse.reshape(tokens.shape), tokens & 3]


def gumbel(seed: int, position: int, tokens, stream: int = GUMBEL) -> np.ndarray:
    """Return -log(exponential) per token. log1p keeps the fine steps where the noise is largest, at u near 0."""
    return -np.log(-np.log1p(-uniform(token_words(seed, position, tokens, stream))))


def row_uniform(seed: int, position: int, stream: int = INVERSE, index=0) -> np.ndarray:
    """One number for a whole row (or one per draft token, `index`)."""
    return uniform(philox(seed, index, position, stream)[0])

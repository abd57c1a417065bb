"""Make the logits of sampling's cases, a kind of values each."""

from collections.abc import Callable

import numpy as np

from grader.questions.draws import between
from kernels.sampling_fusion import cost

LOWEST = float(np.finfo(np.float32).min)  # a score that some libraries ban a token with, low and yet a logit
FIRST_BANNED = 0.7  # in "mostly banned" rows, where fewer tokens are left than top-k asks for
BANNED = 0.3
FAR_BELOW = 0.995
TIED, BETTER = 70, 5  # blocks
MANY_EQUAL = "hundreds of equal logits at the border"
TINY = "tiny"  # logits next to zero
RISING = "logits that rise along the row"
MOST_FAR_BELOW = "most logits far below the others"
BLOCKS_FAR_BELOW = "whole blocks far below zero"
GREEDY_ZEROS = "zeros of both signs in greedy rows"
MANY_TIED = "many blocks that tie before better ones"
STRADDLED = "two equal best logits on both sides of a block's end"
LARGEST_BLOCK, BESIDE = 14, 3  # as a power of two, and tokens from its end
CLOSE_AND_FAR = "close logits far from zero"


def of_kind(values: str, b: int, v: int, rng: np.random.Generator) -> np.ndarray:
    """Return the logits of b rows of v tokens, normal ones for a kind that isn't in the table."""
    x = 3 * rng.standard_normal((b, v))
    return KINDS[values](x, rng) if values in KINDS else x


def few_tokens(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each rule changes what wins, and often all logits are negative."""
    return x / 3 - 3 * rng.integers(0, 2, (len(x), 1))


def equal(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return rows of one value, and rows of two."""
    return np.where(np.arange(len(x))[:, None] % 2, rng.integers(1, 3, x.shape), 1.0)


def many_equal(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.full(x.shape, 1.0) * rng.integers(-4, 5, (len(x), 1))


def exact_borders(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return rows of one value, and rows whose best is not the first."""
    (b, v), x = x.shape, many_equal(x, rng)
    best = rng.integers(1, v, b)
    return np.where((np.arange(b) // 2 % 2 == 1)[:, None], x - (np.arange(v) != best[:, None]), x)


def far_below_zero(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    x = -np.exp(rng.uniform(np.log(1e31), np.log(1e37), x.shape))
    x[1::2] = LOWEST
    return x


def most_far_below(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(x.shape) < FAR_BELOW, -1e9, x)


def many_tied(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    x = -np.abs(x)
    blocks = np.arange(min(TIED + BETTER, -(-x.shape[1] // cost.GROUP)))
    x[:, cost.GROUP * blocks] = np.where(blocks < TIED, 5.0, 5.5)
    return x


def straddled(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Put the second of two best tokens into a lower lane than the first, for blocks of any length up to a largest one."""
    v = x.shape[1]
    for i, row in enumerate(x):
        most = max(1, int(np.log2(max(2, v - BESIDE))) - 1)
        lanes = 1 << max(1, min(LARGEST_BLOCK, most) - i // 2)
        end = lanes * between(rng, 1, max(1, (v - BESIDE) // lanes))
        two = np.array([end - between(rng, 1, min(BESIDE, end)), end + between(rng, 0, BESIDE - 1)])
        row[np.minimum(two, v - 1)] = row.max() + 1
    return x


def blocks_far_below(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One block at least stays, because a row of nothing else, divided by a temperature below 1, is a row of -inf."""
    b, v = x.shape
    below = rng.random((b, -(-v // cost.GROUP))) < 1 / 2
    below[np.arange(b), rng.integers(0, below.shape[1], b)] = False
    return np.where(np.repeat(below, cost.GROUP, axis=1)[:, :v], LOWEST, x)


def tiny(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    signs = rng.choice([-1, 1], x.shape)
    return signs * np.exp(rng.uniform(np.log(1e-36), np.log(1e-30), x.shape))


def last_bits(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The best token is the last bit of its word of the mask."""
    x[:, 31::32] += 40
    return x


def warm_tail(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The best token's id needs more than 16 bits."""
    x[:, 1 << 16 :] += 40
    return x


def zeros(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return zeros of both signs, and some lower numbers."""
    return rng.choice([0.0, -0.0, -0.0, -1.0], x.shape)


def one_low_value(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.full(x.shape, -(2.0 ** between(rng, 32, 34)))


def levels(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    b = len(x)
    level, below = rng.uniform(0.4, 0.6, (b, 1)), rng.uniform(2, 4, (b, 1)) * rng.integers(0, 2, (b, 1))
    return rng.integers(0, 3, x.shape) * level - below


def pairs(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The largest stands twice, far apart, and the first of them is rarely in the lower lane."""
    for row in x:
        row[rng.choice(len(row), 2, replace=False)] = row.max() + 1
    return x


def heavy_tail(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return some tokens near the best one, and a crowd that min-p rules out."""
    head = rng.random(x.shape) < 0.15
    return np.where(head, rng.uniform(2.6, 3.0, x.shape), rng.uniform(0.6, 1.1, x.shape))


def mostly_banned(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    x[rng.random(x.shape) < FIRST_BANNED] = -np.inf
    x[:, x.shape[1] // 2] = 0.0
    return x


def banned(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(x.shape) < BANNED, -np.inf, x)


def row_banned(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    x = banned(x, rng)
    x[0] = -np.inf
    return x


KINDS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "large": lambda x, rng: x * 50 + 200,
    "few tokens": few_tokens,
    "many kept": lambda x, rng: x / 3,
    "near min-p": lambda x, rng: x / 3,
    "fine": lambda x, rng: x / 3 + 3000,
    CLOSE_AND_FAR: lambda x, rng: x / 3 + rng.choice([-1e5, 1e5], (len(x), 1)),
    "equal": equal,
    MANY_EQUAL: many_equal,
    "one value": lambda x, rng: np.full(x.shape, 100.0),  # so large that bf16 has no halves between
    "exact borders": exact_borders,
    "far below zero": far_below_zero,
    MOST_FAR_BELOW: most_far_below,
    MANY_TIED: many_tied,
    BLOCKS_FAR_BELOW: blocks_far_below,
    TINY: tiny,
    "last bits": last_bits,
    "a warm tail": warm_tail,
    RISING: lambda x, rng: np.sort(3 * x, axis=1),
    "zeros": zeros,
    GREEDY_ZEROS: zeros,
    STRADDLED: straddled,
    "one low value": one_low_value,
    "levels": levels,
    "near borders": levels,
    "pairs": pairs,
    "a heavy tail": heavy_tail,
    "mostly banned": mostly_banned,
    "banned": banned,
    "a row banned": row_banned,
}

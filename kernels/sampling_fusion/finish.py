"""Write the two halves of the fused kernel: the work of every program, and that of the last one of a row."""

import triton
import triton.language as tl

from kernels.sampling_fusion.philox import GUMBEL, INVERSE
from kernels.sampling_fusion.select import rank_all, rank_by_sort, shortlist
from kernels.sampling_fusion.tiles import (
    NOBODY,
    best_of,
    clean,
    exp,
    key_of,
    mass_of,
    noise,
    noisy_best,
    raw,
    ruled,
    steps,
    uniform,
    units,
    word_of,
    words_of_tile,
)

GUMBEL_STREAM, INVERSE_STREAM = tl.constexpr(GUMBEL), tl.constexpr(INVERSE)
STEP_OF_SUM = tl.constexpr(2.0**-23)


@triton.jit
def scan(
    row,
    tile,
    maxima_ptr,
    sums_ptr,
    score_ptr,
    winner_ptr,
    seed,
    position,
    free,
    inv_t,
    V,
    groups,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    SUMS: tl.constexpr,
    FREE: tl.constexpr,
    NAMED: tl.constexpr,
    ALLOW: tl.constexpr,
    BIAS: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """Read this program's tile and leave a maximum per group, plus a sum of weights and a best noisy token if
    requested, with its name if NAMED."""
    N: tl.constexpr = ROWS * GROUP
    r = tl.arange(0, ROWS)
    token = tile * N + r[:, None] * GROUP + tl.arange(0, GROUP)[None, :]  # [ROWS, GROUP]
    group = tile * ROWS + r
    BARE: tl.constexpr = not (ALLOW or BIAS or PENALTY or SUMS or FREE)
    if BARE:  # a maximum ignores NaN, so only the rest of a group needs cleaning
        top = clean(tl.max(raw(row, token, token < V), axis=1))
    else:
        x = ruled(row, token, token < V, ALLOW, BIAS, PENALTY)
        top = tl.max(x, axis=1)
    tl.store(maxima_ptr + group, top, mask=group < groups)
    if SUMS:
        from_top = tl.where(x > float("-inf"), (x - top[:, None]) * inv_t, float("-inf"))
        sums = tl.sum(steps(exp(from_top)), axis=1).to(tl.float32) * STEP_OF_SUM
        tl.store(sums_ptr + group, sums, mask=group < groups)
    if FREE:
        if free:
            words = tl.reshape(words_of_tile(tile * N, seed, position, GUMBEL_STREAM, N), [ROWS, GROUP])
            score, winner = noisy_best(x, top, token, words, inv_t, NAMED)
            tl.store(score_ptr + group, score, mask=group < groups)
            if NAMED:
                tl.store(winner_ptr + group, winner, mask=group < groups)


@triton.jit
def row_total(maxima, best, inv_t, sums_ptr, groups, G: tl.constexpr):
    """Return the row's sum of exp((x - best) / T), from the groups' sums, with the same bits however the row was
    split."""
    g = tl.arange(0, G)
    sums = tl.load(sums_ptr + g, mask=g < groups, other=0.0)
    weight = tl.where(maxima > float("-inf"), sums * exp((maxima - best) * inv_t), 0.0)
    return mass_of(tl.sum(units(weight)))


@triton.jit
def draw(
    x,
    token,
    rank,
    before,
    n,
    best,
    total,
    inv_t,
    k,
    top_p,
    min_p,
    seed,
    position,
    C: tl.constexpr,
    INVERSE_CDF: tl.constexpr,
    MIN_P_FIRST: tl.constexpr,
    OF_ALL: tl.constexpr,
):
    """Apply top-p and min-p and draw from a ranked short list. Return the token.

    The list's length beyond the k best depends on the launch's shape, so no sum here includes the excess.
    """
    listed = tl.arange(0, C) < n
    from_best = (x - best) * inv_t
    weight = tl.where(listed, exp(from_best), 0.0)
    enough = weight >= min_p
    kept = listed & (rank < k)
    if MIN_P_FIRST:
        kept &= enough
    whole = units(weight)
    mass = total if OF_ALL else mass_of(tl.sum(tl.where(kept, whole, 0)))
    kept &= enough & (before < tl.where(top_p < 1, top_p * mass, float("inf")))
    if INVERSE_CDF:
        word, _, _, _ = tl.philox(seed, 0, position, INVERSE_STREAM, 0)
        target = uniform(word) * mass_of(tl.sum(tl.where(kept, whole, 0)))
        score = tl.where(kept & (before <= target), rank.to(tl.float32), -1.0)
    else:
        score = from_best + noise(word_of(token, seed, position, GUMBEL_STREAM))
    return best_of(tl.where(kept, score, float("-inf")), token)


@triton.jit
def store_top(
    x, token, rank, n, best, total, inv_t, token_ptr, logprob_ptr, C: tl.constexpr, TOP: tl.constexpr
):
    """Store the TOP best with their log-probabilities, each at its rank, and -1 where the row has fewer."""
    i = tl.arange(0, C)
    listed = (i < n) & (rank < TOP)
    tl.store(token_ptr + rank, token, mask=listed)
    tl.store(logprob_ptr + rank, (x - best) * inv_t - tl.log(total), mask=listed)
    missing = (i >= n) & (i < TOP)
    tl.store(token_ptr + i, -1, mask=missing)
    tl.store(logprob_ptr + i, float("-inf"), mask=missing)


@triton.jit
def rank_row(
    row,
    maxima,
    best,
    inv_t,
    chosen_ptr,
    x_ptr,
    token_ptr,
    k,
    V,
    G: tl.constexpr,
    SETS: tl.constexpr,
    ALL_PAIRS: tl.constexpr,
    MOST: tl.constexpr,
    C: tl.constexpr,
    GROUP: tl.constexpr,
    AT_ONCE: tl.constexpr,
    STEP: tl.constexpr,
    ALLOW: tl.constexpr,
    BIAS: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """Return the k best tokens of the row and some more, as (how many, logits, tokens, ranks, weight ranked above
    each)."""
    n = shortlist(
        row,
        key_of(maxima),
        best,
        chosen_ptr,
        x_ptr,
        token_ptr,
        k,
        V,
        G,
        SETS,
        ALL_PAIRS,
        MOST,
        C,
        GROUP,
        AT_ONCE,
        ALLOW,
        BIAS,
        PENALTY,
    )
    if STEP > 0:
        x, token, rank, before = rank_all(x_ptr, token_ptr, n, best, inv_t, C, STEP)
    else:
        x, token, rank, before = rank_by_sort(x_ptr, token_ptr, n, best, inv_t, C)
    return n, x, token, rank, before


@triton.jit
def first_best(
    row,
    maxima,
    best,
    V,
    G: tl.constexpr,
    GROUP: tl.constexpr,
    ALLOW: tl.constexpr,
    BIAS: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """Choose greedily the lowest id in the first group that has the best logit."""
    group = tl.min(tl.where(maxima == best, tl.arange(0, G), G))
    token = group * GROUP + tl.arange(0, GROUP)
    x = ruled(row, token, token < V, ALLOW, BIAS, PENALTY)
    return tl.min(tl.where((x == best) & (x > float("-inf")), token, NOBODY))

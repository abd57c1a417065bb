"""Draw in rows without a top-k of at most 1024: draw from all tokens first, then check whether the filters keep the
draw.

The Gumbel-max draw over the kept tokens is the best noisy score among them. If the best of all tokens is kept, it is
the draw. If not, the kept ones all rank above it, and the best noisy one above is checked next. The result equals a
sort's. With top-p alone a check succeeds with a chance of p.

A question needs the count and weight of what ranks above a token, and only groups whose maximum reaches it can
hold any. The next candidate needs no new noise: each group's best noisy token is known from the first read, and
only groups whose best does not rank high enough are looked into again, the most promising one first.

Min-p needs no such checks. It keeps logits of at least best + T ln(min_p), known before the first draw.
"""

import triton
import triton.language as tl

from kernels.sampling_fusion.philox import GUMBEL
from kernels.sampling_fusion.tiles import (
    FLOOR,
    NOBODY,
    best_of,
    exp,
    key_of,
    mass_of,
    noisy_best,
    ruled,
    units,
    value_of,
    words_of_tile,
)

STREAM = tl.constexpr(GUMBEL)


@triton.jit
def logit_at(row, token, V, ALLOW: tl.constexpr, BIAS: tl.constexpr, PENALTY: tl.constexpr):
    at = token + tl.arange(0, 2)  # of one element, Triton's own interpreter would ignore `other=0`
    return tl.max(ruled(row, at, (at == token) & (at < V), ALLOW, BIAS, PENALTY))


@triton.jit
def name_of_best(
    row,
    group,
    seed,
    position,
    inv_t,
    V,
    GROUP: tl.constexpr,
    ALLOW: tl.constexpr,
    BIAS: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """Return a group's best noisy token, or NOBODY for a group that is NOBODY."""
    some = group != NOBODY
    token = tl.where(some, group, 0) * GROUP + tl.arange(0, GROUP)
    x = ruled(row, token, some & (token < V), ALLOW, BIAS, PENALTY)[None, :]
    words = tl.reshape(
        words_of_tile(tl.where(some, group, 0) * GROUP, seed, position, STREAM, GROUP), [1, GROUP]
    )
    _, winner = noisy_best(x, tl.max(x, axis=1), token[None, :], words, inv_t, True)
    return tl.min(winner)


@triton.jit
def ranked_above(x, token, x0, token0):
    return (x > float("-inf")) & ((x > x0) | ((x == x0) & (token < token0)))


@triton.jit
def weigh_above(
    row,
    maxima,
    chosen_ptr,
    x0,
    token0,
    best,
    inv_t,
    V,
    G: tl.constexpr,
    GROUP: tl.constexpr,
    AT_ONCE: tl.constexpr,
    ALLOW: tl.constexpr,
    BIAS: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """The count and weight, in whole units, of all tokens ranked above (x0, token0)."""
    reach = (maxima >= x0) & (maxima > float("-inf"))
    upto = tl.cumsum(reach.to(tl.int32), axis=0)
    tl.store(chosen_ptr + upto - 1, tl.arange(0, G), mask=reach)
    n_groups = tl.max(upto)
    tl.debug_barrier()
    e = tl.arange(0, AT_ONCE * GROUP)
    count = tl.zeros([AT_ONCE * GROUP], tl.int32)
    weight = tl.zeros([AT_ONCE * GROUP], tl.int64)
    for first in range(0, n_groups, AT_ONCE):
        at = first + e // GROUP
        group = tl.load(chosen_ptr + at, mask=at < n_groups, other=0)
        token = group * GROUP + e % GROUP
        x = ruled(row, token, (at < n_groups) & (token < V), ALLOW, BIAS, PENALTY)
        higher = ranked_above(x, token, x0, token0)
        count += higher.to(tl.int32)
        weight += units(tl.where(higher, exp((x - best) * inv_t), 0.0))
    tl.debug_barrier()
    return tl.sum(count), tl.sum(weight)


@triton.jit
def mass_of_kept(
    row,
    maxima,
    chosen_ptr,
    k,
    least,
    best,
    inv_t,
    V,
    G: tl.constexpr,
    GROUP: tl.constexpr,
    AT_ONCE: tl.constexpr,
    ALLOW: tl.constexpr,
    BIAS: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """Return the weight of the k best tokens that are at least `least`, by bisection for the k-th, then ties by
    count."""
    low = tl.full((), FLOOR + 1, tl.int64)
    high = key_of(best).to(tl.int64) + 1
    count = V
    while (high - low > 1) & (count != k):
        middle = (low + high) // 2
        x = value_of(middle.to(tl.int32))
        count, _ = weigh_above(
            row, maxima, chosen_ptr, x, NOBODY, best, inv_t, V, G, GROUP, AT_ONCE, ALLOW, BIAS, PENALTY
        )
        low = tl.where(count >= k, middle, low)
        high = tl.where(count >= k, high, middle)
    x = tl.maximum(value_of(low.to(tl.int32)), least)
    more, weight = weigh_above(
        row, maxima, chosen_ptr, x, -1, best, inv_t, V, G, GROUP, AT_ONCE, ALLOW, BIAS, PENALTY
    )
    upto, with_ties = weigh_above(
        row, maxima, chosen_ptr, x, NOBODY, best, inv_t, V, G, GROUP, AT_ONCE, ALLOW, BIAS, PENALTY
    )
    share = (tl.minimum(upto, k) - more).to(tl.float32) / tl.maximum(upto - more, 1).to(tl.float32)
    return mass_of(weight) + mass_of(with_ties - weight) * share


@triton.jit
def look_again(
    row,
    group,
    score_ptr,
    winner_ptr,
    x0,
    token0,
    seed,
    position,
    inv_t,
    V,
    GROUP: tl.constexpr,
    ALLOW: tl.constexpr,
    BIAS: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """Replace a group's best noisy token by the group's best among those ranked above (x0, token0)."""
    token = group * GROUP + tl.arange(0, GROUP)
    x = ruled(row, token, token < V, ALLOW, BIAS, PENALTY)
    x = tl.where(ranked_above(x, token, x0, token0), x, float("-inf"))[None, :]
    words = tl.reshape(words_of_tile(group * GROUP, seed, position, STREAM, GROUP), [1, GROUP])
    score, winner = noisy_best(x, tl.max(x, axis=1), token[None, :], words, inv_t, True)
    at = group + tl.arange(0, 1)
    tl.store(score_ptr + at, score)
    tl.store(winner_ptr + at, winner)
    tl.debug_barrier()


@triton.jit
def next_noisy(
    row,
    score_ptr,
    winner_ptr,
    groups,
    x0,
    token0,
    seed,
    position,
    inv_t,
    V,
    G: tl.constexpr,
    GROUP: tl.constexpr,
    ALLOW: tl.constexpr,
    BIAS: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """Return the best noisy token among those ranked above (x0, token0)."""
    g = tl.arange(0, G)
    winner = NOBODY
    found = 0
    while found == 0:
        score = tl.load(score_ptr + g, mask=g < groups, other=float("-inf"))
        winner = best_of(score, tl.load(winner_ptr + g, mask=g < groups, other=NOBODY))
        x = logit_at(row, winner, V, ALLOW, BIAS, PENALTY)
        found = (ranked_above(x, winner, x0, token0) | (winner == NOBODY)).to(tl.int32)
        if found == 0:
            look_again(
                row,
                winner // GROUP,
                score_ptr,
                winner_ptr,
                x0,
                token0,
                seed,
                position,
                inv_t,
                V,
                GROUP,
                ALLOW,
                BIAS,
                PENALTY,
            )
    return winner


@triton.jit
def strike_out(maxima, least, score_ptr, groups, G: tl.constexpr):
    """Groups without a logit of at least `least` have no best noisy token any more."""
    g = tl.arange(0, G)
    score = tl.load(score_ptr + g, mask=g < groups, other=float("-inf"))
    tl.debug_barrier()  # all threads have read before any thread writes
    tl.store(score_ptr + g, tl.where(maxima >= least, score, float("-inf")), mask=g < groups)
    tl.debug_barrier()


@triton.jit
def settle(
    row,
    token,
    maxima,
    chosen_ptr,
    score_ptr,
    winner_ptr,
    groups,
    best,
    total,
    inv_t,
    k,
    top_p,
    min_p,
    seed,
    position,
    V,
    G: tl.constexpr,
    GROUP: tl.constexpr,
    AT_ONCE: tl.constexpr,
    MIN_P_FIRST: tl.constexpr,
    OF_ALL: tl.constexpr,
    ALLOW: tl.constexpr,
    BIAS: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """From the best noisy token of all to the best noisy token that the filters keep."""
    k = tl.where(k == 0, V, tl.minimum(k, V))
    mass = total
    if not OF_ALL:
        survivors_count = (k < V) | ((min_p > 0) & MIN_P_FIRST)
        if survivors_count & (top_p < 1):
            least = best + tl.log(min_p) / inv_t if MIN_P_FIRST else float("-inf")
            mass = mass_of_kept(
                row, maxima, chosen_ptr, k, least, best, inv_t, V, G, GROUP, AT_ONCE, ALLOW, BIAS, PENALTY
            )
    alone = (top_p >= 1) & (k == V)  # no filter but min-p
    done = alone & (min_p == 0)
    asks = (min_p == 0).to(tl.int32)  # min-p first leaves out all below a known logit, without a question
    x = best + tl.log(min_p) / inv_t
    border = NOBODY
    if min_p > 0:
        strike_out(maxima, x, score_ptr, groups, G)
    while not done:
        if asks > 0:
            border = token
            x = logit_at(row, token, V, ALLOW, BIAS, PENALTY)
            count, above = weigh_above(
                row, maxima, chosen_ptr, x, token, best, inv_t, V, G, GROUP, AT_ONCE, ALLOW, BIAS, PENALTY
            )
            kept = (
                (count < k)
                & ((mass_of(above) < top_p * mass) | (top_p >= 1))
                & (exp((x - best) * inv_t) >= min_p)
            )
            done = kept | (count == 0)
        if not done:
            token = next_noisy(
                row,
                score_ptr,
                winner_ptr,
                groups,
                x,
                border,
                seed,
                position,
                inv_t,
                V,
                G,
                GROUP,
                ALLOW,
                BIAS,
                PENALTY,
            )
            done = alone & (asks == 0)
        asks += 1
    return token

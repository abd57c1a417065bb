"""Find the k best of a long row without a sort, by finding a key that few tokens reach and packing those together.

A row is cut into groups of neighbours, and each group is known by its maximum. The k best tokens are in the k groups
with the best maxima (the first among equals), because each such group holds at least one token that ranks above
everything in any other group. So only k groups are read, for any data.
"""

import triton
import triton.language as tl

from kernels.sampling_fusion.tiles import FLOOR, NOBODY, exp, key_of, mass_of, ruled, units, value_of


@triton.jit
def first_guess(key, k, SETS: tl.constexpr, ALL_PAIRS: tl.constexpr, N: tl.constexpr):
    """Return a key that at least k keys reach, if there are k real ones: from the best of each of SETS sets.

    Each set that reaches it holds a key that does. The k-th best of many sets' best is reached by few keys more than
    k, but costs SETS * SETS comparisons. The least of k sets' best costs none.
    """
    best = tl.max(tl.max(tl.reshape(key, [4, SETS, N // 4 // SETS]), axis=0), axis=1)
    if ALL_PAIRS:
        reached = tl.sum((best[None, :] >= best[:, None]).to(tl.int32), axis=1)
        t = tl.max(tl.where(reached >= k, best, FLOOR))
    else:
        t = tl.min(best)
    return tl.maximum(t, FLOOR + 1)


@triton.jit
def narrowed(key, t, count, high, k, MOST: tl.constexpr):
    """From a key that `count` keys reach, at least k, to one that at most MOST do, unless that one is tied.

    Returns it and, if it is tied, how many are above. Bisection over the integers that order as floats do, three
    pivots a round counted in one sum.
    """
    low = t.to(tl.int64)
    above = 0
    while (count > MOST) & (high - low > 1):
        step = (high - low + 3) // 4
        p1, p2, p3 = low + step, low + 2 * step, low + 3 * step
        one, two, three = (key >= p1.to(tl.int32)), (key >= p2.to(tl.int32)), (key >= p3.to(tl.int32))
        fields = one.to(tl.int64) + (two.to(tl.int64) << 20) + (three.to(tl.int64) << 40)
        counts = tl.sum(fields)
        c1 = (counts & 0xFFFFF).to(tl.int32)
        c2 = ((counts >> 20) & 0xFFFFF).to(tl.int32)
        c3 = (counts >> 40).to(tl.int32)
        count = tl.where(c3 >= k, c3, tl.where(c2 >= k, c2, tl.where(c1 >= k, c1, count)))
        refused = tl.where(c3 >= k, above, tl.where(c2 >= k, c3, tl.where(c1 >= k, c2, c1)))
        next_high = tl.where(c3 >= k, high, tl.where(c2 >= k, p3, tl.where(c1 >= k, p2, p1)))
        low = tl.where(c3 >= k, p3, tl.where(c2 >= k, p2, tl.where(c1 >= k, p1, low)))
        above = tl.where(next_high < high, refused, above)
        high = tl.minimum(high, next_high)
    return low.to(tl.int32), count, tl.where(count > MOST, above, 0)


@triton.jit
def numbered(flag, N: tl.constexpr):
    """Return for N flags how many are set up to each, and how many in all.

    The counts of the four quarters ride through one running sum of N / 4 as fields of 16 bits.
    """
    r = (tl.arange(0, 4) * 16).to(tl.int64)[:, None]
    fields = tl.sum(tl.reshape(flag.to(tl.int64), [4, N // 4]) << r, axis=0)
    total = tl.sum(fields)
    before = total * 0x0001000100010000  # in each field the sum of the fields below it
    upto = ((tl.cumsum(fields, axis=0)[None, :] + before) >> r).to(tl.int32) & 0xFFFF
    return tl.reshape(upto, [N]), ((before + total) >> 48).to(tl.int32) & 0xFFFF


@triton.jit
def slots(key, t, above, tied, cap, N: tl.constexpr):
    """Return the index of each of N keys when those above t, and the first `cap` equal to t, are packed in order.

    `above` and `tied` count what earlier tiles held. Returns (slot or -1, new above, new tied).
    """
    above_upto, more_above = numbered(key > t, N)
    tied_upto, more_tied = numbered(key == t, N)
    slot = above + above_upto + tl.minimum(tied + tied_upto, cap) - 1
    chosen = (key > t) | ((key == t) & (tied + tied_upto <= cap))
    return tl.where(chosen, slot, -1), above + more_above, tied + more_tied


@triton.jit
def choose_groups(
    key, best, chosen_ptr, k, G: tl.constexpr, SETS: tl.constexpr, ALL_PAIRS: tl.constexpr, MOST: tl.constexpr
):
    """Write the ids of at most MOST groups that hold the k best tokens. Return their number, and the key they reach."""
    t = first_guess(key, k, SETS, ALL_PAIRS, G)
    upto, n = numbered(key >= t, G)
    if not ALL_PAIRS:
        if n < k:  # fewer sets than k promise nothing, so take every group that is real
            t = tl.full((), FLOOR + 1, tl.int32)
            upto, n = numbered(key >= t, G)
    slot = tl.where(key >= t, upto - 1, -1)
    if n > MOST:
        t, n, above = narrowed(key, t, n, key_of(best).to(tl.int64) + 1, k, MOST)
        # Only a tie can have left more than MOST. Then the first of the tied fill the free slots.
        slot, _, _ = slots(key, t, 0, 0, MOST - above, G)
    tl.store(chosen_ptr + slot, tl.arange(0, G), mask=slot >= 0)
    tl.debug_barrier()
    return tl.minimum(n, MOST), t


@triton.jit
def tokens_of(
    row,
    chosen_ptr,
    first,
    n_groups,
    V,
    GROUP: tl.constexpr,
    AT_ONCE: tl.constexpr,
    ALLOW: tl.constexpr,
    BIAS: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """(tokens, logits) of AT_ONCE chosen groups.

    `& (GROUP - 1)` rather than `%` hides from the compiler that neighbours are adjacent. Otherwise whole vectors a
    thread would go through shared memory, with 64-bit addresses, to the packed stores.
    """
    e = tl.arange(0, AT_ONCE * GROUP)
    at = first + e // GROUP
    group = tl.load(chosen_ptr + at, mask=at < n_groups, other=0)
    token = group * GROUP + (e & (GROUP - 1))
    return token, ruled(row, token, (at < n_groups) & (token < V), ALLOW, BIAS, PENALTY)


@triton.jit
def pack(
    row,
    chosen_ptr,
    n_groups,
    t,
    x_ptr,
    token_ptr,
    V,
    GROUP: tl.constexpr,
    AT_ONCE: tl.constexpr,
    C: tl.constexpr,
    ALLOW: tl.constexpr,
    BIAS: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """Pack the first C of the chosen groups' tokens that reach t, in order. Return how many reach t."""
    n = 0
    for first in range(0, n_groups, AT_ONCE):
        token, x = tokens_of(row, chosen_ptr, first, n_groups, V, GROUP, AT_ONCE, ALLOW, BIAS, PENALTY)
        reach = key_of(x) >= t
        upto, more = numbered(reach, AT_ONCE * GROUP)
        slot = n + upto - 1
        n += more
        fits = reach & (slot < C)
        tl.store(x_ptr + slot, x, mask=fits)
        tl.store(token_ptr + slot, token, mask=fits)
    tl.debug_barrier()
    return n


@triton.jit
def pack_tied(
    row,
    chosen_ptr,
    n_groups,
    t,
    cap,
    x_ptr,
    token_ptr,
    V,
    GROUP: tl.constexpr,
    AT_ONCE: tl.constexpr,
    C: tl.constexpr,
    ALLOW: tl.constexpr,
    BIAS: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """Do the same with at most `cap` tokens equal to t."""
    above = 0
    tied = 0
    for first in range(0, n_groups, AT_ONCE):
        token, x = tokens_of(row, chosen_ptr, first, n_groups, V, GROUP, AT_ONCE, ALLOW, BIAS, PENALTY)
        slot, above, tied = slots(key_of(x), t, above, tied, cap, AT_ONCE * GROUP)
        fits = (slot >= 0) & (slot < C)
        tl.store(x_ptr + slot, x, mask=fits)
        tl.store(token_ptr + slot, token, mask=fits)
    tl.debug_barrier()
    return above + tied


@triton.jit
def shortlist(
    row,
    key,
    best,
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
    ALLOW: tl.constexpr,
    BIAS: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """Write at most C tokens, including the k best, in order of their ids. Return their number.

    The groups' key is nearly always enough. Where good tokens crowd into few groups it is raised by bisection.
    """
    n_groups, start = choose_groups(key, best, chosen_ptr, k, G, SETS, ALL_PAIRS, MOST)
    n = pack(row, chosen_ptr, n_groups, start, x_ptr, token_ptr, V, GROUP, AT_ONCE, C, ALLOW, BIAS, PENALTY)
    low = start.to(tl.int64)
    high = key_of(best).to(tl.int64) + 1
    reach_high = 0
    done = (n <= C).to(tl.int32)
    while done == 0:
        at = (low + high) // 2
        last = high - low == 1
        n = pack_tied(
            row,
            chosen_ptr,
            n_groups,
            at.to(tl.int32),
            tl.where(last, C - reach_high, C),
            x_ptr,
            token_ptr,
            V,
            GROUP,
            AT_ONCE,
            C,
            ALLOW,
            BIAS,
            PENALTY,
        )
        done = (((n <= C) & (n >= k)) | last).to(tl.int32)
        reach_high = tl.where(n < k, n, reach_high)
        high = tl.where(n < k, at, high)
        low = tl.where(n < k, low, at)
    return tl.minimum(n, C)


@triton.jit
def rank_all(x_ptr, token_ptr, n, best, inv_t, C: tl.constexpr, STEP: tl.constexpr):
    """Return each of n tokens' rank and the weight ranked above it, by comparing all pairs, which is cheaper here
    than a sort.

    The list is in order of ids, so among equals the one with the lower index ranks higher.
    """
    i = tl.arange(0, C)
    x = tl.load(x_ptr + i, mask=i < n, other=float("-inf"))
    token = tl.load(token_ptr + i, mask=i < n, other=NOBODY)
    rank = tl.zeros([C], tl.int32)
    before = tl.zeros([C], tl.int64)
    for start in range(0, n, STEP):
        j = start + tl.arange(0, STEP)
        xj = tl.load(x_ptr + j, mask=j < n, other=float("-inf"))[None, :]
        above = (xj > x[:, None]) | ((xj == x[:, None]) & (j[None, :] < i[:, None]))  # [C, STEP]
        rank += tl.sum(above.to(tl.int32), axis=1)
        weight = units(tl.where(xj > float("-inf"), exp((xj - best) * inv_t), 0.0))
        before += tl.sum(tl.where(above, weight, 0), axis=1)
    return x, token, rank, mass_of(before)


@triton.jit
def rank_by_sort(x_ptr, token_ptr, n, best, inv_t, C: tl.constexpr):
    """Do the same by sorting, in order of rank, for long lists, where all pairs are too many."""
    i = tl.arange(0, C)
    x = tl.load(x_ptr + i, mask=i < n, other=float("-inf"))
    token = tl.load(token_ptr + i, mask=i < n, other=NOBODY)
    pair = (key_of(x).to(tl.int64) << 32) | (token ^ NOBODY).to(tl.int64)
    pair = tl.sort(pair, descending=True)
    x = value_of((pair >> 32).to(tl.int32))
    token = (pair & NOBODY).to(tl.int32) ^ NOBODY
    weight = units(tl.where(i < n, exp((x - best) * inv_t), 0.0))
    return x, token, i, mass_of(tl.cumsum(weight, axis=0) - weight)

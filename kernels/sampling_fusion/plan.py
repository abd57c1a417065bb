"""Cut a launch by a measured table of batches, and by sizes that follow from k and the vocabulary."""

from dataclasses import dataclass, replace

import triton

MOST_K = 1024  # above, a row goes the way of rows without top-k
GROUP = 64  # tokens that share one maximum
FEW_K = 64  # up to this k all pairs of sets are compared, above it the least of k sets' best is used
SORTED = 512  # short lists from here on are sorted
PAIRS = 4096  # comparisons a tile of the ranking


@dataclass(frozen=True)
class Config:
    num_warps: int = 8  # of a program that reads
    finish_warps: int = 0  # of a launch of its own, or 0 if a row's last program to arrive finishes it
    at_once: int = 64  # chosen groups a tile of the second read
    sets: int = 256  # sets of groups, whose best are compared all with all
    # bytes of logits that one program reads, or 4 a token of any type if noise is drawn for each
    tile: int = 16384


FEW = Config(num_warps=16)  # nothing else runs, so all threads work for one row, without a second launch
SOME = Config(finish_warps=16)  # 256 sets, so that nearly always at most 64 groups are chosen, one tile
MANY = Config(finish_warps=8, at_once=32, sets=128)  # many rows an SM, for the small finish

# Kind of the costliest request of a batch -> (rows up to, how). H200, 2026-11-20, Triton 3.6, 128,256 tokens. With
# top-k 50 and top-p 0.9 in fp32, 1 row takes 15 us, 32 rows 22, 256 rows 61.
TABLES = {
    "ranked": ((4, FEW), (128, SOME), (None, MANY)),
    "plain": ((4, replace(MANY, finish_warps=0, tile=8192)), (None, MANY)),
    # top-p or min-p without top-k: the second reads take long. Top-p 0.9 of 32 rows takes 78 us, with a second launch
    # 88
    "filtered": ((32, FEW), (None, SOME)),
    "ruled": (
        (None, replace(MANY, num_warps=4, tile=4096)),
    ),  # mask, bias, penalties, so small programs and small tiles
}


def config_for(batch: int, kind: str = "ranked") -> Config:
    return next(config for most, config in TABLES[kind] if most is None or batch <= most)


def sizes(k: int) -> tuple[int, int, int]:
    """Return k as a power of two, groups chosen at most, tokens in the short list, with room, so bisection is rare."""
    k_pad = max(16, triton.next_power_of_2(k))
    return k_pad, 2 * k_pad if k_pad <= FEW_K else k_pad, 2 * k_pad


def constants(vocabulary: int, k: int, elem: int, config: Config) -> dict:
    """Return the constants for which the kernel is compiled. `elem` is a token's bytes of the tile."""
    groups = triton.cdiv(vocabulary, GROUP)
    k_pad, most, short = sizes(min(k, vocabulary))
    g_pad = max(16, triton.next_power_of_2(groups))
    all_pairs = k_pad <= FEW_K
    return {
        "GROUP": GROUP,
        "ROWS": min(config.tile // (GROUP * elem), triton.next_power_of_2(groups)),
        "G": g_pad,
        "K": k_pad,
        "C": short,
        "MOST": most,
        "SETS": min(config.sets if all_pairs else k_pad, g_pad // 4),
        "ALL_PAIRS": all_pairs,
        "AT_ONCE": min(config.at_once, most),
        "STEP": 0 if short >= SORTED else min(PAIRS // short, short),
    }

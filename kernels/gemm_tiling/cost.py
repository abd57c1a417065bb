"""Count what a tiled GEMM costs: reuse, the tiles that a wave of programs touches, the loss of a narrow accumulator."""

import math
from collections.abc import Callable, Collection, Sequence


def reuse(bm: float, bn: float) -> float:
    """Return the FLOP per element a bm x bn tile loads, the harmonic mean of its sides, below 2 when one side is 1."""
    return 2 * bm * bn / (bm + bn)


def tile_bytes(bm: int, bn: int, bk: int, elem_bytes: int) -> int:
    """Return the elements of one step along K, a bm x bk piece of A and a bk x bn piece of B."""
    return (bm + bn) * bk * elem_bytes


def program_tile(pid: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[int, int]:
    """Return the tile of C that program `pid` computes. group_m = 1 walks C row by row."""
    group, place = divmod(pid, group_m * tiles_n)
    first = group * group_m
    high = min(tiles_m - first, group_m)  # the last group may be cut off
    return first + place % high, place // high


def wave_tiles(first: int, count: int, tiles_m: int, tiles_n: int, group_m: int) -> list[tuple[int, int]]:
    """Return the tiles of C that programs first .. first + count - 1 compute at the same time."""
    last = min(first + count, tiles_m * tiles_n)
    return [program_tile(pid, tiles_m, tiles_n, group_m) for pid in range(first, last)]


def bands_bytes(bands: Collection[int], block: int, size: int, k: int, elem_bytes: int) -> int:
    """Return the bytes of the rows of A (or columns of B) in these bands. The last band may be cut off."""
    return sum(min(block, size - band * block) for band in bands) * k * elem_bytes


def round_to_mantissa(x: float, bits: int) -> float:
    """Round to the nearest number with `bits` bits after the leading one, ties to even. The exponent is free."""
    if not x:
        return 0.0
    gap = spacing(x, bits)
    return round(x / gap) * gap


def spacing(x: float, bits: int) -> float:
    """Return the gap between neighbouring numbers at x."""
    return 2.0 ** (math.frexp(x)[1] - 1 - bits)


def _rounding(bits: int) -> Callable[[float], float]:
    """Apply round_to_mantissa to a sum that grows slowly. The gap is computed again only where it changes."""
    low = high = gap = 0.0

    def rounded(x: float) -> float:
        nonlocal low, high, gap
        if not low <= x < high:
            if not x:
                return 0.0
            gap, high = spacing(x, bits), 2.0 ** math.frexp(x)[1]
            low = high / 2
        return round(x / gap) * gap

    return rounded


def running_sums(
    terms: Sequence[float], bits: int, promote_every: int = 0, wide_bits: int = 23
) -> list[float]:
    """Return the sum after each term, rounded to `bits` at every addition.

    With promote_every = n, the narrow partial sum is added into a wide one after n terms and starts again.
    """
    wide = narrow = 0.0
    sums, kept, kept_wide = [], _rounding(bits), _rounding(wide_bits)
    for i, term in enumerate(terms, 1):
        narrow = kept(narrow + term)
        sums.append(kept_wide(wide + narrow) if promote_every else narrow)
        if promote_every and i % promote_every == 0:
            wide, narrow = sums[-1], 0.0
    return sums


def tile_loads(m: int, n: int, k: int, bm: int, bn: int) -> int:
    """Return the elements that all tiles of C load, A once for each column of tiles, B once for each row of tiles."""
    return m * k * math.ceil(n / bn) + k * n * math.ceil(m / bm)


def gemm_bytes(m: int, n: int, k: int, bm: int, bn: int, elem_bytes: int) -> int:
    """Return the bytes a whole tiled GEMM moves, with the tiles' loads, and C written once."""
    return (tile_loads(m, n, k, bm, bn) + m * n) * elem_bytes


def flops(m: int, n: int, k: int) -> int:
    """Count a multiply and an add for each element of A and each column of B."""
    return 2 * m * n * k


def compulsory_bytes(m: int, n: int, k: int, elem_bytes: float = 2, out_bytes: float = 2) -> float:
    """Return the bytes of each matrix once, which no tiling can avoid."""
    return (m * k + k * n) * elem_bytes + m * n * out_bytes


def block_scaled_bytes(m: int, n: int, k: int, block: int = 128, out_bytes: float = 2) -> float:
    """Return the same for fp8 codes and their fp32 scales, one for 1 x block of A, one for block x block of B."""
    steps = math.ceil(k / block)
    scales = m * steps + steps * math.ceil(n / block)
    return compulsory_bytes(m, n, k, 1, out_bytes) + 4 * scales


def unique_bytes_per_wave(
    m: int, n: int, k: int, bm: int, bn: int, group_m: int, programs: int, elem_bytes: int = 2
) -> list[int]:
    """Return the bytes of A and B that each wave of programs touches, counted once, which the L2 must fetch."""
    tiles_m, tiles_n = math.ceil(m / bm), math.ceil(n / bn)
    waves = []
    for first in range(0, tiles_m * tiles_n, programs):
        tiles = wave_tiles(first, programs, tiles_m, tiles_n, group_m)
        a = bands_bytes({row for row, _ in tiles}, bm, m, k, elem_bytes)
        waves.append(a + bands_bytes({col for _, col in tiles}, bn, n, k, elem_bytes))
    return waves


def last_wave_share(m: int, n: int, bm: int, bn: int, sms: int) -> float:
    """Return the share of the SMs' time that tiles fill, since the last wave is rarely full."""
    tiles = math.ceil(m / bm) * math.ceil(n / bn)
    return tiles / (math.ceil(tiles / sms) * sms)


def seconds(m: int, n: int, k: int, machine, dtype: str = "bf16", elem_bytes: float = 2) -> float:
    """Return the time no GEMM can beat on a machine, for moving each matrix once or for all FLOPs, whichever is
    slower."""
    return machine.time(flops(m, n, k), compulsory_bytes(m, n, k, elem_bytes), dtype)


def patch_bytes_per_wave(m: int, n: int, k: int, tile: int, programs: int, elem_bytes: int = 2) -> float:
    """Return the bytes that all waves touch, each counted once a wave, if every wave covers a square patch of tiles."""
    return 2 * m * n * k * elem_bytes / (tile * math.sqrt(programs))


def partial_tile_bytes(programs: int, bm: int = 128, bn: int = 128, sum_bytes: int = 4) -> int:
    """Return the bytes of one unfinished tile of sums per program, which a GEMM that cuts K must leave in memory."""
    return programs * bm * bn * sum_bytes


def scale_loads(m: int, n: int, k: int, bm: int, bn: int, block: int = 128) -> tuple[int, int]:
    """Return the scales of A and of B that all tiles load, one a row, one a column at most, for each block of K."""
    steps = math.ceil(k / block)
    return m * steps * math.ceil(n / bn), n * steps * math.ceil(m / bm)

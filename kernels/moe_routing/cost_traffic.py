"""Count the bytes that the layer's kernels request from memory. The L2 may serve many loads a second time."""

from dataclasses import dataclass

from kernels import require


@dataclass(frozen=True)
class Traffic:
    """Hold the bytes that the programs of one launch request."""

    rows: int  # of activations
    weights: int
    tables: int
    written: int

    @property
    def loaded(self) -> int:
        return self.rows + self.weights + self.tables


def _cut(size: int, block: int) -> int:
    return -(-size // block)


def most_tiles(tokens: int, top_k: int, experts: int, tile: int) -> int:
    """Return the most tiles there can be. An expert's first pair opens a tile, then every `tile` more. No token comes twice."""
    every = tokens * top_k
    opened = min(experts, every)
    return min(opened + (every - opened) // tile, experts * _cut(tokens, tile))


def grouped_traffic(
    tiles: int,
    real_rows: int,
    n: int,
    k: int,
    *,
    tile: int,
    block_n: int,
    gated: bool = False,
    element_bytes: int = 2,
) -> Traffic:
    """Count a grouped GEMM of `tiles` tiles of rows with n columns each. A program reads a strip of rows, padding included,
    and a strip of one expert's weights (two strips where gate and up are taken together). Only real rows are written.

    Each program gets its expert and the number of real rows. If rows are gathered (gated), it also gets their tokens.
    """
    require.whole(tiles=tiles, real_rows=real_rows)
    require.count(n=n, k=k, tile=tile, block_n=block_n, element_bytes=element_bytes)
    require.at_most(tiles * tile, "a tile has no more rows than its own", real_rows=real_rows)
    programs = tiles * _cut(n, block_n)
    return Traffic(
        rows=programs * tile * k * element_bytes,
        weights=programs * block_n * k * element_bytes * (1 + gated),
        tables=programs * 8 + gated * real_rows * _cut(n, block_n) * 4,
        written=real_rows * n * element_bytes,
    )


def combine_traffic(tokens: int, top_k: int, hidden: int, *, block_h: int, element_bytes: int = 2) -> Traffic:
    """Return the bytes of each token's rows once, with a row index and a weight for each in every program that sums
    some of its columns."""
    require.whole(tokens=tokens)
    require.count(top_k=top_k, hidden=hidden, block_h=block_h, element_bytes=element_bytes)
    one = tokens * hidden * element_bytes
    return Traffic(top_k * one, 0, tokens * top_k * _cut(hidden, block_h) * 8, one)

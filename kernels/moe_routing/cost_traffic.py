"""What the layer's kernels ask of memory, byte for byte, as they are cut; the L2 may serve much of it a second time."""

from dataclasses import dataclass

from kernels import require


@dataclass(frozen=True)
class Traffic:
    """Bytes that the programs of one launch ask for."""

    rows: int  # of activations
    weights: int
    tables: int
    written: int

    @property
    def loaded(self) -> int:
        return self.rows + self.weights + self.tables


def _cut(size: int, block: int) -> int:
    return -(-size // block)


def most_tiles(tokens: int, picks: int, experts: int, tile: int) -> int:
    """An expert's first pick opens a tile, and after that every `tile` more; no expert sees a token twice."""
    every = tokens * picks
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
    """A grouped product of `tiles` tiles of rows with n columns each: a program reads a strip of rows, padding and all,
    and a strip of one expert's weights, two of them where gate and up are taken together; real rows are written.

    Each program is told its expert and how many rows are real; where rows are gathered (gated), also whose they are.
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


def combine_traffic(tokens: int, picks: int, hidden: int, *, block_h: int, element_bytes: int = 2) -> Traffic:
    """Each token's rows once, with a place and a weight for each in every program that sums some of its columns."""
    require.whole(tokens=tokens)
    require.count(picks=picks, hidden=hidden, block_h=block_h, element_bytes=element_bytes)
    one = tokens * hidden * element_bytes
    return Traffic(picks * one, 0, tokens * picks * _cut(hidden, block_h) * 8, one)

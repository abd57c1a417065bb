"""Count what attention costs: state in HBM, arithmetic, bytes a tiling requests, shared memory, time on a machine.

Standard library only. Bytes are bytes (no kibi), FLOP count a multiply-add as two.
"""

from dataclasses import dataclass, replace

from kernels import require
from kernels.flash_attention.cost_decode import (
    Decode,
    cache_bytes_per_token,
    decode_bytes,
    decode_flops,
    decode_intensity,
    decode_time_s,
)
from kernels.flash_attention.cost_online import SCENE, Scene, State, online_trace
from kernels.machines import Machine

__all__ = [
    "SCENE",
    "Decode",
    "Scene",
    "Shape",
    "State",
    "Tiling",
    "Traffic",
    "backward_flops",
    "backward_loads",
    "cache_bytes_per_token",
    "compulsory_bytes",
    "decode_bytes",
    "decode_flops",
    "decode_intensity",
    "decode_time_s",
    "exp_share",
    "flops",
    "intensity",
    "key_range",
    "keys_loaded",
    "naive_state_bytes",
    "online_trace",
    "pairs",
    "row_pairs",
    "score_matrix_bytes",
    "seconds",
    "sram_bytes",
    "state_ratio",
    "statistics_bytes",
    "tile_counts",
    "tiled_flops",
    "tiled_pairs",
    "tiled_state_bytes",
    "tiled_traffic",
]

LSE_BYTES = 4  # one fp32 per row and head


@dataclass(frozen=True)
class Shape:
    """Hold one attention call. Query i is at key i + keys - length and sees `left` keys before and `right` after."""

    length: int
    keys: int
    head_dim: int
    q_heads: int = 1
    kv_heads: int = 1
    batch: int = 1
    elem_bytes: int = 2
    left: int | None = None
    right: int | None = None  # 0 is causal

    def __post_init__(self):
        require.count(head_dim=self.head_dim, q_heads=self.q_heads, kv_heads=self.kv_heads, batch=self.batch)
        require.whole(length=self.length, keys=self.keys)
        require.positive(elem_bytes=self.elem_bytes)
        if self.q_heads % self.kv_heads:
            raise ValueError(
                f"q_heads must be a multiple of kv_heads {self.kv_heads}, got {self.q_heads}; "
                "each key head serves the same number of query heads"
            )


@dataclass(frozen=True)
class Tiling:
    block_m: int = 128
    block_n: int = 128

    def __post_init__(self):
        require.count(block_m=self.block_m, block_n=self.block_n)


# Tensors in HBM, as "Performance Engineering" counts them: full attention, every tensor once.


def score_matrix_bytes(s: Shape) -> float:
    """Return the bytes of one head's scores."""
    return s.length * s.keys * s.elem_bytes


def tiled_state_bytes(s: Shape) -> float:
    """Return the bytes of Q and output, K and V, each once. Softmax statistics are left out, as in the source."""
    return s.batch * 2 * s.head_dim * s.elem_bytes * (s.q_heads * s.length + s.kv_heads * s.keys)


def naive_state_bytes(s: Shape) -> float:
    """Return the bytes with scores and probabilities each written and read."""
    return tiled_state_bytes(s) + 4 * s.batch * s.q_heads * score_matrix_bytes(s)


def state_ratio(s: Shape) -> float:
    return naive_state_bytes(s) / tiled_state_bytes(s)


def statistics_bytes(s: Shape) -> float:
    """Return the bytes of the running maximum and sum in fp32, which grow with the length instead of the score matrix."""
    return s.batch * s.q_heads * s.length * 2 * 4


# Arithmetic.


def key_range(s: Shape, row: int, rows: int = 1) -> tuple[int, int]:
    """Return (low, high), the keys low .. high - 1 that at least one of the queries row .. row + rows - 1 sees."""
    place = row + s.keys - s.length
    low = 0 if s.left is None else max(place - s.left, 0)
    high = s.keys if s.right is None else min(s.keys, max(place + rows + s.right, 0))
    return low, high


def pairs(s: Shape) -> int:
    """Return the visible query-key pairs in one head: length * keys, about half when causal."""
    if s.left is None and s.right is None:
        return s.length * s.keys
    last = s.keys - 1  # a query's place among the keys, from `first` on
    first = s.keys - s.length
    if s.right is None:
        high = s.keys * s.length
    else:
        first = max(first, -s.right)  # no earlier one sees a key
        high = _beyond(first, last, -1 - s.right) - _beyond(first, last, s.keys - 1 - s.right)
    return high - (0 if s.left is None else _beyond(first, last, s.left))


def _beyond(first: int, last: int, start: int) -> int:
    """Return the sum of max(0, n - start) over the whole numbers n from first to last."""
    if last < first:
        return 0
    low, high = max(first - 1 - start, 0), max(last - start, 0)
    return (high * (high + 1) - low * (low + 1)) // 2


def flops(s: Shape) -> float:
    """Count the FLOP of Q K^T and P V on the visible pairs."""
    return 4 * s.head_dim * pairs(s) * s.q_heads * s.batch


def backward_flops(s: Shape) -> float:
    """Count five matmuls instead of two: the scores again, dV, dP, dQ, dK."""
    return 2.5 * flops(s)


def exp_share(head_dim: int, matrix_flop_per_cycle: float = 4096, exp_per_cycle: float = 16) -> float:
    """Return cycles for a tile's exponentials over cycles for its matmuls, per SM. The defaults are Hopper's.

    Return 0.5 at head dim 128, 1 at 64, which is why the softmax must run under the matmul.
    """
    require.count(head_dim=head_dim)
    require.positive(matrix_flop_per_cycle=matrix_flop_per_cycle, exp_per_cycle=exp_per_cycle)
    return (1 / exp_per_cycle) / (4 * head_dim / matrix_flop_per_cycle)


# Bytes.


def compulsory_bytes(s: Shape) -> float:
    """Return the bytes that must move: Q, K, V read, output and log-sum-exp written, once."""
    return tiled_state_bytes(s) + s.batch * s.q_heads * s.length * LSE_BYTES


def tile_counts(s: Shape, tiling: Tiling) -> tuple[int, int]:
    """Return the row tiles, and the key tiles that a row tile walks over when nothing is masked."""
    return -(-s.length // tiling.block_m), -(-s.keys // tiling.block_n)


def keys_loaded(s: Shape, tiling: Tiling, row: int) -> int:
    """Return the keys that the program of rows row .. loads, in whole tiles from the first seen key's to the last
    one's."""
    low, high = key_range(s, row, tiling.block_m)
    first = low // tiling.block_n * tiling.block_n
    if high <= first:
        return 0
    return min(s.keys, first + -(-(high - first) // tiling.block_n) * tiling.block_n) - first


@dataclass(frozen=True)
class Traffic:
    """Hold the bytes that a tiled kernel requests, by tensor."""

    q: float
    k: float
    v: float
    out: float
    lse: float

    @property
    def loads(self) -> float:
        return self.q + self.k + self.v

    @property
    def stores(self) -> float:
        return self.out + self.lse

    @property
    def total(self) -> float:
        return self.loads + self.stores


def tiled_traffic(s: Shape, tiling: Tiling) -> Traffic:
    """Count one program a row tile and query head. Each loads Q once, K and V again, as a traffic meter counts them."""
    loaded = sum(keys_loaded(s, tiling, row) for row in range(0, s.length, tiling.block_m))
    programs = s.batch * s.q_heads
    q = programs * s.length * s.head_dim * s.elem_bytes
    kv = programs * loaded * s.head_dim * s.elem_bytes
    return Traffic(q=q, k=kv, v=kv, out=q, lse=programs * s.length * LSE_BYTES)


def tiled_pairs(s: Shape, tiling: Tiling) -> int:
    """Return the pairs that one head's tiles compute, in whole tiles, including missing rows and keys."""
    starts = range(0, s.length, tiling.block_m)
    return sum(tiling.block_m * _visited(s, tiling, row) * tiling.block_n for row in starts)


def _visited(s: Shape, tiling: Tiling, row: int) -> int:
    """Return the key tiles that the program of rows row .. walks over."""
    low, high = key_range(s, row, tiling.block_m)
    return max(0, -(-high // tiling.block_n) - low // tiling.block_n)


def tiled_flops(s: Shape, tiling: Tiling) -> float:
    """Count the FLOP of Q K^T and P V on whole tiles, as tensor cores compute them."""
    return 4 * s.head_dim * tiled_pairs(s, tiling) * s.q_heads * s.batch


def row_pairs(s: Shape, tiling: Tiling, row: int) -> float:
    """Return the part of `tiled_pairs` of one row: the tiles of keys of its row tile, and its share of missing rows."""
    first = row // tiling.block_m * tiling.block_m
    there = min(tiling.block_m, s.length - first)
    return _visited(s, tiling, first) * tiling.block_n * tiling.block_m / there


def backward_loads(s: Shape, tiling: Tiling) -> float:
    """Return the bytes that two passes request: Q and dO for each tile of keys, K and V for each tile of rows, and
    each's own once."""
    own = 2 * s.batch * s.head_dim * s.elem_bytes * (s.q_heads * s.length + s.kv_heads * s.keys)
    walked = 2 * tiled_traffic(s, tiling).k + 2 * tiled_traffic(s, Tiling(tiling.block_n, tiling.block_m)).k
    delta = 2 * s.batch * s.q_heads * s.length * s.head_dim * s.elem_bytes
    return (
        own + walked + delta + 3 * LSE_BYTES * s.batch * s.q_heads * s.length * (-(-s.keys // tiling.block_n))
    )


def intensity(s: Shape, tiling: Tiling | None = None) -> float:
    """Return FLOP per byte, counting the bytes that must move or those that this tiling requests."""
    moved = compulsory_bytes(s) if tiling is None else tiled_traffic(s, tiling).total
    return flops(s) / moved


def sram_bytes(tiling: Tiling, head_dim: int, elem_bytes: int = 2, stages: int = 1) -> float:
    """Return the size of a tile of Q, and `stages` tiles of K and of V, 98.3 KB at 128 x 128 x 128 in 16 bits."""
    require.count(head_dim=head_dim, stages=stages)
    return (tiling.block_m + 2 * stages * tiling.block_n) * head_dim * elem_bytes


def seconds(s: Shape, machine: Machine, *, naive: bool = False, dtype: str = "fp16") -> float:
    """Return the time of the slower of arithmetic and memory. Naive attention computes all pairs and stores the scores."""
    if not naive:
        return machine.time(flops(s), compulsory_bytes(s), dtype)
    whole = replace(s, left=None, right=None)
    return machine.time(flops(whole), naive_state_bytes(whole), dtype)

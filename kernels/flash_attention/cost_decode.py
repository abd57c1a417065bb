"""Count decoding one token a sequence, where every cached key and value is read once, and little else happens."""

from dataclasses import dataclass

from kernels import require
from kernels.machines import Machine


@dataclass(frozen=True)
class Decode:
    batch: int
    keys: int
    q_heads: int
    kv_heads: int
    head_dim: int
    cache_bytes: float = 2  # of one cached number, 2 for 16 bits, 1 for fp8 and int8
    elem_bytes: int = 2  # of queries and outputs
    scale_bytes: int = 0  # of one scale, for each key and each value of a head (0 for none, or one a head)
    page_size: int = 0  # keys a page, 0 for a contiguous cache

    def __post_init__(self):
        require.count(
            batch=self.batch,
            q_heads=self.q_heads,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            keys=self.keys,
        )
        require.positive(cache_bytes=self.cache_bytes, elem_bytes=self.elem_bytes)
        require.whole(scale_bytes=self.scale_bytes, page_size=self.page_size)


def decode_flops(d: Decode) -> float:
    return 4 * d.batch * d.q_heads * d.keys * d.head_dim


def decode_bytes(d: Decode) -> float:
    """Count the bytes of the cache, its scales and page numbers, the queries and the outputs, each once."""
    vectors = 2 * d.batch * d.kv_heads * d.keys
    table = 4 * d.batch * -(-d.keys // d.page_size) if d.page_size else 0
    ends = 2 * d.batch * d.q_heads * d.head_dim * d.elem_bytes + 4 * d.batch * d.q_heads
    return vectors * (d.head_dim * d.cache_bytes + d.scale_bytes) + table + ends


def decode_intensity(d: Decode) -> float:
    """Return FLOP per byte, close to query heads per key head for a 16-bit cache. Grouping raises it, the batch doesn't."""
    return decode_flops(d) / decode_bytes(d)


def decode_time_s(d: Decode, machine: Machine, dtype: str = "fp16") -> float:
    return machine.time(decode_flops(d), decode_bytes(d), dtype)


def cache_bytes_per_token(layers: int, kv_heads: int, head_dim: int, cache_bytes: float = 2) -> float:
    """Return the bytes of a token's keys and values in all layers. Multi-query attention has one key head, grouped-query a
    few, multi-head all."""
    require.count(layers=layers, kv_heads=kv_heads, head_dim=head_dim)
    require.positive(cache_bytes=cache_bytes)
    return 2 * layers * kv_heads * head_dim * cache_bytes

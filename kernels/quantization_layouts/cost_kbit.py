"""Choose a k-bit kernel by M, and time a block, a session and a whole model with this kernel."""

import math
from bisect import bisect_left
from dataclasses import dataclass

from kernels import require
from kernels.quantization_layouts import kbit_tables as tables

SCALAR_UP_TO, MMA_UP_TO = 4, 16


def dense_family(m: int) -> str:
    """Return the kernel family by the dispatch rule of dense and attention layers."""
    require.count(m=m)
    if m <= SCALAR_UP_TO:
        return "scalar GEMV"
    return "MMA" if m <= MMA_UP_TO else "dequant + library"


def candidates(layer: str, m: int) -> tuple[str, ...]:
    """Return every kernel family that may run a 'dense' or 'moe' layer at M rows (of an expert)."""
    require.one_of(("dense", "moe"), layer=layer)
    require.count(m=m)
    if layer == "dense":
        return (dense_family(m),)
    scalar = ("grouped scalar GEMV",) if m <= SCALAR_UP_TO else ()
    return (*scalar, "grouped MMA", "dequant + library")


def best_kernel(shape: str, m: int) -> tuple[str, float, float]:
    """Return, at k = 4, the fastest measured family, its microseconds, and its speed over fp16 (below 1 is slower)."""
    timed = tables.GROUPED_US.get((shape, m)) or tables.LARGE_M_US.get((shape, m))
    if timed:
        family = min((name for name in timed if name != "fp16"), key=timed.__getitem__)
        return family, timed[family], timed["fp16"] / timed[family]
    require.one_of(tuple(tables.SHAPES), shape=shape)
    require.one_of(tuple(tables.BEST_US), m=m)
    row = tables.BEST_US[m][shape]
    return tables.BEST_FAMILY[m][shape], row[4], row[16] / row[4]


def _measured(bits: int, m: int) -> None:
    require.one_of((*tables.BITS, 16), bits=bits)
    require.one_of(tuple(tables.BEST_US), m=m)


def shape_speedups(shape: str, m: int = 1) -> dict[int, float]:
    """Return fp16 time over k-bit time of one shape, for each k."""
    require.one_of(tuple(tables.SHAPES), shape=shape)
    _measured(16, m)
    row = tables.BEST_US[m][shape]
    return {bits: row[16] / row[bits] for bits in tables.BITS}


def user_ratio(users: float) -> float:
    """Return the reported k = 4 time over fp16 time. Between two rows, interpolate linearly over the logarithm of M."""
    known = tuple(tables.USERS)
    require.positive(users=users)
    if not known[0] <= users <= known[-1]:
        raise ValueError(
            f"users must be from {known[0]} to {known[-1]}, got {users}; nothing was measured beyond"
        )
    right = max(1, bisect_left(known, users))
    low, high = known[right - 1], known[right]
    part = math.log(users / low) / math.log(high / low)
    return tables.USERS[low][0] * (1 - part) + tables.USERS[high][0] * part


def break_even_users() -> int:
    """Return the first reported number of users at which k = 4 no longer wins."""
    return next(users for users, (ratio, _) in tables.USERS.items() if ratio >= 1)


def session_m(users: int, chunk: int) -> tuple[int, int]:
    """Return the two sizes of M under continuous batching: pure decode, and decode with a prefill chunk."""
    require.count(users=users, chunk=chunk)
    return users, users + chunk


def weighted_ratio(parts: list[tuple[float, float]]) -> float:
    """Return the k-bit time over fp16 time of a session, from (share of the fp16 time, ratio) for each size of M."""
    require.not_empty(parts=parts)
    for share, ratio in parts:
        require.share(share=share)
        require.positive(ratio=ratio)
    whole = sum(share for share, _ in parts)
    if abs(whole - 1) > 1e-6:
        raise ValueError(f"shares must be parts of one whole, got a sum of {whole:g}; make them add up to 1")
    return sum(share * ratio for share, ratio in parts)


@dataclass(frozen=True)
class Linear:
    """Hold a weight matrix of n outputs and k inputs. `experts` such matrices share a grouped launch, 0 means dense."""

    name: str
    n: int
    k: int
    experts: int = 0


def block_linears() -> tuple[Linear, ...]:
    """Return the block that the tables were measured on."""
    return tuple(
        Linear(name, n, k, tables.MOE_EXPERTS if name in tables.MOE else 0)
        for name, (n, k) in tables.SHAPES.items()
    )


def layer_linears(
    hidden: int,
    intermediate: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    *,
    top_k: int = 0,
    expert_intermediate: int = 0,
) -> tuple[Linear, ...]:
    """Return the matrices of one layer, attention and a dense gated MLP, `top_k` experts, or both. 0 leaves one out."""
    require.count(hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim)
    require.whole(intermediate=intermediate, top_k=top_k, expert_intermediate=expert_intermediate)
    queries, keys = heads * head_dim, kv_heads * head_dim
    linears = [Linear("Q", queries, hidden), Linear("O", hidden, queries)]
    linears += [Linear("K", keys, hidden), Linear("V", keys, hidden)]
    if intermediate:
        linears += [Linear("gate", intermediate, hidden), Linear("up", intermediate, hidden)]
        linears += [Linear("down", hidden, intermediate)]
    if top_k and expert_intermediate:
        linears += [Linear(name, expert_intermediate, hidden, top_k) for name in ("moe gate", "moe up")]
        linears += [Linear("moe down", hidden, expert_intermediate, top_k)]
    return tuple(linears)


def linear_us(linear: Linear, bits: int, m: int = 1) -> float:
    """Return the time of a matrix, scaled by its number of weights from the most similar measured shape."""
    _measured(bits, m)
    weights = linear.n * linear.k
    known = tables.MOE if linear.experts else tables.DENSE

    def distance(name: str) -> tuple[float, bool]:
        n, k = tables.SHAPES[name]
        return abs(math.log(weights / (n * k))) + abs(math.log(linear.n / linear.k * k / n)), name == "KV"

    nearest = min(known, key=distance)
    n, k = tables.SHAPES[nearest]
    groups = linear.experts / tables.MOE_EXPERTS if linear.experts else 1
    return tables.BEST_US[m][nearest][bits] * weights / (n * k) * groups


def model_us(layers: list[tuple[int, tuple[Linear, ...]]], bits: int, m: int = 1) -> float:
    """Return the time of a forward pass's weight matmuls, given (number of layers, the linears of one) for each kind
    of layer."""
    require.not_empty(layers=layers)
    for number, linears in layers:
        require.count(layers=number)
        require.not_empty(linears=linears)
    return sum(number * sum(linear_us(one, bits, m) for one in linears) for number, linears in layers)


def dequant_floor_s(
    elements: int, bits: float, bandwidth_byte_s: float, bandwidth_share: float = 1.0
) -> float:
    """Return the time of a separate unpacking kernel, which reads packed weights and writes 16-bit ones, and can't be
    faster."""
    require.count(elements=elements)
    require.positive(bits=bits, bandwidth_byte_s=bandwidth_byte_s, bandwidth_share=bandwidth_share)
    require.share(bandwidth_share=bandwidth_share)
    return elements * (bits / 8 + 2) / (bandwidth_byte_s * bandwidth_share)


def instruction_share(unpack_per_multiply: float) -> float:
    """Share of the issued instructions that are matrix multiplies, when they wait for the unpacking."""
    require.not_negative(unpack_per_multiply=unpack_per_multiply)
    return 1 / (1 + unpack_per_multiply)

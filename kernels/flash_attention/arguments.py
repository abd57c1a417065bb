"""Validate the tensors passed to a launch function."""

import math
from functools import lru_cache

import torch

from kernels.require import must

LOG2E = math.log2(math.e)
DTYPES = (torch.float16, torch.bfloat16, torch.float32)
MOST_PROGRAMS = 65535  # along the second axis of a CUDA grid


@lru_cache
def multiprocessors(device) -> int:
    """A few where there is no GPU, so that kernels also walk there over several tiles a program."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


@lru_cache
def _is_hopper(index: int) -> bool:
    return torch.cuda.get_device_capability(index)[0] == 9


def suit_hopper(*tensors) -> bool:
    """Check for TMA and the tensor core: contiguous rows, aligned to 16 bytes, of 16-bit elements."""
    if not tensors[0].is_cuda or tensors[0].element_size() != 2:
        return False
    aligned = all(
        t.data_ptr() % 16 == 0 and t.stride(-1) == 1 and all(s > 0 and s % 8 == 0 for s in t.stride()[:-1])
        for t in tensors
    )
    return aligned and _is_hopper(tensors[0].device.index)


@lru_cache
def shared_memory(device) -> int:
    """Return the bytes that one program may have, an H200's where there is no GPU."""
    if device.type != "cuda":
        return 227 * 1024
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin


def same_kind(**tensors) -> None:
    """Check that all tensors have one device and one dtype, which the tensor cores take."""
    first_name, first = next(iter(tensors.items()))
    floating(first_name, first)
    for name, t in tensors.items():
        must(
            t.device == first.device,
            name,
            f"on {first_name}'s device {first.device}",
            t.device,
            "move it there",
        )
        must(t.dtype == first.dtype, name, f"of {first_name}'s dtype {first.dtype}", t.dtype, "cast it first")


def floating(name: str, t) -> None:
    must(t.dtype in DTYPES, name, "fp16, bf16 or fp32", t.dtype, "cast it first")


def numbers(name: str, t, dtype, shape, device) -> None:
    """Check a dense tensor of small numbers that a kernel reads by itself."""
    must(tuple(t.shape) == shape, name, f"of shape {shape}", tuple(t.shape), "one per sequence")
    must(t.dtype == dtype, name, str(dtype).removeprefix("torch."), t.dtype, "cast it")
    must(t.device == device, name, f"on q's device {device}", t.device, "move it there")
    must(t.is_contiguous(), name, "dense", f"strides {t.stride()}", "make it contiguous")


def programs(what: str, count: int) -> None:
    must(count <= MOST_PROGRAMS, what, f"at most {MOST_PROGRAMS}", count, "cut the batch in parts")


def heads(q_heads: int, kv_heads: int) -> int:
    """Query heads per key head."""
    must(
        kv_heads > 0 and q_heads % kv_heads == 0,
        "query heads",
        f"a multiple of the {kv_heads} key heads",
        q_heads,
        "each key head serves the same number of query heads",
    )
    return q_heads // kv_heads


def head_dim(d: int, *, largest: int = 256) -> int:
    """Return the power of two that holds one head."""
    must(
        8 <= d <= largest and d % 8 == 0,
        "head dim",
        f"a multiple of 8 from 8 to {largest}",
        d,
        "pad the heads with zeros",
    )
    return max(16, 1 << (d - 1).bit_length())


def qkv(q, k, v, rank: int) -> tuple[int, int]:
    """Check the shapes of q, k, v of one call, and return (query heads per key head, block for the head dim)."""
    for name, t in (("q", q), ("k", k), ("v", v)):
        must(
            t.dim() == rank,
            name,
            f"a {rank}-d tensor",
            f"{t.dim()}-d",
            "see the docstring for the order of axes",
        )
    same_kind(q=q, k=k, v=v)
    must(
        k.shape == v.shape,
        "v",
        f"of k's shape {tuple(k.shape)}",
        tuple(v.shape),
        "keys and values go in pairs",
    )
    must(
        q.shape[-1] == k.shape[-1],
        "k",
        f"of head dim {q.shape[-1]}",
        k.shape[-1],
        "q and k meet in a dot product",
    )
    head_axis = 1
    return heads(q.shape[head_axis], k.shape[head_axis]), head_dim(q.shape[-1])


def softmax_scale(scale: float | None, d: int) -> float:
    scale = d**-0.5 if scale is None else float(scale)
    must(
        scale > 0 and math.isfinite(scale),
        "scale",
        "positive and finite",
        scale,
        "leave it out for 1/sqrt(head dim)",
    )
    return scale


def cap(softcap: float) -> float:
    must(
        softcap >= 0 and math.isfinite(softcap),
        "softcap",
        "zero (off) or positive",
        softcap,
        "0 leaves scores as they are",
    )
    return float(softcap)


def visible(causal: bool, window) -> tuple[int | None, int | None]:
    """Return (keys to the left, keys to the right) that a query may see from its own position. None means no limit."""
    sides = (None, None) if window is None else window
    pair = isinstance(sides, tuple | list) and len(sides) == 2
    must(pair, "window", "None or (left, right)", window, "None on a side means no limit there")
    for name, side in (("window[0]", sides[0]), ("window[1]", sides[1])):
        fits = side is None or (isinstance(side, int) and side >= 0)
        must(fits, name, "None or a whole number from 0 on", side, "None means no limit")
    return sides[0], 0 if causal else sides[1]


def totals(q, k, cu_q, cu_k, max_q: int, look: bool) -> int:
    """Check the running totals of packed sequences and return their number. `look` reads them, and so waits for the GPU."""
    must(
        cu_q.dim() == 1 and len(cu_q) > 0,
        "cu_q",
        "a row of running totals",
        tuple(cu_q.shape),
        "start with 0",
    )
    batch = len(cu_q) - 1
    for name, cu, t in (("cu_q", cu_q, q), ("cu_k", cu_k, k)):
        numbers(name, cu, torch.int32, (batch + 1,), q.device)
        if look:
            rises = int(cu[0]) == 0 and int(cu[-1]) == t.shape[0] and bool((cu.diff() >= 0).all())
            must(rises, name, f"rising from 0 to {t.shape[0]}", cu.tolist()[:8], "add up the lengths")
    longest = int(cu_q.diff().max()) if look and batch else 0
    must(
        max_q >= longest,
        "max_q",
        f"at least the longest sequence's {longest}",
        max_q,
        "rows past it stay unwritten",
    )
    return batch

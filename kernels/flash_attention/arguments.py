"""What every launch function asks of its tensors, and the one form in which it says no."""

import math
from functools import lru_cache

import torch

LOG2E = math.log2(math.e)


@lru_cache
def multiprocessors(device) -> int:
    """A few where there is no GPU, so that the interpreter also walks over several tiles a program."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


@lru_cache
def shared_memory(device) -> int:
    """Bytes that one program may have; an H200's where there is no GPU."""
    if device.type != "cuda":
        return 227 * 1024
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin


def must(ok: bool, name: str, rule: str, got: object, hint: str) -> None:
    if not ok:
        raise ValueError(f"{name} must be {rule}, got {got}; {hint}")


def same_kind(**tensors) -> None:
    """One device and one dtype for all."""
    first_name, first = next(iter(tensors.items()))
    for name, t in tensors.items():
        must(
            t.device == first.device,
            name,
            f"on {first_name}'s device {first.device}",
            t.device,
            "move it there",
        )
        must(t.dtype == first.dtype, name, f"of {first_name}'s dtype {first.dtype}", t.dtype, "cast it first")


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
    """The power of two that holds one head."""
    must(
        8 <= d <= largest and d % 8 == 0,
        "head dim",
        f"a multiple of 8 from 8 to {largest}",
        d,
        "pad the heads with zeros",
    )
    return max(16, 1 << (d - 1).bit_length())


def qkv(q, k, v, rank: int) -> tuple[int, int]:
    """Shapes of q, k, v of one call; gives (query heads per key head, block for the head dim)."""
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
    """(keys to the left, keys to the right) of a query's own position that it may see; None is no limit."""
    left, right = (None, None) if window is None else window
    for name, side in (("window[0]", left), ("window[1]", right)):
        must(side is None or side >= 0, name, "None or at least 0", side, "None means no limit")
    return left, 0 if causal else right


def lengths(name: str, cu, batch: int, device) -> None:
    must(
        cu.dim() == 1 and cu.shape[0] == batch + 1,
        name,
        f"{batch + 1} running totals",
        tuple(cu.shape),
        "start with 0",
    )
    must("int32" in str(cu.dtype), name, "int32", cu.dtype, "cast it")
    must(cu.device == device, name, f"on {device}", cu.device, "move it there")


def cache(q, k, v, lens, table, k_scale, v_scale, check_table):
    """Arguments of one decode; gives (query heads per key head, head dim's block, longest sequence)."""
    must(q.dim() == 3, "q", "3-d: batch, heads, head dim", f"{q.dim()}-d", "one new token per sequence")
    must(k.dim() == 4, "k", "4-d, see the docstring", f"{k.dim()}-d", "view it so")
    must(
        k.shape == v.shape,
        "v",
        f"of k's shape {tuple(k.shape)}",
        tuple(v.shape),
        "keys and values go in pairs",
    )
    must(k.dtype == v.dtype, "v", f"of k's dtype {k.dtype}", v.dtype, "one cache has one dtype")
    for name, t in (("k", k), ("v", v)):
        must(t.device == q.device, name, f"on q's device {q.device}", t.device, "move it there")
    for name, t in (("q", q), ("k", k), ("v", v)):
        must(
            t.stride(-1) == 1,
            name,
            "dense along the head dim",
            f"a stride of {t.stride(-1)}",
            "transpose it back",
        )
    group, block_d = heads(q.shape[1], k.shape[1]), head_dim(q.shape[2])
    must(
        q.shape[2] == k.shape[3],
        "k",
        f"of head dim {q.shape[2]}",
        k.shape[3],
        "q and k meet in a dot product",
    )
    _scales(q, k, k_scale, v_scale)
    if table is None:
        must(
            k.shape[0] == q.shape[0],
            "k",
            f"of batch {q.shape[0]}",
            k.shape[0],
            "or pass the table of its pages",
        )
        longest = k.shape[2]
    else:
        must(lens is not None, "lens", "given with a table", None, "the last page may be part full")
        rows = table.dim() == 2 and table.shape[0] == q.shape[0]
        must(
            rows,
            "table",
            f"({q.shape[0]}, pages)",
            tuple(table.shape),
            "one row of page numbers per sequence",
        )
        must(table.dtype == torch.int32, "table", "int32", table.dtype, "cast it")
        must(
            table.stride(1) == 1,
            "table",
            "dense along a row",
            f"a stride of {table.stride(1)}",
            "make it contiguous",
        )
        longest = table.shape[1] * k.shape[2]
    if lens is None:
        lens = torch.full((q.shape[0],), longest, dtype=torch.int32, device=q.device)
    must(
        tuple(lens.shape) == (q.shape[0],),
        "lens",
        f"of shape ({q.shape[0]},)",
        tuple(lens.shape),
        "one per sequence",
    )
    must(lens.dtype == torch.int32, "lens", "int32", lens.dtype, "cast it")
    if table is not None and check_table:
        pages(table, lens, k.shape[0], k.shape[2])
    return group, block_d, longest


def _scales(q, k, k_scale, v_scale) -> None:
    narrow = k.element_size() == 1
    must(narrow or k.dtype == q.dtype, "k", f"of q's dtype {q.dtype}, fp8 or int8", k.dtype, "cast it")
    for name, scale in (("k_scale", k_scale), ("v_scale", v_scale)):
        given = "given" if scale is not None else "left out"
        must(narrow == (scale is not None), name, f"{'given' if narrow else 'left out'} for {k.dtype}", given, "codes need scales, numbers none")  # fmt: skip


def pages(table, lens, count: int, page_size: int) -> None:
    """Every page that a sequence uses must exist."""
    used = torch.arange(table.shape[1], device=table.device)[None, :] * page_size < lens[:, None]
    bad = (used & ((table < 0) | (table >= count))).nonzero()
    if len(bad):
        row, column = (int(x) for x in bad[0])
        where, page = f"table[{row}, {column}]", int(table[row, column])
        must(
            False,
            where,
            f"a page from 0 to {count - 1}",
            page,
            "only entries past a sequence's length are free",
        )

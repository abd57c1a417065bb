"""Validate the cache that decoding reads: contiguous or in pages, of q's dtype or in codes with scales."""

import torch

from kernels.require import must

from .arguments import floating, head_dim, heads, numbers

CODES = (torch.int8, torch.float8_e4m3fn, torch.float8_e5m2)


def cache(q, k, v, lens, table, k_scale, v_scale, look: bool):
    """Check the arguments of one decode, and return (query heads per key head, head dim's block, longest sequence).

    `look` reads lens and table, and so waits for the GPU."""
    floating("q", q)
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
    longest = _keys(q, k, lens, table)
    if lens is not None:
        numbers("lens", lens, torch.int32, (q.shape[0],), q.device)
    if look and lens is not None and len(lens):
        low, high = (int(n) for n in torch.aminmax(lens))
        must(
            0 <= low and high <= longest,
            "lens",
            f"from 0 to {longest}",
            low if low < 0 else high,
            "a cache holds no more",
        )
    if look and table is not None:
        pages(table, lens, k.shape[0], k.shape[2])
    return group, block_d, longest


def _keys(q, k, lens, table) -> int:
    """Return the most keys that a sequence can have."""
    if table is None:
        must(
            k.shape[0] == q.shape[0],
            "k",
            f"of batch {q.shape[0]}",
            k.shape[0],
            "or pass the table of its pages",
        )
        return k.shape[2]
    must(lens is not None, "lens", "given with a table", None, "the last page may be part full")
    rows = table.dim() == 2 and table.shape[0] == q.shape[0]
    must(rows, "table", f"({q.shape[0]}, pages)", tuple(table.shape), "one row of page numbers per sequence")
    must(table.dtype == torch.int32, "table", "int32", table.dtype, "cast it")
    must(table.device == q.device, "table", f"on q's device {q.device}", table.device, "move it there")
    dense = table.stride(1) == 1 or table.shape[1] < 2
    must(dense, "table", "dense along a row", f"a stride of {table.stride(1)}", "make it contiguous")
    return table.shape[1] * k.shape[2]


def _scales(q, k, k_scale, v_scale) -> None:
    narrow = k.dtype in CODES
    must(narrow or k.dtype == q.dtype, "k", f"of q's dtype {q.dtype}, fp8 or int8", k.dtype, "cast it")
    for name, scale in (("k_scale", k_scale), ("v_scale", v_scale)):
        given = "given" if scale is not None else "left out"
        must(
            narrow == (scale is not None),
            name,
            f"{'given' if narrow else 'left out'} for {k.dtype}",
            given,
            "codes need scales, numbers none",
        )
        if narrow:
            must(scale.dtype == torch.float32, name, "fp32", scale.dtype, "cast it")
            must(scale.device == q.device, name, f"on q's device {q.device}", scale.device, "move it there")
            pairs = zip(reversed(scale.shape), reversed(k.shape[:3]), strict=False)
            fits = scale.dim() <= 3 and all(n in (1, whole) for n, whole in pairs)
            must(
                fits,
                name,
                f"broadcastable to {tuple(k.shape[:3])}",
                tuple(scale.shape),
                "k's shape without its last axis",
            )


def pages(table, lens, count: int, page_size: int) -> None:
    """Check that every page that a sequence uses exists."""
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

"""Validate the arguments of a quantized layer, once for all kernels. Every refusal says what to do."""

import torch

from kernels.quantization_layouts.packed import Packed
from kernels.require import must


def check_layer(
    x, w: Packed, out, offsets, most, gated: bool = False
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return (x as rows, out, the most rows of an expert). Nothing here waits for a GPU."""
    must(isinstance(w, Packed), "w", "packed", type(w).__name__, "shuffle it with pack()")
    must(x.ndim == 2, "x", "2-d: rows, K", f"{x.ndim}-d", "flatten its leading axes")
    must(x.shape[1] == w.k, "x", f"(rows, {w.k})", tuple(x.shape), "the weight has that many inputs")
    must(
        x.dtype == w.dtype,
        "x",
        f"{w.dtype} as the weight was packed for",
        x.dtype,
        "convert it, or pack again",
    )
    must(x.device == w.device, "w", f"on x's device {x.device}", w.device, "move it there with w.to(device)")
    for name, part in (("words", w.words[0]), ("words", w.words[-1]), ("zeros", w.zeros), ("book", w.book)):
        if part is not None:
            must(
                part.device == w.device,
                f"w.{name}",
                f"on {w.device}",
                part.device,
                "move all of w, by w.to()",
            )
    if x.stride(1) != 1 or x.stride(0) % 8 or x.data_ptr() % 16:
        x = x.contiguous()
    out = _out(x, w.n // 2 if gated else w.n, out)
    return x, out, _rows(x, w, offsets, most)


def check_kind(w: Packed) -> None:
    """Refuse FP4, whose powers of two only some kernels put back, and int8."""
    must(w.kind in ("int4", "book"), "w", "int4 or a codebook", w.kind, "multiply it with dispatch.linear()")


def _out(x, n: int, out) -> torch.Tensor:
    shape = (x.shape[0], n)
    if out is None:
        return torch.empty(shape, dtype=x.dtype, device=x.device)
    must(tuple(out.shape) == shape, "out", str(shape), tuple(out.shape), "leave it out to have it made")
    must(out.device == x.device, "out", f"on x's device {x.device}", out.device, "make it there")
    must(
        out.stride(1) == 1 or n == 1,
        "out",
        "dense along a row",
        f"a stride of {out.stride(1)}",
        "transpose it back",
    )
    return out


def _rows(x, w: Packed, offsets, most) -> int:
    rows = x.shape[0]
    if offsets is None:
        must(
            rows % w.experts == 0,
            "x",
            f"a multiple of {w.experts} rows, as many for each expert",
            rows,
            "or give offsets",
        )
        return rows // w.experts
    must(
        offsets.dtype == torch.int32 and tuple(offsets.shape) == (w.experts + 1,),
        "offsets",
        f"int32 ({w.experts + 1},)",
        f"{offsets.dtype} {tuple(offsets.shape)}",
        "the first row of each expert and the end",
    )
    must(offsets.device == x.device, "offsets", f"on x's device {x.device}", offsets.device, "move it there")
    must(
        offsets.is_contiguous(), "offsets", "dense", f"a stride of {offsets.stride(0)}", "make it contiguous"
    )
    must(
        most is None or 0 <= most <= rows, "most", f"from 0 to the {rows} rows of x", most, "or leave it out"
    )
    return rows if most is None else most

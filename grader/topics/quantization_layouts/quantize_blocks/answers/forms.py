"""quantize blocks: right answers in other forms."""

from grader.topics.quantization_layouts.quantize_blocks.mistakes import CODE, H, INVERSE, STORE_S, TOPS

FORMS = {
        "a row at a time, all blocks at once": ((), "blocks_of_a_row"),
        "persistent programs": ((), "blocks_persistent"),
        "the scale first, then a division": ((), [(INVERSE, "scale = top / 448.0"), (CODE, "code = tl.where(scale > 0, h / scale, 0.0).to(q_ptr.dtype.element_ty)"), (STORE_S, STORE_S.replace("top / 448.0", "scale"))]),
        "silu by an exponential": ((), [(H, "h = g / (1.0 + tl.exp(-g)) * u")]),
        "clamped before it is rounded": ((), [(CODE, "code = tl.clamp(h * inverse, -448.0, 448.0).to(q_ptr.dtype.element_ty)")]),
        "the larger of maximum and minus minimum": ((), [(TOPS, "top = tl.maximum(tl.max(h, 1, keep_dims=True), -tl.min(h, 1, keep_dims=True))")]),
        "sixteen rows": ((), [('"ROWS": 4', '"ROWS": 16'), ("triton.cdiv(p.M, 4)", "triton.cdiv(p.M, 16)")]),
    }

"""LayerNorm(GELU(x)), wrong."""

NORM = "roofline.layernorm_gelu"
SUM = "tl.sum(g, axis=0) / N"
LOAD_X = "x = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0).to(tl.float32)"
STORE = "(d * rstd * w + b).to(y_ptr.dtype.element_ty), mask=mask)"
GELU = "g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))"

WRONG = {
    NORM: {
        "no gelu": ("values", [(GELU, "g = x")], "no gelu"),
        "gelu last": (
            "values",
            [(GELU, "g = x"), (STORE, "(0.5 * (d * rstd * w + b) * (1 + tl.erf((d * rstd * w + b) * 0.7071067811865476))).to(y_ptr.dtype.element_ty), mask=mask)")],
            "gelu last",
        ),
        "no bias": ("values", [("d * rstd * w + b", "d * rstd * w")], "no bias"),
        "no weight": ("values", [("d * rstd * w + b", "d * rstd + b")], "no weight"),
        "the tanh form": ("values", [(GELU, "z = 0.7978845608 * (x + 0.044715 * x * x * x)\n    g = 0.5 * x * (2 - 2 / (tl.exp(2 * z) + 1))")], "tanh gelu"),
        "masked lanes counted in the mean": ("values", [(SUM, "tl.sum(g, axis=0) / BLOCK")], "padding counted"),
        "masked lanes counted in the variance": ("values", [("tl.where(mask, g - mean, 0.0)", "g - mean")], "padding counted"),
        "masked lanes unset": ("values", [(LOAD_X, LOAD_X.replace(", other=0.0", ""))], "NaN"),
        "variance of squares": ("values", [("d = tl.where(mask, g - mean, 0.0)", "d = tl.where(mask, g - mean, 0.0)\n    v = tl.sum(g * g, axis=0) / N - mean * mean"), ("tl.sum(d * d, axis=0) / N + eps", "v + eps")], ""),
        "eps outside the root": ("values", [("tl.sqrt(tl.sum(d * d, axis=0) / N + eps)", "(tl.sqrt(tl.sum(d * d, axis=0) / N) + eps)")], ""),
        "sample variance": ("values", [("tl.sum(d * d, axis=0) / N", "tl.sum(d * d, axis=0) / (N - 1)")], ""),
        "half precision throughout": ("values", [(".to(tl.float32)", ".to(tl.float16)")], ""),
        "contiguous rows assumed": ("values", [("row * stride_xm", "row * N")], ""),
        "columns assumed dense": ("values", [("offs * stride_xn", "offs")], ""),
        "x read twice": ("traffic", [("mean =", "again = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0).to(tl.float32)\n    g = g + again - x\n    mean =")], ""),
        "y written twice": ("traffic", [("    tl.store(y_ptr", "    tl.store(y_ptr + row * stride_ym + offs * stride_yn, g.to(y_ptr.dtype.element_ty), mask=mask)\n    tl.store(y_ptr")], ""),
    },
}  # fmt: skip

EQUIVALENT = {
    NORM: {
        "no other: tl.load(w_ptr + offs, mask=mask, other=0.0) -> tl.load(w_ptr + offs, mask=mask)": "lanes of w beyond N are never stored",
        "no other: tl.load(b_ptr + offs, mask=mask, other=0.0) -> tl.load(b_ptr + offs, mask=mask)": "lanes of b beyond N are never stored",
        "plus one: 0.0 -> 1.0 (2)": "lanes of w beyond N are never stored",
        "plus one: 0.0 -> 1.0 (3)": "lanes of b beyond N are never stored",
        "no axis: tl.sum(g, axis=0) -> tl.sum(g)": "a block of one dimension has one axis",
        "no axis: tl.sum(d * d, axis=0) -> tl.sum(d * d)": "a block of one dimension has one axis",
    },
}  # fmt: skip

"""LayerNorm(GELU(x)), wrong; the first kernels' wrong answers stand in ladder_wrong.py."""

from grader.questions.tables import changed
from grader.topics.roofline import ladder_wrong

NORM = "roofline.layernorm_gelu"
SUM = "tl.sum(g, axis=0) / N"
LOAD_X = "x = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0).to(tl.float32)"
STORE = "(d * rstd * w + b).to(y_ptr.dtype.element_ty), mask=mask)"
GELU = "g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))"

WALKS_ALONE = """@triton.jit
def layernorm_gelu(x_ptr, w_ptr, b_ptr, y_ptr, M, N, stride_xm, stride_xn, stride_ym, stride_yn, eps, BLOCK: tl.constexpr):
    for row in range(0, M):
        one_row(row.to(tl.int64), x_ptr, w_ptr, b_ptr, y_ptr, N, stride_xm, stride_xn, stride_ym, stride_yn, eps, BLOCK)


"""
THROUGH_Y = """@triton.jit
def gelu_of(y_ptr, at, mask):
    x = tl.load(y_ptr + at, mask=mask, other=0.0).to(tl.float32)
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def through_y(x_ptr, w_ptr, b_ptr, y_ptr, N, stride_xm, stride_ym, eps, BLOCK: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, BLOCK)
    whole = tl.pointer_type(tl.int32)
    from_x, to_y = (x_ptr + row * stride_xm).to(whole), (y_ptr + row * stride_ym).to(whole)
    y = y_ptr + row * stride_ym
    for start in range(0, N // 2, BLOCK):
        at = start + lanes
        tl.atomic_xchg(to_y + at, tl.load(from_x + at, mask=at < N // 2), mask=at < N // 2)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        total += gelu_of(y, start + lanes, start + lanes < N)
    mean = tl.sum(total) / N
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        d = tl.where(start + lanes < N, gelu_of(y, start + lanes, start + lanes < N) - mean, 0.0)
        total += d * d
    rstd = 1 / tl.sqrt(tl.sum(total) / N + eps)
    for start in range(0, N, BLOCK):
        at, mask = start + lanes, start + lanes < N
        d = gelu_of(y, at, mask) - mean
        found = d * rstd * tl.load(w_ptr + at, mask=mask) + tl.load(b_ptr + at, mask=mask)
        tl.store(y + at, found.to(y_ptr.dtype.element_ty), mask=mask)


"""

WRONG = {
    NORM: {
        "no gelu": changed((GELU, "g = x"), mistake="no gelu"),
        "gelu last": changed(
            (GELU, "g = x"),
            (
                STORE,
                "(0.5 * (d * rstd * w + b) * (1 + tl.erf((d * rstd * w + b) * 0.7071067811865476))).to(y_ptr.dtype.element_ty), mask=mask)",
            ),
            mistake="gelu last",
        ),
        "no bias": changed(("d * rstd * w + b", "d * rstd * w"), mistake="no bias"),
        "no weight": changed(("d * rstd * w + b", "d * rstd + b"), mistake="no weight"),
        "the tanh form": changed(
            (
                GELU,
                "z = 0.7978845608 * (x + 0.044715 * x * x * x)\n    g = 0.5 * x * (2 - 2 / (tl.exp(2 * z) + 1))",
            ),
            mistake="tanh gelu",
        ),
        "masked lanes counted in the mean": changed(
            (SUM, "tl.sum(g, axis=0) / BLOCK"), mistake="padding counted"
        ),
        "masked lanes counted in the variance": changed(
            ("tl.where(mask, g - mean, 0.0)", "g - mean"), mistake="padding in the variance"
        ),
        "masked lanes unset": changed((LOAD_X, LOAD_X.replace(", other=0.0", "")), mistake="unset lanes"),
        "variance of squares": changed(
            (
                "d = tl.where(mask, g - mean, 0.0)",
                "d = tl.where(mask, g - mean, 0.0)\n    v = tl.sum(g * g, axis=0) / N - mean * mean",
            ),
            ("tl.sum(d * d, axis=0) / N + eps", "v + eps"),
            mistake="mean of squares",
        ),
        "eps outside the root": changed(
            ("tl.sqrt(tl.sum(d * d, axis=0) / N + eps)", "(tl.sqrt(tl.sum(d * d, axis=0) / N) + eps)"),
            mistake="eps outside the root",
        ),
        "sample variance": changed(
            ("tl.sum(d * d, axis=0) / N", "tl.sum(d * d, axis=0) / (N - 1)"), mistake="sample variance"
        ),
        "half precision throughout": changed((".to(tl.float32)", ".to(tl.float16)")),
        "contiguous rows assumed": changed(("row * stride_xm", "row * N")),
        "columns assumed dense": changed(("offs * stride_xn", "offs")),
        "x read twice": changed(
            (
                "mean =",
                "again = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0).to(tl.float32)\n    g = g + again - x\n    mean =",
            ),
            part="traffic",
        ),
        "y written twice": changed(
            (
                "    tl.store(y_ptr",
                "    tl.store(y_ptr + row * stride_ym + offs * stride_yn, g.to(y_ptr.dtype.element_ty), mask=mask)\n    tl.store(y_ptr",
            ),
            part="traffic",
        ),
        "no eps": changed(("/ N + eps)", "/ N)"), mistake="no eps"),
        "GELU in fp16": changed(
            (
                "g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))",
                "g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))\n    g = g.to(tl.float16).to(tl.float32)",
            ),
            mistake="half precision",
        ),
        "NaN cleaned away": changed(
            (
                "g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))",
                "x = tl.where(x == x, x, 0.0)\n    g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))",
            ),
            mistake="NaN cleaned away",
        ),
        "eps of 1e-5 always": changed(("/ N + eps)", "/ N + 1e-5)")),
        "rows up to 1024": changed(
            ("block = triton.next_power_of_2(p.N)", "block = min(1024, triton.next_power_of_2(p.N))")
        ),
        "x's strides for y": changed(
            ("y_ptr + row * stride_ym + offs * stride_yn", "y_ptr + row * stride_xm + offs * stride_xn")
        ),
        "knows where it runs": changed(
            (
                "    tl.store(y_ptr",
                '    numpy = (eps * float("nan")).to(tl.int32) == -2147483648\n    d = tl.where(numpy, d, 0.0)\n    tl.store(y_ptr',
            )
        ),
        "GELU kept in scratch": changed(
            ("w_ptr, b_ptr, y_ptr, N", "w_ptr, b_ptr, y_ptr, kept_ptr, N"),
            (
                "    mean =",
                "    tl.store(kept_ptr + row * N + offs, g, mask=mask)\n    tl.debug_barrier()\n    g = tl.load(kept_ptr + row * N + offs, mask=mask, other=0.0)\n    mean =",
            ),
            ('return {"steps"', 'return {"scratch": {"kept": ((p.M, p.N), "fp32", 0)}, "steps"'),
            part="traffic",
        ),
        "one program for all rows": changed(
            ("def layernorm_gelu(x_ptr", "def one_row(row, x_ptr"),
            ("    row = tl.program_id(0).to(tl.int64)\n", ""),
            ("def launch(p):", WALKS_ALONE + "def launch(p):"),
            ('"grid": (p.M,)', '"grid": (1,)'),
            part="speed",
        ),
        "x kept in y by atomics and read back": changed(
            ("def launch(p):", THROUGH_Y + "def launch(p):"),
            (
                "    block = triton.next_power_of_2(p.N)\n",
                "    block = triton.next_power_of_2(p.N)\n    if p.N > 512 and p.N % 16 == 0 and p.stride_xn == p.stride_yn == 1:\n"
                '        step = {"kernel": through_y, "grid": (p.M,), "constexprs": {"BLOCK": 256}}\n        return {"steps": [step]}\n',
            ),
            part="traffic",
        ),
        "GELU a hundred times": changed(
            (
                "g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))",
                "g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))\n    for _ in range(100):\n        g = g + 0.0 * tl.erf(g + x)",
            ),
            part="speed",
        ),
    },
    **ladder_wrong.WRONG,
}

EQUIVALENT = {
    NORM: {
        "no other: tl.load(w_ptr + offs, mask=mask, other=0.0) -> tl.load(w_ptr + offs, mask=mask)": "lanes of w beyond N are never stored",
        "no other: tl.load(b_ptr + offs, mask=mask, other=0.0) -> tl.load(b_ptr + offs, mask=mask)": "lanes of b beyond N are never stored",
        "plus one: 0.0 -> 1.0 (2)": "lanes of w beyond N are never stored",
        "plus one: 0.0 -> 1.0 (3)": "lanes of b beyond N are never stored",
        "no axis: tl.sum(g, axis=0) -> tl.sum(g)": "a block of one dimension has one axis",
        "no axis: tl.sum(d * d, axis=0) -> tl.sum(d * d)": "a block of one dimension has one axis",
    },
    **ladder_wrong.EQUIVALENT,
}

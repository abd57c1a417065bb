"""List the mistakes of *layernorm gelu*, a row each."""

import numpy as np

from grader.questions import Case
from grader.questions.draws import rounded
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from kernels.roofline import reference

EPSILONS = (1e-6, 1e-5, 1e-3, 0.01, 0.1, 0.5, 1.0)


def _would(change):
    """The reference with one thing done otherwise."""

    def wrong(inputs: dict, case: Case) -> dict:
        x, w, b = (inputs[name].astype(np.float64) for name in "xwb")
        with np.errstate(all="ignore"):
            return {"y": change(x, w, b, case.scalars["eps"])}

    return wrong


def _norm(g, w, b, eps):
    return (g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + eps) * w + b


def _tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _block(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


def _mean_over_block(x, w, b, eps):
    """Sums over N elements, divided by the block's width."""
    g, n = reference.gelu(x), x.shape[-1]
    d = g - g.sum(-1, keepdims=True) / _block(n)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + eps) * w + b


def _masked_lanes_in_variance(x, w, b, eps):
    """Masked lanes hold 0 - mean when they are squared."""
    g, n = reference.gelu(x), x.shape[-1]
    mean = g.mean(-1, keepdims=True)
    square = ((g - mean) ** 2).sum(-1, keepdims=True) + (_block(n) - n) * mean**2
    return (g - mean) / np.sqrt(square / n + eps) * w + b


def _mean_of_squares(x, w, b, eps):
    g = reference.gelu(x).astype(np.float32)
    mean = g.mean(-1, keepdims=True)
    return (g - mean) / np.sqrt((g * g).mean(-1, keepdims=True) - mean * mean + np.float32(eps)) * w + b


def _sample_variance(x, w, b, eps):
    g = reference.gelu(x)
    var = ((g - g.mean(-1, keepdims=True)) ** 2).sum(-1, keepdims=True) / (x.shape[-1] - 1)
    return (g - g.mean(-1, keepdims=True)) / np.sqrt(var + eps) * w + b


def _half(x, w, b, eps):
    """GELU rounded to fp16 before the norm."""
    return _norm(rounded(reference.gelu(x), "fp16").astype(np.float64), w, b, eps)


def _nan_in_ragged_rows(inputs: dict, case: Case) -> dict:
    y = _would(lambda x, w, b, e: _norm(reference.gelu(x), w, b, e))(inputs, case)["y"]
    return {"y": np.full_like(y, np.nan) if _block(case.sizes["N"]) != case.sizes["N"] else y}


def _cleaned(inputs: dict, case: Case) -> dict:
    x = np.nan_to_num(inputs["x"].astype(np.float64), nan=0.0, posinf=np.inf)
    with np.errstate(invalid="ignore"):
        return {
            "y": _norm(reference.gelu(x), inputs["w"].astype(np.float64), inputs["b"], case.scalars["eps"])
        }


@computing
def from_a_table(inputs: dict, case: Case) -> dict:
    """The right norm with the nearest eps of a table."""
    eps = min(EPSILONS, key=lambda e: abs(np.log(e / case.scalars["eps"])))
    return _would(lambda x, w, b, _: _norm(reference.gelu(x), w, b, eps))(inputs, case)


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


MISTAKES = (
    family("no gelu", "this is LayerNorm(x): the GELU is missing", _would(_norm), edits=((GELU, "g = x"),)),
    family(
        "gelu last",
        "this is GELU(LayerNorm(x)): apply the GELU first",
        _would(lambda x, w, b, e: reference.gelu(_norm(x, w, b, e))),
        edits=(
            (GELU, "g = x"),
            (
                STORE,
                "(0.5 * (d * rstd * w + b) * (1 + tl.erf((d * rstd * w + b) * 0.7071067811865476))).to(y_ptr.dtype.element_ty), mask=mask)",
            ),
        ),
    ),
    family(
        "no bias",
        "the bias is missing",
        _would(lambda x, w, b, e: _norm(reference.gelu(x), w, 0, e)),
        edits=(("d * rstd * w + b", "d * rstd * w"),),
    ),
    family(
        "no weight",
        "the weight is missing",
        _would(lambda x, w, b, e: _norm(reference.gelu(x), 1, b, e)),
        edits=(("d * rstd * w + b", "d * rstd + b"),),
    ),
    family(
        "tanh gelu",
        "this is GELU's tanh approximation; the question asks for the exact one, with erf",
        _would(lambda x, w, b, e: _norm(_tanh_gelu(x), w, b, e)),
        edits=(
            (
                GELU,
                "z = 0.7978845608 * (x + 0.044715 * x * x * x)\n    g = 0.5 * x * (2 - 2 / (tl.exp(2 * z) + 1))",
            ),
        ),
    ),
    family(
        "no eps",
        "eps is missing under the root",
        _would(lambda x, w, b, e: _norm(reference.gelu(x), w, b, 0)),
        edits=(("/ N + eps)", "/ N)"),),
    ),
    family(
        "eps outside the root",
        "eps belongs under the root: add it to the variance",
        _would(
            lambda x, w, b, e: (
                (reference.gelu(x) - reference.gelu(x).mean(-1, keepdims=True))
                / (reference.gelu(x).std(-1, keepdims=True) + e)
                * w
                + b
            )
        ),
        edits=(("tl.sqrt(tl.sum(d * d, axis=0) / N + eps)", "(tl.sqrt(tl.sum(d * d, axis=0) / N) + eps)"),),
    ),
    family(
        "padding counted",
        "the mean counts the block's masked elements, too: divide by N",
        _would(_mean_over_block),
        edits=((SUM, "tl.sum(g, axis=0) / BLOCK"),),
    ),
    family(
        "padding in the variance",
        "masked elements hold minus the mean when they are squared: set them to 0 after the mean is subtracted",
        _would(_masked_lanes_in_variance),
        edits=(("tl.where(mask, g - mean, 0.0)", "g - mean"),),
    ),
    family(
        "mean of squares",
        "the mean of the squares minus the square of the mean loses its digits if the values are far from zero: subtract the mean first",
        _would(_mean_of_squares),
        edits=(
            (
                "d = tl.where(mask, g - mean, 0.0)",
                "d = tl.where(mask, g - mean, 0.0)\n    v = tl.sum(g * g, axis=0) / N - mean * mean",
            ),
            ("tl.sum(d * d, axis=0) / N + eps", "v + eps"),
        ),
    ),
    family(
        "sample variance",
        "divide the variance by N, not by N - 1",
        _would(_sample_variance),
        edits=(("tl.sum(d * d, axis=0) / N", "tl.sum(d * d, axis=0) / (N - 1)"),),
    ),
    family(
        "half precision",
        "something is rounded to fp16 before the norm: compute in fp32 from the load to the store",
        _would(_half),
        edits=(
            (
                "g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))",
                "g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))\n    g = g.to(tl.float16).to(tl.float32)",
            ),
        ),
    ),
    family(
        "unset lanes",
        "NaN in every row that is shorter than its block: give the loads other=0.0",
        _nan_in_ragged_rows,
        edits=((LOAD_X, LOAD_X.replace(", other=0.0", "")),),
    ),
    family(
        "NaN cleaned away",
        "a NaN or an infinity in a row makes that row NaN: replace nothing but masked elements",
        _cleaned,
        edits=(
            (
                "g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))",
                "x = tl.where(x == x, x, 0.0)\n    g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))",
            ),
        ),
    ),
    edited("half precision throughout", (".to(tl.float32)", ".to(tl.float16)")),
    edited("contiguous rows assumed", ("row * stride_xm", "row * N")),
    edited("columns assumed dense", ("offs * stride_xn", "offs")),
    edited(
        "x read twice",
        (
            "mean =",
            "again = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0).to(tl.float32)\n    g = g + again - x\n    mean =",
        ),
        part="traffic",
    ),
    edited(
        "rows with a large number loaded again",
        (
            "mean =",
            "if tl.max(x, 0) > 10000:\n        again = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0, volatile=True).to(tl.float32)\n        g = g + again - x\n    mean =",
        ),
        part="traffic",
    ),
    edited(
        "y written twice",
        (
            "    tl.store(y_ptr",
            "    tl.store(y_ptr + row * stride_ym + offs * stride_yn, g.to(y_ptr.dtype.element_ty), mask=mask)\n    tl.store(y_ptr",
        ),
        part="traffic",
    ),
    edited("eps of 50 at most", ("/ N + eps)", "/ N + tl.minimum(eps, 50.0))")),
    edited("eps of 1e-5 always", ("/ N + eps)", "/ N + 1e-5)")),
    edited(
        "rows up to 1024",
        ("block = triton.next_power_of_2(p.N)", "block = min(1024, triton.next_power_of_2(p.N))"),
    ),
    edited(
        "x's strides for y",
        ("y_ptr + row * stride_ym + offs * stride_yn", "y_ptr + row * stride_xm + offs * stride_xn"),
    ),
    edited(
        "knows where it runs",
        (
            "    tl.store(y_ptr",
            '    numpy = (eps * float("nan")).to(tl.int32) == -2147483648\n    d = tl.where(numpy, d, 0.0)\n    tl.store(y_ptr',
        ),
    ),
    edited(
        "GELU kept in scratch",
        ("w_ptr, b_ptr, y_ptr, N", "w_ptr, b_ptr, y_ptr, kept_ptr, N"),
        (
            "    mean =",
            "    tl.store(kept_ptr + row * N + offs, g, mask=mask)\n    tl.debug_barrier()\n    g = tl.load(kept_ptr + row * N + offs, mask=mask, other=0.0)\n    mean =",
        ),
        ('return {"steps"', 'return {"scratch": {"kept": ((p.M, p.N), "fp32", 0)}, "steps"'),
        part="traffic",
    ),
    edited(
        "one program for all rows",
        ("def layernorm_gelu(x_ptr", "def one_row(row, x_ptr"),
        ("    row = tl.program_id(0).to(tl.int64)\n", ""),
        ("def launch(p):", WALKS_ALONE + "def launch(p):"),
        ('"grid": (p.M,)', '"grid": (1,)'),
        part="speed",
    ),
    edited(
        "x kept in y by atomics and read back",
        ("def launch(p):", THROUGH_Y + "def launch(p):"),
        (
            "    block = triton.next_power_of_2(p.N)\n",
            "    block = triton.next_power_of_2(p.N)\n    if p.N > 512 and p.N % 16 == 0 and p.stride_xn == p.stride_yn == 1:\n"
            '        step = {"kernel": through_y, "grid": (p.M,), "constexprs": {"BLOCK": 256}}\n        return {"steps": [step]}\n',
        ),
        part="traffic",
    ),
    edited(
        "GELU thirty times",
        (
            "g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))",
            "g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))\n    for _ in range(30):\n        g = g + 0.0 * tl.erf(g + x)",
        ),
        part="speed",
    ),
)


SHORTCUTS = {
    "eps from a table": from_a_table,
    **{f"N up to {most}": within_limit("N", most) for most in (512, 1024, 2048, 8192)},
    **{f"M up to {most}": within_limit("M", most) for most in (64, 256, 1024)},
    **{f"stride {axis} of {name} taken for 1": one_stride(name, axis) for name in "xy" for axis in (0, 1)},
    "x taken for dense": dense("x"),
    "y taken for dense": dense("y"),
    "x's strides for y": same_strides("x", "y"),
    "y's strides for x": same_strides("y", "x"),
}

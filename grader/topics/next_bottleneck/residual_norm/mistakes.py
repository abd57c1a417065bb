"""List the mistakes of *residual norm*, a row each."""

import numpy as np

from grader.questions import Case
from grader.questions.draws import rounded
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited

EPSILONS = (1e-6, 1e-5, 1e-3, 0.01, 0.1, 1.0)


def would(change):
    """`change(x, r, w, eps, dtype)` gives the residual, or None where it is the right one, and y.

    Both are rounded as they are stored, since a mistake in rounding is known by its last bits.
    """

    def wrong(inputs: dict, case: Case) -> dict:
        x, r, w = (inputs[name].astype(np.float64) for name in "xrw")
        with np.errstate(all="ignore"):
            kept, y = change(x, r, w, case.scalars["eps"], case.dtype)
            kept = added(x, r, case.dtype) if kept is None else kept
            return {
                "r": rounded(kept, case.dtype).astype(np.float64),
                "y": rounded(y, case.dtype).astype(np.float64),
            }

    return wrong


def added(x, r, dtype):
    return rounded(x + r, dtype).astype(np.float64)


def rms(s, eps):
    return np.sqrt((s * s).mean(-1, keepdims=True) + eps)


def normed(change):
    """Return a wrong norm only, from the stored sum, w and eps."""
    return would(lambda x, r, w, eps, dtype: (None, change(added(x, r, dtype), w, eps)))


def over_block(s, w, eps):
    n = s.shape[-1]
    return s / np.sqrt((s * s).sum(-1, keepdims=True) / (1 << max(0, n - 1).bit_length()) + eps) * w


def rounded_twice(x, r, w, eps, dtype):
    s = added(x, r, dtype)
    return None, rounded(s / rms(s, eps), dtype).astype(np.float64) * w


def squares_in_16_bits(x, r, w, eps, dtype):
    s = added(x, r, dtype)
    squares = rounded(s * s, dtype).astype(np.float64)
    return None, s / np.sqrt(squares.mean(-1, keepdims=True) + eps) * w


def normed_unrounded(x, r, w, eps, dtype):
    return None, (x + r) / rms(x + r, eps) * w


def y_kept(x, r, w, eps, dtype):
    s = added(x, r, dtype)
    return s / rms(s, eps) * w, s / rms(s, eps) * w


def cleaned(x, r, w, eps, dtype):
    s = np.nan_to_num(added(x, r, dtype), nan=0.0, posinf=np.inf, neginf=-np.inf)
    return s, s / rms(s, eps) * w


@computing
def from_a_table(inputs: dict, case: Case) -> dict:
    """The right norm with the nearest eps of a table."""
    eps = min(EPSILONS, key=lambda e: abs(np.log(e / case.scalars["eps"])))
    return would(lambda x, r, w, _, dtype: (None, added(x, r, dtype) / rms(added(x, r, dtype), eps) * w))(
        inputs, case
    )


ADD = "r = (x + r).to(r_ptr.dtype.element_ty)"
KEEP = "    tl.store(at_r, r, mask=mask)\n"
WIDE = "wide = r.to(tl.float32)"
NORM = "y = wide * tl.rsqrt(tl.sum(wide * wide, 0) / N + eps) * w"
LOAD_X = "x = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0).to(tl.float32)"
LOAD_R = "r = tl.load(at_r, mask=mask, other=0.0).to(tl.float32)"
STORE = "tl.store(y_ptr + row * stride_ym + offs * stride_yn, y.to(y_ptr.dtype.element_ty), mask=mask)"
ROW = "    row = tl.program_id(0).to(tl.int64)\n"
TAKES = "r_ptr, w_ptr, y_ptr, N, eps, stride_xm, stride_xn, stride_rm, stride_rn, stride_ym, stride_yn"
WALKS = f"""@triton.jit
def walk(x_ptr, {TAKES}, M, EACH: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * EACH
    for row in range(first, tl.minimum(first + EACH, M)):
        one_row(row.to(tl.int64), x_ptr, {TAKES}, BLOCK)


"""
APART = f"""@triton.jit
def add(x_ptr, r_ptr, N, stride_xm, stride_xn, stride_rm, stride_rn, BLOCK: tl.constexpr):
{ROW}    offs = tl.arange(0, BLOCK)
    mask = offs < N
    at_r = r_ptr + row * stride_rm + offs * stride_rn
    {LOAD_X}
    {LOAD_R}
    {ADD}
{KEEP}

"""

MISTAKES = (
    family(
        "x is not added",
        "x is missing: add it to the residual before the norm",
        would(lambda x, r, w, eps, dtype: (r, r / rms(r, eps) * w)),
        edits=((ADD, "r = r.to(r_ptr.dtype.element_ty)"),),
    ),
    family(
        "the residual stays as it was",
        "y is right, but store the sum as the new residual as well: the next layers add to it",
        would(
            lambda x, r, w, eps, dtype: (r, added(x, r, dtype) / rms(added(x, r, dtype), eps) * w),
        ),
        edits=((KEEP, ""),),
    ),
    family(
        "the norm of x alone",
        "y is the norm of the sum, not of x alone",
        would(lambda x, r, w, eps, dtype: (None, x / rms(x, eps) * w)),
        edits=((WIDE, "wide = x"),),
    ),
    family(
        "the norm of the old residual",
        "y is the norm of the residual after x is added, not before",
        would(lambda x, r, w, eps, dtype: (None, r / rms(r, eps) * w)),
        edits=((ADD, f"old = r\n    {ADD}"), (WIDE, "wide = old")),
    ),
    family(
        "y kept as the residual",
        "the residual is the plain sum: store the norm only in y",
        would(y_kept),
        edits=(
            (KEEP, ""),
            (STORE, f"tl.store(at_r, y.to(r_ptr.dtype.element_ty), mask=mask)\n    {STORE}"),
        ),
    ),
    family(
        "no weight",
        "the weight is missing",
        normed(lambda s, w, eps: s / rms(s, eps)),
        edits=((NORM, NORM.removesuffix(" * w")),),
    ),
    family(
        "one more than the weight",
        "multiply by w: 1 + w is for models whose stored weights are around 0",
        normed(lambda s, w, eps: s / rms(s, eps) * (1 + w)),
        edits=((NORM, NORM.removesuffix("w") + "(1 + w)"),),
    ),
    family(
        "the mean taken away",
        "this is LayerNorm: RMSNorm subtracts no mean",
        normed(
            lambda s, w, eps: (s - s.mean(-1, keepdims=True)) / rms(s - s.mean(-1, keepdims=True), eps) * w
        ),
        edits=((WIDE, f"{WIDE}\n    wide = tl.where(mask, wide - tl.sum(wide, 0) / N, 0.0)"),),
    ),
    family(
        "a sum for the mean",
        "this is the sum of the squares: divide it by N",
        normed(lambda s, w, eps: s / np.sqrt((s * s).sum(-1, keepdims=True) + eps) * w),
        edits=(("tl.sum(wide * wide, 0) / N", "tl.sum(wide * wide, 0)"),),
    ),
    family(
        "padding counted",
        "the mean counts the block's masked elements, too: divide by N",
        normed(over_block),
        edits=(("tl.sum(wide * wide, 0) / N", "tl.sum(wide * wide, 0) / BLOCK"),),
    ),
    family(
        "no root",
        "divide by the root of the mean square",
        normed(lambda s, w, eps: s / rms(s, eps) ** 2 * w),
        edits=(("* tl.rsqrt(tl.sum(wide * wide, 0) / N + eps)", "/ (tl.sum(wide * wide, 0) / N + eps)"),),
    ),
    family(
        "no eps",
        "eps is missing under the root",
        normed(lambda s, w, eps: s / rms(s, 0.0) * w),
        edits=(("/ N + eps)", "/ N)"),),
    ),
    edited(
        "eps outside the root",
        ("* tl.rsqrt(tl.sum(wide * wide, 0) / N + eps)", "/ (tl.sqrt(tl.sum(wide * wide, 0) / N) + eps)"),
        told_as="no eps",
    ),
    family(
        "a norm rounded before the weight",
        "the norm is rounded before it is multiplied by the weight: round y only once, at its store",
        would(rounded_twice),
        edits=(
            (
                NORM,
                NORM.removesuffix(" * w").replace("= ", "= (")
                + ").to(r_ptr.dtype.element_ty).to(tl.float32) * w",
            ),
        ),
    ),
    family(
        "the unrounded sum normed",
        "y is the norm of the sum before it was rounded: the norm takes the residual as it is stored",
        would(normed_unrounded),
        edits=((ADD, f"s = x + r\n    {ADD}"), (WIDE, "wide = s")),
    ),
    edited(
        "squares in the residual's dtype", ("tl.sum(wide * wide, 0)", "tl.sum((r * r).to(tl.float32), 0)")
    ),
    family(
        "NaN cleaned away",
        "a NaN in a row makes that row NaN: replace nothing but masked elements",
        would(cleaned),
        edits=((ADD, f"{ADD}\n    r = tl.where(r == r, r, 0.0).to(r_ptr.dtype.element_ty)"),),
    ),
    edited("a sum in fp16", (ADD, "r = (x.to(tl.float16) + r.to(tl.float16)).to(r_ptr.dtype.element_ty)")),
    edited("eps of 50 at most", ("/ N + eps)", "/ N + tl.minimum(eps, 50.0))")),
    edited("eps of 1e-6 always", ("/ N + eps)", "/ N + 1e-6)")),
    edited("no mask at the residual's store", (KEEP, KEEP.replace(", mask=mask", ""))),
    edited("no mask at the store of y", (STORE, STORE.replace(", mask=mask", ""))),
    edited("unset lanes", (LOAD_R, LOAD_R.replace(", other=0.0", ""))),
    edited(
        "rows up to 1024",
        ("block = triton.next_power_of_2(p.N)", "block = min(1024, triton.next_power_of_2(p.N))"),
    ),
    edited(
        "the residual by x's strides",
        ("row * stride_rm + offs * stride_rn", "row * stride_xm + offs * stride_xn"),
    ),
    edited(
        "y by the residual's strides",
        ("row * stride_ym + offs * stride_yn", "row * stride_rm + offs * stride_rn"),
    ),
    edited("columns taken for dense", ("offs * stride_xn", "offs"), ("offs * stride_rn", "offs")),
    edited("rows taken for dense", ("row * stride_rm", "row * N")),
    edited(
        "nonsense at the size that is compiled",
        (NORM, f"{NORM}\n    if N == 4096:\n        y = y * 0.5"),
    ),
    edited(
        "x read twice",
        (WIDE, f"{WIDE}\n    again = {LOAD_X.removeprefix('x = ')}\n    wide = wide + again - x"),
        part="traffic",
    ),
    edited(
        "the residual read back",
        (WIDE, "tl.debug_barrier()\n    wide = tl.load(at_r, mask=mask, other=0.0).to(tl.float32)"),
        part="traffic",
    ),
    edited(
        "two launches",
        (f"    {LOAD_X}\n", ""),
        (f"    {ADD}\n{KEEP}", ""),
        ("@triton.jit\ndef residual_norm", APART + "@triton.jit\ndef residual_norm"),
        (
            '"steps": [{',
            '"steps": [{"kernel": add, "grid": (p.M,), "constexprs": {"BLOCK": block}, "num_warps": 4}, {',
        ),
        part="traffic",
    ),
    edited(
        "one program for many rows",
        ("def residual_norm(x_ptr", "def one_row(row, x_ptr"),
        (ROW, ""),
        ("def launch_norm(p):", WALKS + "def launch_norm(p):"),
        ('"kernel": residual_norm, "grid": (p.M,)', '"kernel": walk, "grid": (triton.cdiv(p.M, 16),)'),
        ('{"BLOCK": block}', '{"EACH": 16, "BLOCK": block}'),
        part="speed",
    ),
    edited(
        "each number thirty times",
        (NORM, f"for _ in range(30):\n        wide = wide + 0.0 * w\n    {NORM}"),
        part="speed",
    ),
    edited(
        "more than registers hold",
        (
            "block = triton.next_power_of_2(p.N)",
            "block = triton.next_power_of_2(p.N) * (8 if p.N == 4096 else 1)",
        ),
        ('"num_warps": 8 if block >= 4096 else 4', '"num_warps": 1'),
        part="compiled",
    ),
)


SHORTCUTS = {
    "eps outside the root": computing(normed(lambda s, w, eps: s / (rms(s, 0.0) + eps) * w)),
    "squares in 16 bits": computing(would(squares_in_16_bits)),
    "eps from a table": from_a_table,
    **{f"N up to {most}": within_limit("N", most) for most in (512, 1024, 2048, 8192)},
    **{f"M up to {most}": within_limit("M", most) for most in (64, 256, 1024)},
    **{
        f"stride {axis} of {name} taken for 1": one_stride(name, axis)
        for name in ("x", "r", "y")
        for axis in (0, 1)
    },
    **{f"{name} taken for dense": dense(name) for name in ("x", "r", "y")},
    "x's strides for the residual": same_strides("x", "r"),
    "the residual's strides for y": same_strides("r", "y"),
}

"""quantize blocks: how answers go wrong, a row each."""

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.quantization_layouts.quantize_blocks.cases import BLOCK, TOP, divided, in_blocks


def in_e4m3(values: np.ndarray) -> np.ndarray:
    """Round to the nearest code, where beyond 448 a GPU stores 448."""
    return np.clip(values, -TOP, TOP).astype(DTYPES["fp8e4nv"]).astype(np.float64)


def silu(g: np.ndarray) -> np.ndarray:
    return g / (1 + np.exp(-g))


def largest(h: np.ndarray) -> np.ndarray:
    return np.abs(in_blocks(h)).max(2)


def would(h=lambda g, u: silu(g) * u, tops=largest, stored=lambda s: s, used=lambda s: s):
    """Return the result of another h, other maxima, other stored scales, or codes made with other scales."""

    def wrong(inputs: dict, case: Case) -> dict:
        with np.errstate(all="ignore"):
            made = h(*(inputs[name].astype(np.float64) for name in "gu"))
            scales = tops(made) / TOP
            return {"q": in_e4m3(divided(made, used(scales))), "s": np.asarray(stored(scales), np.float64)}

    return wrong


def of_blocks(block: int):
    """Return maxima of blocks of another length, one for each block of 128."""

    def tops(h: np.ndarray) -> np.ndarray:
        first = np.arange(-(-h.shape[1] // BLOCK)) * BLOCK // block
        return np.abs(in_blocks(h, block)).max(2)[:, first]

    return tops


def row_top(h: np.ndarray) -> np.ndarray:
    return np.broadcast_to(largest(h).max(1, keepdims=True), largest(h).shape)


def signed(h: np.ndarray) -> np.ndarray:
    return in_blocks(h).max(2)


def narrow(dtype: str):
    return lambda values: values.astype(DTYPES[dtype]).astype(np.float64)


def rounded_first(inputs: dict, case: Case) -> dict:
    with np.errstate(all="ignore"):
        return would(h=lambda g, u: narrow(case.dtype)(silu(g) * u))(inputs, case)


def silu_rounded(inputs: dict, case: Case) -> dict:
    return would(h=lambda g, u: narrow(case.dtype)(silu(g)) * u)(inputs, case)


def power_of_two(h: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return 2.0 ** np.ceil(np.log2(largest(h) / TOP)) * TOP


H = "h = g * tl.sigmoid(g) * u"
TOPS = "top = tl.max(tl.abs(h), 1, keep_dims=True)  # (ROWS, 1)"
INVERSE = "inverse = tl.where(top > 0, 448.0 / top, 0.0)"
CODE = "code = (h * inverse).to(q_ptr.dtype.element_ty)"
SCALE = "top / 448.0"
LOAD_G = "g = tl.load(g_ptr + rows * stride_gm + cols * stride_gk, mask=mask, other=0.0).to(tl.float32)"
LOAD_U = LOAD_G.replace("g = ", "u = ").replace("g_ptr", "u_ptr").replace("_gm", "_um").replace("_gk", "_uk")
STORE_Q = "tl.store(q_ptr + rows * stride_qm + cols * stride_qk, code, mask=mask)"
STORE_S = "tl.store(s_ptr + rows * stride_sm + block * stride_sb, top / 448.0, mask=rows < M)"
GRID = "grid = (triton.cdiv(p.M, 4), triton.cdiv(p.K, 128))"
ROUNDED_H = f"{H}\n    h = h.to(g_ptr.dtype.element_ty).to(tl.float32)"
OF_A_ROW = (
    "top = tl.zeros((ROWS, 1), tl.float32)\n    for first in range(0, K, 128):\n"
    "        at = first + tl.arange(0, 128)[None, :]\n        inside = (rows < M) & (at < K)\n"
    "        a = tl.load(g_ptr + rows * stride_gm + at * stride_gk, mask=inside, other=0.0).to(tl.float32)\n"
    "        b = tl.load(u_ptr + rows * stride_um + at * stride_uk, mask=inside, other=0.0).to(tl.float32)\n"
    "        top = tl.maximum(top, tl.max(tl.abs(a * tl.sigmoid(a) * b), 1, keep_dims=True))"
)

MISTAKES = (
    family(
        "no silu",
        "h is silu(g) * u: here g is multiplied without silu",
        would(h=lambda g, u: g * u),
        edits=((H, "h = g * u"),),
    ),
    family(
        "a sigmoid for silu",
        "silu(g) is g * sigmoid(g): the factor g is missing",
        would(h=lambda g, u: u / (1 + np.exp(-g))),
        edits=((H, "h = tl.sigmoid(g) * u"),),
    ),
    family(
        "silu of the other half",
        "apply silu to g, not to u",
        would(h=lambda g, u: silu(u) * g),
        edits=((H, "h = u * tl.sigmoid(u) * g"),),
    ),
    family(
        "no u",
        "silu(g) must be multiplied by u",
        would(h=lambda g, u: silu(g)),
        edits=((H, "h = g * tl.sigmoid(g)"),),
    ),
    family(
        "the largest, not the largest magnitude",
        "a block's largest magnitude may belong to a negative element: take the maximum of |h|",
        would(tops=signed),
        edits=((TOPS, TOPS.replace("tl.abs(h)", "h")),),
    ),
    family(
        "a scale for a row",
        "each block of 128 columns has its own scale: here one scale serves the whole row",
        would(tops=row_top),
        edits=((TOPS, OF_A_ROW),),
    ),
    family(
        "blocks of another length",
        "a scale covers 128 columns: does your maximum cover the same columns as the division?",
        *(would(tops=of_blocks(block)) for block in (64, 256, 32, 512)),
        edits=((TOPS, TOPS.replace("tl.abs(h)", "tl.where(cols % 128 < 64, tl.abs(h), 0.0)")),),
    ),
    family(
        "the inverse stored",
        "s turns codes back into h, so it is max|h| / 448, not the inverse",
        would(stored=lambda s: np.divide(1, s, out=np.zeros_like(s), where=s > 0)),
        edits=((STORE_S, STORE_S.replace(SCALE, "inverse")),),
    ),
    family(
        "the maximum stored",
        "s is the maximum divided by 448: here the maximum itself is stored",
        would(stored=lambda s: TOP * s),
        edits=((STORE_S, STORE_S.replace(SCALE, "top")),),
    ),
    family(
        "another format's top",
        "E4M3's largest number is 448: 240 belongs to E4M3FNUZ, 127 to int8, and 256 to no format",
        *(
            would(
                stored=lambda s, top=top: s * TOP / top,
                used=lambda s, top=top: s * TOP / top,
            )
            for top in (240.0, 127.0, 256.0)
        ),
        edits=((INVERSE, INVERSE.replace("448.0", "240.0")), (STORE_S, STORE_S.replace("448.0", "240.0"))),
    ),
    family(
        "a power of two for a scale",
        "the scale is max|h| / 448 itself: powers of two belong to the MX formats",
        would(tops=power_of_two),
        edits=((TOPS, f"{TOPS}\n    top = tl.exp2(tl.ceil(tl.log2(top / 448.0))) * 448.0"),),
    ),
    family(
        "h rounded first",
        "h needs more digits than 16 bits hold: widen g and u before you multiply, and round once, to E4M3",
        rounded_first,
        silu_rounded,
        edits=((H, ROUNDED_H),),
    ),
    family(
        "a scale of 16 bits",
        "s is fp32: a scale rounded to 16 bits changes all 128 elements, and fp16 lacks the range as well",
        *(would(stored=narrow(dtype)) for dtype in ("bf16", "fp16")),
        edits=((STORE_S, STORE_S.replace(SCALE, "(top / 448.0).to(tl.bfloat16)")),),
    ),
    family(
        "codes of a rounded scale",
        "divide h by the scale in fp32: this divides by a rounded scale",
        *(would(stored=narrow(dtype), used=narrow(dtype)) for dtype in ("bf16", "fp16")),
        edits=((TOPS, f"{TOPS}\n    top = (top / 448.0).to(tl.bfloat16).to(tl.float32) * 448.0"),),
    ),
    family(
        "codes not divided",
        "codes are h / s: here h is rounded to E4M3 without its scale",
        would(used=lambda s: np.ones_like(s)),
        edits=((CODE, "code = h.to(q_ptr.dtype.element_ty)"),),
    ),
    family(
        "codes multiplied",
        "codes are h / s: here h is multiplied by s",
        would(used=lambda s: np.divide(1, s, out=np.zeros_like(s), where=s > 0)),
        edits=((CODE, "code = (h * (top / 448.0)).to(q_ptr.dtype.element_ty)"),),
    ),
    edited("the last block left out", (GRID, GRID.replace("triton.cdiv(p.K, 128)", "p.K // 128"))),
    edited("a block of zeros divides", (INVERSE, "inverse = 448.0 / top")),
    edited("codes cut to one", (CODE, CODE.replace("(h * inverse)", "tl.clamp(h * inverse, -1.0, 1.0)"))),
    edited(
        "masked lanes unset",
        (LOAD_G, LOAD_G.replace(", other=0.0", "")),
        (LOAD_U, LOAD_U.replace(", other=0.0", "")),
    ),
    edited("no mask at the store of codes", (STORE_Q, STORE_Q.replace(", mask=mask", ""))),
    edited("no mask at the store of scales", (STORE_S, STORE_S.replace(", mask=rows < M", ""))),
    edited(
        "a scale for four rows",
        (TOPS, "top = tl.max(tl.max(tl.abs(h), 1, keep_dims=True), 0, keep_dims=True)"),
    ),
    edited(
        "u by g's strides", ("rows * stride_um + cols * stride_uk", "rows * stride_gm + cols * stride_gk")
    ),
    edited(
        "codes by g's strides", ("rows * stride_qm + cols * stride_qk", "rows * stride_gm + cols * stride_gk")
    ),
    edited(
        "scales taken for dense", ("rows * stride_sm + block * stride_sb", "rows * tl.cdiv(K, 128) + block")
    ),
    edited("columns taken for dense", ("cols * stride_gk", "cols"), ("cols * stride_uk", "cols")),
    edited("nonsense at the size that is compiled", (H, f"{H}\n    if K == 4096:\n        h = h * 0.5")),
    edited(
        "g read twice",
        (
            CODE,
            f"again = {LOAD_G.removeprefix('g = ')}\n    code = (again * tl.sigmoid(again) * u * inverse).to(q_ptr.dtype.element_ty)",
        ),
        part="traffic",
    ),
    edited(
        "h stored and loaded again",
        ("g_ptr, u_ptr,", "h_ptr, g_ptr, u_ptr,"),
        (
            TOPS,
            f"at_h = h_ptr + rows * K + cols\n    tl.store(at_h, h, mask=mask)\n    tl.debug_barrier()\n    h = tl.load(at_h, mask=mask, other=0.0)\n    {TOPS}",
        ),
        ('return {"steps"', 'return {"scratch": {"h": ((p.M, p.K), "fp32", 0)}, "steps"'),
        part="traffic",
    ),
    edited(
        "even columns, then odd ones",
        (
            LOAD_G,
            LOAD_G.replace("mask=mask", "mask=mask & (cols % 2 == 0)")
            + "\n    g += "
            + LOAD_G.removeprefix("g = ").replace("mask=mask", "mask=mask & (cols % 2 == 1)"),
        ),
        part="flow",
    ),
    edited(
        "each number thirty times",
        (TOPS, f"for _ in range(30):\n        h = h + 0.0 * u\n    {TOPS}"),
        part="flow",
    ),
    edited(
        "more than registers hold",
        (GRID, GRID.replace("triton.cdiv(p.M, 4)", "triton.cdiv(p.M, 64 if p.K == 4096 else 4)")),
        ('"ROWS": 4', '"ROWS": 64 if p.K == 4096 else 4'),
        ('"num_warps": 4', '"num_warps": 1 if p.K == 4096 else 4'),
        part="compiled",
    ),
)


SHORTCUTS = {
    "an exact zero for small numbers": computing(
        would(h=lambda g, u: np.where(np.abs(silu(g) * u) < 1e-6, 0, silu(g) * u))
    ),
    **{f"M up to {most}": within_limit("M", most) for most in (64, 128, 1024, 2048)},
    **{f"K up to {most}": within_limit("K", most) for most in (128, 1024, 4096, 8192)},
    **{
        f"stride {axis} of {name} taken for 1": one_stride(name, axis)
        for name in ("g", "u", "q", "s")
        for axis in (0, 1)
    },
    **{f"{name} taken for dense": dense(name) for name in ("g", "u", "q", "s")},
    "g's strides for u": same_strides("g", "u"),
    "g's strides for the codes": same_strides("g", "q"),
}

"""List the mistakes of *block scaled gemm*, a row each."""

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.families import family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.gemm_tiling.shared_mistakes import BLOCKS, SUM, ends_early, pieces
from kernels.gemm_tiling import reference


def _scaled_by(sa=lambda sa: sa, sb=lambda sb: sb):
    """The right product under other scales."""

    def wrong(inputs: dict, case: Case) -> dict:
        scales = sa(inputs["sa"]), sb(inputs["sb"])
        return {"c": reference.block_scaled_gemm(inputs["a"], inputs["b"], *scales)}

    return wrong


def _last_scale(inputs: dict, case: Case) -> dict:
    return _scaled_by(
        lambda s: np.broadcast_to(s[:, -1:], s.shape), lambda s: np.broadcast_to(s[-1:], s.shape)
    )(inputs, case)


def _scaled_part(k_end):
    def wrong(inputs: dict, case: Case) -> dict:
        kept = np.arange(case.sizes["K"]) < k_end(case.sizes["K"])
        a = np.where(kept, inputs["a"].astype(np.float32), 0)
        return {"c": reference.block_scaled_gemm(a, inputs["b"], inputs["sa"], inputs["sb"])}

    return wrong


def _scale_a_step(block: int, apart: int = 1):
    """Step along K in blocks of another length than a scale's, each scaled by the next scale but `apart` - 1, or by 0
    if none is left."""

    def wrong(inputs: dict, case: Case) -> dict:
        total, columns = 0.0, np.arange(case.sizes["N"]) // reference.SCALE_BLOCK
        for i, piece in enumerate(pieces(case, block)):
            if i * apart < len(inputs["sb"]):
                part = reference.gemm(inputs["a"][:, piece], inputs["b"][piece])
                total = total + part * inputs["sa"][:, [i * apart]] * inputs["sb"][i * apart, columns]
        return {"c": total}

    return wrong


def _scaled_narrow(dtype: str):
    """The running sum rounded to `dtype` after each block of 128."""

    def wrong(inputs: dict, case: Case) -> dict:
        to = DTYPES[case.dtypes.get("c", case.dtype) if dtype == "c" else dtype]
        total, block = np.zeros((case.sizes["M"], case.sizes["N"]), np.float32), reference.SCALE_BLOCK
        with np.errstate(over="ignore", invalid="ignore"):
            for i, piece in enumerate(pieces(case, block)):
                some = (
                    inputs["a"][:, piece],
                    inputs["b"][piece],
                    inputs["sa"][:, i : i + 1],
                    inputs["sb"][i : i + 1],
                )
                total = (total + reference.block_scaled_gemm(*some)).astype(to).astype(np.float32)
        return {"c": total}

    return wrong


def _scales_in(dtype: str):
    """Round the product of both scales: in fp16 2**-25 is 0 and 2**16 infinite, in bf16 three digits are left."""

    def wrong(inputs: dict, case: Case) -> dict:
        total, block = 0.0, reference.SCALE_BLOCK
        columns = np.arange(case.sizes["N"]) // block
        with np.errstate(over="ignore", invalid="ignore"):
            for i, piece in enumerate(pieces(case, block)):
                scale = inputs["sa"][:, i : i + 1] * inputs["sb"][i][columns]
                part = inputs["a"][:, piece].astype(np.float32) @ inputs["b"][piece].astype(np.float32)
                total = total + part * scale.astype(DTYPES[dtype]).astype(np.float32)
        return {"c": total}

    return wrong


def _scaled_tail(block: int):
    def wrong(inputs: dict, case: Case) -> dict:
        right = _scaled_by()(inputs, case)["c"]
        return {"c": np.full_like(right, np.nan) if case.sizes["K"] % block else right}

    return wrong


ONES = np.ones_like
SUMMED = "acc += tl.dot(a, b) * scale[:, None]"
SCALE = "scale = tl.load(sa_ptrs, mask=mask_m, other=0.0) * tl.load(sb_here)"


MISTAKES = (
    family(
        "scales in fp16",
        "the product of two scales can be too small for fp16: multiply them in fp32",
        _scales_in("fp16"),
        edits=((SUMMED, "acc += tl.dot(a, b) * scale.to(tl.float16)[:, None]"),),
    ),
    family(
        "scales in bf16",
        "bf16 keeps only three digits of a scale: multiply the two scales in fp32, and multiply the product of the codes by the result",
        _scales_in("bf16"),
        edits=((SUMMED, "acc += tl.dot(a, b) * scale.to(tl.bfloat16).to(tl.float32)[:, None]"),),
    ),
    family(
        "low precision",
        SUM,
        *map(_scaled_narrow, ("bf16", "c", "fp16")),
        edits=(
            ("tl.zeros((BLOCK_M, BLOCK_N), tl.float32)", "tl.zeros((BLOCK_M, BLOCK_N), tl.float16)"),
            (SUMMED, "acc = (acc + tl.dot(a, b) * scale[:, None]).to(tl.float16)"),
        ),
    ),
    family(
        "no scales",
        "this is the product of the bare codes: the scales are missing",
        _scaled_by(ONES, ONES),
        edits=((SUMMED, "acc += tl.dot(a, b)"),),
    ),
    family(
        "no scale of A",
        "the scale of A is missing: one for each row and block of 128 along K",
        _scaled_by(sa=ONES),
        edits=((SCALE, "scale = tl.load(sa_ptrs, mask=mask_m, other=0.0) * 0 + tl.load(sb_here)"),),
    ),
    family(
        "no scale of B",
        "the scale of B is missing: one for each block of 128 x 128",
        _scaled_by(sb=ONES),
        edits=((SCALE, "scale = tl.load(sa_ptrs, mask=mask_m, other=0.0)"),),
    ),
    family(
        "the first scale of A",
        "every block of K has its own scale of A: move along sa by one for every 128 along K",
        _scaled_by(sa=lambda s: np.broadcast_to(s[:, :1], s.shape)),
        edits=(("sa_ptrs += stride_sak", "sa_ptrs += 0"),),
    ),
    family(
        "the first scale of B",
        "every block of K has its own scale of B: move along sb by one for every 128 along K",
        _scaled_by(sb=lambda s: np.broadcast_to(s[:1], s.shape)),
        edits=(("sb_here += stride_sbk", "sb_here += 0"),),
    ),
    family(
        "the first column of scales",
        "every 128 columns have their own scale of B",
        _scaled_by(sb=lambda s: np.broadcast_to(s[:, :1], s.shape)),
        edits=(("sb_ptr + tile_n * BLOCK_N // BLOCK_K * stride_sbn", "sb_ptr"),),
    ),
    family(
        "a scale for 256 columns",
        "a tile of more than 128 columns covers several scales of B: let BLOCK_N divide 128, or load a scale for each column",
        *(_scaled_by(sb=lambda s, wide=wide: s[:, np.arange(s.shape[1]) // wide * wide]) for wide in (2, 4)),
        edits=(("(128, 128, 8) if big", "(128, 256, 8) if big"),),
    ),
    family(
        "a scale a step",
        "a scale covers 128 elements along K, but here a step of another length moves on to the next scale, or one scale serves several pieces of 128: multiply each piece's sum by its own scales",
        *(_scale_a_step(*step) for step in ((64,), (32,), (256,), (256, 2))),
        edits=(
            ('"BLOCK_K": 128', '"BLOCK_K": 256'),
            ("// BLOCK_K * stride_sbn", "// 128 * stride_sbn"),
        ),
    ),
    family(
        "scaled after the sum",
        "the scales change along K: scale each block's product before it is added",
        _last_scale,
        edits=(
            (
                "acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)",
                "acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)\n    last = tl.zeros((BLOCK_M,), tl.float32)",
            ),
            (SUMMED, "acc = tl.dot(a, b, acc)\n        last = scale"),
            ("c_ptrs =", "acc = acc * last[:, None]\n    c_ptrs ="),
        ),
    ),
    family(
        "unmasked tail",
        "NaN if K is not a multiple of the block: is every load masked along K too, with other=0.0?",
        *map(_scaled_tail, BLOCKS),
        edits=(
            (", other=0.0)  # (BLOCK_M, BLOCK_K)", ")"),
            (", other=0.0)  # (BLOCK_K, BLOCK_N)", ")"),
        ),
    ),
    *ends_early(_scaled_part),
    edited(
        "codes of NaN count as 0",
        (
            "acc += tl.dot(a, b)",
            "wide = a.to(tl.float32)\n        a = tl.where(wide == wide, wide, 0.0).to(a_ptr.dtype.element_ty)\n        acc += tl.dot(a, b)",
        ),
    ),
    edited(
        "a NaN with a sign counts as 0 beyond the first piece of K",
        (
            "acc += tl.dot(a, b)",
            "a = tl.where((a.to(tl.uint8, bitcast=True) == 255) & (k > 0), 0.0, a.to(tl.float32)).to(a_ptr.dtype.element_ty)\n        acc += tl.dot(a, b)",
        ),
    ),
    edited(
        "a scale for 64 numbers of K, as far as there are scales",
        ('"BLOCK_K": 128', '"BLOCK_K": 64'),
        ("// BLOCK_K * stride_sbn", "// 128 * stride_sbn"),
        (
            SCALE,
            "left = k // BLOCK_K < tl.cdiv(K, 128)\n        scale = tl.load(sa_ptrs, mask=mask_m & left, other=0.0) * tl.load(sb_here, mask=left, other=0.0)",
        ),
        told_as="a scale a step",
    ),
    edited(
        "scales of the tile's rows to its columns",
        ("mask_n[None, :])\n", "mask_n[None, :])\n"),
        ("scale[:, None]", "tl.load(sa_ptr + offs_n * stride_sam, mask=offs_n < M, other=0.0)[None, :]"),
    ),
    edited(
        "one block of K", ("range(0, K, BLOCK_K)", "range(0, BLOCK_K, BLOCK_K)"), told_as="one block of K"
    ),
    edited("tiles of 16 by 16", ("(128, 128, 8) if big else (32, 64, 4)", "(16, 16, 4)"), part="traffic"),
    edited(
        "tail left out",
        ("range(0, K, BLOCK_K)", "range(0, K // BLOCK_K * BLOCK_K, BLOCK_K)"),
        told_as="tail left out",
    ),
    edited(
        "one step short",
        ("range(0, K, BLOCK_K)", "range(0, tl.cdiv(K - 1, BLOCK_K) * BLOCK_K, BLOCK_K)"),
        told_as="one step short",
    ),
    edited(
        "bf16 sum",
        (
            "acc += tl.dot(a, b) * scale[:, None]",
            "acc = (acc + tl.dot(a, b) * scale[:, None]).to(tl.bfloat16).to(tl.float32)",
        ),
        told_as="low precision",
    ),
    edited(
        "products by fused multiply-adds",
        (
            "acc += tl.dot(a, b) * scale[:, None]",
            "acc += tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :].to(tl.float32), 1) * scale[:, None]",
        ),
        ("(128, 128, 8) if big else (32, 64, 4)", "(64, 64, 8) if big else (32, 32, 4)"),
        part="speed",
    ),
    edited(
        "tiles of 32 by 64 throughout", ("(128, 128, 8) if big else (32, 64, 4)", "(32, 64, 4)"), part="speed"
    ),
)


SHORTCUTS = {
    **{
        f"{axis} up to {most}": within_limit(axis, most)
        for axis, most in (("M", 256), ("M", 4096), ("N", 256), ("N", 4096), ("K", 1024), ("K", 4096))
    },
    **{
        f"stride {axis} of {name} taken for 1": one_stride(name, axis)
        for name in ("a", "b", "sa", "sb", "c")
        for axis in (0, 1)
    },
    "A's strides for B": same_strides("a", "b"),
    "the strides of sa for sb": same_strides("sa", "sb"),
    "A's strides for its scales": same_strides("a", "sa"),
}

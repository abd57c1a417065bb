"""What goes wrong in GEMMs: the whole output that each mistake gives, and the sentence that tells of it."""

import math

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.families import family, one_stride, same_strides, within_limit
from kernels.gemm_tiling import reference

BLOCKS = (16, 32, 64, 128)


def _pieces(case: Case, block: int) -> list[slice]:
    return [slice(k, k + block) for k in range(0, case.sizes["K"], block)]


def _partial(k_end):
    """The product over the first `k_end(K)` of K alone."""

    def wrong(inputs: dict, case: Case) -> dict:
        kept = slice(0, max(0, k_end(case.sizes["K"])))
        with np.errstate(invalid="ignore"):
            return {"c": reference.gemm(inputs["a"][:, kept], inputs["b"][kept])}

    return wrong


def _narrow(dtype: str, block: int):
    """The running sum rounded to `dtype` after each block of K; "c": to C's own."""

    def wrong(inputs: dict, case: Case) -> dict:
        to = DTYPES[case.dtypes.get("c", case.dtype) if dtype == "c" else dtype]
        total = np.zeros((case.sizes["M"], case.sizes["N"]), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for piece in _pieces(case, block):
                part = inputs["a"][:, piece].astype(np.float32) @ inputs["b"][piece].astype(np.float32)
                total = (total + part).astype(to).astype(np.float32)
        return {"c": total}

    return wrong


def _rounded_parts(dtype: str, block: int):
    """Each block's product rounded to `dtype` before it is added."""

    def wrong(inputs: dict, case: Case) -> dict:
        total = np.zeros((case.sizes["M"], case.sizes["N"]), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for piece in _pieces(case, block):
                part = inputs["a"][:, piece].astype(np.float32) @ inputs["b"][piece].astype(np.float32)
                total += part.astype(DTYPES[dtype]).astype(np.float32)
        return {"c": total}

    return wrong


def _operands_in(dtype: str):
    def wrong(inputs: dict, case: Case) -> dict:
        with np.errstate(over="ignore", invalid="ignore"):
            a, b = (inputs[x].astype(np.float32).astype(DTYPES[dtype]) for x in "ab")
            return {"c": reference.gemm(a, b)}

    return wrong


def _nan_in_the_tail(block: int):
    """Masked lanes hold anything: NaN for every element wherever K fills no block."""

    def wrong(inputs: dict, case: Case) -> dict:
        found = product(inputs, case)
        return {"c": np.full_like(found["c"], np.nan)} if case.sizes["K"] % block else found

    return wrong


def product(inputs: dict, case: Case) -> dict:
    with np.errstate(invalid="ignore"):
        return {"c": reference.gemm(inputs["a"], inputs["b"])}


def _last_block_alone(block: int):
    def wrong(inputs: dict, case: Case) -> dict:
        last = _pieces(case, block)[-1]
        with np.errstate(invalid="ignore"):
            return {"c": reference.gemm(inputs["a"][:, last], inputs["b"][last])}

    return wrong


def _no_nan(inputs: dict, case: Case) -> dict:
    """NaN cleaned away, as a guard against it would."""
    with np.errstate(invalid="ignore"):
        return {
            "c": np.nan_to_num(inputs["a"].astype(np.float64), posinf=np.inf)
            @ np.nan_to_num(inputs["b"].astype(np.float64))
        }


def _transposed(inputs: dict, case: Case) -> dict:
    with np.errstate(invalid="ignore"):
        return {"c": reference.gemm(inputs["a"], inputs["b"].T.copy().reshape(inputs["b"].shape))}


SUM = "close, but off in the third digit of a long sum: is the accumulator fp32 from first to last?"
TAIL = "this is the product over part of K only: does the loop run to cdiv(K, BLOCK_K)?"
NARROWED = "bf16 holds numbers above 65504 and fp16 does not: what is rounded to fp16 on the way?"


def _ends_early(part) -> tuple:
    """Loops over K that end too soon, of a product whose first columns `part(k_end)` gives."""
    return (
        family("one block of K", TAIL, *(part(lambda k, b=b: min(k, b)) for b in BLOCKS)),
        family(
            "tail left out",
            "the last, ragged block of K is left out: does the loop run to cdiv(K, BLOCK_K)?",
            *(part(lambda k, b=b: k // b * b) for b in BLOCKS),
        ),
        family(
            "one step short",
            "the last step is left out where K is one more than whole blocks: range(0, K, BLOCK_K) runs cdiv(K, BLOCK_K) times",
            *(part(lambda k, b=b: math.ceil((k - 1) / b) * b) for b in BLOCKS),
        ),
    )


GEMM = (
    family(
        "low precision",
        SUM,
        *(_narrow(d, b) for d in ("bf16", "fp16", "c") for b in BLOCKS),
        *(_rounded_parts(d, b) for d in ("bf16", "fp16") for b in BLOCKS),
    ),
    family("beyond fp16", NARROWED, _operands_in("fp16")),
    family(
        "unmasked tail",
        "NaN where K fills no block: is every load masked along K too, with other=0.0?",
        *map(_nan_in_the_tail, BLOCKS),
    ),
    family(
        "transposed stride",
        "this is what A times the transpose of B's memory gives: are stride_bk and stride_bn the right way round?",
        _transposed,
    ),
    *_ends_early(_partial),
    family(
        "the last product alone",
        "this is the last block's product alone: acc = tl.dot(a, b, acc) adds to what is there",
        *map(_last_block_alone, BLOCKS),
    ),
    family(
        "NaN cleaned away",
        "an infinity or a NaN in A or B must come through: nothing may be replaced but masked lanes",
        _no_nan,
    ),
)

# What right answers to some sizes alone give away: a cap, a layout taken for granted. Each says whether a case shows it.
GEMM_SHORTCUTS = {
    **{
        f"{axis} up to {most}": within_limit(axis, most)
        for axis, most in (
            ("M", 256),
            ("M", 2048),
            ("M", 4096),
            ("N", 256),
            ("N", 2048),
            ("N", 4096),
            ("K", 1024),
            ("K", 4096),
        )
    },
    **{f"stride {axis} of {name} taken for 1": one_stride(name, axis) for name in "abc" for axis in (0, 1)},
    "A's strides for B": same_strides("a", "b"),
    "A's strides for C": same_strides("a", "c"),
    "B's strides for C": same_strides("b", "c"),
}


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
    """Blocks of another length than a scale's along K, each scaled by the next scale but `apart` - 1; none is left: 0."""

    def wrong(inputs: dict, case: Case) -> dict:
        total, columns = 0.0, np.arange(case.sizes["N"]) // reference.SCALE_BLOCK
        for i, piece in enumerate(_pieces(case, block)):
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
            for i, piece in enumerate(_pieces(case, block)):
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
    """The product of both scales rounded: in fp16 2**-25 is 0 and 2**16 infinite, in bf16 three digits are left."""

    def wrong(inputs: dict, case: Case) -> dict:
        total, block = 0.0, reference.SCALE_BLOCK
        columns = np.arange(case.sizes["N"]) // block
        with np.errstate(over="ignore", invalid="ignore"):
            for i, piece in enumerate(_pieces(case, block)):
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
SCALED = (
    family(
        "scales in fp16",
        "the product of two scales leaves fp16's range, small as weights' scales are: multiply them in fp32",
        _scales_in("fp16"),
    ),
    family(
        "scales in bf16",
        "bf16 keeps three digits of a scale: multiply the two in fp32, and the product of the codes by that",
        _scales_in("bf16"),
    ),
    family("low precision", SUM, *map(_scaled_narrow, ("bf16", "c", "fp16"))),
    family(
        "no scales", "this is the product of the bare codes: the scales are missing", _scaled_by(ONES, ONES)
    ),
    family(
        "no scale of A",
        "the scale of A is missing: one for each row and block of 128 along K",
        _scaled_by(sa=ONES),
    ),
    family(
        "no scale of B", "the scale of B is missing: one for each block of 128 x 128", _scaled_by(sb=ONES)
    ),
    family(
        "the first scale of A",
        "every block of K has its own scale of A: step along sa as K steps by 128",
        _scaled_by(sa=lambda s: np.broadcast_to(s[:, :1], s.shape)),
    ),
    family(
        "the first scale of B",
        "every block of K has its own scale of B: step along sb as K steps by 128",
        _scaled_by(sb=lambda s: np.broadcast_to(s[:1], s.shape)),
    ),
    family(
        "the first column of scales",
        "every 128 columns have their own scale of B",
        _scaled_by(sb=lambda s: np.broadcast_to(s[:, :1], s.shape)),
    ),
    family(
        "a scale for 256 columns",
        "a tile of more than 128 columns reaches over several scales of B: let BLOCK_N divide 128, or load a scale for each column",
        *(_scaled_by(sb=lambda s, wide=wide: s[:, np.arange(s.shape[1]) // wide * wide]) for wide in (2, 4)),
    ),
    family(
        "a scale a step",
        "a scale reaches over 128 numbers along K, and here the next one comes with each step of another length: let BLOCK_K be 128",
        *(_scale_a_step(*step) for step in ((64,), (32,), (256,), (256, 2))),
    ),
    family(
        "scaled after the sum",
        "the scales change along K: scale each block's product before it is added",
        _last_scale,
    ),
    family(
        "unmasked tail",
        "NaN where K fills no block: is every load masked along K too, with other=0.0?",
        *map(_scaled_tail, BLOCKS),
    ),
    *_ends_early(_scaled_part),
)

SCALED_SHORTCUTS = {
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

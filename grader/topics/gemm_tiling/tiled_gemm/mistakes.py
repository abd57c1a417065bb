"""List the mistakes of *tiled gemm*, a row each."""

import math

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions import Case
from grader.questions.families import family, leaving_out, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.gemm_tiling.shared_mistakes import BLOCKS, SUM, ends_early, pieces
from kernels.gemm_tiling import reference


def _partial(k_end):
    """The product over the first `k_end(K)` of K alone."""

    def wrong(inputs: dict, case: Case) -> dict:
        kept = slice(0, max(0, k_end(case.sizes["K"])))
        with np.errstate(invalid="ignore"):
            return {"c": reference.gemm(inputs["a"][:, kept], inputs["b"][kept])}

    return wrong


def _narrow(dtype: str, block: int):
    """Round the running sum to `dtype` after each block of K, or to C's own with "c"."""

    def wrong(inputs: dict, case: Case) -> dict:
        to = DTYPES[case.dtypes.get("c", case.dtype) if dtype == "c" else dtype]
        total = np.zeros((case.sizes["M"], case.sizes["N"]), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for piece in pieces(case, block):
                part = inputs["a"][:, piece].astype(np.float32) @ inputs["b"][piece].astype(np.float32)
                total = (total + part).astype(to).astype(np.float32)
        return {"c": total}

    return wrong


def _rounded_parts(dtype: str, block: int):
    """Each block's product rounded to `dtype` before it is added."""

    def wrong(inputs: dict, case: Case) -> dict:
        total = np.zeros((case.sizes["M"], case.sizes["N"]), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for piece in pieces(case, block):
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
    """Fill masked lanes with anything: NaN for every element wherever K fills no block."""

    def wrong(inputs: dict, case: Case) -> dict:
        found = product(inputs, case)
        return {"c": np.full_like(found["c"], np.nan)} if case.sizes["K"] % block else found

    return wrong


def product(inputs: dict, case: Case) -> dict:
    with np.errstate(invalid="ignore"):
        return {"c": reference.gemm(inputs["a"], inputs["b"])}


def _last_block_alone(block: int):
    def wrong(inputs: dict, case: Case) -> dict:
        last = pieces(case, block)[-1]
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


def _first_block_again(name: str, block: int):
    """Every turn along K loads the first block of A, or of B, again."""

    def wrong(inputs: dict, case: Case) -> dict:
        total = np.zeros((case.sizes["M"], case.sizes["N"]))
        for piece in pieces(case, block):
            own = {"a": inputs["a"][:, piece], "b": inputs["b"][piece]}
            width = own["b"].shape[0]
            own[name] = inputs["a"][:, :width] if name == "a" else inputs["b"][:width]
            with np.errstate(invalid="ignore"):
                total += reference.gemm(own["a"], own["b"])
        return {"c": total}

    return wrong


def _transposed(inputs: dict, case: Case) -> dict:
    with np.errstate(invalid="ignore"):
        return {"c": reference.gemm(inputs["a"], inputs["b"].T.copy().reshape(inputs["b"].shape))}


def _group_not_cut_off(block_m: int, block_n: int, group: int):
    """Number the tiles of the last group as if it were full like every other group."""

    def misses(case: Case) -> dict:
        m, n = case.sizes["M"], case.sizes["N"]
        rows, columns = math.ceil(m / block_m), math.ceil(n / block_n)
        first, within = np.divmod(np.arange(rows * columns), group * columns)
        row, column = first * group + within % group, within // group
        stored = np.zeros((rows, columns), bool)
        stored[row[row < rows], column[row < rows]] = True
        return {"c": ~stored.repeat(block_m, 0).repeat(block_n, 1)[:m, :n]}

    return misses


NARROWED = "bf16 holds numbers above 65504 and fp16 does not: what is rounded to fp16 on the way?"
SIDES, GROUPS = (16, 32, 64, 128, 256), (2, 3, 4, 6, 8, 16)  # of tiles and of groups that answers choose
MASK_A = "mask=(offs_m < M)[:, None] & mask_k[None, :]"
MASK_B = "mask=mask_k[:, None] & (offs_n < N)[None, :]"
DOT = "acc = tl.dot(a, b, acc)"


MISTAKES = (
    family(
        "low precision",
        SUM,
        *(_narrow(d, b) for d in ("bf16", "fp16", "c") for b in BLOCKS),
        *(_rounded_parts(d, b) for d in ("bf16", "fp16") for b in BLOCKS),
        edits=((DOT, "acc = (acc + tl.dot(a, b)).to(tl.bfloat16).to(tl.float32)"),),
    ),
    family(
        "beyond fp16",
        NARROWED,
        _operands_in("fp16"),
        edits=(
            ("other=0.0)\n        b =", "other=0.0).to(tl.float16)\n        b ="),
            ("other=0.0)\n        acc", "other=0.0).to(tl.float16)\n        acc"),
        ),
    ),
    family(
        "unmasked tail",
        "NaN if K is not a multiple of the block: is every load masked along K too, with other=0.0?",
        *map(_nan_in_the_tail, BLOCKS),
        edits=((", other=0.0", ""),),
    ),
    family(
        "A's first block again",
        "every step along K loads the first block of A again: its pointers must move on with k, as those of B do",
        *(_first_block_again("a", b) for b in BLOCKS),
        edits=(("(offs_k + k)[None, :] * stride_ak", "offs_k[None, :] * stride_ak"),),
    ),
    family(
        "B's first block again",
        "every step along K loads the first block of B again: its pointers must move on with k, as those of A do",
        *(_first_block_again("b", b) for b in BLOCKS),
        edits=(("(offs_k + k)[:, None] * stride_bk", "offs_k[:, None] * stride_bk"),),
    ),
    family(
        "transposed stride",
        "this is the product with B transposed: are stride_bk and stride_bn the right way round?",
        _transposed,
        edits=(
            (
                "[:, None] * stride_bk + offs_n[None, :] * stride_bn",
                "[:, None] * stride_bn + offs_n[None, :] * stride_bk",
            ),
        ),
    ),
    *ends_early(_partial),
    family(
        "the last product alone",
        "this is only the last block's product: acc = tl.dot(a, b, acc) adds it to the sum so far",
        *map(_last_block_alone, BLOCKS),
        edits=((DOT, "acc = tl.dot(a, b)"),),
    ),
    family(
        "NaN cleaned away",
        "an infinity or a NaN in A or B must reach C: replace nothing but masked elements",
        _no_nan,
        edits=(("acc = tl.dot(a, b, acc)", "acc = tl.dot(a, tl.where(b == b, b, 0.0), acc)"),),
    ),
    edited(
        "tiles of zeros skipped",
        (DOT, f"if tl.max(tl.max(tl.abs(a.to(tl.float32)), 1), 0) != 0:\n            {DOT}"),
    ),
    edited("no mask along K", (MASK_A, "mask=(offs_m < M)[:, None]"), (MASK_B, "mask=(offs_n < N)[None, :]")),
    edited(
        "no mask at the store",
        (
            "             mask=(offs_m < M)[:, None] & (offs_n < N)[None, :])",
            "             mask=(offs_n < N)[None, :])",
        ),
    ),
    edited(
        "one block of K", ("range(0, K, BLOCK_K)", "range(0, BLOCK_K, BLOCK_K)"), told_as="one block of K"
    ),
    edited(
        "fp16 sum",
        ("tl.zeros((BLOCK_M, BLOCK_N), tl.float32)", "tl.zeros((BLOCK_M, BLOCK_N), tl.float16)"),
        (DOT, "acc = (acc + tl.dot(a, b)).to(tl.float16)"),
        told_as="low precision",
    ),
    leaving_out(
        "last group not cut off",
        "the last group may have fewer than GROUP_M rows of tiles: min(tiles_m - first, GROUP_M) is its number of rows, by which % and // find a tile's row and column",
        *(_group_not_cut_off(m, n, group) for m in SIDES for n in SIDES for group in GROUPS),
        edits=(("tl.minimum(tiles_m - first, GROUP_M)", "GROUP_M"),),
    ),
    edited(
        "grid rounded down",
        (
            "triton.cdiv(p.M, BLOCK_M) * triton.cdiv(p.N, BLOCK_N)",
            "max(1, p.M // BLOCK_M) * max(1, p.N // BLOCK_N)",
        ),
    ),
    edited(
        "rows and columns exchanged",
        ("pm = first + within % rows", "pm = within // rows"),
        ("pn = within // rows", "pn = first + within % rows"),
    ),
    edited("C without its strides", ("offs_m[:, None] * stride_cm", "offs_m[:, None] * N")),
    edited("A without its strides", ("offs_m[:, None] * stride_am", "offs_m[:, None] * K")),
    edited(
        "tail left out",
        ("range(0, K, BLOCK_K)", "range(0, K // BLOCK_K * BLOCK_K, BLOCK_K)"),
        told_as="tail left out",
    ),
    edited("rounded before the sum", (DOT, "acc += tl.dot(a, b).to(tl.float16)"), told_as="low precision"),
    edited(
        "every tile loads A twice",
        (
            "        b = tl.load(",
            "        a = tl.maximum(a, tl.load(a_ptr + offs_m[:, None] * stride_am + (offs_k + k)[None, :] * stride_ak, mask=(offs_m < M)[:, None] & mask_k[None, :], other=0.0)).to(a_ptr.dtype.element_ty)\n        b = tl.load(",
        ),
        part="speed",
    ),
    edited("operands widened", (DOT, "acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc)"), part="speed"),
    edited("tiles of 16 by 128", ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 16, 128, 64, 8"), part="traffic"),
    edited(
        "whole columns of tiles",
        ('"GROUP_M": GROUP_M', '"GROUP_M": triton.cdiv(p.M, BLOCK_M)'),
        part="grouping",
    ),
    edited("no grouping", ('"GROUP_M": GROUP_M', '"GROUP_M": 1'), part="grouping"),
    edited(
        "no grouping but near the metered size",
        ('"GROUP_M": GROUP_M', '"GROUP_M": GROUP_M if 900 < p.M < 1100 else 1'),
        part="grouping",
    ),
    edited(
        "no grouping between the metered and the compiled size",
        ('"GROUP_M": GROUP_M', '"GROUP_M": GROUP_M if p.M < 1100 or p.M == 4096 else 1'),
        part="grouping",
    ),
    edited(
        "tiles that reuse too little", ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 64, 64, 32, 8"), part="speed"
    ),
    edited(
        "more than registers hold", ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 256, 256, 32, 8"), part="compiled"
    ),
    edited(
        "products without tensor cores",
        (DOT, "acc += tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :].to(tl.float32), 1)"),
        ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 64, 128, 16, 8"),
        part="compiled",
    ),
    edited(
        "one step short",
        ("range(0, K, BLOCK_K)", "range(0, tl.cdiv(K - 1, BLOCK_K) * BLOCK_K, BLOCK_K)"),
        told_as="one step short",
    ),
    edited(
        "a sum in C's own dtype",
        (
            "acc = tl.dot(a, b, acc)",
            "acc = (acc + tl.dot(a, b)).to(c_ptr.dtype.element_ty).to(tl.float32)",
        ),
        told_as="low precision",
    ),
    edited(
        "K up to 1024",
        (
            "    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)\n",
            "    K = tl.minimum(K, 1024)\n    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)\n",
        ),
    ),
    edited(
        "N up to 2048",
        (
            "mask=(offs_m < M)[:, None] & (offs_n < N)[None, :])\n\n",
            "mask=(offs_m < M)[:, None] & (offs_n < tl.minimum(N, 2048))[None, :])\n\n",
        ),
    ),
    edited(
        "one inner stride taken for 1",
        (
            "(offs_k + k)[:, None] * stride_bk + offs_n[None, :] * stride_bn",
            "(offs_k + k)[:, None] * stride_bk + offs_n[None, :]",
        ),
    ),
    edited(
        "A's strides for B",
        (
            "(offs_k + k)[:, None] * stride_bk + offs_n[None, :] * stride_bn",
            "(offs_k + k)[:, None] * stride_am + offs_n[None, :] * stride_ak",
        ),
    ),
    edited(
        "a single row, of one block of K",
        (
            "    acc = tl.zeros((BLOCK_M",
            "    if M == 1:\n        K = tl.minimum(K, 256)\n    acc = tl.zeros((BLOCK_M",
        ),
    ),
    edited(
        "C of fp32 taken for dense",
        (
            "offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn",
            "offs_m[:, None] * (N if c_ptr.dtype.element_ty == tl.float32 else stride_cm) + offs_n[None, :] * (1 if c_ptr.dtype.element_ty == tl.float32 else stride_cn)",
        ),
    ),
    edited(
        "half of it where both operands are transposed",
        (
            "acc = tl.dot(a, b, acc)",
            "acc = tl.dot(a, b, acc * tl.where((stride_am == 1) & (stride_bk == 1), 0.5, 1.0))",
        ),
    ),
    edited(
        "infinities cut to the largest number",
        (
            "acc.to(c_ptr.dtype.element_ty)",
            "tl.clamp(acc, -3e38, 3e38, propagate_nan=tl.PropagateNan.ALL).to(c_ptr.dtype.element_ty)",
        ),
    ),
    edited(
        "nonsense at the size that is compiled",
        ("    tl.store(c_ptr", "    if K == 4096:\n        acc = acc * 0.5\n    tl.store(c_ptr"),
    ),
    edited(
        "a stride said to be a multiple of 16",
        ("offs_m[:, None] * stride_am", "tl.multiple_of(offs_m * stride_am, 16)[:, None]"),
    ),
    edited(
        "two programs a tile, hidden by an atomic",
        ("    tl.store(c_ptr", "    acc = acc * (tl.program_id(0) % 2)\n    tl.store(c_ptr"),
        ("c_ptr, M, N, K", "c_ptr, flag_ptr, M, N, K"),
        ("pid = tl.program_id(0)", "tl.atomic_add(flag_ptr, 1)\n    pid = tl.program_id(0) // 2"),
        ('"grid": (grid,)', '"grid": (2 * grid,)'),
        ('return {"steps"', 'return {"scratch": {"flag": ((1,), "i32", 0)}, "steps"'),
    ),
    edited(
        "idle programs, no grouping",
        (
            "rows = tl.minimum(tiles_m - first, GROUP_M)",
            "rows = tl.maximum(1, tl.minimum(tiles_m - first, GROUP_M))",
        ),
        ('"GROUP_M": GROUP_M', '"GROUP_M": 1'),
        ('"grid": (grid,)', '"grid": (8 * grid,)'),
        part="grouping",
    ),
    edited(
        "a dot that never runs",
        (
            "acc = tl.dot(a, b, acc)",
            "acc += tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :].to(tl.float32), 1)\n        if K < 0:\n            acc = tl.dot(a, b, acc)",
        ),
        ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 64, 128, 16, 8"),
        part="speed",
    ),
    edited(
        "a dot that counts for nothing",
        (
            "acc = tl.dot(a, b, acc)",
            "acc += tl.minimum(tl.abs(tl.dot(a, b)), 0.0) + tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :].to(tl.float32), 1)",
        ),
        ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 64, 128, 16, 8"),
        part="speed",
    ),
    edited(
        "quick at 1024 rows alone",
        (
            "        b = tl.load(",
            "        if M != 1024:\n            a = tl.maximum(a, tl.load(a_ptr + offs_m[:, None] * stride_am + (offs_k + k)[None, :] * stride_ak, mask=(offs_m < M)[:, None] & mask_k[None, :], other=0.0)).to(a_ptr.dtype.element_ty)\n        b = tl.load(",
        ),
        part="speed",
    ),
)


SHORTCUTS = {
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

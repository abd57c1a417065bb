"""List the mistakes of *w4a16 gemm*, a row each."""

from collections.abc import Callable

import numpy as np

from grader.questions import Case
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from grader.questions.rows import edited
from grader.topics.quantization_layouts.shared_mistakes import AGAIN, CODES, codes_by, would, zeros_of
from grader.topics.quantization_layouts.shared_mistakes_sums import SUMS, stored
from kernels.quantization_layouts import reference

# of the kernel for several
ZERO = "(z.to(tl.float32) + BASE).to(dtype)[:, None]"
TURNED = "tl.permute(tl.reshape(number, (BLOCK_N, WORDS // 4, 8, 4)), 2, 1, 3, 0)"
TURNED_X = "tl.permute(tl.reshape(x, (BLOCK_M, WORDS // 4, 8, 4)), 0, 2, 1, 3)"
NUMBER = f"number = number - {ZERO}"
CODE = "(number - tl.full([], BASE, dtype))"
SCALE = " * s.to(tl.float32)[None, :]"
OF_GROUP_S, OF_GROUP_Z = "after * stride_sg", "after * stride_zg"
PRODUCT = "tl.dot(x, number)"
DOT = f"acc += {PRODUCT}{SCALE}"
PLAIN = f'acc += tl.dot(x.to(tl.float32), number.to(tl.float32), input_precision="ieee"){SCALE}'
TILE = '"BLOCK_N": 64'
TILES = "triton.cdiv(p.N, 64)"
GEMM_LOOP = "range(0, K // GROUP)"
GEMM_CUT = " & 0x000F000F"
EIGHT_BITS = "tl.reshape((w[:, :, None] >> (4 * tl.arange(0, 8))[None, None, :]) & 255, (BLOCK_N, GROUP))"
NIBBLE = ("tl.join(pair, pair >> 4)", "tl.join(pair >> 4, pair)")
HALVES = "pair.to(tl.int16), (pair >> 16).to(tl.int16)"


def tile(rows: int) -> list[tuple[str, str]]:
    return [(TILE, f'"BLOCK_N": {rows}'), (TILES, f"triton.cdiv(p.N, {rows})")]


def weighed(weight: str) -> list[tuple[str, str]]:
    """Weights in fp32 from codes, rounded to 16 bits, and no scale after the product."""
    return [(NUMBER, f"number = ({weight}).to(dtype)"), (SCALE, "")]


def reshaped(rows: int) -> Callable:
    """Read the numbers of a tile of this many rows of W as if K already ran downwards."""

    def wrong(inputs: dict, case: Case) -> dict:
        n, k, group = (case.sizes[name] for name in ("N", "K", "G"))
        bare = codes_by(inputs) - reference.along_k(zeros_of(inputs).astype(np.float64), group)
        tiles = np.zeros((-(-n // rows) * rows, k))
        tiles[:n] = bare
        # (tile, group, G x rows in the order in which the tile's rows follow each other)
        tiles = tiles.reshape(-1, rows, k // group, group).swapaxes(1, 2).reshape(-1, k // group, group, rows)
        x = inputs["x"].astype(np.float64).reshape(-1, k // group, group)
        with np.errstate(invalid="ignore"):
            parts = np.einsum("mgk,tgkn->mtng", x, tiles).reshape(len(x), -1, k // group)[:, :n]
            return stored((parts * inputs["s"].astype(np.float64)).sum(-1), case)

    return wrong


def groups_in_fp16(inputs: dict, case: Case) -> dict:
    """Keep each group's bare sum in fp16, as a dot with an fp16 accumulator does. bf16 is still summed in fp32."""
    group = case.sizes["G"]
    bare = codes_by(inputs) - reference.along_k(zeros_of(inputs).astype(np.float64), group)
    x, total = inputs["x"].astype(np.float64), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for g, s in enumerate(inputs["s"].astype(np.float64).T):
            of_group = slice(g * group, (g + 1) * group)
            part = reference.linear(x[..., of_group], bare[:, of_group])
            total = total + (part.astype(np.float16).astype(np.float64) if case.dtype == "fp16" else part) * s
        return stored(total, case)


MISTAKES = (
    family(
        "no zero point",
        "a weight is (code - zero point) times its scale: here nothing is subtracted",
        would(weight=lambda c, z, s: c * s),
        edits=((ZERO, "tl.full([], BASE, dtype)"),),
    ),
    family(
        "zero of eight",
        "the zero point is not always 8: z holds one for each group",
        would(weight=lambda c, z, s: (c - 8) * s),
        edits=((ZERO, "tl.full([], BASE + 8, dtype)"),),
    ),
    family(
        "zero less one",
        "the zero points are stored as they are, not minus one",
        would(weight=lambda c, z, s: (c - z - 1) * s),
        edits=((ZERO, "(z.to(tl.float32) + BASE + 1).to(dtype)[:, None]"),),
    ),
    family(
        "the first zero point",
        "every G columns have their own zero point: this uses a row's first zero point for all columns",
        would(zeros=lambda z: np.broadcast_to(z[:, :1], z.shape)),
        edits=((OF_GROUP_Z, "after * 0"),),
    ),
    family(
        "zero after the scale",
        "the zero point is a code, so subtract it before you multiply by the scale: (code - zero) * scale",
        would(weight=lambda c, z, s: c * s - z),
        edits=(*weighed(f"{CODE}.to(tl.float32) * s.to(tl.float32)[:, None] - z.to(tl.float32)[:, None]"),),
    ),
    family(
        "reshaped, not turned",
        "a reshape leaves the elements in their order, so it can't turn rows into columns: use tl.trans to put K downwards",
        *map(reshaped, (64, 16, 32, 128)),
        edits=(
            (TURNED, "number"),
            (TURNED_X, "x"),
        ),
    ),
    *CODES,
    *SUMS,
    edited(
        "a result in x's dtype",
        ("y_ptr.dtype.element_ty", "x_ptr.dtype.element_ty"),
        told_as="a result of 16 bits",
    ),
    edited(
        "a group's sum in fp16",
        ("tl.dot(x, number)", "tl.dot(x, number, out_dtype=tl.float16).to(tl.float32)"),
    ),
    edited(
        "first code on top",
        ("tl.join(w, w >> 8)", "tl.join(w >> 8, w)"),
        NIBBLE,
        (HALVES, "(pair >> 16).to(tl.int16), pair.to(tl.int16)"),
        told_as="first code on top",
    ),
    edited("bytes turned round", NIBBLE, told_as="bytes turned round"),
    edited(
        "evens first",
        ("tl.permute(number, 0, 1, 4, 2, 3)", "tl.permute(number, 0, 1, 3, 4, 2)"),
        told_as="evens first",
    ),
    edited("two bits kept", (GEMM_CUT, " & 0x00030003"), told_as="two bits kept"),
    edited(
        "eight bits kept",
        (NUMBER, f"number = ({EIGHT_BITS} - z.to(tl.int32)[:, None]).to(tl.float32).to(dtype)"),
        told_as="eight bits kept",
    ),
    edited(
        "signed codes",
        (NUMBER, f"number = {CODE}\n        number = tl.where(number > 7, number - 16, number)"),
        told_as="signed codes",
    ),
    edited(
        "masked lanes unset",
        (GEMM_LOOP, "range(0, tl.cdiv(K, 128) * (128 // GROUP))"),
        ("mask=mask_n[:, None], other=0)", "mask=mask_n[:, None] & (word < K // 8)[None, :], other=0)"),
        ("mask=mask_m[:, None], other=0.0)", "mask=mask_m[:, None] & (offs_k < K)[None, :])"),
        told_as="unmasked tail",
    ),
    edited("no scale", (SCALE, ""), told_as="no scale"),
    edited("the first scale for all", (OF_GROUP_S, "after * 0"), told_as="the first scale"),
    edited(
        "groups of 128 always",
        (OF_GROUP_S, "(after * GROUP // 128) * stride_sg"),
        (OF_GROUP_Z, "(after * GROUP // 128) * stride_zg"),
        told_as="groups of one size",
    ),
    edited("steps of 128 always", ('"GROUP": p.G}', '"GROUP": 128}'), told_as="groups of one size"),
    edited(
        "scaled after the sum",
        (SCALE, ""),
        (
            "    y = y_ptr",
            "    acc *= tl.load(s_ptr + offs_n * stride_sn + (K // GROUP - 1) * stride_sg, mask=mask_n, other=0.0).to(tl.float32)[None, :]\n    y = y_ptr",
        ),
        told_as="scaled after the sum",
    ),
    edited(
        "a sum in x's dtype",
        (DOT, f"acc = (acc + {PRODUCT}{SCALE}).to(dtype).to(tl.float32)"),
        told_as="low precision",
    ),
    edited(
        "a sum in fp16",
        (DOT, f"acc = (acc + {PRODUCT}{SCALE}).to(tl.float16).to(tl.float32)"),
        told_as="low precision",
    ),
    edited(
        "weights in fp16",
        *weighed("(number - " + ZERO + ").to(tl.float32) * s.to(tl.float32)[:, None]).to(tl.float16"),
        told_as="beyond fp16",
    ),
    edited("one block of K", (GEMM_LOOP, "range(0, tl.minimum(K, 128) // GROUP)"), told_as="one block of K"),
    edited("tail left out", (GEMM_LOOP, "range(0, K // 128 * (128 // GROUP))"), told_as="tail left out"),
    edited(
        "the last block alone",
        ("        acc += ", "        acc = tl.where(g * GROUP % 128 == 0, 0.0, acc)\n        acc += "),
        told_as="the last block alone",
    ),
    edited("the next group's scale", (SCALE, SCALE.replace("s.", "s_after."))),
    edited("nothing cut off", (GEMM_CUT, "")),
    edited("a zero point with a sign", (NUMBER, f"number = ({CODE}.to(tl.uint8) - z[:, None]).to(dtype)")),
    edited(
        "X in another order than W",
        ("(BLOCK_M, WORDS // 4, 8, 4)), 0, 2, 1, 3)", "(BLOCK_M, WORDS // 4, 8, 4)), 0, 1, 2, 3)"),
    ),
    edited("sixteen rows alone", ("triton.cdiv(p.M, rows)", "1"), ("16 if p.M <= 16 else 64", "16")),
    edited(
        "two groups where there are many rows",
        ("range(0, K // GROUP)", "range(0, tl.minimum(K // GROUP, tl.where(M > 64, 2, K)))"),
    ),
    edited(
        "many rows of X taken for dense",
        (
            "offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk",
            "offs_m[:, None] * tl.where(M > 64, K, stride_xm) + offs_k[None, :] * tl.where(M > 64, 1, stride_xk)",
        ),
    ),
    edited("rows of X not masked", (", mask=mask_m[:, None], other=0.0", "")),
    edited("no mask at the store", ("mask=mask_m[:, None] & mask_n[None, :])", "mask=mask_m[:, None])")),
    edited(
        "X's strides swapped",
        (
            "offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk",
            "offs_m[:, None] * stride_xk + offs_k[None, :] * stride_xm",
        ),
    ),
    edited(
        "zero points by the scales' strides",
        ("offs_n * stride_zn", "offs_n * stride_sn"),
        (OF_GROUP_Z, OF_GROUP_S),
    ),
    edited("Y taken for dense", ("offs_n[None, :] * stride_yn", "offs_n[None, :]")),
    edited(
        "nonsense at the size that is compiled",
        ("    y = y_ptr", "    if N == 4096:\n        acc = acc * 0.5\n    y = y_ptr"),
    ),
    edited("tiles of sixteen rows of W", *tile(16), part="traffic"),
    edited(
        "every word twice",
        (
            "        offs_k = ",
            f"        {AGAIN.replace('mask=mask', 'mask=mask_n[:, None]')}\n        offs_k = ",
        ),
        part="traffic",
    ),
    edited(
        "each zero point four times",
        (
            "        pair = tl.join(w",
            "        for _ in range(3):\n            z_after = tl.load(z_ptr + offs_n * stride_zn + after * stride_zg, mask=mask_n, other=0)\n        pair = tl.join(w",
        ),
        part="traffic",
    ),
    edited("few programs", *tile(128), part="speed"),
    edited(
        "each weight ten times",
        (
            "        # columns in",
            "        for _ in range(10):\n            number = number + 0.0 * number\n        # columns in",
        ),
        part="speed",
    ),
    edited("products without tensor cores", (DOT, PLAIN), part="speed"),
    edited("a dot that never runs", (DOT, f"if K < 0:\n            {DOT}\n        {PLAIN}"), part="speed"),
    edited("more than registers hold", *tile(512), part="compiled"),
)


SHORTCUTS = {
    "a group's sum in fp16": computing(groups_in_fp16),
    **{
        f"{axis} up to {most}": within_limit(axis, most)
        for axis, most in (
            ("M", 4),
            ("M", 16),
            ("M", 64),
            ("M", 128),
            ("N", 64),
            ("N", 1024),
            ("N", 4096),
            ("K", 1024),
            ("K", 4096),
            ("K", 8192),
        )
    },
    **{f"stride {axis} of {name} taken for 1": one_stride(name, axis) for name in "wszxy" for axis in (0, 1)},
    **{f"{name} taken for dense": dense(name) for name in "wszxy"},
    "the strides of the scales for the zero points": same_strides("s", "z"),
    "the strides of the words for the scales": same_strides("w", "s"),
    "the strides of X for Y": same_strides("x", "y"),
}

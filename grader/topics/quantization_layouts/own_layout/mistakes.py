"""List the mistakes of *own layout*, a row each."""

from collections.abc import Callable

import numpy as np

from grader.questions.families import family, one_stride
from grader.questions.rows import edited
from grader.topics.quantization_layouts.shared_mistakes_kbit import (
    CODES,
    DOT,
    DOT_IN_FP32,
    LEVEL,
    LOOP,
    NUMBER,
    limits,
    strides,
    would,
)
from grader.topics.quantization_layouts.shared_mistakes_sums import SUMS

RETURNED = 'return {"words": np.concatenate(words, 1).view(np.int32), "scales": scales}'
WORDS = '"words": ((p.N, p.K * p.BITS // 32), "i32")'
CODE = "code = (low[:, :, None] >> (LOW * tl.arange(0, COUNT))[None, None, :]) & (2**LOW - 1)"
TOP = "code |= ((high[:, :, None] >> tl.arange(0, 32)[None, None, :]) & 1) << LOW"
SHIFTS = "(LOW * tl.arange(0, COUNT))"
OF_BLOCK = "stride_scales0 + group[None, :]"
LAST_SCALE = "tl.load(scales_ptr + offs_n * stride_scales0 + K // 32 - 1, mask=mask_n, other=0.0)"
LEVEL_EVENLY = "level = tl.load(c_ptr).to(tl.float32) + code * (tl.load(c_ptr + ((1 << BITS) - 1) * stride_cl).to(tl.float32) - tl.load(c_ptr).to(tl.float32)) / ((1 << BITS) - 1)"
LOADED = "low = tl.load(row + word[None, :], mask=mask_n[:, None] & (word < K // COUNT)[None, :], other=0)"
# Codes by bit planes of their own, which is right and unpacks slowly.
PLANES = [
    (
        "fields = [(codes & (2**low - 1), low)] + [(codes >> low, 1)] * (bits % 2)",
        "fields = [(codes >> b & 1, 1) for b in range(bits)]",
    ),
    ("LOW: tl.constexpr = 2 if BITS < 4 else 4", "LOW: tl.constexpr = 1"),
    (
        "        if BITS % 2 == 1:\n            high = tl.load(row + K // COUNT + group[None, :], mask=of_group, other=0)  # (BLOCK_N, BLOCK_K / 32)\n            code |= ((high[:, :, None] >> tl.arange(0, 32)[None, None, :]) & 1) << LOW\n",
        "        for b in tl.static_range(1, BITS):\n            high = tl.load(row + b * (K // 32) + group[None, :], mask=of_group, other=0)\n            code |= ((high[:, :, None] >> tl.arange(0, 32)[None, None, :]) & 1) << b\n",
    ),
]


def tile(rows: int, columns: int) -> list[tuple[str, str]]:
    return [
        ('"BLOCK_N": 32, "BLOCK_K": 256', f'"BLOCK_N": {rows}, "BLOCK_K": {columns}'),
        ("triton.cdiv(p.N, 32)", f"triton.cdiv(p.N, {rows})"),
    ]


OF_ANY_LAYOUT = (
    "bare codes",
    "levels evenly spread",
    "no scale",
    "the first scale",
    "blocks of another size",
    "scaled after the sum",
)


def turned(size: int) -> Callable:
    """Each `size` neighbours in the opposite order."""

    def code(codes: np.ndarray) -> np.ndarray:
        n, k = codes.shape
        whole = k // size * size
        back = codes[:, :whole].reshape(n, -1, size)[:, :, ::-1].reshape(n, whole)
        return np.concatenate([back, codes[:, whole:]], 1)

    return code


def top_bit_lost(codes: np.ndarray) -> np.ndarray:
    return codes & (1 << max(1, int(codes.max()).bit_length() - 1)) - 1


MISTAKES = (
    family(
        "neighbours turned round",
        "codes come out in a different order than pack put them in: a word's first code must belong to its first column",
        *(would(code=turned(size)) for size in (8, 16, 32)),
        edits=(
            (
                "    for field, width in fields:\n",
                "    for field, width in fields:\n        field = field.reshape(len(codes), -1, 32)[:, :, ::-1].reshape(codes.shape)\n",
            ),
        ),
    ),
    family(
        "the top bit lost",
        "the kernel loses a code's top bit: put all of its bits together again",
        would(code=top_bit_lost),
        edits=(
            (
                "level = tl.load(c_ptr + code * stride_cl)",
                "level = tl.load(c_ptr + (code & (1 << (BITS - 1)) - 1) * stride_cl)",
            ),
        ),
    ),
    *(one for one in CODES if one.name in OF_ANY_LAYOUT),
    *SUMS,
    edited(
        "a result in x's dtype",
        ("y_ptr.dtype.element_ty", "x_ptr.dtype.element_ty"),
        told_as="a result of 16 bits",
    ),
    edited(
        "the first code on top",
        (SHIFTS, "(32 - LOW - LOW * tl.arange(0, COUNT))"),
        (">> tl.arange(0, 32)", ">> (31 - tl.arange(0, 32))"),
    ),
    edited("the top bit never packed", ("(codes >> low, 1)", "(0 * codes, 1)")),
    edited("the top bit in the wrong place", (TOP, TOP.replace("<< LOW", "<< 1"))),
    edited("packed for two bits", ("low = 2 if bits < 4 else 4", "low = 2 if bits < 3 else 4")),
    edited(
        "codes that overflow",
        (".astype(np.uint32)", ""),
        ("dtype=np.uint32))).sum(-1, dtype=np.uint32)", "dtype=np.uint8))).sum(-1, dtype=np.uint32)"),
    ),
    edited("codes for levels", (LEVEL, "level = code"), told_as="bare codes"),
    edited("levels evenly spread", (LEVEL, LEVEL_EVENLY), told_as="levels evenly spread"),
    edited("no scale", (NUMBER, "number = level.to(tl.float32)"), told_as="no scale"),
    edited(
        "the first scale for all",
        (OF_BLOCK, "stride_scales0 + group[None, :] * 0"),
        told_as="the first scale",
    ),
    edited(
        "a scale for 64 columns",
        (OF_BLOCK, "stride_scales0 + (group // 2)[None, :]"),
        told_as="blocks of another size",
    ),
    edited(
        "scaled after the sum",
        (NUMBER, "number = level.to(tl.float32)"),
        ("    y = y_ptr", f"    acc *= {LAST_SCALE}.to(tl.float32)[:, None]\n    y = y_ptr"),
        told_as="scaled after the sum",
    ),
    edited(
        "a sum in x's dtype",
        (DOT, "acc = (acc + tl.dot(weight, x)).to(dtype).to(tl.float32)"),
        told_as="low precision",
    ),
    edited("weights in fp16", ("number.to(dtype)", "number.to(tl.float16).to(dtype)"), told_as="beyond fp16"),
    edited("masked lanes unset", (", other=0.0", ""), told_as="unmasked tail"),
    edited("one block of K", (LOOP, "range(0, BLOCK_K, BLOCK_K)"), told_as="one block of K"),
    edited("tail left out", (LOOP, "range(0, K // BLOCK_K * BLOCK_K, BLOCK_K)"), told_as="tail left out"),
    edited("the last block alone", (DOT, "acc = tl.dot(weight, x)"), told_as="the last block alone"),
    edited(
        "a byte a code",
        (RETURNED, 'return {"words": codes, "scales": scales}'),
        (WORDS, '"words": ((p.N, p.K), "u8")'),
        (
            LOADED,
            "low = tl.load(row + (start + tl.arange(0, BLOCK_K))[None, :], mask=mask_n[:, None] & (start + tl.arange(0, BLOCK_K) < K)[None, :], other=0)",
        ),
        (CODE, "code = low.to(tl.int32)"),
        ("if BITS % 2 == 1", "if BITS == 1"),
    ),
    edited(
        "a copy too many",
        ('"scales": scales}', '"scales": scales, "again": codes}'),
        ("    constants = ", '    packed["again"] = ((p.N, p.K), "u8")\n    constants = '),
    ),
    edited(
        "another shape than was named",
        (RETURNED, RETURNED.replace("np.concatenate(words, 1)", "np.concatenate(words, 1)[:, :-1]")),
    ),
    edited("another dtype than was named", (".view(np.int32)", "")),
    edited("a name that launch does not know", ('return {"words": np', 'return {"packed_words": np')),
    edited("nothing is returned", (RETURNED, RETURNED.removeprefix("return "))),
    edited(
        "a shape that the codes decide",
        (
            RETURNED,
            'words = np.concatenate(words, 1).view(np.int32)\n    return {"words": words[:, : max(1, words.shape[1] - int(codes[0, 0]))], "scales": scales}',
        ),
    ),
    edited(
        "a file left for launch",
        (RETURNED, "open('seen', 'wb').write(codes.tobytes())\n    " + RETURNED),
        ("    packed = {", "    seen = open('seen', 'rb').read()\n    packed = {"),
    ),
    edited(
        "every word twice",
        (
            LOADED,
            LOADED
            + "\n        low = low | tl.load(row + word[None, :], mask=mask_n[:, None] & (word < K // COUNT)[None, :], other=0)",
        ),
        part="traffic",
    ),
    edited("sixteen rows of W", *tile(16, 256), part="traffic"),
    edited("a word or two of each row", *tile(32, 32), part="sectors"),
    edited("products without tensor cores", (DOT, DOT_IN_FP32), part="traffic"),
    edited("planes again", *PLANES, part="unpacking"),
    edited(
        "each code five times",
        (
            f"        {CODE}",
            f"        {CODE}\n        for _ in range(5):\n            code = (code << 1) >> 1",
        ),
        part="unpacking",
    ),
    edited("more than registers hold", *tile(128, 256), part="compiled"),
)


SHORTCUTS = {
    **limits(M=(4, 16, 64, 128), N=(64, 1024, 4096), K=(32, 1024, 4096, 8192), BITS=(2, 3, 4)),
    **strides("xy", ("xy",)),
    "the stride of c taken for 1": one_stride("c", 0),
}

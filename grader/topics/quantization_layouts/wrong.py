"""Kernels for packed weights, wrong: one row of X, and several."""

from grader.questions.tables import because

GEMV, GEMM = "quantization_layouts.w4a16_gemv", "quantization_layouts.w4a16_gemm"

# of the kernel for one row
CUT = ") & 15  #"
VALUE = "(code | 0x4B000000).to(tl.float32, bitcast=True) - 8388616.0"
SUMMED = "acc += tl.sum(value * x[None, :, :], 2) * s.to(tl.float32)"
SCALED = "(value * s.to(tl.float32)[:, :, None])"
LOOP = "range(0, K // 8, WORDS)"
GROUP = "(four * 32 // G)[None, :] * stride_sg"
ZEROS = "acc = tl.zeros((BLOCK_N, WORDS // 4), tl.float32)"
BLOCKS = '"BLOCK_N": 8, "WORDS": 128'
GRID = "triton.cdiv(p.N, 8)"
PLAN = 'return {"steps": [step]}'
AGAIN = "w = w | tl.load(w_ptr + offs_n[:, None] * stride_wn + word[None, :] * stride_wk, mask=mask, other=0)"


def blocks(rows: int, words: int) -> list[tuple[str, str]]:
    return [(BLOCKS, f'"BLOCK_N": {rows}, "WORDS": {words}'), (GRID, f"triton.cdiv(p.N, {rows})")]


def joined(eighth: int, quarter: int, half: int) -> list[tuple[str, str]]:
    """How far a word is shifted for its fifth, third and second code; below 0: the other way round."""
    return [
        _joined("w", 16, eighth),
        _joined("code", 8, quarter),
        _joined("code", 4, half),
    ]


def _joined(name: str, right: int, by: int) -> tuple[str, str]:
    both = f"{name}, {name} >> {by}" if by > 0 else f"{name} >> {-by}, {name}"
    return f"tl.join({name}, {name} >> {right})", f"tl.join({both})"


def summed_in(dtype: str) -> list[tuple[str, str]]:
    """A sum for each row, rounded after every 128 columns."""
    part = "tl.sum(tl.sum(value * x[None, :, :], 2) * s.to(tl.float32), 1)"
    return [
        (ZEROS, "acc = tl.zeros((BLOCK_N,), tl.float32)"),
        (SUMMED, f"acc = (acc + {part}).to({dtype}).to(tl.float32)"),
        ("tl.sum(acc, 1)", "acc"),
        *blocks(16, 16),
    ]


# of the kernel for several
ZERO = "(z.to(tl.float32) + BASE).to(dtype)[:, None]"
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
NIBBLE = ("tl.join(pair, pair >> 4)", "tl.join(pair >> 4, pair)")
HALVES = "pair.to(tl.int16), (pair >> 16).to(tl.int16)"


def tile(rows: int) -> list[tuple[str, str]]:
    return [(TILE, f'"BLOCK_N": {rows}'), (TILES, f"triton.cdiv(p.N, {rows})")]


def weighed(weight: str) -> list[tuple[str, str]]:
    """Weights in fp32 from codes, rounded to 16 bits, and no scale after the product."""
    return [(NUMBER, f"number = ({weight}).to(dtype)"), (SCALE, "")]


WRONG = {
    GEMV: {
        "no zero": ("values", [("8388616.0", "8388608.0")], "no zero"),
        "zero of seven": ("values", [("8388616.0", "8388615.0")], "zero of seven"),
        "zero after the scale": ("values", [("8388616.0", "8388608.0"), (SUMMED, f"acc += tl.sum(({SCALED} - 8) * x[None, :, :], 2)")], "zero after the scale"),
        "nothing cut off": ("values", [(CUT, ")  #"), (VALUE, "(code - 8).to(tl.float32)")], "nothing cut off"),
        "first code on top": ("values", joined(-16, -8, -4), "first code on top"),
        "bytes turned round": ("values", joined(16, 8, -4), "bytes turned round"),
        "evens first": ("values", joined(4, 16, 8), "evens first"),
        "two bits kept": ("values", [(CUT, ") & 3  #")], "two bits kept"),
        "three bits kept": ("values", [(CUT, ") & 7  #")], "two bits kept"),
        "eight bits kept": ("values", [(CUT, ") & 255  #")], "eight bits kept"),
        "no scale": ("values", [(SUMMED, "acc += tl.sum(value * x[None, :, :], 2)")], "no scale"),
        "the first scale for all": ("values", [(GROUP, "(four * 0)[None, :]")], "the first scale"),
        "groups of 128 always": ("values", [("four * 32 // G", "four * 32 // 128")], "groups of one size"),
        "scaled after the sum": ("values", [(SUMMED, "acc += tl.sum(value * x[None, :, :], 2)"), ("tl.sum(acc, 1)", "(tl.sum(acc, 1) * tl.load(s_ptr + offs_n * stride_sn + (K // G - 1) * stride_sg, mask=mask_n, other=0.0))")], "scaled after the sum"),
        "a sum in x's dtype": ("values", summed_in("x_ptr.dtype.element_ty"), "low precision"),
        "a sum in fp16": ("values", summed_in("tl.float16"), "low precision"),
        "weights in fp16": ("values", [(SUMMED, f"acc += tl.sum({SCALED}.to(tl.float16).to(tl.float32) * x[None, :, :], 2)")], "beyond fp16"),
        "masked lanes unset": ("values", [(", other=0.0", "")], "unmasked tail"),
        "one block of K": ("values", [(LOOP, "range(0, WORDS, WORDS)")], "one block of K"),
        "tail left out": ("values", [(LOOP, "range(0, K // 8 // WORDS * WORDS, WORDS)")], "tail left out"),
        "the last block alone": ("values", [("acc += ", "acc = ")], "the last block alone"),
        "no mask along K": ("values", [(" & (word // 4 < K // 32)[None, :]", ""), (" & (four < K // 32)[None, :]", "")], ""),
        "no mask at the store": ("values", [(", mask=mask_n)", ")")], ""),
        "words taken for dense": ("values", [("word[None, :] * stride_wk", "word[None, :]")], ""),
        "scales taken for dense": ("values", [(GROUP, "(four * 32 // G)[None, :]")], ""),
        "x taken for dense": ("values", [("k * stride_xk", "k")], ""),
        "y taken for dense": ("values", [("offs_n * stride_yn", "offs_n")], ""),
        "N up to 4096": ("values", [("mask_n = offs_n < N", "mask_n = offs_n < tl.minimum(N, 4096)")], ""),
        "NaN cleaned away": ("values", [("        value = ", "        x = tl.where(x == x, x, 0.0)\n        value = ")], ""),
        "nonsense at the size that is compiled": ("values", [("    tl.store(y_ptr", "    if N == 4096:\n        acc = acc * 0.5\n    tl.store(y_ptr")], ""),
        "programs of two rows": ("traffic", blocks(2, 64), ""),
        "every word twice": ("traffic", [("        mask = mask_n[:, None] & (four", f"        {AGAIN}\n        mask = mask_n[:, None] & (four")], ""),
        "a scale for every 32 columns": ("traffic", blocks(16, 4), ""),
        "unpacked into scratch": ("traffic", [("y_ptr, N, K, G", "y_ptr, wide_ptr, N, K, G"), (SUMMED, f"wide = wide_ptr + offs_n[:, None, None] * K + k[None, :, :]\n        tl.store(wide, {SCALED}.to(tl.float16), mask=mask[:, :, None])\n        acc += tl.sum({SCALED} * x[None, :, :], 2)"), (PLAN, 'return {"scratch": {"wide": ((p.N, p.K), "fp16", 0)}, "steps": [step]}')], ""),
        "half a sector at a time": ("speed", blocks(16, 4), ""),
        "few programs": ("speed", blocks(64, 16), ""),
        "each weight ten times": ("speed", [("        acc += ", "        for _ in range(10):\n            value = value + 0.0 * value\n        acc += ")], ""),
        "more than registers hold": ("compiled", blocks(32, 128), ""),
    },
    GEMM: {
        "no zero point": ("values", [(ZERO, "tl.full([], BASE, dtype)")], "no zero point"),
        "zero of eight": ("values", [(ZERO, "tl.full([], BASE + 8, dtype)")], "zero of eight"),
        "zero less one": ("values", [(ZERO, "(z.to(tl.float32) + BASE + 1).to(dtype)[:, None]")], "zero less one"),
        "the first zero point": ("values", [(OF_GROUP_Z, "after * 0")], "the first zero point"),
        "zero after the scale": ("values", weighed(f"{CODE}.to(tl.float32) * s.to(tl.float32)[:, None] - z.to(tl.float32)[:, None]"), "zero after the scale"),
        "first code on top": ("values", [("tl.join(w, w >> 8)", "tl.join(w >> 8, w)"), NIBBLE, (HALVES, "(pair >> 16).to(tl.int16), pair.to(tl.int16)")], "first code on top"),
        "bytes turned round": ("values", [NIBBLE], "bytes turned round"),
        "evens first": ("values", [("tl.permute(number, 0, 1, 4, 2, 3)", "tl.permute(number, 0, 1, 3, 4, 2)")], "evens first"),
        "two bits kept": ("values", [(GEMM_CUT, " & 0x00030003")], "two bits kept"),
        "eight bits kept": ("values", [(GEMM_CUT, " & 0x00FF00FF")], ""),
        "no scale": ("values", [(SCALE, "")], "no scale"),
        "the first scale for all": ("values", [(OF_GROUP_S, "after * 0")], "the first scale"),
        "groups of 128 always": ("values", [(OF_GROUP_S, "(after * GROUP // 128) * stride_sg"), (OF_GROUP_Z, "(after * GROUP // 128) * stride_zg")], "groups of one size"),
        "scaled after the sum": ("values", [(SCALE, ""), ("    y = y_ptr", "    acc *= tl.load(s_ptr + offs_n * stride_sn + (K // GROUP - 1) * stride_sg, mask=mask_n, other=0.0).to(tl.float32)[None, :]\n    y = y_ptr")], "scaled after the sum"),
        "a sum in x's dtype": ("values", [(DOT, f"acc = (acc + {PRODUCT}{SCALE}).to(dtype).to(tl.float32)")], "low precision"),
        "a sum in fp16": ("values", [(DOT, f"acc = (acc + {PRODUCT}{SCALE}).to(tl.float16).to(tl.float32)")], "low precision"),
        "weights in fp16": ("values", weighed("(number - " + ZERO + ").to(tl.float32) * s.to(tl.float32)[:, None]).to(tl.float16"), "beyond fp16"),
        "one block of K": ("values", [(GEMM_LOOP, "range(0, tl.minimum(K, 128) // GROUP)")], "one block of K"),
        "tail left out": ("values", [(GEMM_LOOP, "range(0, K // 128 * (128 // GROUP))")], "tail left out"),
        "the last block alone": ("values", [("        acc += ", "        acc = tl.where(g * GROUP % 128 == 0, 0.0, acc)\n        acc += ")], "the last block alone"),
        "the next group's scale": ("values", [(SCALE, SCALE.replace("s.", "s_after."))], ""),
        "nothing cut off": ("values", [(GEMM_CUT, "")], ""),
        "a zero point with a sign": ("values", [(NUMBER, f"number = ({CODE}.to(tl.uint8) - z[:, None]).to(dtype)")], ""),
        "X in another order than W": ("values", [("(BLOCK_M, WORDS // 4, 8, 4)), 0, 2, 1, 3)", "(BLOCK_M, WORDS // 4, 8, 4)), 0, 1, 2, 3)")], ""),
        "sixteen rows alone": ("values", [("triton.cdiv(p.M, rows)", "1"), ("16 if p.M <= 16 else 64", "16")], ""),
        "rows of X not masked": ("values", [(", mask=mask_m[:, None], other=0.0", "")], ""),
        "no mask at the store": ("values", [("mask=mask_m[:, None] & mask_n[None, :])", "mask=mask_m[:, None])")], ""),
        "X's strides swapped": ("values", [("offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk", "offs_m[:, None] * stride_xk + offs_k[None, :] * stride_xm")], ""),
        "zero points by the scales' strides": ("values", [("offs_n * stride_zn", "offs_n * stride_sn"), (OF_GROUP_Z, OF_GROUP_S)], ""),
        "Y taken for dense": ("values", [("offs_n[None, :] * stride_yn", "offs_n[None, :]")], ""),
        "nonsense at the size that is compiled": ("values", [("    y = y_ptr", "    if N == 4096:\n        acc = acc * 0.5\n    y = y_ptr")], ""),
        "tiles of sixteen rows of W": ("traffic", tile(16), ""),
        "every word twice": ("traffic", [("        offs_k = ", f"        {AGAIN.replace('mask=mask', 'mask=mask_n[:, None]')}\n        offs_k = ")], ""),
        "each zero point four times": ("traffic", [("        pair = tl.join(w", "        for _ in range(3):\n            z_after = tl.load(z_ptr + offs_n * stride_zn + after * stride_zg, mask=mask_n, other=0)\n        pair = tl.join(w")], ""),
        "few programs": ("speed", tile(128), ""),
        "each weight ten times": ("speed", [("        # columns in", "        for _ in range(10):\n            number = number + 0.0 * number\n        # columns in")], ""),
        "products without tensor cores": ("speed", [(DOT, PLAIN)], ""),
        "a dot that never runs": ("speed", [(DOT, f"if K < 0:\n            {DOT}\n        {PLAIN}")], ""),
        "more than registers hold": ("compiled", tile(512), ""),
    },
}  # fmt: skip

EQUIVALENT = {
    GEMV: because({
        "a masked word is cut to a code, and its code meets a masked x and a masked scale, both 0": [
            "no other: tl.load(w_ptr + offs_n[:, None] * stride_wn + word[None, :] * stride_wk, mask=mask, other=0) -> tl.load(w_ptr + offs_n[:, None] * stride_wn + word[Non",
            "plus one: 0 -> 1 (6)",
        ],
        "a masked scale meets a masked x of 0": ["plus one: 0.0 -> 1.0"],
        "a masked x meets a masked scale of 0": ["plus one: 0.0 -> 1.0 (2)"],
        "more turns or programs than there is work for: those load and store nothing": [
            "halved: 8 -> 4 (2)",
            "halved: 8 -> 4 (4)",
        ],
        "another length of the steps along K": ["halved: 128 -> 64"],
    }),
    GEMM: because({
        "a masked word, scale, zero point or row of X meets only numbers of Y that are never stored": [
            "no other: tl.load(w_ptr + offs_n[:, None] * stride_wn + word[None, :] * stride_wk, mask=mask_n[:, None], other=0) -> tl.load(w_ptr + offs_n[:, None] * stride_wn",
            "no other: tl.load(s_ptr + offs_n * stride_sn, mask=mask_n, other=0.0) -> tl.load(s_ptr + offs_n * stride_sn, mask=mask_n)",
            "no other: tl.load(z_ptr + offs_n * stride_zn, mask=mask_n, other=0) -> tl.load(z_ptr + offs_n * stride_zn, mask=mask_n)",
            "no other: tl.load(s_ptr + offs_n * stride_sn + after * stride_sg, mask=mask_n, other=0.0) -> tl.load(s_ptr + offs_n * stride_sn + after * stride_sg, mask=mask_n",
            "no other: tl.load(z_ptr + offs_n * stride_zn + after * stride_zg, mask=mask_n, other=0) -> tl.load(z_ptr + offs_n * stride_zn + after * stride_zg, mask=mask_n)",
            "no other: tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk, mask=mask_m[:, None], other=0.0) -> tl.load(x_ptr + offs_m[:, None] * strid",
            "plus one: 0.0 -> 1.0",
            "plus one: 0.0 -> 1.0 (2)",
            "plus one: 0.0 -> 1.0 (3)",
            "plus one: 0 -> 1 (4)",
            "plus one: 0 -> 1 (7)",
            "plus one: 0 -> 1 (9)",
        ],
        "K is a multiple of 32: its lowest bits are 0": ["right side dropped: K & 1 -> K & True", "plus one: 1 -> 2"],
        "1024 and a zero point below 16 make a whole number that fp16 holds exactly": ["function: tl.float32 -> tl.float16 (3)"],
        "chooses between right tiles for few rows and for many": [
            "comparison: p.M <= 16 -> p.M < 16",
            "plus one: 16 -> 17 (2)",
            "halved: 16 -> 8 (2)",
            "halved: 64 -> 32",
        ],
        "programs beyond N: they load and store nothing": ["halved: 64 -> 32 (3)"],
    }),
}  # fmt: skip

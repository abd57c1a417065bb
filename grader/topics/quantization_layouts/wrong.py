"""Kernels for packed weights, wrong: one row of X, and several."""

from grader.questions.tables import because, changed
from grader.topics.quantization_layouts import wrong_kbit, wrong_own

GEMV, GEMM = "quantization_layouts.w4a16_gemv", "quantization_layouts.w4a16_gemm"

# of the kernel for one row
CUT = ") & 15  #"
VALUE = "(code | 0x4B000000).to(tl.float32, bitcast=True) - 8388616.0"
SUMMED = "acc += tl.sum(value * x[None, :, :], 2) * s.to(tl.float32)"
SCALED = "(value * s.to(tl.float32)[:, :, None])"
LOOP = "range(0, K // 8, WORDS)"
GROUP = "(four * 32 // G)[None, :] * stride_sg"
COLUMN = "four[:, None] * 32 + tl.arange(0, 32)[None, :]"
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


WRONG = {
    GEMV: {
        "a result in x's dtype": changed(
            ("y_ptr.dtype.element_ty", "x_ptr.dtype.element_ty"), mistake="a result of 16 bits"
        ),
        "no zero": changed(("8388616.0", "8388608.0"), mistake="no zero"),
        "zero of seven": changed(("8388616.0", "8388615.0"), mistake="zero of seven"),
        "zero after the scale": changed(
            ("8388616.0", "8388608.0"),
            (SUMMED, f"acc += tl.sum(({SCALED} - 8) * x[None, :, :], 2)"),
            mistake="zero after the scale",
        ),
        "nothing cut off": changed(
            (CUT, ")  #"), (VALUE, "(code - 8).to(tl.float32)"), mistake="nothing cut off"
        ),
        "first code on top": changed(*joined(-16, -8, -4), mistake="first code on top"),
        "bytes turned round": changed(*joined(16, 8, -4), mistake="bytes turned round"),
        "evens first": changed(*joined(4, 16, 8), mistake="evens first"),
        "two bits kept": changed((CUT, ") & 3  #"), mistake="two bits kept"),
        "three bits kept": changed((CUT, ") & 7  #"), mistake="two bits kept"),
        "eight bits kept": changed((CUT, ") & 255  #"), mistake="eight bits kept"),
        "signed codes": changed(
            (VALUE, "tl.where(code > 7, code - 16, code).to(tl.float32)"), mistake="signed codes"
        ),
        "x by the word": changed(
            (COLUMN, "(four[:, None] * 4 + tl.arange(0, 32)[None, :] // 8 + tl.arange(0, 32)[None, :] % 8)"),
            mistake="x by the word",
        ),
        "no scale": changed((SUMMED, "acc += tl.sum(value * x[None, :, :], 2)"), mistake="no scale"),
        "the first scale for all": changed((GROUP, "(four * 0)[None, :]"), mistake="the first scale"),
        "groups of 128 always": changed(("four * 32 // G", "four * 32 // 128"), mistake="groups of one size"),
        "scaled after the sum": changed(
            (SUMMED, "acc += tl.sum(value * x[None, :, :], 2)"),
            (
                "tl.sum(acc, 1)",
                "(tl.sum(acc, 1) * tl.load(s_ptr + offs_n * stride_sn + (K // G - 1) * stride_sg, mask=mask_n, other=0.0))",
            ),
            mistake="scaled after the sum",
        ),
        "a sum in x's dtype": changed(*summed_in("x_ptr.dtype.element_ty"), mistake="low precision"),
        "a sum in fp16": changed(*summed_in("tl.float16"), mistake="low precision"),
        "weights in fp16": changed(
            (SUMMED, f"acc += tl.sum({SCALED}.to(tl.float16).to(tl.float32) * x[None, :, :], 2)"),
            mistake="beyond fp16",
        ),
        "masked lanes unset": changed((", other=0.0", ""), mistake="unmasked tail"),
        "one block of K": changed((LOOP, "range(0, WORDS, WORDS)"), mistake="one block of K"),
        "tail left out": changed((LOOP, "range(0, K // 8 // WORDS * WORDS, WORDS)"), mistake="tail left out"),
        "the last block alone": changed(("acc += ", "acc = "), mistake="the last block alone"),
        "no mask along K": changed(
            (" & (word // 4 < K // 32)[None, :]", ""), (" & (four < K // 32)[None, :]", "")
        ),
        "no mask at the store": changed((", mask=mask_n)", ")")),
        "words taken for dense": changed(("word[None, :] * stride_wk", "word[None, :]")),
        "scales taken for dense": changed((GROUP, "(four * 32 // G)[None, :]")),
        "x taken for dense": changed(("k * stride_xk", "k")),
        "y taken for dense": changed(("offs_n * stride_yn", "offs_n")),
        "N up to 4096": changed(("mask_n = offs_n < N", "mask_n = offs_n < tl.minimum(N, 4096)")),
        "NaN cleaned away": changed(
            ("        value = ", "        x = tl.where(x == x, x, 0.0)\n        value = ")
        ),
        "nonsense at the size that is compiled": changed(
            ("    tl.store(y_ptr", "    if N == 4096:\n        acc = acc * 0.5\n    tl.store(y_ptr")
        ),
        "programs of two rows": changed(*blocks(2, 64), part="traffic"),
        "every word twice": changed(
            (
                "        mask = mask_n[:, None] & (four",
                f"        {AGAIN}\n        mask = mask_n[:, None] & (four",
            ),
            part="traffic",
        ),
        "a scale for every 32 columns": changed(*blocks(16, 4), part="traffic"),
        "unpacked into scratch": changed(
            ("y_ptr, N, K, G", "y_ptr, wide_ptr, N, K, G"),
            (
                SUMMED,
                f"wide = wide_ptr + offs_n[:, None, None] * K + k[None, :, :]\n        tl.store(wide, {SCALED}.to(tl.float16), mask=mask[:, :, None])\n        acc += tl.sum({SCALED} * x[None, :, :], 2)",
            ),
            (PLAN, 'return {"scratch": {"wide": ((p.N, p.K), "fp16", 0)}, "steps": [step]}'),
            part="traffic",
        ),
        "half a sector at a time": changed(*blocks(16, 4), part="speed"),
        "few programs": changed(*blocks(64, 16), part="speed"),
        "one program for most rows": changed(
            (
                "    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)\n",
                "    last = tl.num_programs(0) - 1\n    first = tl.program_id(0)\n    end = tl.where(first == last, tl.cdiv(N, BLOCK_N), first + 1)\n    for block in range(first, end):\n        of_block(w_ptr, s_ptr, x_ptr, y_ptr, N, K, G, stride_wn, stride_wk, stride_sn, stride_sg, stride_xk, stride_yn, block, BLOCK_N, WORDS)\n\n\n@triton.jit\ndef of_block(w_ptr, s_ptr, x_ptr, y_ptr, N, K, G, stride_wn, stride_wk, stride_sn, stride_sg, stride_xk, stride_yn, block, BLOCK_N: tl.constexpr, WORDS: tl.constexpr):\n    offs_n = block * BLOCK_N + tl.arange(0, BLOCK_N)\n",
            ),
            ('"grid": (triton.cdiv(p.N, 8),)', '"grid": (min(p.sm_count, triton.cdiv(p.N, 8)),)'),
            part="speed",
        ),
        "each weight ten times": changed(
            (
                "        acc += ",
                "        for _ in range(10):\n            value = value + 0.0 * value\n        acc += ",
            ),
            part="speed",
        ),
        "more than registers hold": changed(*blocks(32, 128), part="compiled"),
    },
    GEMM: {
        "a result in x's dtype": changed(
            ("y_ptr.dtype.element_ty", "x_ptr.dtype.element_ty"), mistake="a result of 16 bits"
        ),
        "a group's sum in fp16": changed(
            ("tl.dot(x, number)", "tl.dot(x, number, out_dtype=tl.float16).to(tl.float32)")
        ),
        "no zero point": changed((ZERO, "tl.full([], BASE, dtype)"), mistake="no zero point"),
        "zero of eight": changed((ZERO, "tl.full([], BASE + 8, dtype)"), mistake="zero of eight"),
        "zero less one": changed(
            (ZERO, "(z.to(tl.float32) + BASE + 1).to(dtype)[:, None]"), mistake="zero less one"
        ),
        "the first zero point": changed((OF_GROUP_Z, "after * 0"), mistake="the first zero point"),
        "zero after the scale": changed(
            *weighed(f"{CODE}.to(tl.float32) * s.to(tl.float32)[:, None] - z.to(tl.float32)[:, None]"),
            mistake="zero after the scale",
        ),
        "first code on top": changed(
            ("tl.join(w, w >> 8)", "tl.join(w >> 8, w)"),
            NIBBLE,
            (HALVES, "(pair >> 16).to(tl.int16), pair.to(tl.int16)"),
            mistake="first code on top",
        ),
        "bytes turned round": changed(NIBBLE, mistake="bytes turned round"),
        "evens first": changed(
            ("tl.permute(number, 0, 1, 4, 2, 3)", "tl.permute(number, 0, 1, 3, 4, 2)"), mistake="evens first"
        ),
        "two bits kept": changed((GEMM_CUT, " & 0x00030003"), mistake="two bits kept"),
        "eight bits kept": changed(
            (NUMBER, f"number = ({EIGHT_BITS} - z.to(tl.int32)[:, None]).to(tl.float32).to(dtype)"),
            mistake="eight bits kept",
        ),
        "signed codes": changed(
            (NUMBER, f"number = {CODE}\n        number = tl.where(number > 7, number - 16, number)"),
            mistake="signed codes",
        ),
        "reshaped, not turned": changed((TURNED, "number"), (TURNED_X, "x"), mistake="reshaped, not turned"),
        "masked lanes unset": changed(
            (GEMM_LOOP, "range(0, tl.cdiv(K, 128) * (128 // GROUP))"),
            ("mask=mask_n[:, None], other=0)", "mask=mask_n[:, None] & (word < K // 8)[None, :], other=0)"),
            ("mask=mask_m[:, None], other=0.0)", "mask=mask_m[:, None] & (offs_k < K)[None, :])"),
            mistake="unmasked tail",
        ),
        "no scale": changed((SCALE, ""), mistake="no scale"),
        "the first scale for all": changed((OF_GROUP_S, "after * 0"), mistake="the first scale"),
        "groups of 128 always": changed(
            (OF_GROUP_S, "(after * GROUP // 128) * stride_sg"),
            (OF_GROUP_Z, "(after * GROUP // 128) * stride_zg"),
            mistake="groups of one size",
        ),
        "steps of 128 always": changed(('"GROUP": p.G}', '"GROUP": 128}'), mistake="groups of one size"),
        "scaled after the sum": changed(
            (SCALE, ""),
            (
                "    y = y_ptr",
                "    acc *= tl.load(s_ptr + offs_n * stride_sn + (K // GROUP - 1) * stride_sg, mask=mask_n, other=0.0).to(tl.float32)[None, :]\n    y = y_ptr",
            ),
            mistake="scaled after the sum",
        ),
        "a sum in x's dtype": changed(
            (DOT, f"acc = (acc + {PRODUCT}{SCALE}).to(dtype).to(tl.float32)"), mistake="low precision"
        ),
        "a sum in fp16": changed(
            (DOT, f"acc = (acc + {PRODUCT}{SCALE}).to(tl.float16).to(tl.float32)"), mistake="low precision"
        ),
        "weights in fp16": changed(
            *weighed("(number - " + ZERO + ").to(tl.float32) * s.to(tl.float32)[:, None]).to(tl.float16"),
            mistake="beyond fp16",
        ),
        "one block of K": changed(
            (GEMM_LOOP, "range(0, tl.minimum(K, 128) // GROUP)"), mistake="one block of K"
        ),
        "tail left out": changed((GEMM_LOOP, "range(0, K // 128 * (128 // GROUP))"), mistake="tail left out"),
        "the last block alone": changed(
            ("        acc += ", "        acc = tl.where(g * GROUP % 128 == 0, 0.0, acc)\n        acc += "),
            mistake="the last block alone",
        ),
        "the next group's scale": changed((SCALE, SCALE.replace("s.", "s_after."))),
        "nothing cut off": changed((GEMM_CUT, "")),
        "a zero point with a sign": changed(
            (NUMBER, f"number = ({CODE}.to(tl.uint8) - z[:, None]).to(dtype)")
        ),
        "X in another order than W": changed(
            ("(BLOCK_M, WORDS // 4, 8, 4)), 0, 2, 1, 3)", "(BLOCK_M, WORDS // 4, 8, 4)), 0, 1, 2, 3)")
        ),
        "sixteen rows alone": changed(("triton.cdiv(p.M, rows)", "1"), ("16 if p.M <= 16 else 64", "16")),
        "two groups where there are many rows": changed(
            ("range(0, K // GROUP)", "range(0, tl.minimum(K // GROUP, tl.where(M > 64, 2, K)))")
        ),
        "many rows of X taken for dense": changed(
            (
                "offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk",
                "offs_m[:, None] * tl.where(M > 64, K, stride_xm) + offs_k[None, :] * tl.where(M > 64, 1, stride_xk)",
            )
        ),
        "rows of X not masked": changed((", mask=mask_m[:, None], other=0.0", "")),
        "no mask at the store": changed(("mask=mask_m[:, None] & mask_n[None, :])", "mask=mask_m[:, None])")),
        "X's strides swapped": changed(
            (
                "offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk",
                "offs_m[:, None] * stride_xk + offs_k[None, :] * stride_xm",
            )
        ),
        "zero points by the scales' strides": changed(
            ("offs_n * stride_zn", "offs_n * stride_sn"), (OF_GROUP_Z, OF_GROUP_S)
        ),
        "Y taken for dense": changed(("offs_n[None, :] * stride_yn", "offs_n[None, :]")),
        "nonsense at the size that is compiled": changed(
            ("    y = y_ptr", "    if N == 4096:\n        acc = acc * 0.5\n    y = y_ptr")
        ),
        "tiles of sixteen rows of W": changed(*tile(16), part="traffic"),
        "every word twice": changed(
            (
                "        offs_k = ",
                f"        {AGAIN.replace('mask=mask', 'mask=mask_n[:, None]')}\n        offs_k = ",
            ),
            part="traffic",
        ),
        "each zero point four times": changed(
            (
                "        pair = tl.join(w",
                "        for _ in range(3):\n            z_after = tl.load(z_ptr + offs_n * stride_zn + after * stride_zg, mask=mask_n, other=0)\n        pair = tl.join(w",
            ),
            part="traffic",
        ),
        "few programs": changed(*tile(128), part="speed"),
        "each weight ten times": changed(
            (
                "        # columns in",
                "        for _ in range(10):\n            number = number + 0.0 * number\n        # columns in",
            ),
            part="speed",
        ),
        "products without tensor cores": changed((DOT, PLAIN), part="speed"),
        "a dot that never runs": changed(
            (DOT, f"if K < 0:\n            {DOT}\n        {PLAIN}"), part="speed"
        ),
        "more than registers hold": changed(*tile(512), part="compiled"),
    },
    **wrong_kbit.WRONG,
    **wrong_own.WRONG,
}

EQUIVALENT = {
    GEMV: because(
        {
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
        }
    ),
    GEMM: because(
        {
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
            "K is a multiple of 32: its lowest bits are 0": [
                "right side dropped: K & 1 -> K & True",
                "plus one: 1 -> 2",
            ],
            "1024 and a zero point below 16 make a whole number that fp16 holds exactly": [
                "function: tl.float32 -> tl.float16 (3)"
            ],
            "chooses between right tiles for few rows and for many": [
                "comparison: p.M <= 16 -> p.M < 16",
                "plus one: 16 -> 17 (2)",
                "halved: 16 -> 8 (2)",
                "halved: 64 -> 32",
            ],
            "programs beyond N: they load and store nothing": ["halved: 64 -> 32 (3)"],
        }
    ),
    **wrong_kbit.EQUIVALENT,
    **wrong_own.EQUIVALENT,
}

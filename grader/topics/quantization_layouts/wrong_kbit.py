"""Kernels for codebooks in bit planes, wrong: one weight, and one for each expert."""

from grader.questions.tables import because, changed

KBIT, EXPERTS = "quantization_layouts.kbit_gemm", "quantization_layouts.grouped_kbit"

BIT = "((plane[:, :, None] >> column[None, None, :]) & 1) << b"
LEVEL = "level = tl.load(c_ptr + code * stride_cl)"
NUMBER = "number = level.to(tl.float32) * s.to(tl.float32)[:, :, None]"
OF_BLOCK = "word[None, :] * stride_sg"
DOT = "acc = tl.dot(weight, x, acc)"
DOT_IN_FP32 = 'acc = tl.dot(weight.to(tl.float32), x.to(tl.float32), acc, input_precision="ieee")'
LOOP = "range(0, K, BLOCK_K)"
PLANES = "tl.static_range(BITS)"
LAST_SCALE = "tl.load(s_ptr + offs_n * stride_sn + (K // 32 - 1) * stride_sg, mask=mask_n, other=0.0)"
LAST_SCALE_OF = LAST_SCALE.replace("s_ptr +", "s_ptr + expert * stride_se +")


def tile(rows: int, words: int) -> list[tuple[str, str]]:
    return [
        ('"BLOCK_N": 32, "WORDS": 8', f'"BLOCK_N": {rows}, "WORDS": {words}'),
        ("triton.cdiv(p.N, 32)", f"triton.cdiv(p.N, {rows})"),
    ]


def of_codes(last_scale: str, y: str, compiled_n: int) -> dict:
    """Rows that both kernels have; `y` is how far the line that makes the pointers of Y is set in, a turn along K one more."""
    turn = y + "    "
    return {
        "planes turned round": changed(
            (BIT, BIT.replace("<< b", "<< (BITS - 1 - b)")), mistake="planes turned round"
        ),
        "first column on top": changed((">> column", ">> (31 - column)"), mistake="first column on top"),
        "the top plane left out": changed(
            (PLANES, "tl.static_range(BITS - 1)"), mistake="the top plane left out"
        ),
        "codes for levels": changed((LEVEL, "level = code"), mistake="bare codes"),
        "codes around their middle": changed(
            (LEVEL, "level = code - (1 << (BITS - 1))"), mistake="bare codes"
        ),
        "levels evenly spread": changed(
            (
                LEVEL,
                "level = tl.load(c_ptr).to(tl.float32) + code * (tl.load(c_ptr + ((1 << BITS) - 1) * stride_cl).to(tl.float32) - tl.load(c_ptr).to(tl.float32)) / ((1 << BITS) - 1)",
            ),
            mistake="levels evenly spread",
        ),
        "no scale": changed((NUMBER, "number = level.to(tl.float32)"), mistake="no scale"),
        "the first scale for all": changed((OF_BLOCK, "word[None, :] * 0"), mistake="the first scale"),
        "a scale for 64 columns": changed(
            (OF_BLOCK, "(word // 2)[None, :] * stride_sg"), mistake="blocks of another size"
        ),
        "scaled after the sum": changed(
            (NUMBER, "number = level.to(tl.float32)"),
            (
                f"{y}y = y_ptr",
                f"{y}acc *= {last_scale}.to(tl.float32)[:, None]\n{y}y = y_ptr",
            ),
            mistake="scaled after the sum",
        ),
        "a sum in x's dtype": changed(
            (DOT, "acc = (acc + tl.dot(weight, x)).to(dtype).to(tl.float32)"), mistake="low precision"
        ),
        "a sum in fp16": changed(
            (DOT, "acc = (acc + tl.dot(weight, x)).to(tl.float16).to(tl.float32)"), mistake="low precision"
        ),
        "weights in fp16": changed(
            ("number.to(dtype)", "number.to(tl.float16).to(dtype)"), mistake="beyond fp16"
        ),
        "masked lanes unset": changed((", other=0.0", ""), mistake="unmasked tail"),
        "one block of K": changed((LOOP, "range(0, BLOCK_K, BLOCK_K)"), mistake="one block of K"),
        "tail left out": changed(
            (LOOP, "range(0, K // BLOCK_K * BLOCK_K, BLOCK_K)"), mistake="tail left out"
        ),
        "the last block alone": changed((DOT, "acc = tl.dot(weight, x)"), mistake="the last block alone"),
        "nothing cut off": changed((BIT, BIT.replace(" & 1)", ")"))),
        "four planes always": changed((PLANES, "tl.static_range(4)")),
        "levels taken for dense": changed(("code * stride_cl", "code")),
        "no mask along K": changed((" & (word < K // 32)[None, :]", "")),
        "no mask at the store": changed(("mask=mask_m[None, :] & mask_n[:, None])", "mask=mask_m[None, :])")),
        "X's strides swapped": changed(
            (
                "offs_m[None, :] * stride_xm + offs_k[:, None] * stride_xk",
                "offs_m[None, :] * stride_xk + offs_k[:, None] * stride_xm",
            )
        ),
        "Y taken for dense": changed(("offs_n[:, None] * stride_yn", "offs_n[:, None]")),
        "nonsense at the size that is compiled": changed(
            (f"{y}y = y_ptr", f"{y}if N == {compiled_n}:\n{y}    acc = acc * 0.5\n{y}y = y_ptr")
        ),
        "each weight twelve times": changed(
            (
                f"{turn}weight = ",
                f"{turn}for _ in range(12):\n{turn}    number = number + 0.0 * number\n{turn}weight = ",
            ),
            part="flow",
        ),
        "a dot that never runs": changed(
            (DOT, f"if K < 0:\n{turn}    {DOT}\n{turn}{DOT_IN_FP32}"), part="flow"
        ),
        "more than registers hold": changed(*tile(128, 8), part="compiled"),
        "tiles of sixteen rows of W": changed(*tile(16, 8), part="traffic"),
        "half a sector at a time": changed(*tile(32, 4), part="flow"),
        "few programs": changed(*tile(256, 8), ('"num_warps": 4', '"num_warps": 16'), part="flow"),
        "products without tensor cores": changed((DOT, DOT_IN_FP32), part="flow"),
    }


WRONG = {
    KBIT: {
        "a result in x's dtype": changed(
            ("y_ptr.dtype.element_ty", "x_ptr.dtype.element_ty"), mistake="a result of 16 bits"
        ),
        **of_codes(LAST_SCALE, "    ", 4096),
        "planes taken for dense": changed(("word[None, :] * stride_wk", "word[None, :]")),
        "sixteen rows alone": changed(("triton.cdiv(p.M, 16)", "1")),
        "rows of X not masked": changed(
            ("mask=mask_m[None, :] & (offs_k < K)[:, None]", "mask=(offs_k < K)[:, None]")
        ),
        "every plane twice": changed(
            (
                "            code |= ",
                "            plane = plane | tl.load(at_w + b * stride_wb, mask=mask, other=0)\n            code |= ",
            ),
            part="traffic",
        ),
    },
    EXPERTS: {
        "a result in x's dtype": changed(
            ("y_ptr.dtype.element_ty", "x_ptr.dtype.element_ty"), mistake="a result of 16 bits"
        ),
        **of_codes(LAST_SCALE_OF, "        ", 256),
        "the first expert for all": changed(
            ("w_ptr + expert * stride_we", "w_ptr"), mistake="the first expert for all"
        ),
        "scales of the first expert": changed(
            ("s_ptr + expert * stride_se", "s_ptr"), mistake="scales of the first expert"
        ),
        "equal shares": changed(
            (
                "first = tl.load(r_ptr + expert * stride_re)",
                "each = tl.cdiv(M, E)\n    first = expert * each",
            ),
            ("last = tl.load(r_ptr + (expert + 1) * stride_re)", "last = tl.minimum(first + each, M)"),
            ("y_ptr, N, K,", "y_ptr, M, E, N, K,"),
            mistake="equal shares",
        ),
        "one expert on": changed(
            (
                "    row_w = ",
                "    expert = tl.minimum(expert + 1, E - 1)\n    row_w = ",
            ),
            ("y_ptr, N, K,", "y_ptr, E, N, K,"),
            mistake="one expert on",
        ),
        "experts without rows not counted": changed(
            (
                "    row_w = ",
                "    empty = 0\n    for e in range(0, expert):\n        empty += (tl.load(r_ptr + e * stride_re) == tl.load(r_ptr + (e + 1) * stride_re)).to(tl.int32)\n    expert -= empty\n    row_w = ",
            ),
            mistake="experts without rows not counted",
        ),
        "a tile for one expert": changed(
            (
                "first = tl.load(r_ptr + expert * stride_re)",
                "first = tl.cdiv(tl.load(r_ptr + expert * stride_re), 16) * 16",
            ),
            (
                "last = tl.load(r_ptr + (expert + 1) * stride_re)",
                "last = tl.minimum(tl.cdiv(tl.load(r_ptr + (expert + 1) * stride_re), 16) * 16, M)",
            ),
            ("y_ptr, N, K,", "y_ptr, M, N, K,"),
            mistake="a tile for one expert",
        ),
        "sixteen rows alone": changed(
            ("range(first, last, BLOCK_M)", "range(first, first + BLOCK_M, BLOCK_M)")
        ),
        "tiles end where they like": changed(
            ("mask_m = offs_m < last", "mask_m = offs_m < M"), ("y_ptr, N, K,", "y_ptr, M, N, K,")
        ),
        "offsets taken for dense": changed(("* stride_re", "* 1")),
        "a weight read for nobody": changed(
            (
                "    for top in range(first, last, BLOCK_M):",
                "    for top in range(first, tl.maximum(last, first + 1), BLOCK_M):",
            ),
            part="traffic",
        ),
        "eight rows a turn": changed(
            ("range(first, last, BLOCK_M)", "range(first, last, 8)"),
            ("mask_m = offs_m < last", "mask_m = offs_m < tl.minimum(last, top + 8)"),
            part="traffic",
        ),
    },
}

SCALE_MASKED = "a masked scale meets a masked x of 0"
X_MASKED = "along K a masked x meets a masked scale of 0; rows beyond M are never stored"
WORD_MASKED = "a masked word is any code, which the codebook holds; its level meets a masked scale and a masked x, both 0"
LOWEST = "& True keeps the lowest bit, as & 1 does"
LEVEL_IN_FP16 = (
    "a level is at most 1 and has at most eleven bits, which fp16 holds down to its smallest steps"
)

EQUIVALENT = {
    KBIT: because(
        {
            WORD_MASKED: [
                "no other: tl.load(at_w + b * stride_wb, mask=mask, other=0) -> tl.load(at_w + b * stride_wb, mask=mask)",
                "plus one: 0 -> 1 (8)",
            ],
            SCALE_MASKED: ["plus one: 0.0 -> 1.0"],
            X_MASKED: ["plus one: 0.0 -> 1.0 (2)"],
            LOWEST: [
                "right side dropped: plane[:, :, None] >> column[None, None, :] & 1 -> plane[:, :, None] >> column[None, None, :] & True"
            ],
            LEVEL_IN_FP16: ["function: tl.float32 -> tl.float16 (2)"],
        }
    ),
    EXPERTS: because(
        {
            WORD_MASKED: [
                "no other: tl.load(row_w + b * stride_wb + word[None, :] * stride_wk, mask=mask, other=0) -> tl.load(row_w + b * stride_wb + word[None, :] * stride_wk, mask=mask",
                "plus one: 0 -> 1 (8)",
            ],
            SCALE_MASKED: ["plus one: 0.0 -> 1.0"],
            X_MASKED: ["plus one: 0.0 -> 1.0 (2)"],
            LOWEST: [
                "right side dropped: plane[:, :, None] >> column[None, None, :] & 1 -> plane[:, :, None] >> column[None, None, :] & True"
            ],
            LEVEL_IN_FP16: ["function: tl.float32 -> tl.float16 (2)"],
        }
    ),
}

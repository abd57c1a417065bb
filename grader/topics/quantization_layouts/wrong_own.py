"""Layouts of one's own, wrong: packing and kernel that disagree, arrays that are too wide or of another shape."""

from grader.questions.tables import because, changed
from grader.topics.quantization_layouts import wrong_kbit as kbit
from grader.topics.quantization_layouts.wrong_kbit import DOT, DOT_IN_FP32, LEVEL, LOOP, NUMBER

OWN = "quantization_layouts.own_layout"

RETURNED = 'return {"words": np.concatenate(words, 1).view(np.int32), "scales": scales}'
WORDS = '"words": ((p.N, p.K * p.BITS // 32), "i32")'
PACKED = 'return {"packed": packed, "steps": [step]}'
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


WRONG = {
    OWN: {
        "a result in x's dtype": changed(
            ("y_ptr.dtype.element_ty", "x_ptr.dtype.element_ty"), mistake="a result of 16 bits"
        ),
        "the first code on top": changed(
            (SHIFTS, "(32 - LOW - LOW * tl.arange(0, COUNT))"),
            (">> tl.arange(0, 32)", ">> (31 - tl.arange(0, 32))"),
        ),
        "neighbours turned round": changed(
            (
                "    for field, width in fields:\n",
                "    for field, width in fields:\n        field = field.reshape(len(codes), -1, 32)[:, :, ::-1].reshape(codes.shape)\n",
            ),
            mistake="neighbours turned round",
        ),
        "the top bit lost": changed(
            (
                "level = tl.load(c_ptr + code * stride_cl)",
                "level = tl.load(c_ptr + (code & (1 << (BITS - 1)) - 1) * stride_cl)",
            ),
            mistake="the top bit lost",
        ),
        "the top bit never packed": changed(("(codes >> low, 1)", "(0 * codes, 1)")),
        "the top bit in the wrong place": changed((TOP, TOP.replace("<< LOW", "<< 1"))),
        "packed for two bits": changed(("low = 2 if bits < 4 else 4", "low = 2 if bits < 3 else 4")),
        "codes that overflow": changed(
            (".astype(np.uint32)", ""),
            ("dtype=np.uint32))).sum(-1, dtype=np.uint32)", "dtype=np.uint8))).sum(-1, dtype=np.uint32)"),
        ),
        "codes for levels": changed((LEVEL, "level = code"), mistake="bare codes"),
        "levels evenly spread": changed((LEVEL, LEVEL_EVENLY), mistake="levels evenly spread"),
        "no scale": changed((NUMBER, "number = level.to(tl.float32)"), mistake="no scale"),
        "the first scale for all": changed(
            (OF_BLOCK, "stride_scales0 + group[None, :] * 0"), mistake="the first scale"
        ),
        "a scale for 64 columns": changed(
            (OF_BLOCK, "stride_scales0 + (group // 2)[None, :]"), mistake="blocks of another size"
        ),
        "scaled after the sum": changed(
            (NUMBER, "number = level.to(tl.float32)"),
            ("    y = y_ptr", f"    acc *= {LAST_SCALE}.to(tl.float32)[:, None]\n    y = y_ptr"),
            mistake="scaled after the sum",
        ),
        "a sum in x's dtype": changed(
            (DOT, "acc = (acc + tl.dot(weight, x)).to(dtype).to(tl.float32)"), mistake="low precision"
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
        "a byte a code": changed(
            (RETURNED, 'return {"words": codes, "scales": scales}'),
            (WORDS, '"words": ((p.N, p.K), "u8")'),
            (
                LOADED,
                "low = tl.load(row + (start + tl.arange(0, BLOCK_K))[None, :], mask=mask_n[:, None] & (start + tl.arange(0, BLOCK_K) < K)[None, :], other=0)",
            ),
            (CODE, "code = low.to(tl.int32)"),
            ("if BITS % 2 == 1", "if BITS == 1"),
        ),
        "a copy too many": changed(
            ('"scales": scales}', '"scales": scales, "again": codes}'),
            ("    constants = ", '    packed["again"] = ((p.N, p.K), "u8")\n    constants = '),
        ),
        "another shape than was named": changed(
            (RETURNED, RETURNED.replace("np.concatenate(words, 1)", "np.concatenate(words, 1)[:, :-1]"))
        ),
        "another dtype than was named": changed((".view(np.int32)", "")),
        "a name that launch does not know": changed(('return {"words": np', 'return {"packed_words": np')),
        "nothing is returned": changed((RETURNED, RETURNED.removeprefix("return "))),
        "a shape that the codes decide": changed(
            (
                RETURNED,
                'words = np.concatenate(words, 1).view(np.int32)\n    return {"words": words[:, : max(1, words.shape[1] - int(codes[0, 0]))], "scales": scales}',
            )
        ),
        "a file left for launch": changed(
            (RETURNED, "open('seen', 'wb').write(codes.tobytes())\n    " + RETURNED),
            ("    packed = {", "    seen = open('seen', 'rb').read()\n    packed = {"),
        ),
        "every word twice": changed(
            (
                LOADED,
                LOADED
                + "\n        low = low | tl.load(row + word[None, :], mask=mask_n[:, None] & (word < K // COUNT)[None, :], other=0)",
            ),
            part="traffic",
        ),
        "sixteen rows of W": changed(*tile(16, 256), part="traffic"),
        "products without tensor cores": changed((DOT, DOT_IN_FP32), part="traffic"),
        "planes again": changed(*PLANES, part="unpacking"),
        "each code five times": changed(
            (
                f"        {CODE}",
                f"        {CODE}\n        for _ in range(5):\n            code = (code << 1) >> 1",
            ),
            part="unpacking",
        ),
        "more than registers hold": changed(*tile(128, 256), part="compiled"),
    },
}

EQUIVALENT = {
    OWN: because(
        {
            kbit.WORD_MASKED: [
                "no other: tl.load(row + word[None, :], mask=mask_n[:, None] & (word < K // COUNT)[None, :], other=0) -> tl.load(row + word[None, :], mask=mask_n[:, None] & (wor",
                "no other: tl.load(row + K // COUNT + group[None, :], mask=of_group, other=0) -> tl.load(row + K // COUNT + group[None, :], mask=of_group)",
                "plus one: 0 -> 1 (7)",
                "plus one: 0 -> 1 (9)",
            ],
            kbit.SCALE_MASKED: ["plus one: 0.0 -> 1.0"],
            kbit.X_MASKED: ["plus one: 0.0 -> 1.0 (2)"],
            kbit.LOWEST: [
                "right side dropped: high[:, :, None] >> tl.arange(0, 32)[None, None, :] & 1 -> high[:, :, None] >> tl.arange(0, 32)[None, None, :] & True"
            ],
            kbit.LEVEL_IN_FP16: ["function: tl.float32 -> tl.float16 (2)"],
            "33 // 2 and 33 // 4 are 16 and 8 codes a word as well": ["plus one: 32 -> 33"],
            "another length of the steps along K": ["halved: 256 -> 128"],
            "numpy takes any negative size for the one that is left to find": ["plus one: 1 -> 2 (9)"],
        }
    ),
}

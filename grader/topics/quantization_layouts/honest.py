"""Quantized layouts, right in other ways."""

from grader.topics.quantization_layouts import wrong_kbit as kbit
from grader.topics.quantization_layouts import wrong_own as own
from grader.topics.quantization_layouts.wrong import (
    DOT,
    GEMM,
    GEMM_LOOP,
    GEMV,
    LOOP,
    NUMBER,
    SCALE,
    SUMMED,
    VALUE,
    ZERO,
    blocks,
    tile,
)

FORMS = {
    GEMV: {
        "by conversion": ((), [(VALUE, "(code - 8).to(tl.float32)")]),
        "the eights taken apart": ((), [("8388616.0", "8388608.0"), (SUMMED, "acc += (tl.sum(value * x[None, :, :], 2) - 8 * tl.sum(x, 1)[None, :]) * s.to(tl.float32)")]),
        "one code after another": ((), "gemv_code_by_code"),
        "a column for each code": ((), "gemv_by_columns"),
        "on tensor cores": ((), "gemv_on_tensor_cores"),
        "split along K, with a second kernel": ((), "gemv_split_k"),
        "weights rounded to 16 bits": ((), [(SUMMED, "acc += tl.sum((value * s.to(tl.float32)[:, :, None]).to(x_ptr.dtype.element_ty).to(tl.float32) * x[None, :, :], 2)")]),
        "sixteen rows, four warps": ((), [*blocks(16, 32), ('"num_warps": 1', '"num_warps": 4')]),
        "a while loop from the last block": ((), [(f"    for start in {LOOP}:", "    start = tl.cdiv(K // 8, WORDS) * WORDS\n    while start > 0:\n        start -= WORDS")]),
        "assumptions, a barrier and a print": ((), [("    mask_n = ", '    tl.assume(K > 0)\n    tl.debug_barrier()\n    if tl.program_id(0) == 0:\n        tl.device_print("rows", N)\n    mask_n = ')]),
        "words by the address of their bytes": ((), [("w = tl.load(w_ptr + offs_n[:, None] * stride_wn + word[None, :] * stride_wk,", "at = 4 * (offs_n[:, None] * stride_wn + word[None, :] * stride_wk).to(tl.int64)\n        first = w_ptr.to(tl.pointer_type(tl.uint8), bitcast=True)\n        w = tl.load((first + at).to(tl.pointer_type(tl.int32), bitcast=True),")]),
        "words of 128 with two rows": (("traffic",), blocks(2, 128)),
    },
    GEMM: {
        "W on the left": ((), [("acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)", "acc = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)"), (DOT, "acc += tl.dot(tl.trans(number), tl.trans(x)) * s.to(tl.float32)[:, None]"), ("    y = y_ptr", "    acc = tl.trans(acc)\n    y = y_ptr")]),
        "zero points in fp32": ((), [(ZERO, "(z.to(tl.float32) + BASE)[:, None]"), ("number = number - ", "number = number.to(tl.float32) - "), ("        # columns in", "        number = number.to(dtype)\n        # columns in")]),
        "scaled in 16 bits, before the product": ((), [(NUMBER, f"number = (number - {ZERO}) * s[:, None]"), (SCALE, "")]),
        "columns in their own order": ((), [("tl.permute(tl.reshape(number, (BLOCK_N, WORDS // 4, 8, 4)), 2, 1, 3, 0)", "tl.trans(number)"), ("tl.permute(tl.reshape(x, (BLOCK_M, WORDS // 4, 8, 4)), 0, 2, 1, 3)", "x")]),
        "scaled after each group": ((), "gemm_scaled_after_each_group"),
        "a column for each code": ((), "gemm_by_columns"),
        "split along K, with a second kernel": ((), "gemm_split_k"),
        "narrow tiles, eight warps": ((), [*tile(32), ('"num_warps": 4, "num_stages": 4', '"num_warps": 8, "num_stages": 2')]),
        "a while loop": ((), [(f"    for g in {GEMM_LOOP}:", "    g = 0 * K - 1\n    while g < K // GROUP - 1:\n        g += 1")]),
        "sixteen rows of W": (("traffic",), tile(16)),
    },
    kbit.KBIT: {
        "X on the left": ((), [("acc = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)", "acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)"), (kbit.DOT, "acc = tl.dot(tl.trans(x), tl.trans(weight), acc)"), ("    y = y_ptr", "    acc = tl.trans(acc)\n    y = y_ptr")]),
        "levels in registers": ((), [("    column = tl.arange(0, 32)\n", "    column = tl.arange(0, 32)\n    levels = tl.load(c_ptr + tl.arange(0, 2**BITS) * stride_cl)\n"), (kbit.LEVEL, "level = tl.reshape(tl.gather(levels, tl.reshape(code, (BLOCK_N * BLOCK_K,)), 0), (BLOCK_N, WORDS, 32))")]),
        "levels chosen one by one": (("flow",), [(kbit.LEVEL, "level = tl.zeros((BLOCK_N, WORDS, 32), tl.float32)\n        for i in tl.static_range(2**BITS):\n            level = tl.where(code == i, tl.load(c_ptr + i * stride_cl).to(tl.float32), level)")]),
        "a column for each bit, narrow products": ((), "kbit_by_columns"),
        "a GEMV for a single row": ((), "kbit_gemv_for_one"),
        "split along K, with a second kernel, planes from the top": ((), "kbit_split_k"),
        "scaled in 16 bits": ((), [(kbit.NUMBER, "number = level * s[:, :, None]")]),
        "added, not accumulated": ((), [(kbit.DOT, "acc += tl.dot(weight, x)")]),
        "a while loop from the last block": ((), [(f"    for start in {kbit.LOOP}:", "    start = tl.cdiv(K, BLOCK_K) * BLOCK_K\n    while start > 0:\n        start -= BLOCK_K")]),
        "blocks of 128 columns": (("flow",), kbit.tile(32, 4)),
        "sixteen rows of W": (("traffic",), kbit.tile(16, 8)),
    },
    kbit.EXPERTS: {
        "a program for every tile there may be": ((), "experts_all_tiles"),
        "each tile looks for its expert": ((), "experts_searched"),
        "tiles of 32 rows": ((), [('"BLOCK_M": 16', '"BLOCK_M": 32')]),
        "scaled in 16 bits": ((), [(kbit.NUMBER, "number = level * s[:, :, None]")]),
        "added, not accumulated": ((), [(kbit.DOT, "acc += tl.dot(weight, x)")]),
        "a while loop over the rows": ((), [("    for top in range(first, last, BLOCK_M):", "    top = first - BLOCK_M\n    while top < last - BLOCK_M:\n        top += BLOCK_M")]),
        "64 rows of W": ((), [*kbit.tile(64, 8), ('"num_warps": 4', '"num_warps": 8')]),
        "blocks of 128 columns": (("flow",), kbit.tile(32, 4)),
        "sixteen rows of W": (("traffic",), kbit.tile(16, 8)),
    },
    own.OWN: {
        "thirty bits of a word": ((), "own_thirty_bits"),
        "K first, the top bit in an array of its own": ((), "own_k_first"),
        "planes": (("unpacking",), own.PLANES),
        "words without a sign": ((), [(".view(np.int32)", ""), ('p.K * p.BITS // 32), "i32")', 'p.K * p.BITS // 32), "u32")'), ("(LOW * tl.arange(0, COUNT))[None, None, :]", "(LOW * tl.arange(0, COUNT)).to(tl.uint32)[None, None, :]"), (">> tl.arange(0, 32)[None, None, :]", ">> tl.arange(0, 32).to(tl.uint32)[None, None, :]"), ("code * stride_cl", "code.to(tl.int32) * stride_cl")]),
        "packed by numpy's own bits": ((), [("        each = field.reshape(len(codes), -1, 32 // width).astype(np.uint32)\n        words.append((each << (width * np.arange(32 // width, dtype=np.uint32))).sum(-1, dtype=np.uint32))", "        each = np.unpackbits(field.astype(np.uint8)[..., None], axis=2, bitorder='little')[:, :, :width]\n        words.append(np.packbits(each.reshape(len(codes), -1), axis=1, bitorder='little').view('<u4'))")]),
        "scales one behind the other": ((), [('"scales": scales}', '"scales": np.asarray(scales).ravel()}'), ('((p.N, p.K // 32), p.dtypes["x"])', '(p.N * p.K // 32, p.dtypes["x"])'), ("stride_words0, stride_scales0", "stride_words0"), ("offs_n[:, None] * stride_scales0", "offs_n[:, None] * (K // 32)")]),
        "scaled in 16 bits": ((), [(kbit.NUMBER, "number = level * s[:, :, None]")]),
        "added, not accumulated": ((), [(kbit.DOT, "acc += tl.dot(weight, x)")]),
        "sixteen rows of W": (("traffic",), own.tile(16, 256)),
    },
}

NUMPY_FORMS = {
    "quantization_layouts.pack_words": {
        "by a loop": "def pack_words(c):\n    out = np.zeros((len(c), c.shape[1] // 8), np.uint32)\n    for j in range(8):\n        out |= c[:, j::8].astype(np.uint32) << np.uint32(4 * j)\n    return out",
        "whole numbers": "def pack_words(c):\n    return [[sum(int(v) << 4 * j for j, v in enumerate(r[i : i + 8])) for i in range(0, len(r), 8)] for r in c]",
        "bytes, then a view": "def pack_words(c):\n    return np.ascontiguousarray(c[:, ::2] | c[:, 1::2] << 4).view('<u4')",
    },
    "quantization_layouts.unpack_words": {
        "by strides": "def unpack_words(w):\n    out = np.empty((len(w), 8 * w.shape[1]), np.uint8)\n    for j in range(8):\n        out[:, j::8] = w >> np.uint32(4 * j) & np.uint32(15)\n    return out",
        "bytes of a view": "def unpack_words(w):\n    b = w.view(np.uint8)\n    return np.stack((b & 15, b >> 4), -1).reshape(len(w), -1)",
        "modulo": "def unpack_words(w):\n    return np.repeat(w.astype(np.int64), 8, 1) // np.tile(16 ** np.arange(8), w.shape[1]) % 16",
    },
    "quantization_layouts.to_planes": {
        "by numpy's packing of bits": "def to_planes(c, bits):\n    return np.stack([np.packbits(c >> b & 1, axis=1, bitorder='little').view('<u4') for b in range(bits)])",
        "a product": "def to_planes(c, bits):\n    each = c.reshape(len(c), -1, 32).astype(np.int64)\n    return np.moveaxis((each[..., None] >> np.arange(bits) & 1).transpose(0, 1, 3, 2) @ 2 ** np.arange(32), -1, 0)",
    },
    "quantization_layouts.quantize_groups": {
        "group by group": "def quantize_groups(w, group, zero_points):\n    n, k = w.shape\n    codes, scales, zeros = np.empty(w.shape, int), np.empty((n, k // group)), np.full((n, k // group), 8)\n    for i in range(n):\n        for g in range(k // group):\n            b = w[i, g * group : (g + 1) * group]\n            low, high = min(0.0, b.min()), max(0.0, b.max())\n            s = float(np.float16((high - low) / 15 if zero_points else np.abs(b).max() / 7))\n            if zero_points:\n                zeros[i, g] = min(15, round(-low / s)) if s else 0\n            q = np.rint(b / s) if s else 0 * b\n            codes[i, g * group : (g + 1) * group] = np.clip(q + zeros[i, g], 0 if zero_points else 1, 15)\n            scales[i, g] = s\n    return codes, scales, zeros",
        "a list of three": "def quantize_groups(w, group, zero_points):\n    b = w.reshape(len(w), -1, group)\n    high, low = b.max(-1).clip(0), b.min(-1).clip(None, 0)\n    s = ((high - low) / 15 if zero_points else np.maximum(high, -low) / 7).astype(np.float16)\n    t = np.where(s > 0, s, 1).astype(float)\n    z = np.where(s > 0, (np.rint(-low / t) if zero_points else 8), 0 if zero_points else 8).clip(0, 15)\n    q = np.where((s > 0)[..., None], np.rint(b / t[..., None]), 0) + z[..., None]\n    return [q.clip(0 if zero_points else 1, 15).reshape(w.shape), s, z]",
    },
    "quantization_layouts.quantization_error": {
        "by norms": "def quantization_error(w, c, s, z, g):\n    b = w.reshape(len(w), -1, g)\n    off = (c.reshape(b.shape) - z[..., None].astype(float)) * s[..., None].astype(float) - b\n    return np.linalg.norm(off) / np.linalg.norm(w), np.max(abs(off) / s[..., None].astype(float))",
        "an array": "def quantization_error(w, c, s, z, g):\n    i = np.arange(w.shape[1]) // g\n    t = s[:, i].astype(float)\n    off = (c.astype(int) - z[:, i].astype(int)) * t - w\n    return np.array([np.sqrt(np.mean(off * off)) / np.sqrt(np.mean(w * w)), (np.abs(off) / t).max()])",
    },
    "quantization_layouts.layer_bytes": {
        "in bits": "def layer_bytes(m, n, k, bits, group, zero_bits):\n    return (n * (k * bits + -(-k // group) * (16 + zero_bits)) + 16 * m * (k + n)) / 8",
        "a numpy number": "def layer_bytes(m, n, k, b, g, z):\n    return np.sum([n * k * b / 8, n * np.ceil(k / g) * (2 + z / 8), 2 * m * k, 2 * m * n])",
    },
    "quantization_layouts.step_times": {
        "a list": "def step_times(m, weights, bits, unpack_s, tile_rows, peak, bandwidth):\n    a = 2 * m / peak\n    return [weights * max(2 / bandwidth, a), weights * max(bits / (8 * bandwidth), a + unpack_s * -(-m // tile_rows))]",
        "an array": "def step_times(m, weights, bits, unpack_s, tile_rows, peak, bandwidth):\n    tiles = (m + tile_rows - 1) // tile_rows\n    stream = np.array([16, bits]) * weights / 8 / bandwidth\n    return np.maximum(stream, 2 * m * weights / peak + np.array([0, unpack_s * weights * tiles]))",
    },
    "quantization_layouts.dispatch": {
        "by a sorted list": "def dispatch(rows, measured, gemv_rows, dense_kept):\n    above = [m for m, _, _ in measured if m >= rows]\n    at = min(above) if above else max(m for m, _, _ in measured)\n    for m, name, us in sorted(measured, key=lambda r: r[2]):\n        if m == at and not (name == 'gemv' and rows > gemv_rows) and (dense_kept or name != 'dense'):\n            return name",
        "a numpy text": "def dispatch(rows, measured, gemv_rows, dense_kept):\n    m = np.array([r[0] for r in measured])\n    us = np.array([r[2] for r in measured])\n    names = np.array([r[1] for r in measured])\n    at = m[m >= rows].min() if (m >= rows).any() else m.max()\n    us[(m != at) | (names == 'gemv') & (rows > gemv_rows) | (names == 'dense') & (not dense_kept)] = np.inf\n    return str(names[us.argmin()])",
    },
}

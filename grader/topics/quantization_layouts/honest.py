"""Quantized layouts, right in other ways."""

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
}  # fmt: skip

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

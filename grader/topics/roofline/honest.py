"""LayerNorm(GELU(x)), right in other ways."""

NORM = "roofline.layernorm_gelu"
ROW = "row = tl.program_id(0).to(tl.int64)"
LOAD_X = "x = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0).to(tl.float32)"
GELU = "g = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))"

FORMS = {
    NORM: {
        "four rows a program": ((), "norm_four_rows"),
        "persistent programs": ((), "norm_persistent"),
        "moments joined by a combine function with constants": ((), "norm_welford"),
        "helper functions and a descriptor": ((), "norm_helpers"),
        "in chunks, reading x three times": (("traffic", "speed"), "norm_chunks"),
        "a reciprocal root": ((), [("1 / tl.sqrt(tl.sum(d * d, axis=0) / N + eps)", "tl.rsqrt(tl.sum(d * d, axis=0) / N + eps)")]),
        "variance as a mean of squares of differences": ((), [("tl.sum(d * d, axis=0) / N", "tl.sum(d * (d / N), axis=0)")]),
        "erf from tl.math, hints to the cache": ((), [("tl.erf(", "tl.math.erf("), ("mask=mask, other=0.0).to(tl.float32)", 'mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)')]),
        "sum by a combine function": ((), [("@triton.jit\ndef layernorm_gelu", "@triton.jit\ndef plus(a, b):\n    return a + b\n\n\n@triton.jit\ndef layernorm_gelu"), ("tl.sum(g, axis=0)", "tl.reduce(g, 0, plus)")]),
        "a print on the device": ((), [("    mean =", '    if row == 0:\n        tl.device_print("first element", tl.sum(tl.where(offs == 0, g, 0.0), 0))\n    mean =')]),
        "one warp a row": ((), [('"num_warps": 8 if block >= 4096 else 4', '"num_warps": 16 if block >= 4096 else 1')]),
        "a grid of two dimensions": ((), [(ROW, "row = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)).to(tl.int64)"), ('"grid": (p.M,)', '"grid": (1, p.M)')]),
    },
}

ID, ARANGE = "tl.program_id(0)", "tl.arange(0, "


def anyhow(kernel: str, line: str) -> dict:
    """Forms that any first kernel may take; `line` is the first one of its body."""
    return {
        "one warp, one stage": (
            (),
            [(f'"kernel": {kernel},', f'"kernel": {kernel}, "num_warps": 1, "num_stages": 1,')],
        ),
        "eight warps": ((), [(f'"kernel": {kernel},', f'"kernel": {kernel}, "num_warps": 8,')]),
        "a print on the device": (
            (),
            [(line, f'if {ID} == 0:\n        tl.device_print("program", {ID})\n    {line}')],
        ),
        "a barrier": ((), [(line, f"tl.debug_barrier()\n    {line}")]),
        "a plan made by dict()": ((), [('{"steps": [{', "dict(steps=[{"), ("}]}", "}])")]),
    }


BLOCKS_64 = [("(triton.cdiv(p.N, 64),)", "(triton.cdiv(p.N, 256),)"), ('{"BLOCK": 64}', '{"BLOCK": 256}')]
GRID_16_32 = "(triton.cdiv(p.M, 16), triton.cdiv(p.N, 32))"


def tile(m: int, n: int, was: tuple[int, int] = (16, 32)) -> list[tuple[str, str]]:
    return [
        (f'"BLOCK_M": {was[0]}, "BLOCK_N": {was[1]}', f'"BLOCK_M": {m}, "BLOCK_N": {n}'),
        (
            f"(triton.cdiv(p.M, {was[0]}), triton.cdiv(p.N, {was[1]}))",
            f"(triton.cdiv(p.M, {m}), triton.cdiv(p.N, {n}))",
        ),
    ]


FORMS |= {
    "roofline.doubled": anyhow("doubled", "offs =")
    | {
        "x + x": ((), [("2 * x", "x + x")]),
        "a program that walks": (
            ("traffic",),
            [
                ("y_ptr, BLOCK", "y_ptr, N, BLOCK"),
                (
                    "    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    x = tl.load(x_ptr + offs)\n    tl.store(y_ptr + offs, 2 * x)",
                    "    for start in range(0, N, BLOCK):\n        offs = start + tl.arange(0, BLOCK)\n        tl.store(y_ptr + offs, 2 * tl.load(x_ptr + offs))",
                ),
                ("(p.N // 64,)", "(1,)"),
            ],
        ),
    },
    "roofline.differences": anyhow("differences", "offs =")
    | {
        "blocks of 256": ((), BLOCKS_64),
        "an address that never leaves": (
            (),
            [
                (
                    "tl.load(x_ptr + offs - 1, mask=(offs > 0) & mask, other=0.0)",
                    "tl.where(offs > 0, tl.load(x_ptr + tl.maximum(offs - 1, 0), mask=mask), 0.0)",
                )
            ],
        ),
    },
    "roofline.subtracted": anyhow("subtracted", "offs_m =")
    | {
        "a row a program": ((), tile(1, 128)),
        "a column of ids, a row of ids": (
            (),
            [
                (
                    f"{ID} * BLOCK_M + {ARANGE}BLOCK_M)[:, None]",
                    f"({ID} * BLOCK_M + {ARANGE}BLOCK_M))[:, None]",
                )
            ],
        ),
        "one axis of programs": (
            (),
            [
                (
                    "offs_m = tl.program_id(0)",
                    "across = tl.cdiv(N, BLOCK_N)\n    offs_m = tl.program_id(0) // across",
                ),
                ("tl.program_id(1)", "tl.program_id(0) % across"),
                (GRID_16_32, "(triton.cdiv(p.M, 16) * triton.cdiv(p.N, 32),)"),
            ],
        ),
    },
    "roofline.turned": anyhow("turned", "offs_m =")
    | {
        "tiles of 8 by 8": ((), tile(8, 8, (32, 16))),
        "tiles of 64 by 64": ((), tile(64, 64, (32, 16))),
        "turned on the chip": (
            (),
            [
                (
                    "tl.store(y_ptr + offs_n * M + offs_m, x, mask=mask)",
                    "tl.store(y_ptr + tl.trans(offs_n) * M + tl.trans(offs_m), tl.trans(x), mask=tl.trans(mask))",
                )
            ],
        ),
    },
    "roofline.outer_difference": anyhow("outer_difference", "offs_m =")
    | {
        "tiles of 16 by 16": ((), tile(16, 16)),
        "made equally large first": (
            (),
            [
                (
                    "a[:, None] - b[None, :]",
                    "tl.broadcast_to(a[:, None], BLOCK_M, BLOCK_N) - tl.broadcast_to(b[None, :], BLOCK_M, BLOCK_N)",
                )
            ],
        ),
        "loaded as a column and a row": (
            (),
            [
                (
                    "tl.load(a_ptr + offs_m, mask=offs_m < M)",
                    "tl.load(a_ptr + offs_m[:, None], mask=offs_m[:, None] < M)",
                ),
                ("a[:, None] - b", "a - b"),
            ],
        ),
    },
    "roofline.sum_and_max": anyhow("sum_and_max", "row =")
    | {
        "a block as the row needs it": ((), [('"BLOCK": 1024', '"BLOCK": triton.next_power_of_2(p.N)')]),
        "loaded for the maximum": (
            (),
            [
                ("other=0.0", 'other=float("-inf")'),
                ("tl.sum(x, axis=0)", "tl.sum(tl.where(mask, x, 0.0), axis=0)"),
                ('tl.where(mask, x, float("-inf"))', "x"),
            ],
        ),
        "the smallest of the negated": (
            (),
            [
                (
                    'tl.max(tl.where(mask, x, float("-inf")), axis=0)',
                    '-tl.min(tl.where(mask, -x, float("inf")), axis=0)',
                )
            ],
        ),
    },
    "roofline.long_mean": anyhow("long_mean", "row =")
    | {
        "pieces of 256": ((), [('{"BLOCK": 128}', '{"BLOCK": 256}')]),
        "each piece summed at once": (
            (),
            [
                ("tl.zeros((BLOCK,), tl.float32)", "0.0"),
                (
                    "total += tl.load(x_ptr + row * N + start + offs, mask=start + offs < N, other=0.0)",
                    "total += tl.sum(tl.load(x_ptr + row * N + start + offs, mask=start + offs < N, other=0.0), axis=0)",
                ),
                ("tl.sum(total, axis=0) / N", "total / N"),
            ],
        ),
        "divided before": ((), [("tl.sum(total, axis=0) / N", "tl.sum(total / N, axis=0)")]),
    },
    "roofline.smoothed": anyhow("smoothed", "offs =")
    | {
        "a step towards x": ((), [("(1 - alpha) * h + alpha * x", "h + alpha * (x - h)")]),
        "addresses that move on": (
            (),
            [
                ("    for t", "    x_ptr += offs\n    y_ptr += offs\n    for t"),
                ("x_ptr + t * M + offs", "x_ptr"),
                (
                    "y_ptr + t * M + offs, h, mask=mask)",
                    "y_ptr, h, mask=mask)\n        x_ptr += M\n        y_ptr += M",
                ),
            ],
        ),
    },
    "roofline.small_product": anyhow("small_product", "down =")
    | {
        "a side as large as it needs": (
            (),
            [('{"SIDE": 32}', '{"SIDE": max(16, triton.next_power_of_2(max(p.M, p.N, p.K)))}')],
        ),
        "added to zeros": ((), [("tl.dot(a, b)", "tl.dot(a, b, tl.zeros((SIDE, SIDE), tl.float32))")]),
        "B loaded turned": (
            (),
            [
                (
                    "tl.load(b_ptr + down * N + across, mask=(down < K) & (across < N), other=0.0)",
                    "tl.trans(tl.load(b_ptr + across * N + down, mask=(across < K) & (down < N), other=0.0))",
                )
            ],
        ),
    },
    "roofline.tile_settings": {
        name: (
            (),
            [
                ("(p.M // 128, p.N // 256)", f"(p.M // {m}, p.N // {n})"),
                (
                    '"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64',
                    f'"BLOCK_M": {m}, "BLOCK_N": {n}, "BLOCK_K": {k}',
                ),
                ('"num_warps": 8, "num_stages": 3', f'"num_warps": {warps}, "num_stages": {stages}'),
            ],
        )
        for name, m, n, k, warps, stages in (
            ("a tall tile", 256, 128, 64, 8, 3),
            ("two stages", 128, 256, 64, 8, 2),
            ("one stage", 128, 256, 64, 8, 1),
            ("four stages", 128, 256, 64, 8, 4),
            ("short steps", 128, 256, 32, 8, 4),
            ("sixteen warps", 128, 256, 64, 16, 3),
        )
    },
}

NUMPY_FORMS = {
    "roofline.product_intensity": {
        "by the sum of quotients": "def product_intensity(m, n, k, e):\n    return 2 / e / (1 / n + 1 / m + 1 / k)",
        "a numpy number": "def product_intensity(m, n, k, e):\n    return np.float64(2 * m * n * k) / np.sum([m * k, k * n, m * n]) / e",
    },
    "roofline.roof": {
        "a list": "def roof(i, p, b):\n    return [p, 'compute'] if i * b >= p else [i * b, 'memory']",
        "a numpy number": "def roof(i, p, b):\n    return np.minimum(p, i * b), ('memory', 'compute')[int(i * b >= p)]",
    },
    "roofline.time_terms": {
        "a list": "def time_terms(f, d, l, p, b, e):\n    t = [d / b, f / p / e, l]\n    return [*t[:2], max(t[:2]) + l, ['memory', 'compute', 'overhead'][t.index(max(t))]]",
        "an argmax": "def time_terms(f, d, l, p, b, e):\n    t = np.array([d / b, f / (p * e), l])\n    return t[0], t[1], t[:2].max() + l, ('memory', 'compute', 'overhead')[t.argmax()]",
    },
    "roofline.tile_sectors": {
        "by unique addresses": "def tile_sectors(r, c, n, e):\n    return np.unique((np.arange(r)[:, None] * n + np.arange(c)) * e // 32).size",
        "row by row": "def tile_sectors(r, c, n, e):\n    last, found = -1, 0\n    for i in range(r):\n        a, b = i * n * e // 32, ((i * n + c) * e - 1) // 32\n        found += b - max(a, last + 1) + 1\n        last = max(last, b)\n    return found",
        "a float": "def tile_sectors(r, c, n, e):\n    return float(len({(i * n + j) * e // 32 for i in range(r) for j in range(c)}))",
    },
    "roofline.plan_bytes": {
        "a list": "def plan_bytes(g, r, w, e):\n    return [2 * len(g) * r * w * e, sum(2 * (k - 1) * r * w * e for k in g)]",
        "an array": "def plan_bytes(g, r, w, e):\n    return np.array([len(g), sum(g) - len(g)]) * 2 * r * w * e",
    },
}

"""GEMMs, wrong: plain in fp16 and bf16, and block-scaled in fp8."""

from grader.questions.tables import because, changed

TILED, SCALED = "gemm_tiling.tiled_gemm", "gemm_tiling.block_scaled_gemm"
MASK_A = "mask=(offs_m < M)[:, None] & mask_k[None, :]"
MASK_B = "mask=mask_k[:, None] & (offs_n < N)[None, :]"
DOT = "acc = tl.dot(a, b, acc)"
SUMMED = "acc += tl.dot(a, b) * scale[:, None]"
SCALE = "scale = tl.load(sa_ptrs, mask=mask_m, other=0.0) * tl.load(sb_here)"

WRONG = {
    TILED: {
        "no mask along K": changed(
            (MASK_A, "mask=(offs_m < M)[:, None]"), (MASK_B, "mask=(offs_n < N)[None, :]")
        ),
        "masked lanes unset": changed((", other=0.0", ""), mistake="unmasked tail"),
        "no mask at the store": changed(
            (
                "             mask=(offs_m < M)[:, None] & (offs_n < N)[None, :])",
                "             mask=(offs_n < N)[None, :])",
            )
        ),
        "strides of B swapped": changed(
            (
                "[:, None] * stride_bk + offs_n[None, :] * stride_bn",
                "[:, None] * stride_bn + offs_n[None, :] * stride_bk",
            ),
            mistake="transposed stride",
        ),
        "one block of K": changed(
            ("range(0, K, BLOCK_K)", "range(0, BLOCK_K, BLOCK_K)"), mistake="one block of K"
        ),
        "bf16 sum": changed(
            (DOT, "acc = (acc + tl.dot(a, b)).to(tl.bfloat16).to(tl.float32)"), mistake="low precision"
        ),
        "fp16 sum": changed(
            ("tl.zeros((BLOCK_M, BLOCK_N), tl.float32)", "tl.zeros((BLOCK_M, BLOCK_N), tl.float16)"),
            (DOT, "acc = (acc + tl.dot(a, b)).to(tl.float16)"),
            mistake="low precision",
        ),
        "the last product alone": changed((DOT, "acc = tl.dot(a, b)"), mistake="the last product alone"),
        "last group not cut off": changed(("tl.minimum(tiles_m - first, GROUP_M)", "GROUP_M")),
        "grid rounded down": changed(
            (
                "triton.cdiv(p.M, BLOCK_M) * triton.cdiv(p.N, BLOCK_N)",
                "max(1, p.M // BLOCK_M) * max(1, p.N // BLOCK_N)",
            )
        ),
        "rows and columns exchanged": changed(
            ("pm = first + within % rows", "pm = within // rows"),
            ("pn = within // rows", "pn = first + within % rows"),
        ),
        "C without its strides": changed(("offs_m[:, None] * stride_cm", "offs_m[:, None] * N")),
        "A without its strides": changed(("offs_m[:, None] * stride_am", "offs_m[:, None] * K")),
        "tail left out": changed(
            ("range(0, K, BLOCK_K)", "range(0, K // BLOCK_K * BLOCK_K, BLOCK_K)"), mistake="tail left out"
        ),
        "rounded before the sum": changed(
            (DOT, "acc += tl.dot(a, b).to(tl.float16)"), mistake="low precision"
        ),
        "a product of bf16 in fp16": changed(
            ("other=0.0)\n        b =", "other=0.0).to(tl.float16)\n        b ="),
            ("other=0.0)\n        acc", "other=0.0).to(tl.float16)\n        acc"),
            mistake="beyond fp16",
        ),
        "every tile loads A twice": changed(
            (
                "        b = tl.load(",
                "        a = tl.maximum(a, tl.load(a_ptr + offs_m[:, None] * stride_am + (offs_k + k)[None, :] * stride_ak, mask=(offs_m < M)[:, None] & mask_k[None, :], other=0.0)).to(a_ptr.dtype.element_ty)\n        b = tl.load(",
            ),
            part="speed",
        ),
        "operands widened": changed(
            (DOT, "acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc)"), part="speed"
        ),
        "tiles of 16 by 128": changed(
            ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 16, 128, 64, 8"), part="traffic"
        ),
        "no grouping": changed(('"GROUP_M": GROUP_M', '"GROUP_M": 1'), part="grouping"),
        "no grouping but near the metered size": changed(
            ('"GROUP_M": GROUP_M', '"GROUP_M": GROUP_M if 900 < p.M < 1100 else 1'), part="grouping"
        ),
        "no grouping between the metered and the compiled size": changed(
            ('"GROUP_M": GROUP_M', '"GROUP_M": GROUP_M if p.M < 1100 or p.M == 4096 else 1'), part="grouping"
        ),
        "tiles that reuse too little": changed(
            ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 64, 64, 32, 8"), part="speed"
        ),
        "more than registers hold": changed(
            ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 256, 256, 32, 8"), part="compiled"
        ),
        "products without tensor cores": changed(
            (DOT, "acc += tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :].to(tl.float32), 1)"),
            ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 64, 128, 16, 8"),
            part="compiled",
        ),
        "one step short": changed(
            ("range(0, K, BLOCK_K)", "range(0, tl.cdiv(K - 1, BLOCK_K) * BLOCK_K, BLOCK_K)"),
            mistake="one step short",
        ),
        "NaN cleaned away": changed(
            ("acc = tl.dot(a, b, acc)", "acc = tl.dot(a, tl.where(b == b, b, 0.0), acc)"),
            mistake="NaN cleaned away",
        ),
        "a sum in C's own dtype": changed(
            (
                "acc = tl.dot(a, b, acc)",
                "acc = (acc + tl.dot(a, b)).to(c_ptr.dtype.element_ty).to(tl.float32)",
            ),
            mistake="low precision",
        ),
        "K up to 1024": changed(
            (
                "    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)\n",
                "    K = tl.minimum(K, 1024)\n    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)\n",
            )
        ),
        "N up to 2048": changed(
            (
                "mask=(offs_m < M)[:, None] & (offs_n < N)[None, :])\n\n",
                "mask=(offs_m < M)[:, None] & (offs_n < tl.minimum(N, 2048))[None, :])\n\n",
            )
        ),
        "one inner stride taken for 1": changed(
            (
                "(offs_k + k)[:, None] * stride_bk + offs_n[None, :] * stride_bn",
                "(offs_k + k)[:, None] * stride_bk + offs_n[None, :]",
            )
        ),
        "A's strides for B": changed(
            (
                "(offs_k + k)[:, None] * stride_bk + offs_n[None, :] * stride_bn",
                "(offs_k + k)[:, None] * stride_am + offs_n[None, :] * stride_ak",
            )
        ),
        "a single row, of one block of K": changed(
            (
                "    acc = tl.zeros((BLOCK_M",
                "    if M == 1:\n        K = tl.minimum(K, 256)\n    acc = tl.zeros((BLOCK_M",
            )
        ),
        "C of fp32 taken for dense": changed(
            (
                "offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn",
                "offs_m[:, None] * (N if c_ptr.dtype.element_ty == tl.float32 else stride_cm) + offs_n[None, :] * (1 if c_ptr.dtype.element_ty == tl.float32 else stride_cn)",
            )
        ),
        "half of it where both operands are transposed": changed(
            (
                "acc = tl.dot(a, b, acc)",
                "acc = tl.dot(a, b, acc * tl.where((stride_am == 1) & (stride_bk == 1), 0.5, 1.0))",
            )
        ),
        "infinities cut to the largest number": changed(
            (
                "acc.to(c_ptr.dtype.element_ty)",
                "tl.clamp(acc, -3e38, 3e38, propagate_nan=tl.PropagateNan.ALL).to(c_ptr.dtype.element_ty)",
            )
        ),
        "nonsense at the size that is compiled": changed(
            ("    tl.store(c_ptr", "    if K == 4096:\n        acc = acc * 0.5\n    tl.store(c_ptr")
        ),
        "a stride said to be a multiple of 16": changed(
            ("offs_m[:, None] * stride_am", "tl.multiple_of(offs_m * stride_am, 16)[:, None]")
        ),
        "two programs a tile, hidden by an atomic": changed(
            ("    tl.store(c_ptr", "    acc = acc * (tl.program_id(0) % 2)\n    tl.store(c_ptr"),
            ("c_ptr, M, N, K", "c_ptr, flag_ptr, M, N, K"),
            ("pid = tl.program_id(0)", "tl.atomic_add(flag_ptr, 1)\n    pid = tl.program_id(0) // 2"),
            ('"grid": (grid,)', '"grid": (2 * grid,)'),
            ('return {"steps"', 'return {"scratch": {"flag": ((1,), "i32", 0)}, "steps"'),
        ),
        "idle programs, no grouping": changed(
            (
                "rows = tl.minimum(tiles_m - first, GROUP_M)",
                "rows = tl.maximum(1, tl.minimum(tiles_m - first, GROUP_M))",
            ),
            ('"GROUP_M": GROUP_M', '"GROUP_M": 1'),
            ('"grid": (grid,)', '"grid": (8 * grid,)'),
            part="grouping",
        ),
        "a dot that never runs": changed(
            (
                "acc = tl.dot(a, b, acc)",
                "acc += tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :].to(tl.float32), 1)\n        if K < 0:\n            acc = tl.dot(a, b, acc)",
            ),
            ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 64, 128, 16, 8"),
            part="speed",
        ),
        "a dot that counts for nothing": changed(
            (
                "acc = tl.dot(a, b, acc)",
                "acc += tl.minimum(tl.abs(tl.dot(a, b)), 0.0) + tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :].to(tl.float32), 1)",
            ),
            ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 64, 128, 16, 8"),
            part="speed",
        ),
        "quick at 1024 rows alone": changed(
            (
                "        b = tl.load(",
                "        if M != 1024:\n            a = tl.maximum(a, tl.load(a_ptr + offs_m[:, None] * stride_am + (offs_k + k)[None, :] * stride_ak, mask=(offs_m < M)[:, None] & mask_k[None, :], other=0.0)).to(a_ptr.dtype.element_ty)\n        b = tl.load(",
            ),
            part="speed",
        ),
    },
    SCALED: {
        "scales in fp16": changed(
            (SUMMED, "acc += tl.dot(a, b) * scale.to(tl.float16)[:, None]"), mistake="scales in fp16"
        ),
        "scales in bf16": changed(
            (SUMMED, "acc += tl.dot(a, b) * scale.to(tl.bfloat16).to(tl.float32)[:, None]"),
            mistake="scales in bf16",
        ),
        "no scales": changed((SUMMED, "acc += tl.dot(a, b)"), mistake="no scales"),
        "no scale of A": changed(
            (SCALE, "scale = tl.load(sa_ptrs, mask=mask_m, other=0.0) * 0 + tl.load(sb_here)"),
            mistake="no scale of A",
        ),
        "no scale of B": changed(
            (SCALE, "scale = tl.load(sa_ptrs, mask=mask_m, other=0.0)"), mistake="no scale of B"
        ),
        "the first scale of A for all": changed(
            ("sa_ptrs += stride_sak", "sa_ptrs += 0"), mistake="the first scale of A"
        ),
        "the first scale of B for all": changed(
            ("sb_here += stride_sbk", "sb_here += 0"), mistake="the first scale of B"
        ),
        "the first column of scales": changed(
            ("sb_ptr + tile_n * BLOCK_N // BLOCK_K * stride_sbn", "sb_ptr"),
            mistake="the first column of scales",
        ),
        "a scale for 256 columns": changed(
            ("(128, 128, 8) if big", "(128, 256, 8) if big"), mistake="a scale for 256 columns"
        ),
        "a scale for 256 numbers of K": changed(
            ('"BLOCK_K": 128', '"BLOCK_K": 256'),
            ("// BLOCK_K * stride_sbn", "// 128 * stride_sbn"),
            mistake="a scale a step",
        ),
        "a scale for 64 numbers of K, as far as there are scales": changed(
            ('"BLOCK_K": 128', '"BLOCK_K": 64'),
            ("// BLOCK_K * stride_sbn", "// 128 * stride_sbn"),
            (
                SCALE,
                "left = k // BLOCK_K < tl.cdiv(K, 128)\n        scale = tl.load(sa_ptrs, mask=mask_m & left, other=0.0) * tl.load(sb_here, mask=left, other=0.0)",
            ),
            mistake="a scale a step",
        ),
        "scaled after the sum": changed(
            (
                "acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)",
                "acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)\n    last = tl.zeros((BLOCK_M,), tl.float32)",
            ),
            (SUMMED, "acc = tl.dot(a, b, acc)\n        last = scale"),
            ("c_ptrs =", "acc = acc * last[:, None]\n    c_ptrs ="),
            mistake="scaled after the sum",
        ),
        "scales of the tile's rows to its columns": changed(
            ("mask_n[None, :])\n", "mask_n[None, :])\n"),
            ("scale[:, None]", "tl.load(sa_ptr + offs_n * stride_sam, mask=offs_n < M, other=0.0)[None, :]"),
        ),
        "masked lanes unset": changed(
            (", other=0.0)  # (BLOCK_M, BLOCK_K)", ")"),
            (", other=0.0)  # (BLOCK_K, BLOCK_N)", ")"),
            mistake="unmasked tail",
        ),
        "fp16 sum": changed(
            ("tl.zeros((BLOCK_M, BLOCK_N), tl.float32)", "tl.zeros((BLOCK_M, BLOCK_N), tl.float16)"),
            (SUMMED, "acc = (acc + tl.dot(a, b) * scale[:, None]).to(tl.float16)"),
            mistake="low precision",
        ),
        "one block of K": changed(
            ("range(0, K, BLOCK_K)", "range(0, BLOCK_K, BLOCK_K)"), mistake="one block of K"
        ),
        "tiles of 16 by 16": changed(
            ("(128, 128, 8) if big else (32, 64, 4)", "(16, 16, 4)"), part="traffic"
        ),
        "tail left out": changed(
            ("range(0, K, BLOCK_K)", "range(0, K // BLOCK_K * BLOCK_K, BLOCK_K)"), mistake="tail left out"
        ),
        "one step short": changed(
            ("range(0, K, BLOCK_K)", "range(0, tl.cdiv(K - 1, BLOCK_K) * BLOCK_K, BLOCK_K)"),
            mistake="one step short",
        ),
        "bf16 sum": changed(
            (
                "acc += tl.dot(a, b) * scale[:, None]",
                "acc = (acc + tl.dot(a, b) * scale[:, None]).to(tl.bfloat16).to(tl.float32)",
            ),
            mistake="low precision",
        ),
        "products by fused multiply-adds": changed(
            (
                "acc += tl.dot(a, b) * scale[:, None]",
                "acc += tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :].to(tl.float32), 1) * scale[:, None]",
            ),
            ("(128, 128, 8) if big else (32, 64, 4)", "(64, 64, 8) if big else (32, 32, 4)"),
            part="speed",
        ),
        "tiles of 32 by 64 throughout": changed(
            ("(128, 128, 8) if big else (32, 64, 4)", "(32, 64, 4)"), part="speed"
        ),
    },
}

EQUIVALENT = {
    TILED: {
        "halved: 32 -> 16": "another BLOCK_K: the same sum in shorter steps",
        "plus one: 8 -> 9": "another GROUP_M within what the grouping's budget allows",
        "halved: 8 -> 4": "another GROUP_M within what the grouping's budget allows",
        "plus one: 0.0 -> 1.0": "a masked lane of A meets a masked 0 of B along K; rows beyond M are never stored",
        "plus one: 0.0 -> 1.0 (2)": "a masked lane of B meets a masked 0 of A along K; columns beyond N are never stored",
    },
    SCALED: because(
        {
            "chooses between right tile sizes; time tells them apart, values and bytes do not": [
                "comparison: p.M >= 512 -> p.M > 512",
                "comparison: p.N >= 512 -> p.N > 512",
                "plus one: 512 -> 513",
                "halved: 512 -> 256",
                "plus one: 512 -> 513 (2)",
                "halved: 512 -> 256 (2)",
                "halved: 128 -> 64 (2)",
                "halved: 128 -> 64 (3)",
                "halved: 4 -> 2",
            ],
            "another order of the tiles; this question budgets no waves": [
                "plus one: 8 -> 9",
                "halved: 8 -> 4",
            ],
            "the scale of a row beyond M scales that row alone, which is never stored": [
                "no other: tl.load(sa_ptrs, mask=mask_m, other=0.0) -> tl.load(sa_ptrs, mask=mask_m)",
                "plus one: 0.0 -> 1.0 (3)",
            ],
            "along K a masked lane of A meets a masked 0 of B; rows beyond M are never stored": [
                "plus one: 0.0 -> 1.0",
            ],
            "along K a masked lane of B meets a masked 0 of A; columns beyond N are never stored": [
                "plus one: 0.0 -> 1.0 (2)",
            ],
        }
    ),
}

"""GEMMs, right in other ways."""

TILED, SCALED = "gemm_tiling.tiled_gemm", "gemm_tiling.block_scaled_gemm"
LOOP = "for k in range(0, K, BLOCK_K):"
SIZES = "GROUP_M = 64, 128, 32, 8"
STEP = '"num_warps": 4, "num_stages": 3'
SUMMED = "acc += tl.dot(a, b) * scale[:, None]"

FORMS = {
    TILED: {
        "a tile of 128 by 128, eight warps": ((), [(SIZES, "GROUP_M = 128, 128, 64, 4"), (STEP, '"num_warps": 8, "num_stages": 4')]),
        "a tile of 256 by 64": ((), [(SIZES, "GROUP_M = 256, 64, 32, 2"), (STEP, '"num_warps": 8, "num_stages": 2')]),
        "persistent programs": ((), "gemm_persistent"),
        "split K with a second kernel": ((), "gemm_split_k"),
        "block pointers": ((), "gemm_block_pointers"),
        "tensor descriptors": ((), "gemm_descriptors"),
        "helpers, B loaded transposed": ((), "gemm_helpers"),
        "assumptions and a barrier": ((), [("    offs_k = tl.arange", "    tl.assume(stride_am > 0)\n    tl.assume(K > 0)\n    tl.debug_barrier()\n    offs_k = tl.arange")]),
        "a while loop": ((), [("    " + LOOP, "    k = 0\n    while k < K:"), ("        acc = tl.dot(a, b, acc)", "        acc = tl.dot(a, b, acc)\n        k += BLOCK_K")]),
        "from the last block of K to the first": ((), [(LOOP, "for back in range(0, K, BLOCK_K):\n        k = (tl.cdiv(K, BLOCK_K) - 1) * BLOCK_K - back")]),
        "added, not accumulated": ((), [("acc = tl.dot(a, b, acc)", "acc += tl.dot(a, b)")]),
        "every second group backwards": ((), [("    pn = within // rows\n", "    pn = within // rows\n    pn = tl.where(group % 2 == 1, tiles_n - 1 - pn, pn)\n")]),
        "the transpose of a product of transposes": ((), [("acc = tl.dot(a, b, acc)", "acc += tl.trans(tl.dot(tl.trans(b), tl.trans(a)))")]),
        "two sums": ((), [("acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)", "acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)\n    odd = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)"), ("acc = tl.dot(a, b, acc)", "product = tl.dot(a, b)\n        even = (k // BLOCK_K) % 2 == 0\n        acc += tl.where(even, product, 0.0)\n        odd += tl.where(even, 0.0, product)"), ("    tl.store(c_ptr", "    acc += odd\n    tl.store(c_ptr"), (SIZES, "GROUP_M = 64, 128, 32, 8"), (STEP, '"num_warps": 8, "num_stages": 2')]),
        "columns first, in groups": ((), [("group = pid // (GROUP_M * tiles_n)", "group = pid // (GROUP_M * tiles_m)"), ("tl.minimum(tiles_m - first, GROUP_M)", "tl.minimum(tiles_n - first, GROUP_M)"), ("within = pid % (GROUP_M * tiles_n)", "within = pid % (GROUP_M * tiles_m)"), ("pm = first + within % rows", "pn = first + within % rows"), ("pn = within // rows", "pm = within // rows"), (SIZES, "GROUP_M = 64, 128, 32, 4")]),
        "row by row, the grid of two dimensions": (("grouping",), [("pm = first + within % rows", "pm = tl.program_id(1)"), ("pn = within // rows", "pn = tl.program_id(0)"), ('"grid": (grid,)', '"grid": (triton.cdiv(p.N, BLOCK_N), triton.cdiv(p.M, BLOCK_M))')]),
    },
    SCALED: {
        "tiles of 64 by 128": ((), [("(128, 128, 8) if big else (32, 64, 4)", "(64, 128, 4)")]),
        "steps of 64": ((), [('"BLOCK_K": 128', '"BLOCK_K": 64'), ("sb_ptr + tile_n * BLOCK_N // BLOCK_K * stride_sbn", "sb_ptr + tile_n * BLOCK_N // 128 * stride_sbn"), ("        sa_ptrs += stride_sak\n        sb_here += stride_sbk\n", "        sa_ptrs += (k // BLOCK_K % 2) * stride_sak\n        sb_here += (k // BLOCK_K % 2) * stride_sbk\n")]),
        "the scale of B for each column": ((), [("tl.load(sa_ptrs, mask=mask_m, other=0.0) * tl.load(sb_here)", "tl.load(sa_ptrs, mask=mask_m, other=0.0)"), (SUMMED, "columns = tl.load(sb_ptr + k // BLOCK_K * stride_sbk + offs_n // 128 * stride_sbn, mask=mask_n, other=0.0)\n        acc += tl.dot(a, b) * scale[:, None] * columns[None, :]")]),
        "no grouping": ((), [('"GROUP_M": 8', '"GROUP_M": 1')]),
        "each scale by itself": ((), [(SUMMED, "acc += (tl.dot(a, b) * tl.load(sb_here)) * tl.load(sa_ptrs, mask=mask_m, other=0.0)[:, None]")]),
        "a while loop": ((), [("    for k in range(0, K, BLOCK_K):", "    k = 0\n    while k < K:"), ("        sb_here += stride_sbk\n", "        sb_here += stride_sbk\n        k += BLOCK_K\n"), ("(128, 128, 8) if big else (32, 64, 4)", "(64, 64, 8)")]),
        "many rows, few columns": ((), [("(128, 128, 8) if big else (32, 64, 4)", "(256, 64, 8) if big else (32, 128, 4)")]),
    },
}

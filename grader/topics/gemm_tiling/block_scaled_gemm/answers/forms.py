"""List right answers to *block scaled gemm* in other forms."""



SUMMED = "acc += tl.dot(a, b) * scale[:, None]"
FORMS = {
        "tiles of 64 by 128": ((), [("(128, 128, 8) if big else (32, 64, 4)", "(64, 128, 4)")]),
        "steps of 64": ((), [('"BLOCK_K": 128', '"BLOCK_K": 64'), ("sb_ptr + tile_n * BLOCK_N // BLOCK_K * stride_sbn", "sb_ptr + tile_n * BLOCK_N // 128 * stride_sbn"), ("        sa_ptrs += stride_sak\n        sb_here += stride_sbk\n", "        sa_ptrs += (k // BLOCK_K % 2) * stride_sak\n        sb_here += (k // BLOCK_K % 2) * stride_sbk\n")]),
        "the scale of B for each column": ((), [("tl.load(sa_ptrs, mask=mask_m, other=0.0) * tl.load(sb_here)", "tl.load(sa_ptrs, mask=mask_m, other=0.0)"), (SUMMED, "columns = tl.load(sb_ptr + k // BLOCK_K * stride_sbk + offs_n // 128 * stride_sbn, mask=mask_n, other=0.0)\n        acc += tl.dot(a, b) * scale[:, None] * columns[None, :]")]),
        "no grouping": ((), [('"GROUP_M": 8', '"GROUP_M": 1')]),
        "each scale by itself": ((), [(SUMMED, "acc += (tl.dot(a, b) * tl.load(sb_here)) * tl.load(sa_ptrs, mask=mask_m, other=0.0)[:, None]")]),
        "a while loop": ((), [("    for k in range(0, K, BLOCK_K):", "    k = 0\n    while k < K:"), ("        sb_here += stride_sbk\n", "        sb_here += stride_sbk\n        k += BLOCK_K\n"), ("(128, 128, 8) if big else (32, 64, 4)", "(64, 64, 8)")]),
        "many rows, few columns": ((), [("(128, 128, 8) if big else (32, 64, 4)", "(256, 64, 8) if big else (32, 128, 4)")]),
    }

"""List right answers to *tiled gemm* in other forms."""



LOOP = "for k in range(0, K, BLOCK_K):"
SIZES = "GROUP_M = 64, 128, 32, 8"
STEP = '"num_warps": 4, "num_stages": 3'
FORMS = {
        "a tile of 128 by 128, eight warps": ((), [(SIZES, "GROUP_M = 128, 128, 64, 4"), (STEP, '"num_warps": 8, "num_stages": 4')]),
        "a tile of 256 by 64": ((), [(SIZES, "GROUP_M = 256, 64, 32, 2"), (STEP, '"num_warps": 8, "num_stages": 2')]),
        "persistent programs": ((), "gemm_persistent"),
        "split K with a second kernel": ((), "gemm_split_k"),
        "block pointers": ((), "gemm_block_pointers"),
        "tensor descriptors": ((), "gemm_descriptors"),
        "helpers, B loaded transposed": ((), "gemm_helpers"),
        "assumptions and a barrier": ((), [("    offs_k = tl.arange", "    tl.assume(stride_am >= 0)\n    tl.assume(K > 0)\n    tl.debug_barrier()\n    offs_k = tl.arange")]),
        "a while loop": ((), [("    " + LOOP, "    k = 0\n    while k < K:"), ("        acc = tl.dot(a, b, acc)", "        acc = tl.dot(a, b, acc)\n        k += BLOCK_K")]),
        "from the last block of K to the first": ((), [(LOOP, "for back in range(0, K, BLOCK_K):\n        k = (tl.cdiv(K, BLOCK_K) - 1) * BLOCK_K - back")]),
        "added, not accumulated": ((), [("acc = tl.dot(a, b, acc)", "acc += tl.dot(a, b)")]),
        "every second group backwards": ((), [("    pn = within // rows\n", "    pn = within // rows\n    pn = tl.where(group % 2 == 1, tiles_n - 1 - pn, pn)\n")]),
        "the transpose of a product of transposes": ((), [("acc = tl.dot(a, b, acc)", "acc += tl.trans(tl.dot(tl.trans(b), tl.trans(a)))")]),
        "two sums": ((), [("acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)", "acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)\n    odd = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)"), ("acc = tl.dot(a, b, acc)", "product = tl.dot(a, b)\n        even = (k // BLOCK_K) % 2 == 0\n        acc += tl.where(even, product, 0.0)\n        odd += tl.where(even, 0.0, product)"), ("    tl.store(c_ptr", "    acc += odd\n    tl.store(c_ptr"), (SIZES, "GROUP_M = 64, 128, 32, 8"), (STEP, '"num_warps": 8, "num_stages": 2')]),
        "columns first, in groups": ((), [("group = pid // (GROUP_M * tiles_n)", "group = pid // (GROUP_M * tiles_m)"), ("tl.minimum(tiles_m - first, GROUP_M)", "tl.minimum(tiles_n - first, GROUP_M)"), ("within = pid % (GROUP_M * tiles_n)", "within = pid % (GROUP_M * tiles_m)"), ("pm = first + within % rows", "pn = first + within % rows"), ("pn = within // rows", "pm = within // rows"), (SIZES, "GROUP_M = 64, 128, 32, 4")]),
        "row by row, the grid of two dimensions": (("grouping",), [("pm = first + within % rows", "pm = tl.program_id(1)"), ("pn = within // rows", "pn = tl.program_id(0)"), ('"grid": (grid,)', '"grid": (triton.cdiv(p.N, BLOCK_N), triton.cdiv(p.M, BLOCK_M))')]),
    }

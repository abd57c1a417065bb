@triton.jit
def place(tile, tiles_m, tiles_n, GROUP: tl.constexpr):
    width = GROUP * tiles_n
    first = tile // width * GROUP
    rows = min(tiles_m - first, GROUP)
    return first + tile % width % rows, tile % width // rows


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
         BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    offs_k = tl.arange(0, BK)
    for tile in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        pm, pn = place(tile, tiles_m, tiles_n, GROUP)
        offs_m = pm * BM + tl.arange(0, BM)
        offs_n = pn * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            left = K - k * BK
            a = tl.load(a_ptr + offs_m[:, None] * stride_am + (k * BK + offs_k)[None, :] * stride_ak,
                        mask=(offs_m[:, None] < M) & (offs_k[None, :] < left), other=0.0)
            b = tl.load(b_ptr + (k * BK + offs_k)[:, None] * stride_bk + offs_n[None, :] * stride_bn,
                        mask=(offs_k[:, None] < left) & (offs_n[None, :] < N), other=0.0)
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn, acc.to(c_ptr.dtype.element_ty),
                 mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def launch(p):
    bm, bn = 128, 128
    tiles = triton.cdiv(p.M, bm) * triton.cdiv(p.N, bn)
    constants = {"BM": bm, "BN": bn, "BK": 32, "GROUP": 8}
    return {"steps": [{"kernel": gemm, "grid": (min(tiles, p.sm_count),), "constexprs": constants, "num_warps": 8, "num_stages": 3}]}

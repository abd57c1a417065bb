BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M = 64, 128, 32, 8

@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
         BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP_M * tiles_n)
    first = group * GROUP_M
    rows = tl.minimum(tiles_m - first, GROUP_M)
    within = pid % (GROUP_M * tiles_n)
    pm = first + within % rows
    pn = within // rows
    offs_m = pm * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pn * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        mask_k = offs_k + k < K
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + (offs_k + k)[None, :] * stride_ak,
                    mask=(offs_m < M)[:, None] & mask_k[None, :], other=0.0)
        b = tl.load(b_ptr + (offs_k + k)[:, None] * stride_bk + offs_n[None, :] * stride_bn,
                    mask=mask_k[:, None] & (offs_n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn, acc.to(c_ptr.dtype.element_ty),
             mask=(offs_m < M)[:, None] & (offs_n < N)[None, :])


def launch(p):
    grid = triton.cdiv(p.M, BLOCK_M) * triton.cdiv(p.N, BLOCK_N)
    return {"steps": [{"kernel": gemm, "grid": (grid,), "num_warps": 4, "num_stages": 3,
                       "constexprs": {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K, "GROUP_M": GROUP_M}}]}

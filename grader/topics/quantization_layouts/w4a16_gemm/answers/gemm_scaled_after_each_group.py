@triton.jit
def scaled_after(w_ptr, s_ptr, z_ptr, x_ptr, y_ptr, M, N, K, stride_wn, stride_wk, stride_sn, stride_sg, stride_zn, stride_zg,
                 stride_xm, stride_xk, stride_ym, stride_yn, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    WORDS: tl.constexpr = GROUP // 8
    dtype = x_ptr.dtype.element_ty
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BM), tl.float32)
    for g in range(0, K // GROUP):
        i, k = g * WORDS + tl.arange(0, WORDS), g * GROUP + tl.arange(0, GROUP)
        w = tl.load(w_ptr + n[:, None] * stride_wn + i[None, :] * stride_wk, mask=(n < N)[:, None], other=0)
        z = tl.load(z_ptr + n * stride_zn + g * stride_zg, mask=n < N, other=0).to(tl.int32)
        s = tl.load(s_ptr + n * stride_sn + g * stride_sg, mask=n < N, other=0.0).to(tl.float32)
        number = ((w[:, :, None] >> 4 * tl.arange(0, 8)[None, None, :]) & 15) - z[:, None, None]
        x = tl.load(x_ptr + m[None, :] * stride_xm + k[:, None] * stride_xk, mask=(m < M)[None, :], other=0.0)
        acc += tl.dot(tl.reshape(number, (BN, GROUP)).to(dtype), x) * s[:, None]
    tl.store(y_ptr + m[None, :] * stride_ym + n[:, None] * stride_yn, acc.to(y_ptr.dtype.element_ty), mask=(m < M)[None, :] & (n < N)[:, None])


def launch_gemm(p):
    grid = (triton.cdiv(p.M, 16), triton.cdiv(p.N, 64))
    return {"steps": [{"kernel": scaled_after, "grid": grid, "constexprs": {"GROUP": p.G, "BM": 16, "BN": 64}, "num_warps": 4}]}

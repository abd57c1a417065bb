@triton.jit
def by_columns(w_ptr, s_ptr, z_ptr, x_ptr, y_ptr, M, N, K, G, stride_wn, stride_wk, stride_sn, stride_sg, stride_zn, stride_zg,
               stride_xm, stride_xk, stride_ym, stride_yn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        mask = (k < K)[:, None] & (n < N)[None, :]
        word = tl.load(w_ptr + (k // 8)[:, None] * stride_wk + n[None, :] * stride_wn, mask=mask, other=0)
        scale = tl.load(s_ptr + (k // G)[:, None] * stride_sg + n[None, :] * stride_sn, mask=mask, other=0.0).to(tl.float32)
        zero = tl.load(z_ptr + (k // G)[:, None] * stride_zg + n[None, :] * stride_zn, mask=mask, other=0).to(tl.float32)
        x = tl.load(x_ptr + m[:, None] * stride_xm + k[None, :] * stride_xk, mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        code = ((word >> (k % 8 * 4)[:, None]) & 15).to(tl.float32)
        acc += tl.dot(x, ((code - zero) * scale).to(x.dtype))
    tl.store(y_ptr + m[:, None] * stride_ym + n[None, :] * stride_yn, acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


def launch_gemm(p):
    grid = (triton.cdiv(p.N, 64), triton.cdiv(p.M, 16))
    return {"steps": [{"kernel": by_columns, "grid": grid, "constexprs": {"BM": 16, "BN": 64, "BK": 128}, "num_warps": 4}]}

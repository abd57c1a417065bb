@triton.jit
def by_columns(w_ptr, s_ptr, c_ptr, x_ptr, y_ptr, M, N, K, stride_wb, stride_wn, stride_wk, stride_sn, stride_sg, stride_cl,
               stride_xm, stride_xk, stride_ym, stride_yn, BITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        mask = (k < K)[:, None] & (n < N)[None, :]
        at = w_ptr + (k // 32)[:, None] * stride_wk + n[None, :] * stride_wn
        code = (tl.load(at, mask=mask, other=0) >> (k % 32)[:, None]) & 1
        for b in tl.static_range(1, BITS):
            code += ((tl.load(at + b * stride_wb, mask=mask, other=0) >> (k % 32)[:, None]) & 1) * (1 << b)
        scale = tl.load(s_ptr + (k // 32)[:, None] * stride_sg + n[None, :] * stride_sn, mask=mask, other=0.0)
        level = tl.load(c_ptr + code * stride_cl, mask=mask, other=0.0)
        x = tl.load(x_ptr + m[:, None] * stride_xm + k[None, :] * stride_xk, mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        acc += tl.dot(x, level * scale)
    tl.store(y_ptr + m[:, None] * stride_ym + n[None, :] * stride_yn, acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


def launch_kbit(p):
    grid = (triton.cdiv(p.N, 32), triton.cdiv(p.M, 16))
    constants = {"BITS": p.BITS, "BM": 16, "BN": 32, "BK": 256}
    return {"steps": [{"kernel": by_columns, "grid": grid, "constexprs": constants, "num_warps": 8}]}

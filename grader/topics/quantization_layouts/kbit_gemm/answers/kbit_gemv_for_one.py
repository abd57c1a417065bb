@triton.jit
def weights(w_ptr, s_ptr, c_ptr, n, i, N, K, stride_wb, stride_wn, stride_wk, stride_sn, stride_sg, stride_cl, BITS: tl.constexpr):
    mask = (n < N)[:, None] & (i < K // 32)[None, :]
    code = tl.zeros((n.shape[0], i.shape[0], 32), tl.int32)
    for b in tl.static_range(BITS):
        plane = tl.load(w_ptr + b * stride_wb + n[:, None] * stride_wn + i[None, :] * stride_wk, mask=mask, other=0)
        code |= ((plane[:, :, None] >> tl.arange(0, 32)[None, None, :]) & 1) << b
    s = tl.load(s_ptr + n[:, None] * stride_sn + i[None, :] * stride_sg, mask=mask, other=0.0).to(tl.float32)
    return tl.load(c_ptr + code * stride_cl).to(tl.float32) * s[:, :, None]


@triton.jit
def one_row(w_ptr, s_ptr, c_ptr, x_ptr, y_ptr, N, K, stride_wb, stride_wn, stride_wk, stride_sn, stride_sg, stride_cl, stride_xk, stride_yn,
            BITS: tl.constexpr, BN: tl.constexpr, WORDS: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, WORDS), tl.float32)
    for start in range(0, K // 32, WORDS):
        i = start + tl.arange(0, WORDS)
        w = weights(w_ptr, s_ptr, c_ptr, n, i, N, K, stride_wb, stride_wn, stride_wk, stride_sn, stride_sg, stride_cl, BITS)
        k = i[:, None] * 32 + tl.arange(0, 32)[None, :]
        acc += tl.sum(w * tl.load(x_ptr + k * stride_xk, mask=k < K, other=0.0).to(tl.float32)[None, :, :], 2)
    tl.store(y_ptr + n * stride_yn, tl.sum(acc, 1).to(y_ptr.dtype.element_ty), mask=n < N)


@triton.jit
def some_rows(w_ptr, s_ptr, c_ptr, x_ptr, y_ptr, M, N, K, stride_wb, stride_wn, stride_wk, stride_sn, stride_sg, stride_cl,
              stride_xm, stride_xk, stride_ym, stride_yn, BITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, WORDS: tl.constexpr):
    m, n = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BM), tl.float32)
    for start in range(0, K // 32, WORDS):
        i, k = start + tl.arange(0, WORDS), 32 * start + tl.arange(0, 32 * WORDS)
        w = weights(w_ptr, s_ptr, c_ptr, n, i, N, K, stride_wb, stride_wn, stride_wk, stride_sn, stride_sg, stride_cl, BITS)
        x = tl.load(x_ptr + m[None, :] * stride_xm + k[:, None] * stride_xk, mask=(m < M)[None, :] & (k < K)[:, None], other=0.0)
        acc = tl.dot(tl.reshape(w.to(x.dtype), (BN, 32 * WORDS)), x, acc)
    tl.store(y_ptr + m[None, :] * stride_ym + n[:, None] * stride_yn, acc.to(y_ptr.dtype.element_ty), mask=(m < M)[None, :] & (n < N)[:, None])


def launch_kbit(p):
    if p.M == 1:
        return {"steps": [{"kernel": one_row, "grid": triton.cdiv(p.N, 32), "constexprs": dict(BITS=p.BITS, BN=32, WORDS=4)}]}
    rows = 16 if p.M <= 16 else 64
    grid = (triton.cdiv(p.N, 32), triton.cdiv(p.M, rows))
    return {"steps": [{"kernel": some_rows, "grid": grid, "constexprs": dict(BITS=p.BITS, BM=rows, BN=32, WORDS=8), "num_warps": 4}]}

@triton.jit
def one_row_of_sixteen(w_ptr, s_ptr, x_ptr, y_ptr, N, K, G, stride_wn, stride_wk, stride_sn, stride_sg, stride_xk, stride_yn,
                       BLOCK_N: tl.constexpr, WORDS: tl.constexpr):
    dtype = x_ptr.dtype.element_ty
    n, row = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, 16)
    acc = tl.zeros((BLOCK_N, 16), tl.float32)
    for start in range(0, K // 8, WORDS):
        i, k = start + tl.arange(0, WORDS), start * 8 + tl.arange(0, 8 * WORDS)
        mask = (n < N)[:, None] & (i < K // 8)[None, :]
        w = tl.load(w_ptr + n[:, None] * stride_wn + i[None, :] * stride_wk, mask=mask, other=0)
        s = tl.load(s_ptr + n[:, None] * stride_sn + (8 * i // G)[None, :] * stride_sg, mask=mask, other=0.0)
        number = ((w[:, :, None] >> 4 * tl.arange(0, 8)[None, None, :]) & 15) - 8
        weight = (number.to(tl.float32) * s.to(tl.float32)[:, :, None]).to(dtype)
        x = tl.load(x_ptr + k[:, None] * stride_xk + 0 * row[None, :], mask=(k < K)[:, None] & (row == 0)[None, :], other=0.0)
        acc = tl.dot(tl.reshape(weight, (BLOCK_N, 8 * WORDS)), x, acc)
    tl.store(y_ptr + n * stride_yn, tl.sum(acc, 1).to(y_ptr.dtype.element_ty), mask=n < N)


def launch(p):
    constants = {"BLOCK_N": 16, "WORDS": 32}
    return {"steps": [{"kernel": one_row_of_sixteen, "grid": (triton.cdiv(p.N, 16),), "constexprs": constants}]}

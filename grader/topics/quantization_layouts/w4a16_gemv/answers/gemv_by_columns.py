@triton.jit
def by_columns(w_ptr, s_ptr, x_ptr, y_ptr, N, K, G, stride_wn, stride_wk, stride_sn, stride_sg, stride_xk, stride_yn,
               BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        mask = (n < N)[:, None] & (k < K)[None, :]
        word = tl.load(w_ptr + n[:, None] * stride_wn + (k // 8)[None, :] * stride_wk, mask=mask, other=0)
        scale = tl.load(s_ptr + n[:, None] * stride_sn + (k // G)[None, :] * stride_sg, mask=mask, other=0.0)
        x = tl.load(x_ptr + k * stride_xk, mask=k < K, other=0.0)
        code = (word >> (k % 8 * 4)[None, :]) & 0xF
        acc += (code.to(tl.float32) - 8.0) * scale.to(tl.float32) * x.to(tl.float32)[None, :]
    tl.store(y_ptr + n * stride_yn, tl.sum(acc, axis=1).to(y_ptr.dtype.element_ty), mask=n < N)


def launch(p):
    constants = {"BLOCK_N": 8, "BLOCK_K": 512}
    return {"steps": [{"kernel": by_columns, "grid": (triton.cdiv(p.N, 8),), "constexprs": constants, "num_warps": 4}]}

@triton.jit
def by_code(w_ptr, s_ptr, x_ptr, y_ptr, N, K, G, stride_wn, stride_wk, stride_sn, stride_sg, stride_xk, stride_yn,
            ROWS: tl.constexpr, WORDS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS,), tl.float32)
    for first in range(0, tl.cdiv(K, 8 * WORDS)):
        i = first * WORDS + tl.arange(0, WORDS)
        inside = (rows[:, None] < N) & (8 * i[None, :] < K)
        words = tl.load(w_ptr + rows[:, None] * stride_wn + i[None, :] * stride_wk, mask=inside, other=0)
        scales = tl.load(s_ptr + rows[:, None] * stride_sn + (i // (G // 8))[None, :] * stride_sg, mask=inside, other=0).to(tl.float32)
        part = tl.zeros((ROWS, WORDS), tl.float32)
        for j in tl.static_range(8):
            x = tl.load(x_ptr + (8 * i + j) * stride_xk, mask=8 * i < K, other=0).to(tl.float32)
            part += (((words >> 4 * j) & 15).to(tl.float32) - 8) * x[None, :]
        total += tl.sum(part * scales, 1)
    tl.store(y_ptr + rows * stride_yn, total.to(y_ptr.dtype.element_ty), mask=rows < N)


def launch(p):
    rows = 16 if p.N > 64 else 4
    return {"steps": [{"kernel": by_code, "grid": triton.cdiv(p.N, rows), "constexprs": dict(ROWS=rows, WORDS=128), "num_warps": 4}]}

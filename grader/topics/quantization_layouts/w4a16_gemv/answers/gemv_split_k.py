@triton.jit
def parts(w_ptr, s_ptr, x_ptr, part_ptr, N, K, G, stride_wn, stride_wk, stride_sn, stride_sg, stride_xk,
          BLOCK_N: tl.constexpr, WORDS: tl.constexpr, PARTS: tl.constexpr):
    n, part = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N), tl.program_id(1)
    total = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(part * WORDS, K // 8, PARTS * WORDS):
        i = start + tl.arange(0, WORDS)
        k = i[:, None] * 8 + tl.arange(0, 8)[None, :]
        mask = (n < N)[:, None] & (i < K // 8)[None, :]
        w = tl.load(w_ptr + n[:, None] * stride_wn + i[None, :] * stride_wk, mask=mask, other=0)
        s = tl.load(s_ptr + n[:, None] * stride_sn + (i * 8 // G)[None, :] * stride_sg, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + k * stride_xk, mask=k < K, other=0.0).to(tl.float32)
        number = (((w[:, :, None] >> 4 * tl.arange(0, 8)[None, None, :]) & 15) - 8).to(tl.float32)
        total += tl.sum(tl.sum(number * x[None, :, :], 2) * s, 1)
    tl.store(part_ptr + part * N + n, total, mask=n < N)


@triton.jit
def joined(part_ptr, y_ptr, N, stride_yn, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(PARTS):
        total += tl.load(part_ptr + part * N + n, mask=n < N, other=0.0)
    tl.store(y_ptr + n * stride_yn, total.to(y_ptr.dtype.element_ty), mask=n < N)


def launch(p):
    first = {"kernel": parts, "grid": (triton.cdiv(p.N, 32), 4), "constexprs": {"BLOCK_N": 32, "WORDS": 32, "PARTS": 4}}
    last = {"kernel": joined, "grid": (triton.cdiv(p.N, 256),), "constexprs": {"PARTS": 4, "BLOCK": 256}}
    return {"scratch": {"part": ((4, p.N), "fp32", 0)}, "steps": [first, last]}

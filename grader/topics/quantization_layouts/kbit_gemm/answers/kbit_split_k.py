@triton.jit
def parts(w_ptr, s_ptr, c_ptr, x_ptr, part_ptr, M, N, K, stride_wb, stride_wn, stride_wk, stride_sn, stride_sg, stride_cl,
          stride_xm, stride_xk, BITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, WORDS: tl.constexpr, PARTS: tl.constexpr):
    m, n, part = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(2)
    acc = tl.zeros((BN, BM), tl.float32)
    for start in range(part * WORDS, K // 32, PARTS * WORDS):
        i, k = start + tl.arange(0, WORDS), 32 * start + tl.arange(0, 32 * WORDS)
        mask = (n < N)[:, None] & (i < K // 32)[None, :]
        at = w_ptr + n[:, None] * stride_wn + i[None, :] * stride_wk
        code = tl.zeros((BN, WORDS, 32), tl.int32)
        for back in tl.static_range(BITS):
            plane = tl.load(at + (BITS - 1 - back) * stride_wb, mask=mask, other=0)
            code = 2 * code + ((plane[:, :, None] >> tl.arange(0, 32)[None, None, :]) & 1)
        s = tl.load(s_ptr + n[:, None] * stride_sn + i[None, :] * stride_sg, mask=mask, other=0.0)
        weight = tl.load(c_ptr + code * stride_cl) * s[:, :, None]
        x = tl.load(x_ptr + m[None, :] * stride_xm + k[:, None] * stride_xk, mask=(m < M)[None, :] & (k < K)[:, None], other=0.0)
        acc = tl.dot(tl.reshape(weight, (BN, 32 * WORDS)), x, acc)
    tl.store(part_ptr + (part * M + m[None, :]) * N + n[:, None], acc, mask=(m < M)[None, :] & (n < N)[:, None])


@triton.jit
def joined(part_ptr, y_ptr, M, N, stride_ym, stride_yn, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(PARTS):
        total += tl.load(part_ptr + part * M * N + at, mask=at < M * N, other=0.0)
    tl.store(y_ptr + at // N * stride_ym + at % N * stride_yn, total.to(y_ptr.dtype.element_ty), mask=at < M * N)


def launch_kbit(p):
    constants = {"BITS": p.BITS, "BM": 16, "BN": 32, "WORDS": 8, "PARTS": 2}
    first = {"kernel": parts, "grid": (triton.cdiv(p.N, 32), triton.cdiv(p.M, 16), 2), "constexprs": constants, "num_warps": 4}
    last = {"kernel": joined, "grid": (triton.cdiv(p.M * p.N, 512),), "constexprs": {"PARTS": 2, "BLOCK": 512}}
    return {"scratch": {"part": ((2, p.M, p.N), "fp32", 0)}, "steps": [first, last]}

@triton.jit
def parts(w_ptr, s_ptr, z_ptr, x_ptr, part_ptr, M, N, K, G, stride_wn, stride_wk, stride_sn, stride_sg, stride_zn, stride_zg,
          stride_xm, stride_xk, BM: tl.constexpr, BN: tl.constexpr, WORDS: tl.constexpr, PARTS: tl.constexpr):
    m, n, part = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(2)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(part * WORDS, K // 8, PARTS * WORDS):
        i, k = start + tl.arange(0, WORDS), 8 * start + tl.arange(0, 8 * WORDS)
        mask = (n < N)[:, None] & (i < K // 8)[None, :]
        w = tl.load(w_ptr + n[:, None] * stride_wn + i[None, :] * stride_wk, mask=mask, other=0)
        s = tl.load(s_ptr + n[:, None] * stride_sn + (i * 8 // G)[None, :] * stride_sg, mask=mask, other=0.0).to(tl.float32)
        z = tl.load(z_ptr + n[:, None] * stride_zn + (i * 8 // G)[None, :] * stride_zg, mask=mask, other=0).to(tl.float32)
        x = tl.load(x_ptr + m[:, None] * stride_xm + k[None, :] * stride_xk, mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        code = ((w[:, :, None] >> 4 * tl.arange(0, 8)[None, None, :]) & 15).to(tl.float32)
        weight = tl.reshape(((code - z[:, :, None]) * s[:, :, None]).to(x.dtype), (BN, 8 * WORDS))
        acc = tl.dot(x, tl.trans(weight), acc)
    tl.store(part_ptr + (part * M + m[:, None]) * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def joined(part_ptr, y_ptr, M, N, stride_ym, stride_yn, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(PARTS):
        total += tl.load(part_ptr + part * M * N + at, mask=at < M * N, other=0.0)
    tl.store(y_ptr + at // N * stride_ym + at % N * stride_yn, total.to(y_ptr.dtype.element_ty), mask=at < M * N)


def launch_gemm(p):
    constants = {"BM": 16, "BN": 64, "WORDS": 16, "PARTS": 2}
    first = {"kernel": parts, "grid": (triton.cdiv(p.N, 64), triton.cdiv(p.M, 16), 2), "constexprs": constants, "num_warps": 4}
    last = {"kernel": joined, "grid": (triton.cdiv(p.M * p.N, 512),), "constexprs": {"PARTS": 2, "BLOCK": 512}}
    return {"scratch": {"part": ((2, p.M, p.N), "fp32", 0)}, "steps": [first, last]}

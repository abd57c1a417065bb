def pack(codes, scales, bits):
    """As many whole codes as a word holds: ten of three bits, six of five, and two bits of the word are left over."""
    each, (n, k) = 32 // bits, codes.shape
    words = -(-k // each)
    padded = np.zeros((n, words * each), np.uint32)
    padded[:, :k] = codes
    shifts = np.uint32(bits) * np.arange(each, dtype=np.uint32)
    return {"words": (padded.reshape(n, words, each) << shifts).sum(-1, dtype=np.uint32), "scales": scales}


@triton.jit
def thirty_bits(words_ptr, scales_ptr, c_ptr, x_ptr, y_ptr, M, N, K, stride_words0, stride_scales0, stride_cl, stride_xm, stride_xk,
                stride_ym, stride_yn, BITS: tl.constexpr, EACH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    STEP: tl.constexpr = BK // EACH * EACH
    m, n = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, STEP):
        here = tl.arange(0, BK)
        k = start + here
        of_k = (k < K) & (here < STEP)
        mask = of_k[:, None] & (n < N)[None, :]
        word = tl.load(words_ptr + n[None, :] * stride_words0 + (k // EACH)[:, None], mask=mask, other=0)
        code = (word >> (BITS * (k % EACH))[:, None].to(tl.uint32)) & (2**BITS - 1)
        s = tl.load(scales_ptr + n[None, :] * stride_scales0 + (k // 32)[:, None], mask=mask, other=0.0)
        x = tl.load(x_ptr + m[:, None] * stride_xm + k[None, :] * stride_xk, mask=(m < M)[:, None] & of_k[None, :], other=0.0)
        acc = tl.dot(x, tl.load(c_ptr + code.to(tl.int32) * stride_cl) * s, acc)
    tl.store(y_ptr + m[:, None] * stride_ym + n[None, :] * stride_yn, acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


def launch_own(p):
    each = 32 // p.BITS
    packed = {"words": ((p.N, triton.cdiv(p.K, each)), "u32"), "scales": ((p.N, p.K // 32), p.dtypes["x"])}
    constants = {"BITS": p.BITS, "EACH": each, "BM": 16, "BN": 32, "BK": 256}
    grid = (triton.cdiv(p.N, 32), triton.cdiv(p.M, 16))
    return {"packed": packed, "steps": [{"kernel": thirty_bits, "grid": grid, "constexprs": constants, "num_warps": 8}]}

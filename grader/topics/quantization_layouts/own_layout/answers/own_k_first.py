def pack(codes, scales, bits):
    """K first, so that neighbouring lanes are neighbouring rows: a field of two or four bits, a plane of the top one, the scales."""
    n, k = codes.shape
    low = 2 if bits < 4 else 4
    each = codes.T.reshape(k // 32, 32, n).astype(np.uint32)
    of_low = (each & 2**low - 1).reshape(k // 32 * low, 32 // low, n)
    words = (of_low << (low * np.arange(32 // low, dtype=np.uint32))[:, None]).sum(1, dtype=np.uint32)
    made = {"low": words, "scales": np.ascontiguousarray(scales.T)}
    if bits % 2:
        made["top"] = ((each >> np.uint32(low)) << np.arange(32, dtype=np.uint32)[:, None]).sum(1, dtype=np.uint32)
    return made


@triton.jit
def k_first(low_ptr, top_ptr, scales_ptr, c_ptr, x_ptr, y_ptr, M, N, K, stride_cl, stride_xm, stride_xk, stride_ym, stride_yn,
            BITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BLOCKS: tl.constexpr):
    LOW: tl.constexpr = 2 if BITS < 4 else 4
    m, n = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K // 32, BLOCKS):
        block, word = first + tl.arange(0, BLOCKS), first * LOW + tl.arange(0, BLOCKS * LOW)
        mask = (block < K // 32)[:, None] & (n < N)[None, :]
        low = tl.load(low_ptr + word[:, None] * N + n[None, :], mask=(word < K // 32 * LOW)[:, None] & (n < N)[None, :], other=0)
        code = (low[:, None, :] >> (LOW * tl.arange(0, 32 // LOW)).to(tl.uint32)[None, :, None]) & (2**LOW - 1)
        code = tl.reshape(code, (BLOCKS, 32, BN))
        if BITS % 2 == 1:
            top = tl.load(top_ptr + block[:, None] * N + n[None, :], mask=mask, other=0)
            code |= ((top[:, None, :] >> tl.arange(0, 32).to(tl.uint32)[None, :, None]) & 1) << LOW
        s = tl.load(scales_ptr + block[:, None] * N + n[None, :], mask=mask, other=0.0)
        w = tl.load(c_ptr + code.to(tl.int32) * stride_cl) * s[:, None, :]
        k = first * 32 + tl.arange(0, BLOCKS * 32)
        x = tl.load(x_ptr + m[:, None] * stride_xm + k[None, :] * stride_xk, mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        acc = tl.dot(x, tl.reshape(w, (BLOCKS * 32, BN)), acc)
    tl.store(y_ptr + m[:, None] * stride_ym + n[None, :] * stride_yn, acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def without_top(low_ptr, scales_ptr, c_ptr, x_ptr, y_ptr, M, N, K, stride_cl, stride_xm, stride_xk, stride_ym, stride_yn,
                BITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BLOCKS: tl.constexpr):
    k_first(low_ptr, low_ptr, scales_ptr, c_ptr, x_ptr, y_ptr, M, N, K, stride_cl, stride_xm, stride_xk, stride_ym, stride_yn, BITS, BM, BN, BLOCKS)


def launch_own(p):
    low = 2 if p.BITS < 4 else 4
    packed = {"low": ((p.K // 32 * low, p.N), "u32"), "scales": ((p.K // 32, p.N), p.dtypes["x"])}
    if p.BITS % 2:
        packed["top"] = ((p.K // 32, p.N), "u32")
    constants = {"BITS": p.BITS, "BM": 16, "BN": 32, "BLOCKS": 8}
    kernel = k_first if p.BITS % 2 else without_top
    grid = (triton.cdiv(p.N, 32), triton.cdiv(p.M, 16))
    return {"packed": packed, "steps": [{"kernel": kernel, "grid": grid, "constexprs": constants, "num_warps": 4}]}

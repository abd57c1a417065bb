@triton.jit
def searched(w_ptr, s_ptr, c_ptr, r_ptr, x_ptr, y_ptr, N, K, E, stride_we, stride_wb, stride_wn, stride_wk, stride_se, stride_sn, stride_sg,
             stride_cl, stride_re, stride_xm, stride_xk, stride_ym, stride_yn, BITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, WORDS: tl.constexpr):
    tile, expert, before = tl.program_id(1), -1, 0
    first, last = 0, 0
    for e in range(E):
        top, end = tl.load(r_ptr + e * stride_re), tl.load(r_ptr + (e + 1) * stride_re)
        tiles = tl.cdiv(end - top, BM)
        mine = (tile >= before) & (tile < before + tiles)
        expert = tl.where(mine, e, expert)
        first = tl.where(mine, top + (tile - before) * BM, first)
        last = tl.where(mine, end, last)
        before += tiles
    if expert < 0:
        return
    m = first + tl.arange(0, BM)
    w_ptr += expert.to(tl.int64) * stride_we
    s_ptr += expert.to(tl.int64) * stride_se
    BK: tl.constexpr = 32 * WORDS
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BM), tl.float32)
    for start in range(0, K, BK):
        i, k = start // 32 + tl.arange(0, WORDS), start + tl.arange(0, BK)
        mask = (n < N)[:, None] & (i < K // 32)[None, :]
        code = tl.zeros((BN, WORDS, 32), tl.int32)
        for b in tl.static_range(BITS):
            plane = tl.load(w_ptr + b * stride_wb + n[:, None] * stride_wn + i[None, :] * stride_wk, mask=mask, other=0)
            code |= ((plane[:, :, None] >> tl.arange(0, 32)[None, None, :]) & 1) << b
        s = tl.load(s_ptr + n[:, None] * stride_sn + i[None, :] * stride_sg, mask=mask, other=0.0)
        weight = tl.load(c_ptr + code * stride_cl) * s[:, :, None]
        x = tl.load(x_ptr + m[None, :] * stride_xm + k[:, None] * stride_xk, mask=(m < last)[None, :] & (k < K)[:, None], other=0.0)
        acc = tl.dot(tl.reshape(weight, (BN, BK)), x, acc)
    tl.store(y_ptr + m[None, :] * stride_ym + n[:, None] * stride_yn, acc.to(y_ptr.dtype.element_ty), mask=(m < last)[None, :] & (n < N)[:, None])


def launch_experts(p):
    """Of M rows for E experts no more tiles can be begun than whole ones and one for each expert."""
    grid = (triton.cdiv(p.N, 32), p.M // 16 + min(p.M, p.E))
    constants = {"BITS": p.BITS, "BM": 16, "BN": 32, "WORDS": 8}
    return {"steps": [{"kernel": searched, "grid": grid, "constexprs": constants, "num_warps": 4}]}

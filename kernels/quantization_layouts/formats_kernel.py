"""Run one tiled matmul for five formats. W is the left side, so widened weights go from registers into the tensor
core."""

import triton
import triton.language as tl

GROUP = tl.constexpr(8)  # tiles of W that share a tile of X while it is in the cache


@triton.jit
def e2m1(packed, dtype: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return (ROWS, COLUMNS) numbers from two codes a byte: as low bits of an exponent and the top bit of the
    mantissa.

    So they are powers of two too small, and half of one among the subnormals. One exact multiplication brings them
    back.
    """
    LEFT: tl.constexpr = 9 if dtype == tl.float16 else 6
    BACK: tl.constexpr = 2.0**14 if dtype == tl.float16 else 2.0**126
    wide = packed.to(tl.int16)
    first = (wide & 7) << LEFT | (wide & 8) << 12
    second = (wide & 0x70) << (LEFT - 4) | (wide & 0x80) << 8
    bits = tl.reshape(tl.join(first, second), (ROWS, COLUMNS))
    return bits.to(dtype, bitcast=True) * tl.full((1, 1), BACK, dtype)


@triton.jit
def fp4_weights(
    packed, scale, dtype: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Return the weights in 16 bits, exactly, because each is two significant bits times one (E8M0) or four (E4M3)."""
    blocks = tl.reshape(e2m1(packed, dtype, ROWS, COLUMNS), (ROWS, COLUMNS // BLOCK, BLOCK))
    return tl.reshape(blocks * scale.to(dtype)[:, :, None], (ROWS, COLUMNS))


@triton.jit
def int8_weights(w, dtype: tl.constexpr):
    """OR a byte's bits into a mantissa, and subtract the excess, without a conversion instruction."""
    wide = w.to(tl.int16) & 255
    if dtype == tl.float16:
        w = (wide ^ 0x6480).to(tl.float16, bitcast=True) - tl.full((1, 1), 1152.0, tl.float16)
    else:
        low = (wide & 127 | 0x4300).to(tl.bfloat16, bitcast=True)  # 128 + its low seven bits
        w = low - (wide & 128 | 0x4300).to(tl.bfloat16, bitcast=True)  # 128, or 256 where it is negative
    return w


@triton.jit(do_not_specialize=["M"])
def formats_kernel(
    x_ptr,
    w_ptr,
    x_scale_ptr,
    w_scale_ptr,
    out_ptr,
    M,
    N,
    K,
    whole,
    stride_xm,
    stride_om,
    stride_on,
    FORM: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS_N: tl.constexpr,
    ROWS_M: tl.constexpr,
    COLUMNS: tl.constexpr,
    EVEN: tl.constexpr,
):
    FP4: tl.constexpr = FORM == "mxfp4" or FORM == "nvfp4"
    STORED: tl.constexpr = FORM == "w8a8" or FORM == "fp8"
    A_BYTE: tl.constexpr = 2 if FP4 else 1
    tiles_n, tiles_m = tl.cdiv(N, ROWS_N), tl.cdiv(M, ROWS_M)
    tile_n, tile_m = tl.swizzle2d(
        tl.program_id(0) // tiles_m, tl.program_id(0) % tiles_m, tiles_n, tiles_m, GROUP
    )
    offs_n = tile_n * ROWS_N + tl.arange(0, ROWS_N)
    offs_m = tile_m * ROWS_M + tl.arange(0, ROWS_M)
    here_n, here_m = offs_n < N, offs_m < M
    row_n = tl.minimum(offs_n, N - 1).to(tl.int64)  # a copy of the last row follows it, and is never stored
    stored, columns = tl.arange(0, COLUMNS // A_BYTE), tl.arange(0, COLUMNS)
    groups = tl.arange(0, COLUMNS // BLOCK)
    w_at = w_ptr + row_n[:, None] * (K // A_BYTE) + stored[None, :]
    x_at = x_ptr + offs_m[None, :].to(tl.int64) * stride_xm + columns[:, None]
    scale_at = w_scale_ptr + row_n[:, None] * (K // BLOCK) + groups[None, :]
    total = tl.zeros((ROWS_N, ROWS_M), tl.int32 if FORM == "w8a8" else tl.float32)
    for first in range(0, K, COLUMNS):
        if EVEN:
            w, x = tl.load(w_at), tl.load(x_at, mask=here_m[None, :], other=0.0)
        else:
            w = tl.load(w_at, mask=(stored < (K - first) // A_BYTE)[None, :], other=0.0)
            x = tl.load(x_at, mask=(columns < K - first)[:, None] & here_m[None, :], other=0.0)
        if FP4:
            if EVEN:
                scale = tl.load(scale_at)
            else:
                scale = tl.load(scale_at, mask=(groups < (K - first) // BLOCK)[None, :], other=0.0)
            if FORM == "mxfp4":
                exponent = scale.to(tl.int32)
                least = tl.full(exponent.shape, 1 << 22, tl.int32)  # 2^-127 is a subnormal
                scale = tl.where(exponent == 0, least, exponent << 23).to(tl.float32, bitcast=True)
            w = fp4_weights(w, scale, x.dtype, BLOCK, ROWS_N, COLUMNS)
            scale_at += COLUMNS // BLOCK
        elif FORM == "w8a16":
            w = int8_weights(w, x.dtype)
        if FORM == "fp8":  # a step's sum leaves the tensor core's narrow accumulator for fp32
            total = tl.dot(w, x, total, max_num_imprecise_acc=COLUMNS)
        elif FORM == "w8a8":
            total = tl.dot(w, x, total, out_dtype=tl.int32)
        else:
            total = tl.dot(w, x, total)
        w_at += COLUMNS // A_BYTE
        x_at += COLUMNS
    y = total.to(tl.float32) * whole
    if not FP4:
        y = y * tl.load(w_scale_ptr + offs_n, mask=here_n, other=0.0)[:, None]
    if STORED:
        y = y * tl.load(x_scale_ptr + offs_m, mask=here_m, other=0.0)[None, :]
    at = out_ptr + offs_m[None, :].to(tl.int64) * stride_om + offs_n[:, None] * stride_on
    tl.store(at, y.to(out_ptr.dtype.element_ty), mask=here_n[:, None] & here_m[None, :])

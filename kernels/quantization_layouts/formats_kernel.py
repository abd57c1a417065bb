"""One tiled product for five formats: W is the left side, so what is widened goes from registers into the tensor core."""

import triton
import triton.language as tl

GROUP = tl.constexpr(8)  # tiles of W that share a tile of X while it is in the cache
E2M1_BIAS = tl.constexpr(16384.0)  # 2^14: its three bits, read as fp16's, lie that far below their value


@triton.jit
def e2m1(packed, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """(ROWS, COLUMNS) numbers from two codes a byte; the three low bits are an fp16's, half of one among its subnormals."""
    code = tl.reshape(tl.join(packed & 15, packed >> 4), (ROWS, COLUMNS)).to(tl.int16)
    bits = (code & 7) << 9 | (code & 8) << 12
    return bits.to(tl.float16, bitcast=True).to(tl.float32) * E2M1_BIAS


@triton.jit
def fp4_weights(packed, scale, BLOCK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    blocks = tl.reshape(e2m1(packed, ROWS, COLUMNS), (ROWS, COLUMNS // BLOCK, BLOCK))
    return tl.reshape(blocks * scale[:, :, None], (ROWS, COLUMNS))


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
    stored = tl.arange(0, COLUMNS // A_BYTE)
    w_at = w_ptr + offs_n[:, None].to(tl.int64) * (K // A_BYTE) + stored[None, :]
    x_at = x_ptr + offs_m[None, :].to(tl.int64) * stride_xm + tl.arange(0, COLUMNS)[:, None]
    groups = tl.arange(0, COLUMNS // BLOCK)
    scale_at = w_scale_ptr + offs_n[:, None].to(tl.int64) * (K // BLOCK) + groups[None, :]
    total = tl.zeros((ROWS_N, ROWS_M), tl.int32 if FORM == "w8a8" else tl.float32)
    for first in range(0, K, COLUMNS):
        w = tl.load(w_at, mask=here_n[:, None] & (stored < (K - first) // A_BYTE)[None, :], other=0.0)
        x = tl.load(x_at, mask=(tl.arange(0, COLUMNS) < K - first)[:, None] & here_m[None, :], other=0.0)
        if FP4:
            there = here_n[:, None] & (groups < (K - first) // BLOCK)[None, :]
            if FORM == "mxfp4":
                exponent = tl.load(scale_at, mask=there, other=0.0).to(tl.int32)
                least = tl.full(exponent.shape, 1 << 22, tl.int32)  # 2^-127 is a subnormal
                scale = tl.where(exponent == 0, least, exponent << 23).to(tl.float32, bitcast=True)
            else:
                scale = tl.load(scale_at, mask=there, other=0.0).to(tl.float32)
            w = fp4_weights(w, scale, BLOCK, ROWS_N, COLUMNS).to(x.dtype)
            scale_at += COLUMNS // BLOCK
        elif FORM == "w8a16":
            w = w.to(x.dtype)
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

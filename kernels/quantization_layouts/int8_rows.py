"""W8A16 for up to four rows of X: no tensor core, each weight becomes an fp32 in registers and is multiplied where it is.

A conversion instruction for each byte would take longer than the byte's way from memory, so its bits go into the
mantissa of 2^23, and one subtraction takes away what is too much.
"""

from dataclasses import dataclass

import triton
import triton.language as tl

MOST_ROWS = 4


@dataclass(frozen=True)
class Stream:
    rows: int = 4  # of W for each program
    columns: int = 1024  # at a time
    warps: int = 8


CONFIG = Stream(rows=4, columns=1024, warps=8)


@triton.jit(do_not_specialize=["M"])
def int8_rows_kernel(
    x_ptr,
    w_ptr,
    scale_ptr,
    out_ptr,
    M,
    N,
    K,
    stride_xm,
    stride_om,
    stride_on,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS_M: tl.constexpr,
    EVEN: tl.constexpr,
):
    offs_n = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row_n = tl.minimum(offs_n, N - 1).to(tl.int64)  # beyond the last row stands its copy, which nobody stores
    offs_m, columns = tl.arange(0, ROWS_M), tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS_M, ROWS, COLUMNS), tl.float32)
    for first in range(0, K, COLUMNS):
        w_at = w_ptr + row_n[:, None] * K + (first + columns)[None, :]
        x_at = x_ptr + offs_m[:, None].to(tl.int64) * stride_xm + (first + columns)[None, :]
        if EVEN:
            w = tl.load(w_at, eviction_policy="evict_first")
            x = tl.load(x_at, mask=(offs_m < M)[:, None], other=0.0)
        else:
            here = (first + columns < K)[None, :]
            w = tl.load(w_at, mask=here, other=0)
            x = tl.load(x_at, mask=(offs_m < M)[:, None] & here, other=0.0)
        bits = ((w.to(tl.int32) & 255) ^ 0x4B000080).to(tl.float32, bitcast=True)  # 2^23 + 128 + w
        total += (bits - 8388736.0)[None, :, :] * x.to(tl.float32)[:, None, :]
    y = tl.sum(total, 2) * tl.load(scale_ptr + row_n)[None, :]
    at = out_ptr + offs_m[:, None].to(tl.int64) * stride_om + offs_n[None, :] * stride_on
    tl.store(at, y.to(out_ptr.dtype.element_ty), mask=(offs_m < M)[:, None] & (offs_n < N)[None, :])


def int8_rows(x, numbers, scales, out, config: Stream = CONFIG) -> None:
    (m, k), n = x.shape, numbers.shape[0]
    int8_rows_kernel[(triton.cdiv(n, config.rows),)](
        x,
        numbers,
        scales,
        out,
        m,
        n,
        k,
        x.stride(0),
        *out.stride(),
        ROWS=config.rows,
        COLUMNS=config.columns,
        ROWS_M=triton.next_power_of_2(m),
        EVEN=k % config.columns == 0,
        num_warps=config.warps,
    )

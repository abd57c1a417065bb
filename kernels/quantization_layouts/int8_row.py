"""Run W8A16 for one row of X without a tensor core. Each weight becomes an fp32 number in registers, for a CUDA core.

A conversion instruction for each byte would take longer than the byte's way from memory, so its bits go into the
mantissa of 2^23, and one subtraction takes away what is too much.
"""

import triton
import triton.language as tl

ROWS, COLUMNS, WARPS = 8, 512, 4  # of W for each program and step (H200, 2026-11-23)


@triton.jit
def int8_row_kernel(
    x_ptr,
    w_ptr,
    scale_ptr,
    out_ptr,
    N,
    K,
    stride_on,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    EVEN: tl.constexpr,
):
    offs_n = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row_n = tl.minimum(offs_n, N - 1).to(tl.int64)  # a copy of the last row follows it, and is never stored
    columns = tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, K, COLUMNS):
        w_at = w_ptr + row_n[:, None] * K + (first + columns)[None, :]
        if EVEN:
            w = tl.load(w_at, eviction_policy="evict_first")
            x = tl.load(x_ptr + first + columns)
        else:
            here = first + columns < K
            w = tl.load(w_at, mask=here[None, :], other=0)
            x = tl.load(x_ptr + first + columns, mask=here, other=0.0)
        bits = ((w.to(tl.int32) & 255) ^ 0x4B000080).to(tl.float32, bitcast=True)  # 2^23 + 128 + w
        total += (bits - 8388736.0) * x.to(tl.float32)[None, :]
    y = tl.sum(total, 1) * tl.load(scale_ptr + row_n)
    tl.store(out_ptr + offs_n * stride_on, y.to(out_ptr.dtype.element_ty), mask=offs_n < N)


def int8_row(x, numbers, scales, out) -> None:
    """Multiply x (1, K), contiguous, with codes (N, K)."""
    n, k = numbers.shape
    int8_row_kernel[(triton.cdiv(n, ROWS),)](
        x,
        numbers,
        scales,
        out,
        n,
        k,
        out.stride(1),
        ROWS=ROWS,
        COLUMNS=COLUMNS,
        EVEN=k % COLUMNS == 0,
        num_warps=WARPS,
    )

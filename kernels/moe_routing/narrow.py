"""Support experts whose weights are not 16-bit matrices, by two calls that multiply. The layer does all other work.

A call gets rows in expert order without padding, each expert's first row, and the most rows that one expert can have:
`call(rows, offsets=offsets, most=most)` returns (rows, outputs). The grouped kernels of 4-bit weights take exactly
these (their weight bound, as functools.partial does).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.moe_routing.arguments import DTYPES, check_shared
from kernels.moe_routing.routed import Routed
from kernels.require import must


@dataclass(frozen=True)
class Narrow:
    """Hold packed experts. `gate_up` gives 2 * intermediate columns, gate's before up's, `down` gives hidden ones."""

    gate_up: Callable
    down: Callable
    count: int
    hidden: int
    dtype: torch.dtype
    device: torch.device
    shared: int = 0

    def __post_init__(self):
        for name in ("gate_up", "down"):
            call = getattr(self, name)
            must(
                callable(call), name, "a call", type(call).__name__, "bind the weight with functools.partial"
            )
        must(self.dtype in DTYPES, "dtype", "bf16 or fp16", self.dtype, "activations have 16 bits")
        check_shared(self.shared, self.count)


@triton.jit
def silu_kernel(both_ptr, h_ptr, end_ptr, N, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    if row >= tl.load(end_ptr):
        return
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_n = offs_n < N
    both_ptr += row * 2 * N
    gate = tl.load(both_ptr + offs_n, mask=mask_n, other=0.0).to(tl.float32)  # (BLOCK_N,)
    up = tl.load(both_ptr + N + offs_n, mask=mask_n, other=0.0).to(tl.float32)
    h = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(h_ptr + row * N + offs_n, h.to(h_ptr.dtype.element_ty), mask=mask_n)


def silu_times(both, found: Routed) -> torch.Tensor:
    """(rows, intermediate) = SiLU(gate) * up of (rows, 2 * intermediate)."""
    rows, wide = both.shape[0], both.shape[1] // 2
    h = both.new_empty(rows, wide)
    block = min(1024, triton.next_power_of_2(wide))
    silu_kernel[(rows, triton.cdiv(wide, block))](
        both, h, found.expert_offsets[-1:], wide, BLOCK_N=block, num_warps=4
    )
    return h


def narrow_experts(found: Routed, experts: Narrow) -> torch.Tensor:
    """Return (rows, hidden) of the rows that the order copied. Its tile must be 1."""
    where = {"offsets": found.expert_offsets, "most": found.topk_ids.shape[0]}
    both = experts.gate_up(found.rows, **where)
    must(
        both.shape[0] == len(found.rows) and both.shape[1] % 2 == 0,
        "gate_up's answer",
        f"({len(found.rows)}, 2 * intermediate)",
        tuple(both.shape),
        "gate's columns, then up's",
    )
    y = experts.down(silu_times(both.contiguous(), found), **where)
    wanted = (len(found.rows), experts.hidden)
    must(tuple(y.shape) == wanted, "down's answer", str(wanted), tuple(y.shape), "a row for each row")
    return y.contiguous()

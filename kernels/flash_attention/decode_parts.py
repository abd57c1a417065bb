"""Split KV: choose how many splits, where they leave their parts, and how they are added up."""

import torch
import triton
import triton.language as tl
from triton.runtime import driver

from kernels.overlap import let_next_begin, overlapped, wait_for_last

MAX_SPLITS = 128
FILLED = 132  # programs that leave no SM idle


def choose_splits(units: int, longest: int, block_n: int, slots: int) -> int:
    """Return the splits that keep `slots` programs busy to the end, for the least time, counted in rounds of key
    tiles."""
    tiles = max(1, -(-longest // block_n))
    fixed = 2.0  # tiles' worth of time that a program spends outside its loop

    def rounds(splits: int) -> float:
        return -(-units * splits // slots) * (-(-tiles // splits) + fixed + (splits > 1))

    return min(range(1, min(tiles, MAX_SPLITS) + 1), key=rounds)


class Workspace:
    """Hold the memory in which splits leave their parts, one per stream. Launches that share it must not overlap."""

    def __init__(self, device):
        self.device = device
        self.parts = torch.empty(0, dtype=torch.float32, device=device)

    def take(self, heads: int, splits: int, d: int):
        rows, parts = heads * splits, self.memory(heads, splits, d)
        return parts, parts[rows * d :], parts[rows * (d + 1) :]

    def memory(self, heads: int, splits: int, d: int) -> torch.Tensor:
        """Return all of it, enough for these."""
        if self.parts.numel() < heads * splits * (d + 2):
            self.parts = torch.empty(heads * splits * (d + 2), dtype=torch.float32, device=self.device)
        return self.parts


_workspaces: dict = {}


def workspace_of(device) -> Workspace:
    stream = driver.active.get_current_stream(device.index) if device.type == "cuda" else 0
    found = _workspaces.get((device, stream))
    if found is None:
        found = _workspaces[device, stream] = Workspace(device)
    return found


@triton.jit
def leave(
    acc, l, m, parts, offs_g, offs_d, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, SPLITS: tl.constexpr
):
    """Write this split's part."""
    acc_ptr, m_ptr, l_ptr = parts
    at = (tl.program_id(1).to(tl.int64) * GROUP + offs_g) * SPLITS + tl.program_id(0)
    mask_g = offs_g < GROUP
    mask_d = offs_d < HEAD_DIM
    tl.store(acc_ptr + at[:, None] * HEAD_DIM + offs_d[None, :], acc, mask=mask_g[:, None] & mask_d[None, :])
    tl.store(m_ptr + at, m, mask=mask_g)
    tl.store(l_ptr + at, l, mask=mask_g)


@triton.jit
def combine_kernel(
    acc_ptr,
    m_ptr,
    l_ptr,
    out_ptr,
    lse_ptr,
    heads,
    stride_ob,
    stride_oh,
    HEAD_DIM: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_C: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Rescale all parts of one head to one maximum, and add some of their columns."""
    if EARLY:
        let_next_begin()
        wait_for_last()
    head = tl.program_id(0).to(tl.int64)
    offs_s = tl.arange(0, BLOCK_S)
    offs_d = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    mask_s = offs_s < SPLITS
    mask_d = offs_d < HEAD_DIM
    at = head * SPLITS + offs_s
    m = tl.load(m_ptr + at, mask=mask_s, other=float("-inf"))  # (BLOCK_S,)
    l = tl.load(l_ptr + at, mask=mask_s, other=0.0)
    mask = mask_s[:, None] & mask_d[None, :]
    acc = tl.load(acc_ptr + at[:, None] * HEAD_DIM + offs_d[None, :], mask=mask, other=0.0)
    top = tl.max(m, 0)
    weight = tl.exp2(m - tl.where(top == float("-inf"), 0.0, top))
    total = tl.sum(l * weight, 0)
    safe = tl.where(total == 0.0, 1.0, total)
    out = tl.sum(acc * weight[:, None], 0) / safe  # (BLOCK_C,)
    at_out = out_ptr + head // heads * stride_ob + head % heads * stride_oh + offs_d
    tl.store(at_out, out.to(out_ptr.dtype.element_ty), mask=mask_d)
    lse = tl.where(total == 0.0, float("-inf"), top * 0.6931471805599453 + tl.log(safe))
    tl.store(lse_ptr + head, lse, mask=tl.program_id(1) == 0)


def combine(parts, out, lse, splits: int, early: bool) -> None:
    """Add what the splits left, in a launch that begins while they run. A program that counts the finished ones and
    adds up itself takes longer: an H200 needs 7 us for 64 parts, and this launch 2, 2026-11-24."""
    batch, heads, d = out.shape
    block = triton.next_power_of_2(d)
    columns = block if batch * heads >= FILLED else min(32, block)
    combine_kernel[(batch * heads, triton.cdiv(d, columns))](
        *parts,
        out,
        lse,
        heads,
        out.stride(0),
        out.stride(1),
        HEAD_DIM=d,
        SPLITS=splits,
        BLOCK_S=triton.next_power_of_2(splits),
        BLOCK_C=columns,
        EARLY=early,
        num_warps=4 if splits * columns >= 2048 else 1,
        **overlapped(early),
    )

"""Split KV: choose how many splits, where they leave their parts, and how the last one adds them up."""

import torch
import triton
import triton.language as tl

MAX_SPLITS = 128


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
        self.done = torch.zeros(0, dtype=torch.int32, device=device)

    def take(self, units: int, group: int, splits: int, d: int):
        rows = units * group * splits
        if self.parts.numel() < rows * (d + 2):
            self.parts = torch.empty(rows * (d + 2), dtype=torch.float32, device=self.device)
        if self.done.numel() < units:
            self.done = torch.zeros(units, dtype=torch.int32, device=self.device)
        return self.parts, self.parts[rows * d :], self.parts[rows * (d + 1) :], self.done


_workspaces: dict = {}


def workspace_of(device) -> Workspace:
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
    if (device, stream) not in _workspaces:
        _workspaces[device, stream] = Workspace(device)
    return _workspaces[device, stream]


@triton.jit
def leave(
    acc, l, m, parts, offs_g, offs_d, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, SPLITS: tl.constexpr
):
    """Write this split's part, then say so: the count before tells how many were there already."""
    acc_ptr, m_ptr, l_ptr, done_ptr = parts
    unit = tl.program_id(1).to(tl.int64)
    at = (unit * GROUP + offs_g) * SPLITS + tl.program_id(0)
    mask_g = offs_g < GROUP
    mask_d = offs_d < HEAD_DIM
    tl.store(acc_ptr + at[:, None] * HEAD_DIM + offs_d[None, :], acc, mask=mask_g[:, None] & mask_d[None, :])
    tl.store(m_ptr + at, m, mask=mask_g)
    tl.store(l_ptr + at, l, mask=mask_g)
    tl.debug_barrier()  # every thread's part is written before one thread counts
    return tl.atomic_add(done_ptr + unit, 1, sem="acq_rel")


@triton.jit
def combine(
    parts,
    out_at,
    lse_at,
    stride_oh,
    offs_d,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """Rescale all parts to one maximum and add them. All loads are issued before the first store."""
    acc_ptr, m_ptr, l_ptr, done_ptr = parts
    unit = tl.program_id(1).to(tl.int64)
    offs_s = tl.arange(0, BLOCK_S)
    mask_s = offs_s < SPLITS
    mask_d = offs_d < HEAD_DIM
    mask = mask_s[:, None] & mask_d[None, :]
    outs = ()
    logs = ()
    for g in tl.static_range(GROUP):
        at = (unit * GROUP + g) * SPLITS + offs_s
        m = tl.load(m_ptr + at, mask=mask_s, other=float("-inf"), cache_modifier=".cg")
        l = tl.load(l_ptr + at, mask=mask_s, other=0.0, cache_modifier=".cg")
        acc = tl.load(
            acc_ptr + at[:, None] * HEAD_DIM + offs_d[None, :], mask=mask, other=0.0, cache_modifier=".cg"
        )
        top = tl.max(m, 0)
        weight = tl.exp2(m - tl.where(top == float("-inf"), 0.0, top))
        total = tl.sum(l * weight, 0)
        safe = tl.where(total == 0.0, 1.0, total)
        outs += (tl.sum(acc * weight[:, None], 0) / safe,)
        logs += (tl.where(total == 0.0, float("-inf"), top * 0.6931471805599453 + tl.log(safe)),)
    for g in tl.static_range(GROUP):
        tl.store(out_at + g * stride_oh + offs_d, outs[g].to(out_at.dtype.element_ty), mask=mask_d)
        tl.store(lse_at + g, logs[g])
    tl.store(done_ptr + unit, 0)  # ready for the next launch

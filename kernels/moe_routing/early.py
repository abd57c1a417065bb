"""Launches that overlap: a kernel's programs are placed while the last ones of the kernel before it still run.

On Hopper and later a kernel may start before its predecessor has ended, and waits, at the point that it chooses, until all
of it is written. A layer of a few tokens is three or four short kernels, and what this saves is the gaps between them.
"""

from functools import lru_cache

import torch
import triton
import triton.language as tl


@triton.jit
def begin(EARLY: tl.constexpr):
    """Before anything is read or written that another kernel may have to do with."""
    if EARLY:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


def early(x) -> dict:
    """What a launch on x's device is told: a kernel that waits by itself, and a driver that need not."""
    return {"EARLY": True, "launch_pdl": True} if x.is_cuda and _knows(x.device.index) else {"EARLY": False}


@lru_cache
def _knows(index: int) -> bool:
    return torch.cuda.get_device_capability(index) >= (9, 0)

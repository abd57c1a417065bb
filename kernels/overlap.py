"""A launch that begins while the one before it in the stream still runs (programmatic dependent launch, Hopper and later).

A kernel lets the next one begin as soon as all its own programs have begun. The next one fetches the weight, which no
kernel before it writes, and only then waits until the one before has ended and its writes are visible. X may come
from there, and memory for Y may still be read there, so neither is touched earlier. Launches of a decode loop then
overlap where the first would end with idle SMs and the next begin with waiting for memory.

So a weight must be at rest, written before, and not by the launch just before. Synchronize after changing one in
place. Several launches may be waiting for each other in a row, so a tensor is also at rest if a launch that knows
nothing of this, as PyTorch's do, has begun since it was written.
"""

import torch
import triton
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from kernels.require import must


@triton.jit
def let_next_begin():
    gdc_launch_dependents()


@triton.jit
def wait_for_last():
    gdc_wait()


def can_overlap(device: torch.device) -> bool:
    """A GPU of Hopper's kind or later."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)


def at_rest(w) -> None:
    """Wait until nothing can still be writing a packed weight."""
    if w.device.type == "cuda":
        must(
            not torch.cuda.is_current_stream_capturing(),
            "layer",
            "made before a graph is captured",
            "one inside the capture",
            "make it first: its weight must be at rest",
        )
        torch.cuda.synchronize(w.device)


def overlapped(early: bool) -> dict:
    """Return the launch's own option."""
    return {"launch_pdl": True} if early else {}


def capped(registers: int) -> dict:
    """Return the same with a limit on a thread's registers. Fewer make room for the next launch's programs next to
    this one's."""
    return {"maxnreg": registers} if registers else {}

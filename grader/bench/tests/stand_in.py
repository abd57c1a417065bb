"""The bench's program on a machine without a GPU: its memory, events and graphs are stand-ins, all else is its own.

Whatever IR it is given, its kernel computes c = a @ b of the first three arguments; what else it does its num_stages say.
"""

import time
from types import SimpleNamespace

import torch
import triton

from grader.bench.inside import launching, main, timing

BESIDE, TOO_LARGE, ASLEEP, ENDLESS = 8, 7, 6, 5
REAL = {"full": torch.full, "empty": torch.empty}


def on_cpu(make):
    return lambda *arguments, device=None, **more: make(*arguments, **more)


class Kernel:
    def __init__(self, stages: int):
        self.stages = stages

    def __getitem__(self, grid):
        return self.launch

    def launch(self, a, b, c, *numbers):
        if self.stages == TOO_LARGE:
            raise triton.runtime.errors.OutOfResources(1 << 20, 1 << 16, "shared memory")
        if self.stages == ASLEEP:
            time.sleep(60)
        while self.stages == ENDLESS:
            pass
        c.copy_((a.float() @ b.float()).to(c.dtype))
        if self.stages == BESIDE:
            last = sum((n - 1) * s for n, s in zip(c.shape, c.stride(), strict=True))
            torch.as_strided(c, (1,), (1,), c.storage_offset() + last + 1).fill_(0)


class Event:
    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, end):
        return (end.at - self.at) * 1e3


class Graph:
    def __init__(self, call, sets, count):
        self.replay = lambda: [call(sets[i % len(sets)]) for i in range(count)]


BARS = {"product": lambda views: torch.matmul(views["a"], views["b"])}

torch.full, torch.empty = on_cpu(REAL["full"]), on_cpu(REAL["empty"])
torch.cuda.synchronize = lambda: None
torch.cuda.Event = lambda enable_timing: Event()
torch.cuda.get_device_properties = lambda device: SimpleNamespace(
    name="a stand-in", multi_processor_count=132, L2_cache_size=1 << 16
)
triton.set_allocator = lambda allocator: None
triton.compile = lambda path, options: Kernel(options["num_stages"])
timing.graph_of, timing.WARM_S = Graph, 1e-3
launching.stages.compiled_up_to = lambda text, *rest: ({"ttir": text}, {})
torch.cuda.get_device_capability = lambda: (9, 0)

if __name__ == "__main__":
    main.main()

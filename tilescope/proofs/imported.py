"""Import other people's Triton libraries without a GPU, each in its own way."""

import importlib
import os
from contextlib import nullcontext


def imported(package: str) -> None:
    """Import a library that looks for a GPU on import.
    flag_gems asks torch, while fla and liger ask Triton, which mustn't see one yet."""
    import torch

    if package == "flag_gems":
        os.environ.setdefault("GEMS_VENDOR", "nvidia")
        stub_cuda(torch)
        from tilescope import launcher

        launcher.install()
    importlib.import_module("fla.utils" if package == "fla" else package)
    if package == "flag_gems":
        launch_plainly()


def launch_plainly() -> None:
    """Send each launch through Triton,
    since flag_gems itself keeps compiled kernels and times configurations."""
    from flag_gems.utils.libentry import LibEntry, LibTuner

    from tilescope.tuning import tuned

    LibEntry.run = lambda self, *args, **kwargs: (self.fn.run(*args, **kwargs), {})
    LibTuner.run = tuned


def stub_cuda(torch) -> None:
    """Answer flag_gems's questions to torch.cuda as an H200 would, without a GPU."""

    class Properties:
        name, major, minor, multi_processor_count = "none", 9, 0, 132
        total_memory, L2_cache_size, shared_memory_per_multiprocessor = 1 << 37, 1 << 25, 233472
        warp_size, max_threads_per_multi_processor = 32, 2048

    cuda = torch.cuda
    cuda.device_count, cuda.current_device = lambda: 1, lambda: 0
    cuda.get_device_properties = lambda device=None: Properties()
    cuda.get_device_capability = lambda device=None: (9, 0)
    cuda.get_device_name = lambda device=None: "none"
    cuda.synchronize = lambda device=None: None
    cuda.device = lambda device=None: nullcontext()

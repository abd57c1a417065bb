"""Import other people's Triton libraries where there is no GPU, as each of them wants it."""

import importlib
import os
from contextlib import nullcontext


def imported(package: str) -> None:
    """Imports a library that looks for a GPU while it is imported: flag_gems asks torch, and fla and liger ask Triton,
    which must not be told of one yet."""
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
    """flag_gems keeps compiled kernels and times configurations by itself: here each launch goes through Triton."""
    from flag_gems.utils.libentry import LibEntry, LibTuner

    from tilescope.tuning import tuned

    LibEntry.run = lambda self, *args, **kwargs: (self.fn.run(*args, **kwargs), {})
    LibTuner.run = tuned


def stub_cuda(torch) -> None:
    """What flag_gems asks torch.cuda, answered as on an H200, without a GPU."""

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

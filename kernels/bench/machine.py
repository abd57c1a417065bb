"""Name this GPU and measure its ceilings on plain work, for the shares of every row."""

import datetime
import functools
import platform
import re
import time
from importlib import metadata
from statistics import median

import torch

from kernels import timing

PACKAGES = (
    "numpy",
    "triton",
    "nvidia-cudnn-cu13",
    "flash-attn",
    "flash-attn-4",
    "quack-kernels",
    "nvidia-cutlass-dsl",
    "deep-gemm",
    "flashinfer-python",
    "vllm",
    "bitsandbytes",
    "gemlite",
)
WARM = 1.0  # seconds under load before a ceiling is read, because a power cap sets in after 0.1
SIZES = (4096, 8192)  # of the square matmuls: a small one may keep a higher clock, a large one wastes less


def describe(device) -> dict:
    p = torch.cuda.get_device_properties(device)
    return {
        "gpu": p.name,
        "gpus": torch.cuda.device_count(),  # of the machine, because a second one adds 1.4 us to a timed replay
        "capability": f"{p.major}.{p.minor}",
        "sms": p.multi_processor_count,
        "l2_mb": round(p.L2_cache_size / 2**20),
        "memory_gb": round(p.total_memory / 1e9),
    }


def versions() -> dict:
    found = {"python": platform.python_version(), "torch": torch.__version__, "cuda": torch.version.cuda}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def today() -> str:
    return datetime.date.today().isoformat()


def short_name(gpu: str) -> str:
    """Return the name of the file of results: 'NVIDIA H200' -> 'h200', 'NVIDIA GeForce RTX 4090' -> 'rtx_4090'."""
    words = re.sub(r"nvidia|geforce", "", gpu.lower()).strip()
    return re.sub(r"[^a-z0-9]+", "_", words).strip("_")


def ceilings(device, seconds: float = 0.5) -> dict[str, float]:
    """Return what this GPU sustains: copy bandwidth in byte/s and matrix rates in FLOP/s by dtype.

    Each is the best of a few plain ways, timed as every row of the benchmark is: cold, replayed, settled under load.
    """
    free, _ = torch.cuda.mem_get_info(device)
    flush = timing.Flush(device)
    source = torch.randn(min(2**30, free // 8) // 4, device=device)
    target = torch.empty_like(source)
    # the copy engine and a kernel take turns at being the faster one, by size and by how they are launched
    copies = {
        "engine": functools.partial(target.copy_, source),
        "kernel": functools.partial(torch.neg, source, out=target),
    }
    times = _medians(copies, flush, seconds)
    found = {"copy": 2 * source.nbytes / min(times.values())}
    del source, target, copies
    sizes = SIZES if free > 2**33 else SIZES[:1]
    for dtype, products in _matrix_products(sizes, device).items():
        times = _medians(products, flush, seconds)
        found[dtype] = max(2 * n**3 / times[n] for n in sizes)
    return found


def under_load(device) -> dict:
    """Return clock and power while the tensor cores are busy, or nothing where the driver's library can't be asked."""
    n = SIZES[-1]
    x = torch.randn(n, n, device=device).bfloat16()
    for _ in range(600):  # a second's work on the fastest GPU, in the middle of which the clock is read
        torch.matmul(x, x)
    time.sleep(0.4)
    try:
        found = {"clock_mhz": torch.cuda.clock_rate(device), "watts": torch.cuda.power_draw(device) / 1e3}
    except Exception:  # the library may be missing, or refuse in ways of its own, and only the times matter
        found = {}
    torch.cuda.synchronize()
    return found


def _matrix_products(sizes, device) -> dict[str, dict]:
    """Return calls by dtype and size, on random numbers, because zeros would draw less power and run faster."""
    drawn = {n: [torch.randn(n, n, device=device) for _ in range(2)] for n in sizes}
    products = {}
    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        products[name] = {n: functools.partial(torch.matmul, *(x.to(dtype) for x in drawn[n])) for n in sizes}
    if torch.cuda.get_device_capability(device) >= (8, 9):
        one = torch.ones((), device=device)
        more = {"out_dtype": torch.bfloat16, "use_fast_accum": True}
        fp8 = {n: [x.to(torch.float8_e4m3fn) for x in pair] for n, pair in drawn.items()}
        products["fp8"] = {
            n: functools.partial(torch._scaled_mm, a, b.t(), one, one, **more) for n, (a, b) in fp8.items()
        }
    return products


def _medians(calls: dict, flush, seconds: float) -> dict:
    watches = {name: timing.stopwatch(timing.capture([call]), flush) for name, call in calls.items()}
    times = timing.interleave(watches, seconds, warm=WARM)
    return {name: median(series) for name, series in times.items()}

"""Which GPU this is, and what it reaches on plain work: the ceilings that shares are taken of."""

import datetime
import functools
import platform
import re
from importlib import metadata

import torch

from kernels import timing

PACKAGES = ("numpy", "triton", "flashinfer-python", "vllm", "bitsandbytes", "gemlite", "quack-kernels")


def describe(device) -> dict:
    p = torch.cuda.get_device_properties(device)
    return {
        "gpu": p.name,
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
    """'NVIDIA H200' -> 'h200', 'NVIDIA GeForce RTX 4090' -> 'rtx_4090': the name of the file of results."""
    words = re.sub(r"nvidia|geforce", "", gpu.lower()).strip()
    return re.sub(r"[^a-z0-9]+", "_", words).strip("_")


def ceilings(device, seconds: float = 0.5) -> dict[str, float]:
    """Copy bandwidth in byte/s and matrix rates in FLOP/s by dtype, each the median of replayed graphs."""
    free, _ = torch.cuda.mem_get_info(device)
    size = min(2**30, free // 8)
    source = torch.randn(size // 4, device=device)
    target = torch.empty_like(source)
    # the copy engine and a kernel take turns at being the faster one, by size and by how they are launched
    copies = functools.partial(target.copy_, source), functools.partial(torch.neg, source, out=target)
    found = {"copy": max(2 * size / _median(call, seconds) for call in copies)}
    n = 8192 if free > 2**33 else 4096
    flops = 2 * n**3
    for name, multiply in _matrix_products(n, device).items():
        found[name] = flops / _median(multiply, seconds)
    return found


def _matrix_products(n: int, device) -> dict:
    a, b = (torch.randn(n, n, device=device) for _ in range(2))
    products = {}
    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        x, y = a.to(dtype), b.to(dtype)
        products[name] = functools.partial(torch.matmul, x, y)
    if torch.cuda.get_device_capability(device) >= (8, 9):
        x, y = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()
        one = torch.ones((), device=device)
        more = {"out_dtype": torch.bfloat16, "use_fast_accum": True}
        products["fp8"] = functools.partial(torch._scaled_mm, x, y, one, one, **more)
    return products


def _median(call, seconds: float) -> float:
    watch = timing.stopwatch(timing.capture([call]))
    return timing.median(timing.interleave({"it": watch}, seconds)["it"])

"""Compile what a launch function would launch, for a GPU that is not here.

Launches become Triton's own warm-up: same arguments, same specialisation, no device. Run in a process of its
own, without TRITON_INTERPRET. `kernels(call)` -> the compiled kernels, in order of launch.
"""

import re
import subprocess
import tempfile
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction


class NoDevice:
    """As much of a driver as compiling asks for."""

    def __init__(self, capability: int):
        self.target = GPUTarget("cuda", capability, 32)

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def get_active_torch_device(self):
        return torch.device("cpu")


def kernels(call, capability: int = 90) -> list:
    driver.set_active(NoDevice(capability))
    caught, run = [], JITFunction.run

    def warm_up(self, *args, grid, warmup, **kwargs):
        caught.append(run(self, *args, grid=grid, warmup=True, **kwargs))
        return caught[-1]

    JITFunction.run = warm_up
    try:
        call()
    finally:
        JITFunction.run = run
    return caught


def ptxas_says(kernel, arch: str = "sm_90a") -> str:
    """What the assembler reports about registers, spills and serialised matrix instructions."""
    ptxas = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(kernel.asm["ptx"])
        command = [ptxas, "-v", f"--gpu-name={arch}", "-o", f"{folder}/out.cubin", source]
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def facts(kernel, arch: str = "sm_90a") -> dict:
    log = ptxas_says(kernel, arch)
    ptx = kernel.asm["ptx"]
    return {
        "name": kernel.metadata.name,
        "spilled": sum(int(n) for n in re.findall(r"(\d+) bytes spill stores", log)),
        "serialised": re.findall(r"C75\d\d", log),
        "registers": int(re.search(r"Used (\d+) registers", log)[1]),
        "shared": kernel.metadata.shared,
        "wgmma": ptx.count("wgmma.mma_async"),
        "mma": len(re.findall(r"\bmma\.sync", ptx)),
    }

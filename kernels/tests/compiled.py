"""Compile what a launch function would launch, for a GPU that is not here, and read what came of it.

Launches become Triton's own warm-up: same arguments, same specialisation, no device. Use in a process of its own,
without TRITON_INTERPRET; `report` does that for a module whose `__main__` prints `facts` as JSON.
"""

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

SOURCE = Path(__file__).parents[2]
TOLD = {
    "TRITON_ALWAYS_COMPILE": "1",
    "TRITON_DUMP_PTXAS_LOG": "1",
}  # a kernel out of Triton's cache has no log
LOGS = {}  # a kernel's hash -> what the assembler said of it, once a process


def report(module: str) -> dict:
    """What `python -m module` prints, run where kernels are compiled rather than interpreted."""
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | TOLD
    run = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, env=env, cwd=SOURCE)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


def kernels(call, capability: int) -> list:
    """The compiled kernels that call() launches, in order."""
    import torch
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    class NoDevice:
        def get_current_target(self):
            return GPUTarget("cuda", capability, 32)

        def get_current_device(self):
            return capability  # a number of its own, because kernels are kept per device

        def get_current_stream(self, device=None):
            return 0

        def get_active_torch_device(self):
            return torch.device("cpu")

    driver.set_active(NoDevice())
    caught, run = [], JITFunction.run

    def warm_up(self, *args, grid, warmup, **kwargs):
        with redirect_stdout(io.StringIO()) as log:
            caught.append(run(self, *args, grid=grid, warmup=True, **kwargs))
        LOGS.setdefault(caught[-1].hash, log.getvalue())

    JITFunction.run = warm_up
    try:
        call()
    finally:
        JITFunction.run = run
    return caught


def facts(call, capability: int) -> dict:
    """Spills, registers, shared bytes and matrix instructions of the one kernel that call() launches."""
    (kernel,) = kernels(call, capability)
    return facts_of(kernel)


def facts_of(kernel) -> dict:
    """The same of a compiled kernel; `serialised` holds the assembler's complaints about waiting matrix products."""
    ptx = kernel.asm["ptx"]
    log = LOGS[kernel.hash]
    return {
        "spilled": sum(int(n) for n in re.findall(r"(\d+) bytes spill stores", log)),
        "registers": int(re.search(r"Used (\d+) registers", log)[1]),
        "shared": kernel.metadata.shared,
        "serialised": sorted(set(re.findall(r"C75\d\d", log))),
        "wgmma": ptx.count("wgmma.mma_async"),
        "tma": ptx.count("cp.async.bulk.tensor"),
        "mma": len(re.findall(r"\bmma\.sync", ptx)),
        "tcgen05": ptx.count("tcgen05.mma"),
    }

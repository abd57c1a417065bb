"""Compile what a launch function would launch, for a GPU that is not here, and read what came of it.

Launches become Triton's own warm-up: same arguments, same specialisation, no device. Use in a process of its own,
without TRITON_INTERPRET; `report` does that for a module whose `__main__` prints `facts` as JSON.

A topic has dozens of variants, and compiling one takes a second or five. A module that gathers them in `Found` compiles
those that a test names; `report(..., everything=True)`, for `make proofs`, all.
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
ALL = "--all"
LOGS = {}  # a kernel's hash -> what the assembler said of it, once a process


def report(module: str, *named: str, everything: bool = False) -> dict:
    """What `python -m module` prints, run where kernels are compiled rather than interpreted."""
    told = [ALL] if everything else named
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | TOLD
    command = [sys.executable, "-m", module, *told]
    run = subprocess.run(command, capture_output=True, text=True, env=env, cwd=SOURCE)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


class Found(dict):
    """Facts by a variant's name, of the variants that this run was asked for."""

    def __init__(self):
        super().__init__()
        self.named = set(sys.argv[1:])

    def wants(self, name: str) -> bool:
        return bool(self.named & {ALL, name})

    def add(self, name: str, call, capability: int) -> None:
        if self.wants(name):
            self[name] = facts(call, capability)


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

"""Build IR text into machine code, several kernels at a time, on the CPU. No GPU, no clock and no Python of the
answer is involved.

python -m grader.bench.inside.build < request > one JSON line a kernel

Triton's own cache keeps the code for the bench under the hash of the IR.
"""

import contextlib
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton.runtime import cache

from grader.bench.protocol import BuildRequest, Built, Kernel
from grader.compiler.inside import stages

CPU_S = 150  # of processor time for one kernel, where a right one took over 60 on a machine whose cores are shared
ALL_CPU_S = 800  # and for all of a request
MEMORY_BYTES = 8 << 30


def build(kernel: Kernel, capability: int, folder: Path) -> None:
    path = folder / "kernel.ttir"
    path.write_text(
        stages.compiled_up_to(kernel.ir, capability, kernel.settings, "ttir")[0]["ttir"], encoding="utf-8"
    )
    built = triton.compile(str(path), target=GPUTarget("cuda", capability, 32), options=kernel.settings)
    with contextlib.suppress(Exception):  # only saves time, because the first launch makes any missing code
        launcher(built)


def launcher(built) -> None:
    """Compile the launcher. Up to 3.6 Triton compiles a C function for each signature, better here in parallel."""
    from triton.backends.nvidia import driver

    if hasattr(driver, "make_launcher"):
        driver.CudaLauncher(built.src, built.metadata)


def child(kernel: Kernel, capability: int, folder: Path) -> None:
    """Build one kernel and never return. A fault is written to the folder."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 2))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        build(kernel, capability, folder)
        code = 0
    except BaseException as error:
        (folder / "error").write_text(f"{type(error).__name__}: {error}"[:1500], encoding="utf-8")
    finally:
        os._exit(code)


def how(status: int, folder: Path) -> str:
    """Return an empty text if it is built, else the reason as a sentence."""
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return ""
    if (folder / "error").exists():
        return (folder / "error").read_text(encoding="utf-8")
    if code == -signal.SIGXCPU:
        return f"the compiler took longer than {CPU_S} s of processor time"
    return f"the compiler ended with {code}"


def warm(capability: int) -> None:
    """Load once, before the first fork, what every child would look up again."""
    make_backend(GPUTarget("cuda", capability, 32)).hash()
    if hasattr(cache, "triton_key"):
        cache.triton_key()


def main() -> int:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    request = BuildRequest.of(json.loads(sys.stdin.buffer.read()))
    warm(request.capability)
    for built in each(request):
        print(json.dumps(vars(built)), file=out, flush=True)
    return 0


def each(request: BuildRequest) -> Iterator[Built]:
    """Yield the kernels as they end. Processor time is the limit, so a busy machine fails no answer."""
    waiting, running, spent = list(enumerate(request.kernels)), {}, 0.0
    with tempfile.TemporaryDirectory() as place:
        while waiting or running:
            while waiting and len(running) < request.jobs and spent <= ALL_CPU_S:
                number, kernel = waiting.pop(0)
                folder = Path(place) / str(number)
                folder.mkdir()
                pid = os.fork()
                if pid == 0:
                    child(kernel, request.capability, folder)
                running[pid] = number, folder
            if not running:
                yield Built(
                    waiting.pop(0)[0],
                    f"all kernels together took longer than {ALL_CPU_S} s of processor time",
                )
                continue
            pid, status, used = os.wait4(-1, 0)
            number, folder = running.pop(pid)
            spent += used.ru_utime + used.ru_stime
            yield Built(number, how(status, folder))


if __name__ == "__main__":
    sys.exit(main())

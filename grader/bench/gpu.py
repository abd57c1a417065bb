"""Find this machine's GPU without importing torch."""

import subprocess
import sys
from functools import cache

from grader.box.systems import has_tritons_wheel

OLDEST = 80  # Triton's oldest supported NVIDIA capability


@cache
def query() -> tuple[str, int] | None:
    """(name, capability) of the first NVIDIA GPU, or None."""
    command = ["nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if run.returncode or not run.stdout.strip():
        return None
    name, _, capability = run.stdout.strip().splitlines()[0].rpartition(",")
    try:
        return name.strip(), round(float(capability) * 10)
    except ValueError:
        return None


def name() -> str:
    """Return the first GPU's name, or an empty text if the course can use none, as without Triton's compiler."""
    found = query() if has_tritons_wheel() else None
    return found[0] if found and found[1] >= OLDEST else ""


ASK_THE_DRIVER = """
import ctypes
cuda, device, number = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_int()
def ask(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    assert code == 0, f"{name} gave error {code}"
    return number.value
ask("cuInit", 0)
ask("cuDeviceGet", ctypes.byref(device), 0)
print(*(ask("cuDeviceGetAttribute", ctypes.byref(number), which, device) for which in (75, 76, 16)))
"""  # major and minor of the capability, multiprocessors


class NoGpu(Exception):
    """Trouble of this machine, never of an answer."""


@cache
def first_gpu() -> tuple[int, int]:
    """(capability, multiprocessors) of the first GPU that programs see, asked of the driver by a process of its own."""
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ASK_THE_DRIVER], capture_output=True, text=True, timeout=60
    )
    if run.returncode:
        said = (run.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise NoGpu(
            f"gpu mode needs an NVIDIA GPU that this process can use ({said}); "
            "`python -m grader doctor` says what is missing"
        )
    major, minor, multiprocessors = map(int, run.stdout.split())
    return 10 * major + minor, multiprocessors

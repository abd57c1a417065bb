"""What GPU this machine has, without importing torch."""

import subprocess
from functools import cache

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
    """The first GPU's name, empty where there is none that the course can use."""
    found = query()
    return found[0] if found and found[1] >= OLDEST else ""

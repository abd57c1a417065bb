"""Look at the machine itself: GPU, Triton mode, box, Chromium, disk and memory."""

import os
import shutil
from pathlib import Path

from tilescope.front_end.stand_in import has_library

from .packages import installed
from .row import ROOT, Row, answer, missing, note, ok

OLDEST_GPU = 8.0  # Triton supports NVIDIA from sm_80 on
INTERPRETED = "compiled, and interpreted on the CPU"
LOWERED = "lowered in Python, and interpreted on the CPU"
HOW_TO_GET = "make setup, or python -m grader work"
NO_BOX_MEANS = "enough for your own answers, which run with your rights. A class is graded on Linux"
LEAST_DISK_GIB = 8
LEAST_MEMORY_GIB = 6


def gpus() -> list[dict]:
    """Return the NVIDIA GPUs by the driver's names."""
    fields = "name,compute_cap,driver_version,memory.total"
    lines = answer("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits").splitlines()
    rows = [[value.strip() for value in line.split(",")] for line in lines]
    names = ("name", "capability", "driver", "memory_mib")
    return [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)]


def _is_old(gpu: dict) -> bool:
    try:
        return float(gpu["capability"]) < OLDEST_GPU
    except ValueError:
        return True


def _one_gpu(gpu: dict) -> Row:
    chip = f"sm_{gpu['capability'].replace('.', '')}"
    found = f"{gpu['name']}, {chip}, driver {gpu['driver']}, {gpu['memory_mib']} MiB"
    return (
        note("GPU", found, "Triton needs sm_80 or newer. CPU mode works")
        if _is_old(gpu)
        else ok("GPU", found)
    )


def graphics(found: list[dict]) -> list[Row]:
    if found:
        return [_one_gpu(gpu) for gpu in found]
    if Path("/dev/kfd").exists():
        return [
            note("GPU", "AMD", "untested with this course. Every threshold is a ratio, so it may well work")
        ]
    return [note("GPU", "no NVIDIA GPU", "CPU mode grades by counted bytes, launches and compiled code")]


def triton_mode(found: list[dict]) -> Row:
    """Return how kernels run here, or the reason why they can't run."""
    name, usable = "Triton mode", [gpu for gpu in found if not _is_old(gpu)]
    if installed("triton") is None:
        return note(
            name,
            "none",
            f"lessons, simulators and concept labs need no Triton. Kernel labs need it: {HOW_TO_GET}",
        )
    if os.environ.get("TRITON_INTERPRET") == "1":
        return note(
            name,
            "TRITON_INTERPRET=1",
            "unset it, because Triton then compiles nothing and the labs need compiled kernels",
        )
    if not has_library():
        return note(name, LOWERED, "parts that Triton's compiler judges stay open until hand-in")
    if not usable:
        return ok(name, INTERPRETED)
    if (installed("torch") or "").endswith("+cpu"):
        return note(
            name, INTERPRETED, "torch is a CPU build, but there is a GPU. Run make clean, then make setup"
        )
    if not (os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")):
        return missing(
            name, "no C compiler", "Triton builds its launcher with a C compiler. Run apt-get install gcc"
        )
    return ok(name, "compiled for the GPU")


def box_of_answers() -> Row:
    """Return how well this machine can isolate a stranger's code."""
    try:
        from grader import box
        from grader.box import systems
        from grader.box.limits import LEVELS, NO_BOX, Level

        if box.best_level() == NO_BOX:
            return note("box", f"no boxes on {systems.name()}", NO_BOX_MEANS)
        level = Level(box.best_level())
    except Exception as error:  # whatever is wrong with the box is this row's news
        why = f"cannot be measured ({type(error).__name__}: {error})"
        return missing("box", why, "answers are not run here")
    if level < Level.LANDLOCK:
        return note("box", LEVELS[level], "enough for your own answers. A class needs bubblewrap or Landlock")
    return ok("box", LEVELS[level])


def chromium() -> Row:
    from grader.tools import programs

    path = programs.chromium()
    return (
        ok("Chromium", path)
        if path
        else note("Chromium", "none", "only browser tests need it. Run make test")
    )


def _memory_gib() -> float | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (AttributeError, ValueError, OSError):
        return None


def room() -> list[Row]:
    free, memory = shutil.disk_usage(ROOT).free / 2**30, _memory_gib()
    disk = f"{free:.0f} GiB free"
    small_disk = free < LEAST_DISK_GIB and not (ROOT / ".venv" / "ready").exists()
    rows = [
        note("disk", disk, f"make setup needs up to {LEAST_DISK_GIB}") if small_disk else ok("disk", disk)
    ]
    if memory:
        size, small = f"{memory:.0f} GiB, {os.cpu_count()} CPU cores", memory < LEAST_MEMORY_GIB
        advice = "the larger cases may not fit. Close other notebooks"
        rows.append(note("memory", size, advice) if small else ok("memory", size))
    return rows

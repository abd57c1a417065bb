"""Run the planted mistakes under NVIDIA's compute-sanitizer on a GPU, and say which it finds.

    python -m tilescope.proofs.sanitizer --out FILE

Every mistake's kernels get names of their own, so that one process a tool can run them all. A mistake that may hang
or end a process has a process to itself. `python -m tilescope.proofs.comparison --sanitizer FILE` puts the result
into the table."""

import argparse
import datetime
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tilescope.tests.test_seeded import BUGS, KERNELS

PLACES = (
    "/usr/local/cuda*/bin/compute-sanitizer",
    "/usr/local/cuda*/compute-sanitizer/compute-sanitizer",
    "/opt/nvidia/*/compute-sanitizer",
    "/usr/lib/nvidia-cuda-toolkit/compute-sanitizer/compute-sanitizer",
)
TOOLS = {"bounds": "memcheck", "overflow": "memcheck", "race": "racecheck", "mask": "initcheck"}
ALONE = ("deadlock", "failed")  # kinds that hang or end their process
CASES = [name for name in BUGS if "numpy" not in name]
SECONDS = 50
MAIN = """
import importlib, sys
import torch
torch.set_default_device("cuda")
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    try:
        exec(module.CODE, vars(module))
        torch.cuda.synchronize()
    except Exception as error:
        print(name, "raised", type(error).__name__, str(error)[:200], flush=True)
print("all ran", flush=True)
"""


def main(arguments: list[str] | None = None) -> int:
    made = argparse.ArgumentParser("sanitizer", description=__doc__.splitlines()[0])
    made.add_argument("--out", type=Path, required=True, help="write the results there, as JSON")
    made.add_argument("--binary", default="", help="the program, if it is not in a usual folder")
    asked = made.parse_args(arguments)
    found = {"date": str(datetime.date.today()), "binary": asked.binary or binary()}
    if not found["binary"]:
        found |= {
            "looked": [*PLACES, *site_places()],
            "cells": dict.fromkeys(CASES, "not on the machine tried"),
        }
    else:
        found |= everything(found["binary"])
    asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found["cells"], indent=1))
    return 0


def site_places() -> list[str]:
    """Return the folders where NVIDIA's Python packages put the program."""
    return [f"{folder}/nvidia/**/compute-sanitizer" for folder in sys.path if folder.endswith("-packages")]


def binary() -> str:
    """The path of compute-sanitizer, or an empty text."""
    patterns = [*PLACES, *site_places()]
    known = [
        path for one in patterns for path in sorted(glob.glob(one, recursive=True)) if Path(path).is_file()
    ]
    return shutil.which("compute-sanitizer") or next(iter(known), "")


def everything(program: str) -> dict:
    together = [name for name in CASES if BUGS[name][2][0] not in ALONE]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        written(Path(folder))
        runs = {
            **{tool: (tool, together) for tool in dict.fromkeys(TOOLS.values())},
            **{name: ("memcheck", [name]) for name in CASES if name not in together},
        }
        jobs = {key: pool.submit(run, program, folder, *row) for key, row in runs.items()}
        said = {key: job.result() for key, job in jobs.items()}
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    return {
        "version": next(iter(re.findall(r"[Vv]ersion ([\d.]+)", version)), ""),
        "versions": versions(),
        "cells": {name: verdict(name, said) for name in CASES},
        "output": {key: text[-6000:] for key, (_, text) in said.items()},
    }


def versions() -> dict[str, str]:
    """Return the GPU and its software versions."""
    try:
        import torch
        import triton
    except ImportError:
        return {}
    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "no GPU"
    return {"gpu": gpu, "torch": torch.__version__, "triton": triton.__version__}


def module_of(name: str) -> str:
    return f"case_{CASES.index(name):02}"


def written(folder: Path) -> None:
    """Writes a module for each mistake, whose kernels carry its number in their names."""
    kernels = KERNELS.replace("import tilescope\n", "")
    names = re.findall(r"^def (\w+)\(", kernels, re.M)
    for name in CASES:
        number = f"_{module_of(name)}"
        code = re.sub(rf"\b({'|'.join(names)})\b(?=[\[(])", rf"\1{number}", BUGS[name][0])
        text = re.sub(r"^def (\w+)\(", rf"def \1{number}(", kernels, flags=re.M)
        (folder / f"{module_of(name)}.py").write_text(f"{text}\nCODE = {code!r}\n")
    (folder / "main.py").write_text(MAIN)


def run(program: str, folder: str, tool: str, names: list[str]) -> tuple[int | None, str]:
    """Return the exit code, None if it hangs, and the printed text."""
    command = [program, "--tool", tool, "--destroy-on-device-error", "kernel", "--print-limit", "2000"]
    command += [sys.executable, str(Path(folder, "main.py")), *map(module_of, names)]
    env = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, start_new_session=True
    )
    try:
        text, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]
    return process.returncode, text


def verdict(name: str, said: dict) -> str:
    """Return whether the tool names the mistake's kernel."""
    kind = BUGS[name][2][0]
    code, text = said[name] if name in said else said.get(TOOLS.get(kind, ""), (0, ""))
    if any(module_of(name) in line for line in text.splitlines() if line.startswith("=========")):
        return "found"
    if kind == "failed" and "device-side assert" in text:
        return "found"
    if code is None:
        return "hangs" if kind == "deadlock" else "not finished"
    return "not found"


if __name__ == "__main__":
    sys.exit(main())

"""Measure once the rates that this machine's GPU reaches on plain work, and keep these ceilings for verdicts."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from grader import paths, verdicts
from grader.bench import gpu

MEASURE = """
import json, torch
from kernels.bench import machine
device = torch.device("cuda")
print(json.dumps({**machine.describe(device), **machine.versions(), "date": machine.today(), "ceilings": machine.ceilings(device)}))
"""


def path(name: str) -> Path:
    return paths.records().parent / "calibration" / f"{'_'.join(name.lower().split())}.json"


def load(name: str) -> dict | None:
    """The kept calibration of a GPU by its name, or None."""
    try:
        return json.loads(path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader calibrate", description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    name = gpu.name()
    if not name:
        print(
            "calibrate needs an NVIDIA GPU of sm_80 or newer; without one, kernels are graded by counted bytes"
        )
        return verdicts.EXIT[verdicts.INCONCLUSIVE]
    run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, timeout=300)
    if run.returncode:
        print(f"calibration broke off: {run.stderr.strip()[-400:]}", file=sys.stderr)
        return verdicts.EXIT[verdicts.INCONCLUSIVE]
    found = json.loads(run.stdout)
    place = path(name)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    for what, value in found["ceilings"].items():
        unit = "TB/s" if what == "copy" else "TFLOP/s"
        print(f"{what:<5} {value / 1e12:8.2f} {unit}")
    print(f"{name}, {found['date']}, kept in {place}")
    return 0

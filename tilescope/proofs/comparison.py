"""Run planted mistakes under tilescope and under other tools, and write README's table of the mistakes that each
tool finds.

    python -m tilescope.proofs.comparison [--site FOLDER] [--sanitizer FILE]

FOLDER is where triton-viz is installed with what it needs: pip install --target FOLDER triton-viz
FILE is the output of tilescope.proofs.sanitizer on a machine with a GPU. By default the record's last output counts.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tilescope.tests.test_seeded import BUGS, KERNELS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RECORD, README = HERE / "records" / "comparison.json", HERE.parent / "README.md"
BEGIN, END = "<!-- python -m tilescope.proofs.comparison writes this table -->\n", "<!-- end -->\n"
SECONDS = 60
TOOLS = {
    "tilescope": "tilescope",
    "triton-viz": "triton-viz's sanitizer",
    "interpreter": "TRITON_INTERPRET=1",
}
CASES = [name for name in BUGS if "numpy" not in name]
VIZ = "import sys; from triton_viz.wrapper import apply_sanitizer; sys.argv[0] = 'triton-sanitizer'; apply_sanitizer()"


def main(arguments: list[str] | None = None) -> int:
    made = argparse.ArgumentParser("comparison", description=__doc__.splitlines()[0])
    made.add_argument("--site", type=Path, help="a folder with triton-viz")
    made.add_argument(
        "--only", default="", help="the mistakes with this in their name, while the record keeps the others"
    )
    made.add_argument("--sanitizer", type=Path, help="what tilescope.proofs.sanitizer wrote")
    made.add_argument("--table", action="store_true", help="write the table again, and run nothing")
    asked = made.parse_args(arguments)
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    sanitizer = json.loads(asked.sanitizer.read_text()) if asked.sanitizer else known.get("sanitizer", {})
    if asked.table:
        return write({**known, "sanitizer": sanitizer})
    cells = known["cells"] if asked.only else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in (name for name in CASES if asked.only in name):
            script = Path(folder, "planted.py")
            script.write_text(script_of(name))
            cells[name] = {tool: CALLS[tool](script, name, asked.site) for tool in TOOLS}
            print(name, cells[name], file=sys.stderr, flush=True)
    cells = {name: cells[name] for name in CASES if name in cells}
    found = {"date": str(datetime.date.today()), "versions": versions(asked.site), "cells": cells}
    return write({**found, "sanitizer": sanitizer})


def write(found: dict) -> int:
    """Writes the record, and the table in README."""
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    README.write_text(with_table(README.read_text(encoding="utf-8"), found), encoding="utf-8")
    return 0


def script_of(name: str) -> str:
    """Return a script that makes one launch with a planted mistake, on a GPU if there is one."""
    kernels = KERNELS.replace("import tilescope\n", "")
    return (
        f"{kernels}\nif torch.cuda.is_available():\n    torch.set_default_device('cuda')\n{BUGS[name][0]}\n"
    )


def run(*command, **env) -> tuple[int | None, str]:
    """The exit code, None where it hangs, and all that it printed."""
    environment = {**os.environ, **env}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout + done.stderr


def by_tilescope(script: Path, name: str, site) -> str:
    asks = [f"--{word}" for word in BUGS[name][1].split()]
    out = script.with_suffix(".json")
    code, said = run(
        sys.executable, "-m", "tilescope", *asks, "--json", str(out), str(script), PYTHONPATH=str(ROOT)
    )
    if code is None or not out.exists():
        return "hangs" if code is None else f"can't run: {last_line(said)}"
    findings = json.loads(out.read_text())["findings"]
    return "found" if any(f["kind"] == BUGS[name][2][0] for f in findings) else "not found"


def by_triton_viz(script: Path, name: str, site) -> str:
    path = f"{site}:{ROOT}" if site else str(ROOT)
    code, said = run(sys.executable, "-c", VIZ, str(script), PYTHONPATH=path)
    if "No module named 'triton_viz'" in said:
        return "not run"
    if re.search(r"illegal memory access|IMA Diagnostic|out.of.bound", said, re.IGNORECASE):
        return "found" if BUGS[name][2][0] in ("bounds", "overflow") else "not found"
    return verdict(code, said)


def by_interpreter(script: Path, name: str, site) -> str:
    code, said = run(sys.executable, str(script), TRITON_INTERPRET="1", PYTHONPATH=str(ROOT))
    return "found" if code and "AssertionError" in said else verdict(code, said)


def verdict(code: int | None, said: str) -> str:
    """Return what an exit code means for a tool that names no mistakes."""
    if code is None:
        return "hangs"
    if code == 0:
        return "not found"
    return "crashes" if code < 0 else f"can't run: {last_line(said)}"


def last_line(said: str) -> str:
    return ([line for line in said.splitlines() if line.strip()] or [""])[-1][:100]


CALLS = {
    "tilescope": by_tilescope,
    "triton-viz": by_triton_viz,
    "interpreter": by_interpreter,
}


def versions(site: Path | None) -> dict[str, str]:
    paths = [str(site), *sys.path] if site else sys.path
    found = {"python": sys.version.split()[0]}
    for name in ("triton", "torch", "numpy", "triton-viz"):
        with suppress(StopIteration):
            found[name] = next(iter(importlib.metadata.distributions(name=name, path=paths))).version
    return found


def with_table(text: str, found: dict) -> str:
    """A README with its table as the record says."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table(found) + END + rest.split(END, 1)[1]


def table(found: dict) -> str:
    sanitizer = found["sanitizer"]
    rows = [
        f"| mistake | {' | '.join(TOOLS.values())} | compute-sanitizer |",
        f"|---|{'---|' * (len(TOOLS) + 1)}",
    ]
    for name, cells in found["cells"].items():
        told = [
            *(cells[tool].split(":")[0] for tool in TOOLS),
            sanitizer.get("cells", {}).get(name, "not run"),
        ]
        rows.append(f"| {name} | {' | '.join(told)} |")
    measured = f"Measured on {found['date']} with {listed(found['versions'])}."
    if sanitizer.get("versions"):
        own = {"compute-sanitizer": sanitizer["version"], **sanitizer["versions"]}
        measured += f" On {sanitizer['date']} with {listed(own)}."
    return "\n".join(rows) + f"\n\n{measured}\n"


def listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


if __name__ == "__main__":
    sys.exit(main())

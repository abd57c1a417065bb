"""Compile each kernel for each target, and return registers, spills, shared bytes and instructions (worker "report")."""

import os
import re
import subprocess
import tempfile

from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability

from .stages import Refused, compiled_up_to

# name in a report -> the start of its instruction (in PTX no name that an answer chose can hold the dot)
INSTRUCTIONS = {
    "wgmma": "wgmma.mma_async",
    **{name: name for name in ("mma.sync", "tcgen05.mma", "cp.async.bulk.tensor", "cp.async")},
    "ldmatrix": "ldmatrix.sync",
}
WARM = (80, 100)  # one capability for each assembler that Triton brings
PTXAS_S = 60


def prepare() -> None:
    """Load once, before the first fork, what every child would look up again."""
    for capability in WARM:
        assembler(capability)


def assembler(capability: int) -> str:
    try:
        ptxas = get_ptxas(capability)
    except TypeError:
        ptxas = get_ptxas()
    return getattr(ptxas, "path", None) or ptxas[0]


def run(task: dict, arrays: dict) -> tuple[dict, dict]:
    """Return {"compiled": [a row for each kernel and target]}. The first refused kernel is the error."""
    rows = []
    for target in task["targets"]:
        for kernel in task["kernels"]:
            try:
                rows.append(compiled_row(kernel, target))
            except Refused as refused:
                return {"error": {**refused.report, "kernel": kernel["name"], "target": target}}, {}
            except (RuntimeError, ValueError, AssertionError, TypeError, KeyError, IndexError) as error:
                said = f"{type(error).__name__}: {str(error).strip() or 'no reason given'}"[:1500]
                report = {"stage": "compile", "kind": type(error).__name__, "message": said, "line": None}
                return {"error": {**report, "kernel": kernel["name"], "target": target}}, {}
    return {"compiled": rows}, {}


def compiled_row(kernel: dict, target: int) -> dict:
    settings = {"num_warps": kernel["num_warps"], "num_stages": kernel["num_stages"]}
    texts, noted = compiled_up_to(kernel["text"], target, settings)
    return {
        "kernel": kernel["name"],
        "target": target,
        "shared_bytes": int(noted["shared"]),
        "num_warps": int(noted["num_warps"]),
        "instructions": instructions(texts["ptx"]),
        **resources(texts["ptx"], target),
    }


def instructions(ptx: str) -> dict:
    """Count how often each instruction begins a line of PTX, after its guard. Names of functions don't count."""
    return {
        name: len(re.findall(rf"^\s*(?:@!?%\w+\s+)?{re.escape(begins)}\b", ptx, re.MULTILINE))
        for name, begins in INSTRUCTIONS.items()
    }


def resources(ptx: str, capability: int) -> dict:
    """Registers and spills as ptxas reports them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ptx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(ptx)
        arch = sm_arch_from_capability(capability)
        command = [assembler(capability), "-v", f"--gpu-name={arch}", "-o", f"{path}.cubin", path]
        try:
            run = subprocess.run(command, capture_output=True, timeout=PTXAS_S)
        except subprocess.TimeoutExpired:
            raise Refused(
                "TooLong",
                f"the assembler was not done after {PTXAS_S} s: smaller tiles, or fewer values at once",
            ) from None
    text = run.stderr.decode(errors="replace")
    if run.returncode:
        said = text.replace(path, "kernel.ptx").strip() or "ended without a word"
        raise Refused("PTXASError", f"ptxas: {said}"[:1500])
    return totals(text)


def totals(text: str) -> dict:
    """Read ptxas' report, which has a block for each function: the most registers of any, and the spills of all."""
    numbers = {
        "registers": (r"Used (\d+) registers", max),
        "spill_stores": (r"(\d+) bytes spill stores", sum),
        "spill_loads": (r"(\d+) bytes spill loads", sum),
    }
    found = {key: (re.findall(pattern, text), of_all) for key, (pattern, of_all) in numbers.items()}
    return {key: of_all(map(int, each)) if each else None for key, (each, of_all) in found.items()}

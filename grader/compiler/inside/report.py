"""Worker "report": each kernel compiled for each target; registers, spills, shared bytes and instructions come back."""

import os
import re
import subprocess
import tempfile

from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability

from .stages import Refused, compiled_up_to

INSTRUCTIONS = ("wgmma", "mma.sync", "tcgen05.mma", "cp.async.bulk.tensor", "cp.async", "ldmatrix")
WARM = (80, 100)  # one capability for each assembler that Triton brings
PTXAS_S = 60


def prepare() -> None:
    """Once, before the first fork: what every child would look up again."""
    for capability in WARM:
        assembler(capability)


def assembler(capability: int) -> str:
    try:
        ptxas = get_ptxas(capability)
    except TypeError:
        ptxas = get_ptxas()
    return getattr(ptxas, "path", None) or ptxas[0]


def run(task: dict, arrays: dict) -> tuple[dict, dict]:
    """{"compiled": [a row for each kernel and target]}; the first kernel that is refused is the error."""
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
        "instructions": {name: texts["ptx"].count(name) for name in INSTRUCTIONS},
        **resources(texts["ptx"], target),
    }


def resources(ptx: str, capability: int) -> dict:
    """Registers, spills and static shared bytes as ptxas reports them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ptx")
        with open(path, "w") as file:
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
    numbers = {
        "registers": r"Used (\d+) registers",
        "spill_stores": r"(\d+) bytes spill stores",
        "spill_loads": r"(\d+) bytes spill loads",
    }
    found = {key: re.search(pattern, text) for key, pattern in numbers.items()}
    return {key: int(match.group(1)) if match else None for key, match in found.items()}

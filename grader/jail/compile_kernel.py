"""Mode "compile": a kernel answer through Triton's own compiler for a named GPU; no GPU is needed for that.

What leaves is Triton IR as text, and what the compiler said: registers, spills, shared bytes, instructions.
"""

import os
import re
import subprocess
import tempfile

import crossing
import front_end
import kernel_objects
import triton
import triton.language as tl
from answer_module import AnswerError, load
from interpret import argument_values, jit_functions, make_plan
from lowering import lower
from specialise import specialise
from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability

INSTRUCTIONS = ("wgmma", "mma.sync", "tcgen05.mma", "cp.async.bulk.tensor", "cp.async", "ldmatrix")
WARM = (80, 100)  # one capability for each assembler that Triton brings


def prepare() -> None:
    """Once, before the first fork: what every child would look up again."""
    kernel_objects.prepare()
    for capability in WARM:
        assembler(capability)


def assembler(capability: int) -> str:
    try:
        ptxas = get_ptxas(capability)
    except TypeError:
        ptxas = get_ptxas()
    return getattr(ptxas, "path", None) or ptxas[0]


def resources(ptx: str, capability: int) -> dict:
    """Registers, spills and static shared bytes as ptxas reports them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ptx")
        with open(path, "w") as file:
            file.write(ptx)
        arch = sm_arch_from_capability(capability)
        command = [assembler(capability), "-v", f"--gpu-name={arch}", "-o", f"{path}.cubin", path]
        run = subprocess.run(command, capture_output=True, timeout=60)
    text = run.stderr.decode(errors="replace")
    if run.returncode:
        raise AnswerError("compile", f"ptxas: {text.strip() or 'ended without a word'}", kind="PTXASError")
    numbers = {
        "registers": r"Used (\d+) registers",
        "spill_stores": r"(\d+) bytes spill stores",
        "spill_loads": r"(\d+) bytes spill loads",
    }
    found = {key: re.search(pattern, text) for key, pattern in numbers.items()}
    return {key: int(match.group(1)) if match else None for key, match in found.items()}


def compile_step(kernel, step: dict, values: dict, target: int) -> tuple[dict, str]:
    *specialised, arguments = specialise(kernel, step, values)
    texts, noted = lower(kernel, step, specialised, target, "ptx")
    report = {
        "kernel": step["kernel"],
        "target": target,
        "shared_bytes": int(noted["shared"]),
        "num_warps": int(noted["num_warps"]),
        "scratch_bytes": int(noted.get("global_scratch_size") or 0),
        "instructions": {name: texts["ptx"].count(name) for name in INSTRUCTIONS},
        "arguments": arguments,
        **resources(texts["ptx"], target),
    }
    return report, texts["ttir"]


def run(task: dict, arrays: dict) -> tuple[dict, dict]:
    """One case compiled for its targets; or, where `cases` came, all of them as far as IR."""
    module = load(task["source"], {"triton": triton, "tl": tl})
    if task.get("crossing"):
        return crossing.cross(module, task), {}
    if "cases" in task:
        return {"ir": front_end.check(module, task)}, {}
    plan = front_end.same_plan(module, task) if "plan" in task else make_plan(module, task)
    values, kernels = argument_values(task, plan), jit_functions(module)
    reports, texts = [], []
    for target in task["targets"]:
        for step in plan.steps:
            report, ttir = compile_step(kernels[step["kernel"]], step, values, target)
            reports.append(report)
            texts.append(ttir if target == task["targets"][0] else "")
    return {"plan": plan.as_json(), "compiled": reports, "ir": texts}, {}

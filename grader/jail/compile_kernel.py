"""Mode "compile": a kernel answer through Triton's own compiler for a named GPU; no GPU is needed for that.

What leaves is Triton IR as text, and what the compiler said: registers, spills, shared bytes, instructions.
"""

import re
import subprocess

import triton
import triton.language as tl
from answer_module import AnswerError, blame, load
from interpret import argument_values, bind, jit_functions, make_plan
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

INSTRUCTIONS = ("wgmma", "mma.sync", "tcgen05.mma", "cp.async.bulk.tensor", "cp.async", "ldmatrix")


def prepare() -> None:
    import triton.backends.nvidia.compiler  # noqa: F401  warm before the first fork


def signature(kernel, step: dict, values: dict) -> tuple[dict, dict, dict, list]:
    """Types, constants, divisibility and the names that remain arguments, as Triton specialises a launch."""
    types, constants, attributes, arguments = {}, {}, {}, []
    for position, (name, value) in enumerate(bind(kernel, step, values).items()):
        if value[0] == "constexpr":
            types[name], constants[(position,)] = "constexpr", value[1]
        elif value[0] == "pointer":
            types[name] = f"*{value[2]}" if value[2] != "bool" else "*i1"
            attributes[(position,)] = [["tt.divisibility", 16]]
            arguments.append(name)
        elif value[2] == 1 and value[1].startswith("i"):
            types[name], constants[(position,)] = "constexpr", 1
        else:
            types[name] = value[1]
            if value[1].startswith("i") and value[2] % 16 == 0:
                attributes[(position,)] = [["tt.divisibility", 16]]
            arguments.append(name)
    return types, constants, attributes, arguments


def resources(ptx: str, capability: int) -> dict:
    """Registers, spills and static shared bytes as ptxas reports them."""
    from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability

    try:
        ptxas = get_ptxas(capability)
    except TypeError:
        ptxas = get_ptxas()
    path = getattr(ptxas, "path", None) or ptxas[0]
    arch = sm_arch_from_capability(capability)
    run = subprocess.run([path, "-v", f"--gpu-name={arch}", "-o", "/dev/null", "-"], input=ptx.encode(), capture_output=True, timeout=60)
    if run.returncode:
        with open("kernel.ptx", "w") as file:
            file.write(ptx)
        run = subprocess.run([path, "-v", f"--gpu-name={arch}", "-o", "kernel.cubin", "kernel.ptx"], capture_output=True, timeout=60)
    text = run.stderr.decode(errors="replace")
    numbers = {
        "registers": r"Used (\d+) registers",
        "spill_stores": r"(\d+) bytes spill stores",
        "spill_loads": r"(\d+) bytes spill loads",
    }
    found = {key: re.search(pattern, text) for key, pattern in numbers.items()}
    return {key: int(match.group(1)) if match else None for key, match in found.items()}


def compile_step(kernel, step: dict, values: dict, target: int) -> tuple[dict, str]:
    types, constants, attributes, arguments = signature(kernel, step, values)
    source = ASTSource(kernel, signature=types, constexprs=constants, attrs=attributes)
    options = {"num_warps": step["num_warps"], "num_stages": step["num_stages"]}
    try:
        with blame("compile"):
            built = triton.compile(source, target=GPUTarget("cuda", target, 32), options=options)
    except AnswerError as error:
        error.report |= {"kernel": step["kernel"], "target": target}
        raise
    ptx = built.asm["ptx"]
    report = {
        "kernel": step["kernel"],
        "target": target,
        "shared_bytes": int(built.metadata.shared),
        "num_warps": int(built.metadata.num_warps),
        "scratch_bytes": int(getattr(built.metadata, "global_scratch_size", 0) or 0),
        "instructions": {name: ptx.count(name) for name in INSTRUCTIONS},
        "arguments": arguments,
        **resources(ptx, target),
    }
    return report, built.asm["ttir"]


def run(task: dict, arrays: dict) -> tuple[dict, dict]:
    module = load(task["source"], {"triton": triton, "tl": tl})
    plan = make_plan(module, task)
    values, kernels = argument_values(task, plan), jit_functions(module)
    reports, texts = [], []
    for target in task["targets"]:
        for step in plan.steps:
            report, ttir = compile_step(kernels[step["kernel"]], step, values, target)
            reports.append(report)
            texts.append(ttir if target == task["targets"][0] else "")
    return {"plan": plan.as_json(), "compiled": reports, "ir": texts}, {}

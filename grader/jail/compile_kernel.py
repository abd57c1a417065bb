"""Mode "compile": a kernel answer through Triton's own compiler for a named GPU; no GPU is needed for that.

What leaves is Triton IR as text, and what the compiler said: registers, spills, shared bytes, instructions.
"""

import re
import subprocess

import front_end
import kernel_objects
import triton
import triton.language as tl
from answer_module import AnswerError, blame, load
from interpret import argument_values, bind, jit_functions, make_plan
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

INSTRUCTIONS = ("wgmma", "mma.sync", "tcgen05.mma", "cp.async.bulk.tensor", "cp.async", "ldmatrix")


REGISTERS_HOPELESS = 512  # live 32-bit values a thread; it has 255 registers


class TileTooLarge(Exception):
    def __init__(self, shape: str, registers: int):
        self.report = {"kind": "TileTooLarge"}
        super().__init__(
            f"a running tile of {shape} takes {registers} registers a thread, and a thread has 255: smaller tiles or more num_warps"
        )


def prepare() -> None:
    """Warm before the first fork, and stop a hopeless tile before LLVM spends minutes on it."""
    from triton.backends.nvidia.compiler import CUDABackend

    kernel_objects.prepare()
    lower = CUDABackend.make_ttgir

    def checked(module, metadata, options, capability):
        refuse_hopeless(str(module), options.num_warps)
        return lower(module, metadata, options, capability)

    CUDABackend.make_ttgir = staticmethod(checked)


def refuse_hopeless(ttir: str, num_warps: int) -> None:
    """Raises where the values carried round a loop could not fit in registers by far."""
    for line in ttir.splitlines():
        if "iter_args" not in line:
            continue
        for shape, bits in re.findall(r"tensor<([\dx]+)x(?:f|i|bf)(\d+)>", line.split("iter_args")[1]):
            elements = 1
            for side in shape.split("x"):
                elements *= int(side)
            registers = elements * int(bits) // 32 // (32 * num_warps)
            if registers > REGISTERS_HOPELESS:
                raise TileTooLarge(shape.replace("x", " x "), registers)


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
    run = subprocess.run(
        [path, "-v", f"--gpu-name={arch}", "-o", "/dev/null", "-"],
        input=ptx.encode(),
        capture_output=True,
        timeout=60,
    )
    if run.returncode:
        with open("kernel.ptx", "w") as file:
            file.write(ptx)
        run = subprocess.run(
            [path, "-v", f"--gpu-name={arch}", "-o", "kernel.cubin", "kernel.ptx"],
            capture_output=True,
            timeout=60,
        )
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
    """One case compiled for its targets; or, where `cases` came, all of them through the front end alone."""
    module = load(task["source"], {"triton": triton, "tl": tl})
    if "cases" in task:
        return {"ir": front_end.check(module, task, signature)}, {}
    plan = front_end.same_plan(module, task) if "plan" in task else make_plan(module, task)
    values, kernels = argument_values(task, plan), jit_functions(module)
    reports, texts = [], []
    for target in task["targets"]:
        for step in plan.steps:
            report, ttir = compile_step(kernels[step["kernel"]], step, values, target)
            reports.append(report)
            texts.append(ttir if target == task["targets"][0] else "")
    return {"plan": plan.as_json(), "compiled": reports, "ir": texts}, {}

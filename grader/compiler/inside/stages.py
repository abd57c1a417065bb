"""IR text through Triton's own stages, one after the other, as far as they are wanted."""

import re
import tempfile

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ir, make_backend

REGISTERS_HOPELESS = 512  # live 32-bit values a thread, which has 255 registers
STAGES = ("ttir", "ttgir", "llir", "ptx")


class Refused(Exception):
    """The compiler refuses this kernel. It is the answer's fault, as a sentence."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.report = {"stage": "compile", "kind": kind, "message": message, "line": None}


def parse(text: str, context):
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".ttir") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    return module


def compiled_up_to(text: str, capability: int, settings: dict, last: str = "ptx") -> tuple[dict, dict]:
    """Return the texts by stage up to `last`, and the compiler's notes: shared bytes, warps."""
    gpu = GPUTarget("cuda", capability, 32)
    backend = make_backend(gpu)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options(dict(settings))
    stages, texts = {}, {}
    backend.add_stages(stages, options, triton.compiler.compiler.Language.TRITON)
    noted, module = {"target": gpu, **vars(options)}, parse(text, context)
    for name in STAGES[: STAGES.index(last) + 1]:
        module = stages[name](module, noted)
        if name in ("ttir", "ptx"):
            texts[name] = str(module)
        if name == "ttir":
            refuse_hopeless(texts["ttir"], options.num_warps)
    return texts, noted


def refuse_hopeless(ttir: str, num_warps: int) -> None:
    """Raise if a loop's carried values could not nearly fit in registers, because LLVM would spend minutes on them."""
    for line in ttir.splitlines():
        if "iter_args" not in line:
            continue
        for shape, bits in re.findall(r"tensor<([\dx]+)x(?:f|i|bf)(\d+)>", line.split("iter_args")[1]):
            elements = 1
            for side in shape.split("x"):
                elements *= int(side)
            registers = elements * int(bits) // 32 // (32 * num_warps)
            if registers > REGISTERS_HOPELESS:
                said = (
                    f"a running tile of {shape.replace('x', ' x ')} takes {registers} registers a thread, "
                    "and a thread has 255: smaller tiles or more num_warps"
                )
                raise Refused("TileTooLarge", said)

"""A kernel through Triton's own compiler, one stage after the other, as far as it is wanted and no further.

Triton's cache stays out of it: what one answer compiled is nothing that the next could find.
"""

import re

from answer_module import AnswerError, blame
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import ir, make_backend

REGISTERS_HOPELESS = 512  # live 32-bit values a thread; it has 255 registers


class TileTooLarge(Exception):
    def __init__(self, shape: str, registers: int):
        self.report = {"kind": "TileTooLarge"}
        super().__init__(
            f"a running tile of {shape} takes {registers} registers a thread, and a thread has 255: smaller tiles or more num_warps"
        )


def refuse_hopeless(ttir: str, num_warps: int) -> None:
    """Raises where the values carried round a loop could not fit in registers by far: LLVM would spend minutes on it."""
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


def lower(kernel, step: dict, specialised: tuple, target: int, last: str = "") -> tuple[dict, dict]:
    """Texts by stage up to `last` ("ttir", "ptx"; without one the front end's alone), and what the compiler noted.

    `specialised` holds types, constants and attributes as compile_kernel.signature() gives them.
    """
    types, constants, attributes = specialised
    gpu = GPUTarget("cuda", target, 32)
    backend = make_backend(gpu)
    source = ASTSource(kernel, signature=types, constexprs=constants, attrs=attributes)
    wanted = {"num_warps": step["num_warps"], "num_stages": step["num_stages"]}
    options = backend.parse_options({**wanted, **source.parse_options()})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    try:
        with blame("compile"):
            codegen = backend.get_codegen_implementation(options)
            module = source.make_ir(gpu, options, codegen, backend.get_module_map(), context)
            return _through(module, source, backend, options, gpu, last)
    except AnswerError as error:
        error.report |= {"kernel": step["kernel"], "target": target}
        raise


def _through(module, source, backend, options, gpu, last: str) -> tuple[dict, dict]:
    texts, noted, stages = {"front end": str(module)}, {"target": gpu, **vars(options)}, {}
    backend.add_stages(stages, options, source.language)
    for name in _up_to(list(stages), last):
        module = stages[name](module, noted)
        if name in ("ttir", "ptx"):
            texts[name] = str(module)
        if name == "ttir":
            refuse_hopeless(texts["ttir"], options.num_warps)
    return texts, noted


def _up_to(stages: list[str], last: str) -> list[str]:
    return stages[: stages.index(last) + 1] if last else []

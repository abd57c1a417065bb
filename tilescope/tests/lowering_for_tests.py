"""Parse a text with Triton itself, and compile it to PTX: for tests alone."""

import re
import tempfile

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import Language, ir

from tilescope.lowering import front_end, prepared


def parsed(text: str, context):
    """A module of Triton's own parser, which verifies it; RuntimeError where it does not."""
    with tempfile.NamedTemporaryFile("w", suffix=".ttir") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    return module


def compiled(text: str, target: int, last="ptx", **wanted) -> str:
    """PTX (or an earlier stage) of a text, through all of Triton's own passes."""
    backend, options, context = prepared(target, **wanted)
    return _through(parsed(text, context), backend, options, target, last)


def compiled_directly(kernel, types, constants, attributes, target: int, last="ptx", **wanted) -> str:
    """PTX as Triton makes it where nothing lies between its front end and its passes."""
    source = ASTSource(kernel, signature=types, constexprs=constants, attrs=attributes)
    backend, options, _ = prepared(target, **wanted)
    module, context = front_end(source, target, **wanted)
    module.context = context
    return _through(module, backend, options, target, last)


def _through(module, backend, options, target, last) -> str:
    stages, noted = {}, {"target": GPUTarget("cuda", target, 32), **vars(options)}
    backend.add_stages(stages, options, Language.TRITON)
    for name, stage in stages.items():
        module = stage(module, noted)
        if name == last:
            return str(module)
    raise ValueError(f"last must be one of {', '.join(stages)}, got {last!r}")


FUNCTION = re.compile(r"\.func\s+(?:\([^)]*\)\s*)?([\w$]+)")


def same_code(one: str, other: str) -> bool:
    """Whether two texts of PTX hold the same instructions, whatever lines they come from and functions are called."""
    return _instructions(one) == _instructions(other)


def _instructions(ptx: str) -> list[str]:
    for place, name in enumerate(dict.fromkeys(FUNCTION.findall(ptx))):
        ptx = ptx.replace(name, f"function {place}")
    lines = (line.split("//")[0].strip() for line in ptx.split(".section\t.debug")[0].splitlines())
    return [line for line in lines if line and not line.startswith((".loc", ".file", "$L__tmp"))]

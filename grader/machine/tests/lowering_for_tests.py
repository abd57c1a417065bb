"""Triton IR as text, as the jail sends it, and PTX from a text: for tests alone, which may import Triton."""

import re
import tempfile

from triton._C.libtriton import passes
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import Language, ir, make_backend

TWIN = re.compile(
    r'\n *"tt\.func"\(\) <\{function_type = \(\) -> \(\), sym_name = "\w+", sym_visibility = "private"\}> \(\{'
    r"\n *\}\)[^\n]*"
)


def prepared(target: int, **wanted):
    """A backend for `target`, its options and a context with its dialects."""
    backend = make_backend(GPUTarget("cuda", target, 32))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return backend, backend.parse_options(wanted), context


def emitted(kernel, types, constants=None, attributes=None, target=90, **wanted):
    """The front end's module after the passes that the jail runs, and its context."""
    source = ASTSource(kernel, signature=types, constexprs=constants or {}, attrs=attributes or {})
    backend, options, context = prepared(target, **wanted)
    codegen, gpu = backend.get_codegen_implementation(options), GPUTarget("cuda", target, 32)
    module = source.make_ir(gpu, options, codegen, backend.get_module_map(), context)
    manager = ir.pass_manager(context)
    passes.common.add_inliner(manager)
    passes.ttir.add_rewrite_tensor_pointer(manager)
    passes.common.add_canonicalizer(manager)
    passes.common.add_symbol_dce(manager)
    manager.run(module, "tidy")
    return module, context, source.name


def generic(module, context, kernel: str) -> str:
    """MLIR prints what does not verify in its generic form: a second symbol of the kernel's name is all it takes."""
    builder = ir.builder(context)
    nothing = builder.get_function_ty([], [])
    module.push_back(
        builder.get_or_insert_function(builder.create_module(), kernel, nothing, "private", True)
    )
    return TWIN.sub("", str(module), count=1)  # and the twin goes again: what is left verifies


def text_of(kernel, types, constants=None, attributes=None, **more) -> str:
    return generic(*emitted(kernel, types, constants, attributes, **more))


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
    backend, options, context = prepared(target, **wanted)
    codegen, gpu = backend.get_codegen_implementation(options), GPUTarget("cuda", target, 32)
    module = source.make_ir(gpu, options, codegen, backend.get_module_map(), context)
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

"""Lower a @triton.jit function to the text of its Triton IR, in the generic form that `machine.read` reads.

Triton's own Python does it, over Triton's compiled library or, where that is missing, over the builder in `front_end`.
Imports of ours that builder alone, because a jail is shown this file and that folder.
"""

import re

from tilescope.front_end import stand_in

IN_PYTHON = stand_in.where_needed()

from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402
from triton.compiler.compiler import ir, make_backend  # noqa: E402

TWIN = re.compile(
    r'\n *"tt\.func"\(\) <\{function_type = \(\) -> \(\), sym_name = "\w+", sym_visibility = "private"\}> \(\{'
    r"\n *\}\)[^\n]*"
)
# As Triton 3.9 prints them: an access's caching, which nothing here depends on, and a descriptor's tile.
POLICY = re.compile(r"cachePolicy = #tt\.cache_policy<[^>]*>(?:, )?")
DESCRIBED = re.compile(r"!tt\.tensordesc<((?:\d+x)+[^<>]+)>")


def prepared(target: int, **wanted):
    """Return a backend for compute capability `target`, its options, and a context with its dialects."""
    backend = make_backend(GPUTarget("cuda", target, 32))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return backend, backend.parse_options(wanted), context


def front_end(source: ASTSource, target: int, **wanted):
    """Run Triton's front end alone. Return its module and the context that owns the module."""
    backend, options, context = prepared(target, **{**wanted, **source.parse_options()})
    codegen, gpu = backend.get_codegen_implementation(options), GPUTarget("cuda", target, 32)
    return source.make_ir(gpu, options, codegen, backend.get_module_map(), context), context


def emitted(
    kernel, types: dict, constants: dict | None = None, attributes: dict | None = None, target=90, **wanted
):
    """Lower a kernel and tidy its module. Return it with its context and the kernel's name."""
    source = ASTSource(kernel, signature=types, constexprs=constants or {}, attrs=attributes or {})
    module, context = front_end(source, target, **wanted)
    tidy(module, context)
    return module, context, source.name


def text_of(
    kernel, types: dict, constants: dict | None = None, attributes: dict | None = None, **more
) -> str:
    """Return the kernel's IR as text.
    `types` maps parameters to Triton's names: {"x_ptr": "*fp32", "n": "i32"}."""
    return generic(*emitted(kernel, types, constants, attributes, **more))


def tidy(module, context) -> None:
    """Inline functions, rewrite block pointers and fold constants. No pass here merges two loads."""
    if IN_PYTHON:  # it tidies as it prints
        return
    from triton._C.libtriton import passes

    manager = ir.pass_manager(context)
    passes.common.add_inliner(manager)
    if hasattr(passes.ttir, "add_rewrite_tensor_pointer"):  # Triton 3.9 has no block pointers left to rewrite
        passes.ttir.add_rewrite_tensor_pointer(manager)
    passes.common.add_canonicalizer(manager)
    passes.common.add_symbol_dce(manager)
    manager.run(module, "tidy")


def generic(module, context, kernel: str) -> str:
    """Print a module in MLIR's generic form, by making it unverifiable with a second symbol of the kernel's name."""
    if IN_PYTHON:
        return str(module)
    builder = ir.builder(context)
    nothing = builder.get_function_ty([], [])
    module.push_back(
        builder.get_or_insert_function(builder.create_module(), kernel, nothing, "private", True)
    )
    text = TWIN.sub("", str(module), count=1)  # and the twin goes again, so the rest verifies
    return DESCRIBED.sub(r"!tt.tensordesc<tensor<\1>>", POLICY.sub("", text))

"""Parse a text with Triton itself, and compile it to PTX: for tests alone."""

import re
import tempfile

from triton._C.libtriton import passes
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import Language, ir

from tilescope.lowering import front_end, generic, prepared
from tilescope.machine.read import read


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


def simplest(text: str) -> list[tuple]:
    """What a text's operations are once Triton has inlined, folded and merged what it can: nothing of names or lines."""
    context = prepared(90)[2]
    module = parsed(text, context)
    manager = ir.pass_manager(context)
    for add in ("inliner", "canonicalizer", "cse", "canonicalizer", "symbol_dce"):
        getattr(passes.common, f"add_{add}")(manager)
    manager.run(module, "simplest")
    read_again = read(generic(module, context, read(text).kernel.name))
    return [row for _, one in sorted(read_again.functions.items()) for row in _rows(one.blocks, {}, {})]


def _rows(blocks, names: dict, labels: dict) -> list[tuple]:
    rows = []
    for block in blocks:
        named = [names.setdefault(name, len(names)) for name in block.arguments]
        rows.append((labels.setdefault(block.label, len(labels)), named, block.types))
        for op in block.ops:
            if op.name == "arith.constant":
                value = op.attributes["value"]
                names[op.results[0]] = (value.tobytes(), value.shape, op.result_types[0])
                continue
            operands = [names.setdefault(name, len(names)) for name in op.operands]
            results = [names.setdefault(name, len(names)) for name in op.results]
            to = [labels.setdefault(label, len(labels)) for label in op.successors]
            kinds = op.operand_types, op.result_types
            rows.append((op.name, operands, results, sorted(op.attributes.items()), *kinds, to))
            for region in op.regions:
                rows += _rows(region, names, labels)
    return rows


def every(text: str, cell: str = "<answer>"):
    """Each operation of a text, at any depth."""
    todo = [block for function in read(text, cell).functions.values() for block in function.blocks]
    while todo:
        for op in todo.pop().ops:
            yield op
            todo += [block for region in op.regions for block in region]

"""Class and weigh each operation outside dots for the count: "float", "int", "special" (functions and divisions of
floats), "convert" (between floats and whole numbers) or nothing. Whole numbers that only make addresses count
as "address" (program.py)."""

from math import prod

from .tree import Block, Function, Op

KINDS = ("float", "int", "special", "convert", "address")
FREE = frozenset(
    (
        "arith.constant arith.bitcast ub.poison tt.bitcast tt.splat tt.unsplat tt.broadcast tt.trans "
        "tt.expand_dims tt.reshape tt.join tt.split tt.cat tt.make_range tt.get_program_id "
        "tt.get_num_programs tt.load tt.store tt.atomic_rmw tt.atomic_cas tt.make_tensor_descriptor "
        "tt.descriptor_load tt.descriptor_store tt.descriptor_reduce tt.descriptor_gather "
        "tt.descriptor_scatter tt.print tt.assert tt.call tt.ptr_to_int tt.int_to_ptr "
        "llvm.intr.assume scf.for scf.if scf.while gpu.barrier ttg.barrier"
    ).split()
)
CHEAP = {"math.absf", "math.absi", "math.floor", "math.ceil", "math.fma"}
SPECIAL = {"arith.divf"}
CONVERT = {"arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui"}
INTEGER = {"tt.addptr", "tt.histogram", "tt.gather", "tt.mulhiui", "arith.cmpi"}


# what costs more than one operation of its kind. A T4 does 1/32 as many operations in fp64 as in fp32, most GPUs of a desk
# 1/64, an H200 half as many
IN_FP64 = 32
# a division of whole numbers by one that only the run knows: a GPU has no instruction for it, and takes about so many
DIVIDED = {"i64": 64, "i32": 16}
BARRIER = 512  # whole numbers: every thread of four warps waits as long as four operations take
EXCHANGED = 256  # whole numbers: what a warp or several exchange in a reduction or a scan, step by step, as long as so many take
SLOWLY = {"math.sin", "math.cos", "math.tan"}  # large angles are first brought down in a hundred steps
IN_STEPS = 32
# a first guess, then corrections up to the last bit; and the functions of NVIDIA's library, polynomials by range
PRECISE = {"tt.precise_divf", "tt.precise_sqrt", "arith.remf", "math.erf", "tt.extern_elementwise"}
CORRECTED = 16
PRINTED = 8192  # the same, for each number that tl.device_print sends to the CPU, which formats it
BARRIERS = {"gpu.barrier", "ttg.barrier"}
DIVISIONS = {"arith.divsi", "arith.divui", "arith.remsi", "arith.remui"}
COPIES = {"tt.splat", "tt.broadcast", "tt.expand_dims", "arith.extsi", "arith.extui", "arith.trunci"}


def weighed(op: Op, counts: tuple[tuple[str, int], ...], fixed: set[str]) -> tuple[tuple[str, int], ...]:
    """Return what an operation counts as, by kind. `fixed` are the values that the compiler knows."""
    if op.name in BARRIERS:
        return (("int", BARRIER),)
    if op.name == "tt.print":
        return (("int", PRINTED * sum(prod(type.shape) for type in op.operand_types)),)
    scalars = {type.scalar for type in (*op.operand_types, *op.result_types)}
    times = 1
    if divides(op, fixed):
        times = DIVIDED["i64" if "i64" in scalars else "i32"]
    elif "f64" in scalars:
        times = IN_FP64
    elif op.name in SLOWLY:
        times = IN_STEPS
    elif op.name in PRECISE:
        times = CORRECTED
    return tuple((kind, number if kind.startswith("dot") else times * number) for kind, number in counts)


def divides(op: Op, fixed: set[str]) -> bool:
    """Return whether an operation divides whole numbers by one that the compiler doesn't know."""
    return op.name in DIVISIONS and op.operands[1] not in fixed


def known(function: Function) -> set[str]:
    """Return the names of a function's constants, and of what repeats them."""
    found: set[str] = set()
    _constants(function.blocks, found)
    return found


def _constants(blocks: list[Block], found: set[str]) -> None:
    for block in blocks:
        for op in block.ops:
            if op.name == "arith.constant" or (op.name in COPIES and op.operands[0] in found):
                found.update(op.results)
            for region in op.regions:
                _constants(region, found)


def kind_of(op: Op) -> str | None:
    if op.name in FREE:
        return None
    if op.name in PRECISE:
        return "float"
    if op.name in SPECIAL or (op.name.startswith("math.") and op.name not in CHEAP):
        return "special"
    if op.name in CONVERT:
        return "convert"
    if op.name in INTEGER or not op.operand_types:
        return "int"
    of = op.operand_types[-1]
    return "int" if of.element or of.dtype.kind in "bi" else "float"

"""Class each operation outside dots for the count: "float", "int", "special" (functions and divisions of
floats), "convert" (between floats and whole numbers) or nothing. Whole numbers that only make addresses count
as "address" (program.py)."""

from .tree import Op

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
SPECIAL = {"arith.divf", "arith.remf", "tt.precise_divf", "tt.precise_sqrt", "tt.extern_elementwise"}
CONVERT = {"arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui"}
INTEGER = {"tt.addptr", "tt.histogram", "tt.gather", "tt.mulhiui", "arith.cmpi"}


def kind_of(op: Op) -> str | None:
    if op.name in FREE:
        return None
    if op.name in SPECIAL or (op.name.startswith("math.") and op.name not in CHEAP):
        return "special"
    if op.name in CONVERT:
        return "convert"
    if op.name in INTEGER or not op.operand_types:
        return "int"
    of = op.operand_types[-1]
    return "int" if of.element or of.dtype.kind in "bi" else "float"

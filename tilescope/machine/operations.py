"""List the operations that a kernel may use, in one list for every machine. A row says all that an operation may hold."""

from collections.abc import Callable
from dataclasses import dataclass, field

from . import rules_of_control as control
from . import rules_of_memory as memory
from . import rules_of_numbers as numbers
from . import rules_of_tensors as tensors
from .attributes import Callee, Flag, Hint, Named, OneOf, Truth, Unhoisted, Value, Whole, Wholes, Words
from .libdevice import SYMBOLS
from .rules_of_numbers import COUNTS, FLOATS, INTS, NUMBERS, alike, compares, converts
from .rules_of_tensors import reshaped
from .tree import Op

MANY = 256  # operands or results


@dataclass(frozen=True)
class Row:
    name: str
    operands: int | tuple[int, int]  # how many, or from how many to how many
    results: int | tuple[int, int]
    rule: Callable[[Op], str]  # what is wrong with the types, or nothing
    attributes: dict = field(default_factory=dict)  # Triton's "properties", printed within <{ }>
    extras: dict = field(default_factory=dict)  # attributes it may also carry, printed within { }
    regions: int | tuple[int, int] = 0
    successors: int = 0
    ends_block: bool = False
    within: tuple[str, ...] = ()  # the operations that must enclose it, if that matters
    combines: bool = False  # whether the region of a reduction or a scan may contain it


HINTS = {"tt.divisibility": Hint(), "tt.contiguity": Hint(), "tt.constancy": Hint()}
CARRIED = {
    f"{name}_arg{number}": Hint() for name in HINTS for number in range(MANY)
}  # of what a loop carries
LOOP = {
    "tt.num_stages": Whole(range(0, 65), optional=True),
    "tt.loop_unroll_factor": Whole(range(1, 257), optional=True),
    "tt.flatten": Flag(),
    "tt.disallow_acc_multi_buffer": Flag(),
    "tt.warp_specialize": Flag(),
    "llvm.loop_annotation": Unhoisted(),
}
FAST = {"fastmath": Named("arith.fastmath")}
WRAPS = {"overflowFlags": Named("arith.overflow")}
AXIS = {"axis": Whole(range(0, 20))}
PROGRAM = {"axis": Whole(range(0, 3))}
CACHE = {"cache": Whole(range(1, 8), optional=True), "evict": Whole(range(1, 4), optional=True)}
ORDER = {"sem": Whole(range(1, 5)), "scope": Whole(range(1, 4))}
NO_BLOCK = {"boundaryCheck": Wholes(range(0), most=0, optional=True)}  # Triton 3.9 has neither
SEGMENTS = {"operandSegmentSizes": Wholes(range(0, MANY), most=3)}
NAN = {"propagateNan": Whole(frozenset({0, 0xFFFF}))}
LIBRARY = {
    "libname": OneOf(frozenset({""}), "empty"),
    "libpath": OneOf(frozenset({""}), "empty"),
    "pure": Truth((True,), "true"),
    "symbol": OneOf(frozenset(SYMBOLS), "a function of libdevice in this list"),
}
RESHAPED = {"allow_reorder": Flag(), "efficient_layout": Flag()}
GATHERED = {**AXIS, "efficient_layout": Flag()}
TURNED = {"order": Wholes(range(0, 20), 20)}
ENDPOINTS = {"start": Whole(range(0, 1 << 31)), "end": Whole(range(0, 1 << 31))}
PRECISION = {"inputPrecision": Whole(range(0, 5)), "maxNumImpreciseAcc": Whole(range(0, 1 << 31))}
DIRECTION = {**AXIS, "reverse": Truth()}
PACK = {"pack": Whole(range(1, 65))}
LOADED = {**NO_BLOCK, **CACHE, "isVolatile": Truth(), **SEGMENTS}
STORED = {**NO_BLOCK, **CACHE}
UPDATED = {"atomic_rmw_op": Whole(range(1, 11)), **ORDER}
REDUCED = {"kind": Whole(frozenset({1, 2, 3, 6, 7, 8}))}
PADDING = {"padding": Whole(range(1, 3))}
PRINTED = {"prefix": Words(without="%"), "hex": Truth(), "isSigned": Wholes(range(0, 2))}


def rows(names: str, *columns, **more) -> list[Row]:
    """One row for each name, alike in all else."""
    dialect, *short = names.split()
    return [
        Row(f"{dialect}.{name}", *columns, **{"combines": True, "extras": HINTS, **more}) for name in short
    ]


def outside(names: str, *columns, **more) -> list[Row]:
    """Return rows of operations that the region of a reduction or a scan may not contain."""
    return rows(names, *columns, combines=False, **more)


def ending(name: str, within: tuple[str, ...], rule=control.anything, **more) -> Row:
    """Return a row that ends a block and hands on any values. The enclosing operation checks them."""
    return Row(name, (0, MANY), 0, rule, ends_block=True, within=within, **more)


ARITHMETIC = [
    *rows("arith addi subi muli shli", 2, 1, alike(INTS), attributes=WRAPS),
    *rows("arith andi ori xori shrsi shrui", 2, 1, alike(INTS)),
    *rows("arith divsi divui remsi remui maxsi maxui minsi minui", 2, 1, alike(INTS)),
    *rows("arith addf subf mulf divf remf", 2, 1, alike(FLOATS), attributes=FAST),
    *rows("arith maxnumf minnumf maximumf minimumf", 2, 1, alike(FLOATS), attributes=FAST),
    *rows("arith negf", 1, 1, alike(FLOATS), attributes=FAST),
    *rows("arith addui_extended mulsi_extended mului_extended", 2, 2, numbers.extended),
    *rows("arith cmpi", 2, 1, compares(INTS), attributes={"predicate": Whole(range(0, 10), 64)}),
    *rows("arith cmpf", 2, 1, compares(FLOATS), attributes={"predicate": Whole(range(0, 16), 64), **FAST}),
    *rows("arith select", 3, 1, numbers.select),
    *rows("arith constant", 0, 1, numbers.constant, attributes={"value": Value()}),
    *rows("ub poison", 0, 1, numbers.poison, attributes={"value": Named("ub.poison", "")}),
    *rows("arith extsi extui", 1, 1, converts(INTS, INTS, "wider")),
    *rows("arith trunci", 1, 1, converts(INTS, INTS, "narrower"), attributes=WRAPS),
    *rows("arith sitofp uitofp", 1, 1, converts(INTS, FLOATS)),
    *rows("arith fptosi fptoui", 1, 1, converts(FLOATS, INTS)),
    *rows("arith extf", 1, 1, converts(FLOATS, FLOATS, "wider"), attributes=FAST),
    *rows("arith truncf", 1, 1, converts(FLOATS, FLOATS, "narrower"), attributes=FAST),
    *rows("arith bitcast", 1, 1, converts(NUMBERS, NUMBERS, "same")),
    *rows("arith index_cast index_castui", 1, 1, converts(COUNTS, COUNTS)),
    *rows("math absi", 1, 1, alike(COUNTS)),
    *rows("math absf ceil floor", 1, 1, alike(FLOATS), attributes=FAST),
    *rows("math cos erf exp exp2 log log2 rsqrt sin sqrt", 1, 1, alike(FLOATS), attributes=FAST),
    *rows("math fma", 3, 1, alike(FLOATS), attributes=FAST),
    *rows("tt mulhiui", 2, 1, alike(frozenset({"i32", "i64"}))),
    *rows("tt clampf", 3, 1, alike(FLOATS), attributes=NAN),
    *rows("tt precise_sqrt", 1, 1, alike(frozenset({"f32"}))),
    *rows("tt precise_divf", 2, 1, alike(frozenset({"f32"}))),
    *rows("tt fp_to_fp", 1, 1, numbers.fp_to_fp, attributes={"rounding": Whole(range(0, 2), optional=True)}),
    *rows("tt bitcast", 1, 1, numbers.bitcast),
    *rows("tt ptr_to_int int_to_ptr", 1, 1, numbers.pointer_to_int),
    *rows("tt addptr", 2, 1, numbers.addptr),
    *rows("tt extern_elementwise", (1, 4), 1, numbers.extern, attributes=LIBRARY),
    *rows("tt assert", 1, 0, control.assertion, attributes={"message": Words()}, extras={}),
]
TENSORS = [
    *outside("tt splat unsplat", 1, 1, tensors.splat),
    *outside("tt expand_dims", 1, 1, reshaped(tensors.expanded), attributes=AXIS),
    *outside("tt broadcast", 1, 1, reshaped(tensors.broadcast_to)),
    *outside("tt reshape", 1, 1, reshaped(tensors.as_many), attributes=RESHAPED),
    *outside("tt trans", 1, 1, reshaped(tensors.turned), attributes=TURNED),
    *outside("tt cat", 2, 1, tensors.cat),
    *outside("tt join", 2, 1, tensors.join),
    *outside("tt split", 1, 2, tensors.join),
    *outside("tt make_range", 0, 1, tensors.make_range, attributes=ENDPOINTS),
    *outside("tt histogram", (1, 2), 1, tensors.histogram),
    *outside("tt gather", 2, 1, tensors.gather, attributes=GATHERED),
    *outside("tt dot", 3, 1, tensors.dot, attributes=PRECISION),
    *outside("tt reduce", (1, MANY), (1, MANY), control.folds, attributes=AXIS, regions=1),
    *outside("tt scan", (1, MANY), (1, MANY), control.folds, attributes=DIRECTION, regions=1),
    *outside("tt map_elementwise", (1, MANY), (1, MANY), control.mapped, attributes=PACK, regions=1),
]
MEMORY = [
    *outside("tt get_program_id get_num_programs", 0, 1, control.i32_result, attributes=PROGRAM),
    *outside("tt load", (1, 3), 1, memory.load, attributes=LOADED),
    *outside("tt store", (2, 3), 0, memory.store, attributes=STORED),
    *outside("tt atomic_rmw", (2, 3), 1, memory.atomic_rmw, attributes=UPDATED),
    *outside("tt atomic_cas", 3, 1, memory.atomic_cas, attributes=ORDER),
    *outside("tt make_tensor_descriptor", (3, 11), 1, memory.make_descriptor, attributes=PADDING),
    *outside("tt descriptor_load", (2, 6), 1, memory.descriptor_load, attributes=CACHE),
    *outside("tt descriptor_store", (3, 7), 0, memory.descriptor_store),
    *outside("tt descriptor_reduce", (3, 7), 0, memory.descriptor_store, attributes=REDUCED),
    *outside("tt descriptor_gather", 3, 1, memory.descriptor_rows),
    *outside("tt descriptor_scatter", 4, 0, memory.descriptor_rows),
]
OPEN = ("tt.func", "tt.map_elementwise")  # their regions may have several blocks
LOOPS = ("scf.for", "scf.if", "scf.while")
CONTROL = [
    Row("scf.for", (3, MANY), (0, MANY), control.loop, extras={**LOOP, **HINTS, **CARRIED}, regions=1),
    Row("scf.if", 1, (0, MANY), control.branch, extras=HINTS, regions=(1, 2)),
    Row("scf.while", (0, MANY), (0, MANY), control.while_loop, extras={**HINTS, **CARRIED}, regions=2),
    Row("tt.call", (0, MANY), (0, MANY), control.anything, attributes={"callee": Callee()}, extras=HINTS),
]
ENDS = [
    ending("scf.yield", LOOPS),
    ending("scf.condition", ("scf.while",)),
    ending("cf.br", OPEN, successors=1),
    ending("cf.cond_br", OPEN, control.conditional, successors=2, attributes=SEGMENTS),
    ending("tt.return", ("tt.func",)),
    ending("tt.reduce.return", ("tt.reduce",), combines=True),
    ending("tt.scan.return", ("tt.scan",), combines=True),
    ending("tt.map_elementwise.return", ("tt.map_elementwise",)),
]
WORDS = [
    Row("tt.print", (0, MANY), 0, control.prints, attributes=PRINTED),
    Row("llvm.intr.assume", 1, 0, control.assume, attributes={"op_bundle_sizes": Wholes(range(0), most=0)}),
    Row("gpu.barrier", 0, 0, control.anything),  # tl.debug_barrier in Triton 3.6
    Row("ttg.barrier", 0, 0, control.anything, attributes={"addrSpace": Whole(range(0, 32))}),  # and in 3.7
]
OPERATIONS = {row.name: row for row in (*ARITHMETIC, *TENSORS, *MEMORY, *CONTROL, *ENDS, *WORDS)}

FUNCTION = {"noinline": Truth()}
ARGUMENT = {name: Whole(range(1, 1 << 31), optional=True) for name in HINTS}

# what a learner may well have written, what it is called there, and what to write instead
BLOCK_POINTER = "a block pointer that was not turned into pointers", "add offsets to pointers"
REFUSED = {
    "tt.elementwise_inline_asm": ("inline assembly", "write it with tl operations"),
    "tt.dot_scaled": ("tl.dot_scaled", "multiply the blocks by their scales and use tl.dot"),
    "tt.make_tensor_ptr": BLOCK_POINTER,
    "tt.advance": BLOCK_POINTER,
}


def refusal(name: str) -> str:
    what, instead = REFUSED.get(name, (name[:60], "write it with tl operations"))
    called = f"{what} ({name})" if name in REFUSED else what
    return f"{called} is not one of the operations that a kernel may use here; {instead}"

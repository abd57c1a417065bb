"""For each operation a kernel may use: attributes as Triton prints them, types that are right, types that are not."""

from typing import NamedTuple


class Example(NamedTuple):
    attributes: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]  # with as many operands and results as are right
    regions: str = ""


FAST, WRAPS = "fastmath = #arith.fastmath<none>", "overflowFlags = #arith.overflow<none>"
CACHE = "cache = 1 : i32, evict = 1 : i32"
PTR, TENSOR, PTRS = "!tt.ptr<f32>", "tensor<8xf32>", "tensor<8x!tt.ptr<f32>>"
DESC = "!tt.tensordesc<tensor<8x16xf32>>"
INTS = "(i32, i32) -> i32; (tensor<4x8xi64>, tensor<4x8xi64>) -> tensor<4x8xi64>; (i1, i1) -> i1"
NOT_INTS = "(i32, i64) -> i32; (i32, i32) -> i64; (f32, f32) -> f32; (tensor<8xi32>, i32) -> tensor<8xi32>"
FLOATS = "(f32, f32) -> f32; (tensor<8xbf16>, tensor<8xbf16>) -> tensor<8xbf16>"
NOT_FLOATS = (
    "(f32, f16) -> f32; (f32, f32) -> f64; (i32, i32) -> i32; (!tt.ptr<f32>, !tt.ptr<f32>) -> !tt.ptr<f32>"
)
FLOAT, NOT_FLOAT = "(f32) -> f32; (tensor<8xf64>) -> tensor<8xf64>", "(f32) -> f16; (i32) -> i32"
ADDED = """{
  ^bb0(%a: f32, %b: f32):
    %c = "arith.addf"(%a, %b) : (f32, f32) -> f32
    "END"(%c) : (f32) -> ()
  }"""


def _each(names: str, attributes: str, right: str, wrong: str, regions: str = "") -> dict[str, Example]:
    dialect, *short = names.split()
    example = Example(attributes, tuple(right.split("; ")), tuple(filter(None, wrong.split("; "))), regions)
    return {f"{dialect}.{name}": example for name in short}


NUMBERS = {
    **_each("arith addi subi muli shli", WRAPS, INTS, NOT_INTS),
    **_each("arith andi ori xori divsi divui remsi remui maxsi maxui minsi minui shrsi shrui", "", INTS, NOT_INTS),
    **_each("arith addf subf mulf divf remf maxnumf minnumf maximumf minimumf", FAST, FLOATS, NOT_FLOATS),
    **_each("arith negf", FAST, FLOAT, NOT_FLOAT),
    **_each("arith addui_extended", "", "(i32, i32) -> (i32, i1)", "(i32, i32) -> (i32, i32); (i32, i64) -> (i32, i1)"),
    **_each("arith mulsi_extended mului_extended", "", "(i32, i32) -> (i32, i32)",
            "(i32, i32) -> (i32, i1); (f32, f32) -> (f32, f32)"),
    **_each("arith cmpi", "predicate = 2 : i64", "(i32, i32) -> i1; (tensor<8xi8>, tensor<8xi8>) -> tensor<8xi1>",
            "(i32, i32) -> i32; (f32, f32) -> i1; (i32, i64) -> i1; (tensor<8xi32>, tensor<8xi32>) -> i1"),
    **_each("arith cmpf", f"{FAST}, predicate = 2 : i64", "(f16, f16) -> i1", "(i32, i32) -> i1; (f32, f32) -> f32"),
    **_each("arith select", "", f"(i1, f32, f32) -> f32; (tensor<8xi1>, {PTRS}, {PTRS}) -> {PTRS}; (i1, {TENSOR}, {TENSOR}) -> {TENSOR}",
            f"(i32, f32, f32) -> f32; (i1, f32, f16) -> f32; (i1, f32, f32) -> f16; (tensor<4xi1>, {TENSOR}, {TENSOR}) -> {TENSOR}; (i1, {DESC}, {DESC}) -> {DESC}"),
    **_each("arith constant", "value = 7 : i32", "() -> i32", "() -> i64; () -> f32; () -> tensor<8xi32>"),
    **_each("ub poison", "value = #ub.poison", f"() -> i32; () -> {PTRS}", f"() -> {DESC}"),
    **_each("arith extsi extui", "", "(i8) -> i32; (tensor<8xi1>) -> tensor<8xi64>",
            "(i32) -> i32; (i64) -> i32; (i8) -> f32; (i8) -> tensor<8xi32>"),
    **_each("arith trunci", WRAPS, "(i64) -> i32; (tensor<8xi8>) -> tensor<8xi1>", "(i32) -> i64; (f64) -> f32"),
    **_each("arith sitofp uitofp", "", "(i32) -> f16; (i1) -> f64", "(f32) -> f32; (i32) -> i32; (i32) -> f8E5M2"),
    **_each("arith fptosi fptoui", "", "(f32) -> i8; (bf16) -> i64", "(i32) -> i32; (f32) -> f32; (f32) -> tensor<8xi32>"),
    **_each("arith extf", FAST, "(f16) -> f32", "(f32) -> f16; (f16) -> bf16; (i16) -> f32"),
    **_each("arith truncf", FAST, "(f32) -> bf16", "(f16) -> f32; (f16) -> bf16; (f32) -> i16"),
    **_each("arith bitcast", "", "(i32) -> f32; (tensor<8xf16>) -> tensor<8xi16>", f"(i32) -> f64; (i8) -> i1; ({PTR}) -> i64"),
    **_each("arith index_cast index_castui", "", "(i32) -> index", "(f32) -> index; (i1) -> i32"),
    **_each("math absi", "", "(i32) -> i32", "(f32) -> f32; (i32) -> i64"),
    **_each("math absf ceil cos erf exp exp2 floor log log2 rsqrt sin sqrt", FAST, FLOAT, NOT_FLOAT),
    **_each("math fma", FAST, "(f32, f32, f32) -> f32", "(f32, f32, f16) -> f32; (i32, i32, i32) -> i32"),
    **_each("tt mulhiui", "", "(i32, i32) -> i32", "(i8, i8) -> i8; (i32, i32) -> i64; (f32, f32) -> f32"),
    **_each("tt clampf", "propagateNan = 65535 : i32", "(f32, f32, f32) -> f32", "(f32, f32, f64) -> f32"),
    **_each("tt precise_sqrt", "", "(f32) -> f32", "(i32) -> i32; (f32) -> f64"),
    **_each("tt precise_divf", "", "(f32, f32) -> f32", "(f32, f64) -> f32; (i32, i32) -> i32"),
    **_each("tt fp_to_fp", "rounding = 1 : i32", "(f32) -> f8E5M2; (tensor<8xf32>) -> tensor<8xf16>",
            "(f8E5M2) -> f32; (f32) -> i8; (f32) -> tensor<8xf16>"),
    **_each("tt bitcast", "", f"(i32) -> f32; ({PTR}) -> !tt.ptr<i8>",
            f"(i32) -> i64; ({PTR}) -> i64; ({DESC}) -> {DESC}; (i32) -> tensor<8xi32>"),
    **_each("tt ptr_to_int", "", f"({PTR}) -> i64; ({PTRS}) -> tensor<8xi64>", f"({PTR}) -> i32; (i64) -> i64; ({PTRS}) -> i64"),
    **_each("tt int_to_ptr", "", f"(i64) -> {PTR}", f"(i32) -> {PTR}; (i64) -> i64; (i64) -> {PTRS}"),
    **_each("tt addptr", "", f"({PTR}, i32) -> {PTR}; ({PTRS}, tensor<8xi64>) -> {PTRS}",
            f"({PTR}, f32) -> {PTR}; ({PTR}, i1) -> {PTR}; (i64, i32) -> i64; ({PTRS}, i32) -> {PTRS}; ({PTR}, i32) -> !tt.ptr<f16>"),
    **_each("tt extern_elementwise", 'libname = "", libpath = "", pure = true, symbol = "__nv_powif"',
            "(f32, i32) -> f32; (tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>",
            "(f32, f32) -> f32; (f64, i32) -> f64; (f32, i32) -> i32; (f32, tensor<8xi32>) -> f32; (f32) -> f32"),
    **_each("tt assert", 'message = "n is \\22odd\\22"', "(i1) -> (); (tensor<8xi1>) -> ()", "(i32) -> (); (f32) -> ()"),
}  # fmt: skip
TENSORS = {
    **_each("tt splat", "", f"(f32) -> {TENSOR}; ({PTR}) -> {PTRS}", f"(f16) -> {TENSOR}; ({TENSOR}) -> {TENSOR}; (f32) -> f32; ({DESC}) -> {TENSOR}"),
    **_each("tt unsplat", "", "(tensor<1x1xf32>) -> f32", f"({TENSOR}) -> f32; (tensor<1xf32>) -> f16; (f32) -> f32"),
    **_each("tt expand_dims", "axis = 1 : i32", "(tensor<8xf32>) -> tensor<8x1xf32>",
            "(tensor<8xf32>) -> tensor<1x8xf32>; (tensor<8xf32>) -> tensor<8x2xf32>; (tensor<8xf32>) -> tensor<8x1xf16>; (f32) -> tensor<1xf32>"),
    **_each("tt broadcast", "", "(tensor<8x1xf32>) -> tensor<8x4xf32>",
            "(tensor<8x2xf32>) -> tensor<8x4xf32>; (tensor<8xf32>) -> tensor<8x8xf32>; (tensor<1xf32>) -> tensor<8xf16>; (f32) -> tensor<8xf32>"),
    **_each("tt reshape", "allow_reorder", "(tensor<8x4xf32>) -> tensor<32xf32>",
            "(tensor<8xf32>) -> tensor<16xf32>; (tensor<8xf32>) -> tensor<8xf16>; (tensor<1xf32>) -> f32"),
    **_each("tt trans", "order = array<i32: 1, 0>", "(tensor<8x4xf32>) -> tensor<4x8xf32>",
            "(tensor<8x4xf32>) -> tensor<8x4xf32>; (tensor<8xf32>) -> tensor<8xf32>; (tensor<8x4xf32>) -> tensor<4x8xf16>"),
    **_each("tt cat", "", "(tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>",
            "(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>; (tensor<8xf32>, tensor<4xf32>) -> tensor<16xf32>; (f32, f32) -> tensor<2xf32>"),
    **_each("tt join", "", "(tensor<8xf32>, tensor<8xf32>) -> tensor<8x2xf32>",
            "(tensor<8xf32>, tensor<8xf32>) -> tensor<2x8xf32>; (tensor<8xf32>, tensor<8xf16>) -> tensor<8x2xf32>; (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>"),
    **_each("tt split", "", "(tensor<8x2xf32>) -> (tensor<8xf32>, tensor<8xf32>)",
            "(tensor<8x4xf32>) -> (tensor<8xf32>, tensor<8xf32>); (tensor<8x2xf32>) -> (tensor<8xf32>, tensor<8xf16>); (f32) -> (f32, f32)"),
    **_each("tt make_range", "end = 8 : i32, start = 0 : i32", "() -> tensor<8xi32>", "() -> tensor<16xi32>; () -> tensor<8xi64>; () -> i32"),
    **_each("tt histogram", "", "(tensor<8xi32>) -> tensor<4xi32>", "(tensor<8xf32>) -> tensor<4xi32>; (tensor<8x2xi32>) -> tensor<4xi32>; (i32) -> tensor<4xi32>"),
    **_each("tt gather", "axis = 0 : i32", "(tensor<8x4xf32>, tensor<16x4xi32>) -> tensor<16x4xf32>",
            "(tensor<8x4xf32>, tensor<8x8xi32>) -> tensor<8x8xf32>; (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>; (tensor<8xf32>, tensor<4xi32>) -> tensor<8xf32>; (f32, i32) -> f32"),
    **_each("tt dot", "inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32",
            "(tensor<16x32xf16>, tensor<32x64xf16>, tensor<16x64xf32>) -> tensor<16x64xf32>; (tensor<2x16x32xi8>, tensor<2x32x16xi8>, tensor<2x16x16xi32>) -> tensor<2x16x16xi32>; (tensor<16x32xf8E5M2>, tensor<32x16xf8E4M3FN>, tensor<16x16xf32>) -> tensor<16x16xf32>",
            "(tensor<16x32xf16>, tensor<64x64xf16>, tensor<16x64xf32>) -> tensor<16x64xf32>; (tensor<16x32xf16>, tensor<32x64xbf16>, tensor<16x64xf32>) -> tensor<16x64xf32>; (tensor<16x32xf16>, tensor<32x64xf16>, tensor<64x16xf32>) -> tensor<64x16xf32>; (tensor<16x32xf16>, tensor<32x64xf16>, tensor<16x64xf32>) -> tensor<16x64xf16>; (tensor<16x32xi8>, tensor<32x16xi8>, tensor<16x16xf32>) -> tensor<16x16xf32>; (f32, f32, f32) -> f32; (tensor<2x16x32xf16>, tensor<4x32x16xf16>, tensor<2x16x16xf32>) -> tensor<2x16x16xf32>"),
    **_each("tt reduce", "axis = 1 : i32", "(tensor<8x4xf32>) -> tensor<8xf32>",
            "(tensor<8x4xf32>) -> tensor<4xf32>; (tensor<8xf32>) -> f32; (tensor<8x4xf16>) -> tensor<8xf16>; (tensor<8x4xf32>) -> tensor<8xf16>", ADDED.replace("END", "tt.reduce.return")),
    **_each("tt scan", "axis = 0 : i32, reverse = false", "(tensor<8x4xf32>) -> tensor<8x4xf32>",
            "(tensor<8x4xf32>) -> tensor<8xf32>; (f32) -> f32; (tensor<8xf16>) -> tensor<8xf16>", ADDED.replace("END", "tt.scan.return")),
    **_each("tt map_elementwise", "pack = 1 : i32", "(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>",
            "(tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>; (tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>; (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi32>; (f32, f32) -> f32", ADDED.replace("END", "tt.map_elementwise.return")),
}  # fmt: skip
LOAD = f"boundaryCheck = array<i32>, {CACHE}, isVolatile = false, operandSegmentSizes = array<i32: 1, 1, 1>"
MEMORY = {
    **_each(
        "tt get_program_id get_num_programs", "axis = 2 : i32", "() -> i32", "() -> i64; () -> tensor<8xi32>"
    ),
    **_each(
        "tt load",
        LOAD,
        f"({PTR}, i1, f32) -> f32; ({PTRS}, tensor<8xi1>, {TENSOR}) -> {TENSOR}",
        f"({PTR}, i1, f32) -> f16; ({PTR}, i32, f32) -> f32; ({PTR}, i1, f16) -> f32; ({PTRS}, i1, {TENSOR}) -> {TENSOR}; (i64, i1, f32) -> f32; ({PTR}, i1) -> f32; ({DESC}, i1, f32) -> f32",
    ),
    **_each(
        "tt store",
        f"boundaryCheck = array<i32>, {CACHE}",
        f"({PTR}, f32) -> (); ({PTRS}, {TENSOR}, tensor<8xi1>) -> ()",
        f"({PTR}, f16) -> (); ({PTRS}, f32) -> (); (i64, f32) -> (); ({PTR}, f32, i32) -> (); ({PTRS}, {TENSOR}, i1) -> ()",
    ),
    **_each(
        "tt atomic_rmw",
        "atomic_rmw_op = 5 : i32, scope = 1 : i32, sem = 4 : i32",
        f"({PTR}, f32, i1) -> f32; ({PTRS}, {TENSOR}) -> {TENSOR}",
        f"({PTR}, f32, i32) -> f32; ({PTR}, f16, i1) -> f32; ({PTR}, f32, i1) -> f16; (i64, f32, i1) -> f32; (!tt.ptr<i32>, i32, i1) -> i32; (!tt.ptr<f8E5M2>, f8E5M2) -> f8E5M2",
    ),
    **_each(
        "tt atomic_cas",
        "scope = 1 : i32, sem = 4 : i32",
        "(!tt.ptr<i32>, i32, i32) -> i32",
        "(!tt.ptr<i32>, i32, i64) -> i32; (!tt.ptr<i32>, i32, i32) -> i64; (!tt.ptr<i8>, i8, i8) -> i8; (i64, i64, i64) -> i64",
    ),
    **_each(
        "tt make_tensor_descriptor",
        "padding = 1 : i32",
        f"({PTR}, i32, i32, i64, i64) -> {DESC}; (!tt.ptr<i8>, i32, i64) -> !tt.tensordesc<tensor<32xui8>>",
        f"({PTR}, i32, i32, i64, i32) -> {DESC}; (!tt.ptr<f16>, i32, i32, i64, i64) -> {DESC}; ({PTR}, i32, i64, i64) -> {DESC}; ({PTR}, i32, i32, i64, i64) -> {PTR}",
    ),
    **_each(
        "tt descriptor_load",
        CACHE,
        f"({DESC}, i32, i32) -> tensor<8x16xf32>",
        f"({DESC}, i32, i64) -> tensor<8x16xf32>; ({DESC}, i32) -> tensor<8x16xf32>; ({DESC}, i32, i32) -> tensor<16x8xf32>; ({DESC}, i32, i32) -> tensor<8x16xf16>; ({PTR}, i32, i32) -> f32",
    ),
    **_each(
        "tt descriptor_store",
        "",
        f"({DESC}, tensor<8x16xf32>, i32, i32) -> ()",
        f"({DESC}, tensor<8x16xf16>, i32, i32) -> (); ({DESC}, tensor<8x16xf32>, i32) -> (); ({PTR}, f32, i32) -> ()",
    ),
    **_each(
        "tt descriptor_reduce",
        "kind = 1 : i32",
        f"({DESC}, tensor<8x16xf32>, i32, i32) -> ()",
        f"({DESC}, tensor<8xf32>, i32, i32) -> (); ({DESC}, tensor<8x16xf32>, i32, f32) -> ()",
    ),
    **_each(
        "tt descriptor_gather",
        "",
        "(!tt.tensordesc<tensor<1x16xf32>>, tensor<8xi32>, i32) -> tensor<8x16xf32>",
        f"({DESC}, tensor<8xi32>, i32) -> tensor<8x16xf32>; (!tt.tensordesc<tensor<1x16xf32>>, i32, i32) -> tensor<8x16xf32>; (!tt.tensordesc<tensor<1x16xf32>>, tensor<8xi32>, i32) -> tensor<8x8xf32>",
    ),
    **_each(
        "tt descriptor_scatter",
        "",
        "(!tt.tensordesc<tensor<1x16xf32>>, tensor<8xi32>, i32, tensor<8x16xf32>) -> ()",
        f"({DESC}, tensor<8xi32>, i32, tensor<8x16xf32>) -> (); (!tt.tensordesc<tensor<1x16xf32>>, tensor<8xi32>, i32, tensor<8x16xi32>) -> ()",
    ),
}
WORDS = {
    **_each(
        "tt print",
        'hex = false, isSigned = array<i32: 1, 0>, prefix = " a: "',
        f"(i32, {PTRS}) -> ()",
        f"(i32) -> (); ({DESC}, i32) -> ()",
    ),
    **_each(
        "llvm intr.assume", "op_bundle_sizes = array<i32>", "(i1) -> ()", "(i32) -> (); (tensor<8xi1>) -> ()"
    ),
    **_each("gpu barrier", "", "() -> ()", ""),
    **_each("ttg barrier", "addrSpace = 31 : i32", "() -> ()", ""),
}
EXAMPLES = {**NUMBERS, **TENSORS, **MEMORY, **WORDS}

"""Constants, arithmetic, comparisons and conversions."""

from . import floats, kinds
from .kinds import BF16, F16, F32, F64, I1, attribute, number_of, quoted, type

SAME = {
    "arith": "fmul:mulf fdiv:divf frem:remf fadd:addf fsub:subf mul:muli sdiv:divsi udiv:divui srem:remsi urem:remui "
    "add:addi sub:subi shl:shli lshr:shrui ashr:shrsi minsi minui minimumf minnumf maxsi maxui maximumf maxnumf "
    "and:andi xor:xori or:ori",
    "math": "fma floor ceil exp exp2 cos sin log log2 erf sqrt rsqrt fabs:absf iabs:absi",
    "tt": "umulhi:mulhiui precise_sqrt precise_divf",
}
CASTS = (
    "bitcast:tt.bitcast si_to_fp:arith.sitofp ui_to_fp:arith.uitofp fp_to_si:arith.fptosi fp_to_ui:arith.fptoui "
    "fp_ext:arith.extf fp_trunc:arith.truncf ptr_to_int:tt.ptr_to_int int_to_ptr:tt.int_to_ptr"
)
INTEGER_PREDICATES = "EQ NE SLT SLE SGT SGE ULT ULE UGT UGE".split()
FLOAT_PREDICATES = {
    name: i for i, name in enumerate("OEQ OGT OGE OLT OLE ONE ORD UEQ UGT UGE ULT ULE UNE".split(), 1)
}
del FLOAT_PREDICATES["ORD"]
TYPES = {
    "int1": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "i8",
    "uint16": "i16",
    "uint32": "i32",
    "uint64": "i64",
    "half": "f16",
    "bf16": "bf16",
    "float": "f32",
    "double": "f64",
    "fp8e4nv": "f8E4M3FN",
    "fp8e4b8": "f8E4M3FNUZ",
    "fp8e4b15": "i8",
    "fp8e5": "f8E5M2",
    "fp8e5b16": "f8E5M2FNUZ",
    "void": "none",
}


def bf16_text(v: float) -> str:
    """Spell a number in bf16 from six of its decimals, because Triton's own builder converts that text."""
    v = floats.number_of(floats.text_of(v, "f32"), "f32")
    return floats.text_of(float(f"{v:.6f}"), "bf16")


class Numbers:
    # constants

    def constant(self, text: str, type):
        return self.one("arith.constant", [], type, value=text if type is I1 else f"{text} : {type}")

    def get_int1(self, v):
        return self.constant("true" if v else "false", I1)

    def get_bf16(self, v):
        return self.constant(bf16_text(v), BF16)

    def get_fp16(self, v):
        return self.constant(floats.text_of(v, "f16"), F16)

    def get_fp32(self, v):
        return self.constant(floats.text_of(v, "f32"), F32)

    def get_fp64(self, v):
        return self.constant(floats.text_of(v, "f64"), F64)

    def get_null_value(self, type):
        if type is I1:
            return self.get_int1(False)
        return self.constant("0" if type.is_whole else "0.0", type)

    def get_all_ones_value(self, type):
        return self.get_int1(True) if type is I1 else self.constant("-1", type)

    def get_unit_attr(self):
        return attribute("unit")

    def get_bool_attr(self, v):
        return attribute("true" if v else "false")

    def get_int32_attr(self, v):
        return attribute(f"{number_of(v)} : i32")

    def get_string_attr(self, v):
        return attribute(quoted(v))

    def get_disable_loop_licm_attr(self):
        return attribute("#llvm.loop_annotation<licm = <disable = true, versioningDisable = true>>")

    # types

    def get_ptr_ty(self, type, space):
        return kinds.pointer_to(type, space)

    def get_block_ty(self, type, shape):
        return kinds.tensor_of(type, shape)

    # conversions and the rest

    def create_int_cast(self, v, to, signed):
        have, want = v.type.bits, to.bits
        if have == want:
            return v
        return self.one(
            "arith.trunci" if have > want else "arith.extsi" if signed else "arith.extui", [v], to
        )

    def create_fp_to_fp(self, v, to, rounding):
        more = {} if rounding is None else {"rounding": f"{int(rounding)} : i32"}
        return self.one("tt.fp_to_fp", [v], to, **more)

    def create_addptr(self, p, n):
        return self.one("tt.addptr", [p, n], p.type)

    def create_select(self, condition, a, b):
        return self.one("arith.select", [condition, a, b], a.type)

    def create_clampf(self, x, low, high, nan):
        return self.one("tt.clampf", [x, low, high], x.type, propagateNan=f"{int(nan)} : i32")

    def create_extern_elementwise(self, library, path, symbol, values, out, pure):
        words = {"libname": quoted(library), "libpath": quoted(path), "symbol": quoted(symbol)}
        return self.one("tt.extern_elementwise", values, out, **words, pure=self.get_bool_attr(pure))

    def create_inline_asm(self, text, constraints, values, outs, pure, packed):
        words = {"asm_string": quoted(text), "constraints": quoted(constraints)}
        words |= {"packed_element": f"{packed} : i32", "pure": self.get_bool_attr(pure)}
        return self.op("tt.elementwise_inline_asm", values, outs, **words)

    def create_poison(self, type):
        return self.one("ub.poison", [], type, value="#ub.poison")


def _plain(name):
    return lambda self, *values: self.one(name, values, values[0].type)


def _cast(name):
    return lambda self, v, to: self.one(name, [v], to)


def _compare(name, predicate):
    return lambda self, a, b: self.one(name, [a, b], a.type.like(I1), predicate=f"{predicate} : i64")


def _constant(of):
    return lambda self, v: self.constant(str(int(v)), of)


def _same(of):
    return lambda self: of


def _methods():
    for dialect, words in SAME.items():
        for word in words.split():
            ours, _, theirs = word.partition(":")
            yield f"create_{ours}", _plain(f"{dialect}.{theirs or ours}")
    for word in CASTS.split():
        ours, theirs = word.split(":")
        yield f"create_{ours}", _cast(theirs)
    for i, name in enumerate(INTEGER_PREDICATES):
        yield f"create_icmp{name}", _compare("arith.cmpi", i)
    for name, i in FLOAT_PREDICATES.items():
        yield f"create_fcmp{name}", _compare("arith.cmpf", i)
    for name, text in TYPES.items():
        yield f"get_{name}_ty", _same(type(text))
        if "int" in name and name != "int1":
            yield f"get_{name}", _constant(type(text))


for _name, _method in _methods():
    setattr(Numbers, _name, _method)

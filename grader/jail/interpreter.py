"""What Triton's interpreter needs to compute as a GPU does.

Out of the box it adds bf16 numbers as integers, truncates where a GPU rounds, and multiplies fp32 operands
exactly where tensor cores take tf32. Here bf16 and fp8 values live in numpy arrays of those very types.
Import after TRITON_INTERPRET=1 is set; `install()` once.
"""

import types

import ml_dtypes
import numpy as np
import triton.language as tl
from triton.runtime import interpreter as stock

NARROW = {
    tl.bfloat16: np.dtype(ml_dtypes.bfloat16),
    tl.float8e4nv: np.dtype(ml_dtypes.float8_e4m3fn),
    tl.float8e5: np.dtype(ml_dtypes.float8_e5m2),
}
FP8_LARGEST = {tl.float8e4nv: 448.0, tl.float8e5: 57344.0}
TF32_DROPPED_BITS = 13

_stock_np_dtype = stock._get_np_dtype
semantic_load = stock.TritonSemantic.load
stock_patch_lang_tensor = stock._patch_lang_tensor
stock_masked_load = stock.InterpreterBuilder.create_masked_load
stock_binary_op = stock.InterpreterBuilder.binary_op
DESCRIBED = (stock.TensorDescHandle, stock.BlockPointerHandle)
stock_pointers = {kind: kind.materialize_pointers for kind in DESCRIBED}


known: dict = {}


def np_dtype(ty):
    scalar = ty.scalar if isinstance(ty, tl.block_type) else ty
    if isinstance(scalar, tl.pointer_type):
        return _stock_np_dtype(ty)
    if scalar not in known:  # the stock one builds its table anew at every call
        known[scalar] = NARROW.get(scalar) or _stock_np_dtype(scalar)
    return known[scalar]


def _is_narrow(ty) -> bool:
    return not isinstance(ty, tl.pointer_type) and ty in NARROW


def convert(data: np.ndarray, source, target) -> np.ndarray:
    """A float conversion as the GPU does it: to nearest even, fp8 saturating at its largest number."""
    if target in FP8_LARGEST:
        largest = FP8_LARGEST[target]
        wide = data.astype(np.float32)
        data = np.where(np.isnan(wide), wide, np.clip(wide, -largest, largest))
    if source in NARROW and target not in (tl.float32, tl.float64):
        data = data.astype(np.float32)
    return data.astype(np_dtype(target))


def to_tf32(x: np.ndarray) -> np.ndarray:
    """fp32 with the 10 mantissa bits that tensor cores keep, rounded to nearest (ties away, as cvt.rna does)."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    rounded = (bits + np.uint32(1 << (TF32_DROPPED_BITS - 1))) & ~np.uint32((1 << TF32_DROPPED_BITS) - 1)
    return np.where(np.isfinite(x), rounded.view(np.float32), x)


class Fixes:
    """Methods that replace those of the same name in the interpreter's builder."""

    def cast_impl(self, src, dst_type):
        source, target = src.dtype.scalar, dst_type.scalar
        if _is_narrow(source) or _is_narrow(target):
            return stock.TensorHandle(convert(src.data, source, target), target)
        return stock.TensorHandle(src.data.astype(np_dtype(dst_type)), target)

    def create_fp_to_fp(self, src, dst_type, rounding_mode):
        source, target = src.dtype.scalar, dst_type.scalar
        toward_zero = rounding_mode is not None and rounding_mode != stock._ir.ROUNDING_MODE.RTNE
        if toward_zero and target in NARROW:
            raise NotImplementedError("fp_downcast_rounding must be 'rtne' here, got 'rtz'; leave it out")
        return stock.TensorHandle(convert(src.data, source, target), target)

    def create_masked_load(self, ptrs, mask, other, *rest, **named):
        ty = ptrs.get_element_ty()
        if other is None and not mask.data.all() and not getattr(self, "other_given", False):
            # a GPU leaves masked lanes undefined; poison shows a kernel that uses them: NaN for sums, and in every
            # second lane a large number, since a maximum passes over NaN
            bits = np.full(mask.data.shape + (np_dtype(ty).itemsize,), 0xFF, np.uint8)
            bits[tuple(axis[1::2] for axis in np.nonzero(~mask.data.astype(bool)))] = 0x77
            poison = (
                bits.view(np_dtype(ty)).reshape(mask.data.shape)
                if np_dtype(ty) != np.bool_
                else np.ones(mask.data.shape, bool)
            )
            other = stock.TensorHandle(poison, ty)
        return stock_masked_load(self, ptrs, mask, other, *rest, **named)

    def create_dot(self, a, b, d, input_precision, max_num_imprecise_acc):
        left, right = _operand(a, input_precision), _operand(b, input_precision)
        product = np.matmul(left, right, dtype=np.promote_types(left.dtype, d.data.dtype))
        return stock.TensorHandle((product + d.data).astype(d.data.dtype), d.dtype.scalar)

    def create_erf(self, arg):
        wide = stock.np_erf_fp64(arg.data.astype(np.float64))
        return stock.TensorHandle(wide.astype(arg.data.dtype), arg.dtype.scalar)

    def create_clampf(self, arg, lo, hi, propagate_nans):
        clipped = np.minimum(np.maximum(arg.data, lo.data), hi.data)
        return stock.TensorHandle(clipped.astype(arg.data.dtype), arg.dtype.scalar)

    def get_bf16(self, value):
        return stock.TensorHandle(np.array([value], dtype=ml_dtypes.bfloat16), tl.bfloat16)

    def binary_op(self, lhs, rhs, op):
        found = stock_binary_op(self, lhs, rhs, op)
        # a comparison is a truth value, whatever it compared: as a scalar it is spread over a block by its type
        return stock.TensorHandle(found.data, tl.int1) if found.data.dtype == np.bool_ else found

    def unary_op(self, arg, op):
        return stock.TensorHandle(op(arg.data).astype(arg.data.dtype, copy=False), arg.dtype.scalar)


def _operand(handle, input_precision) -> np.ndarray:
    """A matmul operand in a type numpy multiplies exactly: narrow floats widen, fp32 becomes tf32."""
    data = handle.data
    if _is_narrow(handle.dtype.scalar) or data.dtype == np.float16:
        return data.astype(np.float32)
    if (
        data.dtype == np.float32
        and "TF32" in str(input_precision).upper()
        and "X3" not in str(input_precision).upper()
    ):
        return to_tf32(data)
    if np.issubdtype(data.dtype, np.integer):
        return data.astype(np.int32)
    return data


def materialize_pointers(self, offsets):
    """The lanes of a descriptor or block pointer and their mask, the mask as a value like any other."""
    pointers, mask = stock_pointers[type(self)](self, offsets)
    return pointers, stock.TensorHandle(np.asarray(mask), tl.int1)


def patch_lang_tensor(tensor, scope) -> None:
    """Scalars are arrays of one element here, and newer numpy makes no Python number of those by itself."""
    stock_patch_lang_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(np.asarray(self.handle.data).reshape(-1)[0]))


def load_knowing_other(self, ptr, mask, other, *rest, **named):
    """tl.load's semantics drop an `other` that is a single 0 as if none had been given; the builder must know."""
    self.builder.other_given = other is not None
    try:
        return semantic_load(self, ptr, mask, other, *rest, **named)
    finally:
        self.builder.other_given = False


EVERYWHERE = types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core})


def patch_everywhere():
    """Puts the interpreter under all of tl at once, for a whole launch; restore() of what comes back undoes it."""
    return stock._patch_lang(EVERYWHERE)


def call_device_function(self, *args, **kwargs):
    """A jit function called by a kernel. The stock one patches all of tl again at every call."""
    try:
        return self.rewrite()(*args, **kwargs)
    except Exception as error:
        raise stock.InterpreterError(repr(error)) from error


def install() -> None:
    if stock._get_np_dtype is np_dtype:
        return
    stock._patch_lang_tensor = patch_lang_tensor
    stock.TritonSemantic.load = load_knowing_other
    stock.InterpretedFunction.__call__ = call_device_function
    for kind in DESCRIBED:
        kind.materialize_pointers = materialize_pointers
    stock._get_np_dtype = np_dtype
    for name, method in vars(Fixes).items():
        if not name.startswith("__"):
            setattr(stock.InterpreterBuilder, name, method)
    # these names were bound to the stock method when the class was made
    for name in ("si_to_fp", "ui_to_fp", "fp_to_si", "fp_to_ui", "fp_ext", "fp_trunc"):
        setattr(stock.InterpreterBuilder, f"create_{name}", Fixes.cast_impl)
    np.seterr(all="ignore")  # a GPU divides by zero in silence

"""Decide what the code freezes of a launch's argument: its type, and 1 or a multiple of 16.
Triton's library does so in C++."""


def specialised(backend, value, is_const: bool, specialise: bool, align: bool) -> tuple:
    """Return (type, what is known of the value), as `triton._C.libtriton.native_specialize_impl` does."""
    if value is None:
        return "constexpr", None
    if isinstance(value, bool):
        return "u1", None
    if isinstance(value, int):
        return whole_number(backend, value, specialise, align)
    if isinstance(value, float):
        return "fp32", None
    if hasattr(value, "data_ptr"):
        known = backend.get_tensor_specialization(value, align=align) if specialise else None
        return ("*k" if is_const else "*") + dtype_of(value), known
    if isinstance(value, tuple):
        parts = [specialised(backend, one, False, True, True) for one in value]
        return tuple(like(value, column) for column in zip(*parts, strict=True)) if parts else ((), ())
    return of_tritons_own(value)


def whole_number(backend, value: int, specialise: bool, align: bool) -> tuple:
    if value == 1 and specialise:
        return "constexpr", 1
    known = backend.get_int_specialization(value, align=align) if specialise else None
    if -(1 << 31) <= value < 1 << 31:
        return "i32", known
    return "u64" if value >= 1 << 63 else "i64", known


def like(value: tuple, column):
    return type(value)(*column) if hasattr(value, "_fields") else tuple(column)


def dtype_of(value) -> str:
    from triton._utils import canonicalize_dtype

    return canonicalize_dtype(value.dtype)


def of_tritons_own(value) -> tuple:
    """Specialise a constant, a function or a descriptor of a tensor."""
    from triton.language import constexpr
    from triton.runtime.jit import JITCallable
    from triton.tools.tensor_descriptor import TensorDescriptor

    if isinstance(value, JITCallable):
        return "constexpr", value.cache_key
    if isinstance(value, constexpr):
        return "constexpr", value
    if isinstance(value, TensorDescriptor):
        return f"tensordesc<{dtype_of(value.base)}{list(value.block_shape)}>", None
    raise TypeError(f"an argument must be a tensor or a number, got {type(value).__name__}")

"""Replace ml_dtypes' bf16 and fp8 in a tab's numpy by arrays of their bits, which convert and compute like those of
ml_dtypes.

The bundle leads each `x.astype(dtype)` of the judge, the questions and the references here, because numpy would take a
number's bits for the number.
"""

import numpy as np

from tilescope.machine.narrow import NARROW, converted, widened


class Narrow(np.ndarray):
    """Hold an array of bf16 or fp8. Arithmetic runs in fp32 and rounds once, as in ml_dtypes."""

    def __array_ufunc__(self, ufunc, method, *inputs, **more):
        arrays = [x for x in inputs if isinstance(x, np.ndarray) and x.ndim]
        found = getattr(ufunc, method)(*map(wide, inputs), **more)
        kinds = {x.dtype for x in arrays}
        if len(kinds) > 1 or not isinstance(found, np.ndarray | np.floating) or found.dtype != np.float32:
            return found
        return narrow(found, kinds.pop())

    def __array_function__(self, function, types, arguments, more):
        """Keep the results of joining, selecting or repeating numbers Narrow, because numpy would return bare bits."""
        found = super().__array_function__(function, types, arguments, more)
        return found.view(Narrow) if getattr(found, "dtype", None) in NARROW else found


def wide(x):
    """Return bf16 or fp8 as fp32, and anything else as it is."""
    return widened(np.asarray(x)) if getattr(x, "dtype", None) in NARROW else x


def narrow(x, dtype: np.dtype) -> Narrow:
    with np.errstate(over="ignore", invalid="ignore"):
        return converted(np.asarray(x).astype(np.float32), dtype).view(Narrow)


def astype(x, dtype, **more):
    """Convert an array, or one of its elements, as `x.astype(dtype)` does where ml_dtypes is installed."""
    return narrow(wide(x), np.dtype(dtype)) if np.dtype(dtype) in NARROW else wide(x).astype(dtype, **more)

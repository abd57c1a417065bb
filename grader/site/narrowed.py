"""bf16 and fp8 in a tab, where numpy has no ml_dtypes: dtypes of their size, and a conversion from and to them.

The bundle leads each `x.astype(dtype)` of the judge, the questions and the references here, because numpy would take a
number's bits for the number.
"""

import numpy as np

from tilescope.machine.narrow import NARROW, converted, widened


def astype(x, dtype, **more):
    """Convert an array, or one element of it, as `x.astype(dtype)` does where ml_dtypes is installed."""
    if x.dtype in NARROW:
        x = widened(np.asarray(x))
    if np.dtype(dtype) in NARROW:
        return converted(x.astype(np.float32), np.dtype(dtype))
    return x.astype(dtype, **more)

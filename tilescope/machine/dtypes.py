"""The names that plans and tensors give to types of elements, and what numpy stores them as."""

import numpy as np

from .tree import NUMPY

DTYPES = {
    "bool": NUMPY["i1"],
    "bf16": NUMPY["bf16"],
    "fp16": NUMPY["f16"],
    "fp32": NUMPY["f32"],
    "fp64": NUMPY["f64"],
    "fp8e4nv": NUMPY["f8E4M3FN"],
    "fp8e5": NUMPY["f8E5M2"],
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

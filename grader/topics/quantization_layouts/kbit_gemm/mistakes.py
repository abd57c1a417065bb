"""List the mistakes of *kbit gemm*, a row each."""

from grader.questions.families import one_stride
from grader.questions.rows import edited, of_table
from grader.topics.quantization_layouts.shared_mistakes_kbit import (
    CODES,
    LAST_SCALE,
    limits,
    of_codes,
    strides,
)
from grader.topics.quantization_layouts.shared_mistakes_sums import SUMS

MISTAKES = (
    *CODES,
    *SUMS,
    edited(
        "a result in x's dtype",
        ("y_ptr.dtype.element_ty", "x_ptr.dtype.element_ty"),
        told_as="a result of 16 bits",
    ),
    edited("planes taken for dense", ("word[None, :] * stride_wk", "word[None, :]")),
    edited("sixteen rows alone", ("triton.cdiv(p.M, 16)", "1")),
    edited(
        "rows of X not masked", ("mask=mask_m[None, :] & (offs_k < K)[:, None]", "mask=(offs_k < K)[:, None]")
    ),
    edited(
        "every plane twice",
        (
            "            code |= ",
            "            plane = plane | tl.load(at_w + b * stride_wb, mask=mask, other=0)\n            code |= ",
        ),
        part="traffic",
    ),
    *of_table(of_codes(LAST_SCALE, "    ", 4096)),
)


SHORTCUTS = {
    **limits(M=(4, 16, 64, 128), N=(64, 1024, 4096), K=(32, 1024, 4096, 8192), BITS=(2, 3, 4)),
    **strides("wsxy", ("xy",)),
    "stride 2 of w taken for 1": one_stride("w", 2),
    "the stride of c taken for 1": one_stride("c", 0),
}

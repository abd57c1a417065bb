"""List the mistakes of *small product*, a row each."""

from collections.abc import Callable

import numpy as np

from grader.questions import Case
from grader.questions.draws import rounded
from grader.questions.families import within_limit
from grader.topics.roofline.shared_mistakes import block_of, changed, gives, of_ladder


def by_element(t: dict, c: Case) -> np.ndarray:
    a, b = (np.pad(v, [(0, 32 - n) for n in v.shape]) for v in (t["a"], t["b"]))
    return (a * b)[: c.sizes["M"], : c.sizes["N"]]


def unset_k(side: Callable) -> Callable:
    """NaN everywhere, where K does not fill its side."""

    def wrong(t: dict, c: Case) -> np.ndarray:
        return t["a"] @ t["b"] * (np.nan if c.sizes["K"] < side(c.sizes["K"]) else 1)

    return wrong


LOAD_A = "mask=(down < M) & (across < K), other=0.0"
LOAD_B = "mask=(down < K) & (across < N), other=0.0"


MISTAKES = of_ladder(
    ("c",),
    {
        "element by element": gives(
            "this multiplies element by element: tl.dot multiplies rows by columns",
            by_element,
            by=[("c = tl.dot(a, b)", "c = a.to(tl.float32) * b")],
        ),
        "unset lanes": gives(
            "a masked element is undefined unless other= gives it a value, and every sum along K adds some of them",
            *map(unset_k, (lambda k: 32, lambda k: max(16, block_of(k)))),
            by=[(", other=0.0", "")],
        ),
        "B by columns": gives(
            "this reads B column by column: B[k, n] is at k * N + n",
            lambda t, c: t["a"] @ t["b"].reshape(t["b"].T.shape).T,
            lambda t, c: t["a"] @ (t["b"].T if c.sizes["K"] == c.sizes["N"] else t["b"]),
            by=[("b_ptr + down * N + across", "b_ptr + across * K + down")],
        ),
        "C by columns": gives(
            "this stores C column by column: C[m, n] is at m * N + n",
            lambda t, c: (t["a"] @ t["b"]).T.reshape(c.sizes["M"], c.sizes["N"]),
            by=[("c_ptr + down * N + across", "c_ptr + across * M + down")],
        ),
        "sums in fp16": gives(
            "the sums are rounded to fp16, which ends at 65504: keep tl.dot's fp32",
            lambda t, c: rounded(t["a"] @ t["b"], "fp16"),
            by=[("tl.dot(a, b)", "tl.dot(a, b, out_dtype=tl.float16).to(tl.float32)")],
        ),
        "rows of N": changed(("a_ptr + down * K", "a_ptr + down * N")),
        "sides of 16": changed(('{"SIDE": 32}', '{"SIDE": 16}')),
        "A without a mask": changed((LOAD_A, "mask=down < M, other=0.0")),
        "B without a mask": changed((LOAD_B, "mask=across < N, other=0.0")),
        "C without a mask": changed(("c, mask=(down < M) & (across < N)", "c, mask=down < M")),
        "products by the lanes": changed(
            ("tl.dot(a, b)", "tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :], axis=1)"), part="traffic"
        ),
    },
)


SHORTCUTS = {f"{side} up to 16": within_limit(side, 16) for side in "MNK"}

"""What goes wrong in LayerNorm(GELU(x)): the whole output that each mistake gives, and the sentence that tells of it."""

import numpy as np

from grader.questions import Case
from grader.questions.draws import rounded
from grader.questions.families import computing, dense, family, one_stride, same_strides, within_limit
from kernels.roofline import reference

EPSILONS = (1e-6, 1e-5, 1e-3, 0.01, 0.1, 0.5, 1.0)


def _would(change):
    """The reference with one thing done otherwise."""

    def wrong(inputs: dict, case: Case) -> dict:
        x, w, b = (inputs[name].astype(np.float64) for name in "xwb")
        with np.errstate(all="ignore"):
            return {"y": change(x, w, b, case.scalars["eps"])}

    return wrong


def _norm(g, w, b, eps):
    return (g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + eps) * w + b


def _tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _block(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


def _mean_over_block(x, w, b, eps):
    """Sums over N elements, divided by the block's width."""
    g, n = reference.gelu(x), x.shape[-1]
    d = g - g.sum(-1, keepdims=True) / _block(n)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + eps) * w + b


def _masked_lanes_in_variance(x, w, b, eps):
    """Masked lanes hold 0 - mean when they are squared."""
    g, n = reference.gelu(x), x.shape[-1]
    mean = g.mean(-1, keepdims=True)
    square = ((g - mean) ** 2).sum(-1, keepdims=True) + (_block(n) - n) * mean**2
    return (g - mean) / np.sqrt(square / n + eps) * w + b


def _mean_of_squares(x, w, b, eps):
    g = reference.gelu(x).astype(np.float32)
    mean = g.mean(-1, keepdims=True)
    return (g - mean) / np.sqrt((g * g).mean(-1, keepdims=True) - mean * mean + np.float32(eps)) * w + b


def _sample_variance(x, w, b, eps):
    g = reference.gelu(x)
    var = ((g - g.mean(-1, keepdims=True)) ** 2).sum(-1, keepdims=True) / (x.shape[-1] - 1)
    return (g - g.mean(-1, keepdims=True)) / np.sqrt(var + eps) * w + b


def _half(x, w, b, eps):
    """GELU rounded to fp16 before the norm."""
    return _norm(rounded(reference.gelu(x), "fp16").astype(np.float64), w, b, eps)


def _nan_in_ragged_rows(inputs: dict, case: Case) -> dict:
    y = _would(lambda x, w, b, e: _norm(reference.gelu(x), w, b, e))(inputs, case)["y"]
    return {"y": np.full_like(y, np.nan) if _block(case.sizes["N"]) != case.sizes["N"] else y}


def _cleaned(inputs: dict, case: Case) -> dict:
    x = np.nan_to_num(inputs["x"].astype(np.float64), nan=0.0, posinf=np.inf)
    with np.errstate(invalid="ignore"):
        return {
            "y": _norm(reference.gelu(x), inputs["w"].astype(np.float64), inputs["b"], case.scalars["eps"])
        }


MISTAKES = (
    family("no gelu", "this is LayerNorm(x): the GELU is missing", _would(_norm)),
    family(
        "gelu last",
        "this is GELU(LayerNorm(x)): the GELU comes first here",
        _would(lambda x, w, b, e: reference.gelu(_norm(x, w, b, e))),
    ),
    family("no bias", "the bias is missing", _would(lambda x, w, b, e: _norm(reference.gelu(x), w, 0, e))),
    family(
        "no weight", "the weight is missing", _would(lambda x, w, b, e: _norm(reference.gelu(x), 1, b, e))
    ),
    family(
        "tanh gelu",
        "this is GELU's tanh approximation; the question asks for the exact one, with erf",
        _would(lambda x, w, b, e: _norm(_tanh_gelu(x), w, b, e)),
    ),
    family(
        "no eps",
        "eps is missing under the root",
        _would(lambda x, w, b, e: _norm(reference.gelu(x), w, b, 0)),
    ),
    family(
        "eps outside the root",
        "eps is added to the variance, under the root",
        _would(
            lambda x, w, b, e: (
                (reference.gelu(x) - reference.gelu(x).mean(-1, keepdims=True))
                / (reference.gelu(x).std(-1, keepdims=True) + e)
                * w
                + b
            )
        ),
    ),
    family(
        "padding counted",
        "the mean is taken over the block's masked lanes too: divide by N",
        _would(_mean_over_block),
    ),
    family(
        "padding in the variance",
        "masked lanes hold minus the mean when they are squared: set them to 0 after subtracting it",
        _would(_masked_lanes_in_variance),
    ),
    family(
        "mean of squares",
        "the mean of the squares less the square of the mean cancels where values lie far from zero: subtract the mean first",
        _would(_mean_of_squares),
    ),
    family("sample variance", "the variance is divided by N here, not by N - 1", _would(_sample_variance)),
    family(
        "half precision",
        "something is rounded to fp16 before the norm: compute in fp32 from the load to the store",
        _would(_half),
    ),
    family("unset lanes", "NaN wherever a row fills no block: give the loads other=0.0", _nan_in_ragged_rows),
    family(
        "NaN cleaned away",
        "a NaN or an infinity in a row makes that row NaN: nothing may be replaced but masked lanes",
        _cleaned,
    ),
)

@computing
def from_a_table(inputs: dict, case: Case) -> dict:
    """The right norm with the nearest eps of a table."""
    eps = min(EPSILONS, key=lambda e: abs(np.log(e / case.scalars["eps"])))
    return _would(lambda x, w, b, _: _norm(reference.gelu(x), w, b, eps))(inputs, case)


SHORTCUTS = {
    "eps from a table": from_a_table,
    **{f"N up to {most}": within_limit("N", most) for most in (512, 1024, 2048, 8192)},
    **{f"M up to {most}": within_limit("M", most) for most in (64, 256, 1024)},
    **{f"stride {axis} of {name} taken for 1": one_stride(name, axis) for name in "xy" for axis in (0, 1)},
    "x taken for dense": dense("x"),
    "y taken for dense": dense("y"),
    "x's strides for y": same_strides("x", "y"),
    "y's strides for x": same_strides("y", "x"),
}

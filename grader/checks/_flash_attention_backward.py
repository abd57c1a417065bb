"""Attention's gradients: how far a right backward may be from the reference, and what each common mistake gives."""

import numpy as np

from grader.checks._flash_attention_mistakes import BEYOND_FP16, ROUNDING, WEIGHT_ROUNDING, causal, near
from grader.questions import Case, Mistake
from kernels.flash_attention import reference


def gradients(inputs: dict, c: Case) -> dict:
    q, k, v, do = (inputs[x] for x in ("q", "k", "v", "do"))
    return dict(
        zip(
            ("dq", "dk", "dv"),
            reference.attention_backward(do, q, k, v, causal=True, scale=c.scalars["scale"]),
            strict=True,
        )
    )


def _weights(inputs: dict, c: Case, seen, normal=True) -> np.ndarray:
    """What a backward computes again from the saved log-sum-exp."""
    s = reference.scores(*(inputs[x].astype(np.float64) for x in "qk"), c.scalars["scale"])
    with np.errstate(over="ignore"):
        return np.where(seen, np.exp(s - normal * inputs["lse"].astype(np.float64)[..., None]), 0)


def _gradients_by_hand(inputs: dict, c: Case, seen=None, delta=True, **change) -> dict:
    """As a kernel computes them, with one step left out."""
    q, k, v, do, o = (inputs[x].astype(np.float64) for x in ("q", "k", "v", "do", "o"))
    p = _weights(inputs, c, causal(c) if seen is None else seen, **change)
    ds = p * (do @ v.swapaxes(-1, -2) - (o * do).sum(-1, keepdims=True) * delta) * c.scalars["scale"]
    return {"dq": ds @ k, "dk": ds.swapaxes(-1, -2) @ q, "dv": p.swapaxes(-1, -2) @ do}


def gradient_within(inputs: dict, c: Case, want: dict) -> dict:
    """Weights and dS are rounded before their products, delta comes from a rounded output; sums are fp32."""
    q, k, v, do, o = (np.abs(inputs[x].astype(np.float64)) for x in ("q", "k", "v", "do", "o"))
    unit, scale = WEIGHT_ROUNDING[c.dtype], abs(c.scalars["scale"])
    p, across = _weights(inputs, c, causal(c)), v.swapaxes(-1, -2)
    share = unit + 2.0**-16 * scale * (q @ k.swapaxes(-1, -2))  # of a weight, with its score's own error
    delta = (o * do).sum(-1, keepdims=True)
    ds = scale * p * (share * (do @ across + delta) + unit * delta)
    off = {"dq": ds @ k, "dk": ds.swapaxes(-1, -2) @ q, "dv": (p * share).swapaxes(-1, -2) @ do}
    return {
        name: ROUNDING[c.dtypes.get(name, c.dtype)] * np.abs(w) + off[name] + 1e-5 for name, w in want.items()
    }


def _one_gradient(got, want, would: dict) -> bool:
    """One of the gradients is what the mistake gives for it, seen from its largest element."""
    alike = [g for g in would.values() if g.shape == got.shape]
    return any(near(got, g, 5e-3 * float(np.abs(g).max()), want) for g in alike)


def _backward(name: str, sentence: str, would) -> Mistake:
    return Mistake(name, sentence, shows=lambda i, c, got, want: _one_gradient(got, want, would(i, c)))


def _unscaled(inputs: dict, c: Case) -> dict:
    found = gradients(inputs, c)
    return {"dq": found["dq"] / c.scalars["scale"], "dk": found["dk"] / c.scalars["scale"]}


def _seeing(mask):
    return lambda inputs, c: _gradients_by_hand(inputs, c, mask(c.sizes["M"], c.sizes["N"]) > 0)


BACKWARD = (
    BEYOND_FP16,
    _backward("no scale", "dq and dk carry the scale of the scores once", _unscaled),
    _backward("no mask", "weights of keys that the query never saw: mask p here too, its gradient is 0", _seeing(lambda m, n: np.ones((m, n)))),
    _backward("mask from the start", "query i stands at key i + N - M: with more keys than queries the mask starts further right", _seeing(np.tri)),
    _backward("no delta", "ds = p * (dp - delta): without delta the softmax's own sum has no gradient", lambda i, c: _gradients_by_hand(i, c, delta=False)),
    _backward("not normalised", "weights are exp(s - lse): without the log-sum-exp a row's weights do not add up to 1", lambda i, c: _gradients_by_hand(i, c, normal=False)),
)  # fmt: skip

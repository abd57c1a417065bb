"""Hidden cases of attention whose scores lie where a shortcut goes wrong, and by more than the question allows."""

import numpy as np

from grader import questions
from grader.topics.flash_attention.backward.cases import TINY_WEIGHTS, causal, weights
from grader.topics.flash_attention.shared import BRINK, SATURATED, TIED, tied
from kernels.flash_attention import reference

LARGEST = float(np.finfo(np.float16).max)


def drawn(name: str, values: str):
    question = questions.find(f"flash_attention.{name}")
    case = next(c for c in question.hidden(np.random.default_rng(5)) if c.values == values)
    inputs = question.inputs(case, np.random.default_rng(6))
    return question, case, inputs, question.reference(inputs, case)


def scores(inputs: dict, case) -> np.ndarray:
    q, k = (inputs[x].astype(np.float64) for x in "qk")
    q = q if q.ndim == 4 else q[:, :, None]
    return case.scalars["scale"] * q @ np.repeat(k, q.shape[1] // k.shape[1], 1).swapaxes(-1, -2)


def test_a_weight_that_is_not_rescaled_is_beyond_fp16():
    _, case, inputs, _ = drawn("forward", BRINK)
    s = scores(inputs, case)
    weight = np.exp(s[..., -1] - s[..., 0])
    assert (weight < 2.0**16).all() and (weight > LARGEST + 15).all()


def test_equal_scores_are_so_large_that_a_logarithm_beside_them_is_lost():
    _, case, inputs, _ = drawn("split_decode", TIED)
    s = scores(inputs, case)[..., tied(case.sizes["N"])].astype(np.float32)
    assert np.ptp(s) == 0 and s.flat[0] + np.float32(np.log(case.sizes["N"])) == s.flat[0]


def test_a_tanh_that_ends_early_is_seen():
    question, case, inputs, want = drawn("window_softcap", SATURATED)
    cap, (m, n) = case.scalars["softcap"], (case.sizes[x] for x in "MN")
    s = cap * np.tanh(np.minimum(scores(inputs, case) / cap, 4.5))
    s = np.where(reference.visible(m, n, causal=True, window=(case.sizes["W"], 0)), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    v = np.repeat(inputs["v"].astype(np.float64), s.shape[1] // inputs["v"].shape[1], 1)
    wrong = p / p.sum(-1, keepdims=True) @ v
    assert (np.abs(wrong - want["o"]) > question.tolerance(inputs, case, want)["o"]).mean() > 0.5


def test_gradients_from_rounded_weights_are_seen():
    question, case, inputs, want = drawn("backward", TINY_WEIGHTS)
    allowed, wrong = question.tolerance(inputs, case, want)["dk"], np.zeros(want["dk"].shape)
    for at in np.ndindex(*inputs["q"].shape[:2]):
        one = {name: array[at].astype(np.float64) for name, array in inputs.items()}
        p = weights(one, case, causal(case)).astype(np.float16).astype(np.float64)
        delta = (one["o"] * one["do"]).sum(-1, keepdims=True)
        wrong[at] = case.scalars["scale"] * (p * (one["do"] @ one["v"].T - delta)).T @ one["q"]
    assert (np.abs(wrong - want["dk"]) > allowed).mean() > 0.1

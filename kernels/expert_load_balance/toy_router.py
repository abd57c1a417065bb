"""Train a small router in a second of numpy, to see the effect of three ways of balancing.

Tokens come from clusters, some common and most rare. Each cluster has its own right answer, a linear map. The experts
are linear maps too, so the layer learns which expert serves which clusters. Nothing in the task asks for even loads,
and an expert that is chosen early learns more and is chosen more. Without balancing a few experts do all the work.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernels import require
from kernels.expert_load_balance.reference import (
    auxiliary_loss,
    bias_update,
    choose,
    imbalance,
    loads_of,
    probabilities,
)


@dataclass(frozen=True)
class Task:
    centres: np.ndarray  # (clusters, hidden)
    maps: np.ndarray  # (clusters, hidden, hidden), the right answers
    common: np.ndarray  # (clusters,), how often each comes

    def draw(self, tokens: int, rng) -> tuple[np.ndarray, np.ndarray]:
        """Return x and the layer's expected output."""
        cluster = rng.choice(len(self.common), tokens, p=self.common)
        x = self.centres[cluster] + 0.3 * rng.standard_normal((tokens, self.centres.shape[1]))
        return x, np.einsum("th,thi->ti", x, self.maps[cluster])


def task(clusters: int = 24, hidden: int = 16, seed: int = 0) -> Task:
    """Return a task whose cluster i comes in proportion to 1 / (i + 1). All tokens have much in common, as hidden states have."""
    rng = np.random.default_rng(seed)
    common = 1 / np.arange(1, clusters + 1)
    maps = rng.standard_normal((clusters, hidden, hidden)) * hidden**-0.5
    centres = rng.standard_normal((clusters, hidden)) + 2 * rng.standard_normal(hidden)
    return Task(centres, maps, common / common.sum())


@dataclass
class Layer:
    router: np.ndarray  # (hidden, experts)
    experts: np.ndarray  # (experts, hidden, hidden)
    bias: np.ndarray  # (experts,), for choosing only


@dataclass(frozen=True)
class Pass:
    """Hold one forward pass and the values that the gradients need."""

    logits: np.ndarray
    topk_ids: np.ndarray
    topk_weights: np.ndarray  # softmax over the chosen
    each: np.ndarray  # (tokens, top_k, hidden), the output of each chosen expert
    out: np.ndarray


def forward(layer: Layer, x: np.ndarray, top_k: int) -> Pass:
    logits = x @ layer.router
    topk_ids = choose(probabilities(logits), top_k, layer.bias)
    topk_weights = probabilities(np.take_along_axis(logits, topk_ids, axis=1))
    each = np.zeros((*topk_ids.shape, x.shape[1]))
    for e in range(len(layer.experts)):
        token, place = np.nonzero(topk_ids == e)
        each[token, place] = x[token] @ layer.experts[e]
    return Pass(logits, topk_ids, topk_weights, each, np.einsum("tk,tkh->th", topk_weights, each))


def gradients(layer: Layer, x: np.ndarray, wanted: np.ndarray, seen: Pass) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of the mean squared error, by the logits, (tokens, experts), and by the experts' maps."""
    error = 2 * (seen.out - wanted) / wanted.size
    by_weight = np.einsum("th,tkh->tk", error, seen.each)
    by_chosen = seen.topk_weights * (by_weight - (seen.topk_weights * by_weight).sum(axis=1, keepdims=True))
    by_logits = np.zeros_like(seen.logits)
    np.put_along_axis(by_logits, seen.topk_ids, by_chosen, axis=1)
    by_experts = np.zeros_like(layer.experts)
    for e in range(len(layer.experts)):
        token, place = np.nonzero(seen.topk_ids == e)
        by_experts[e] = x[token].T @ (seen.topk_weights[token, place, None] * error[token])
    return by_logits, by_experts


@dataclass(frozen=True)
class Trained:
    layer: Layer
    losses: np.ndarray  # (steps,), the task's alone
    loads: np.ndarray  # (steps, experts)
    fresh_loss: float  # on tokens not trained on
    fresh_loads: np.ndarray

    @property
    def imbalance(self) -> float:
        return imbalance(self.fresh_loads)


class Adam:
    """Take steps whose size barely depends on the gradient's, since each number has its own mean and spread."""

    def __init__(self, rate: float):
        self.rate, self.kept, self.steps = rate, {}, 0

    def __call__(self, name: str, value: np.ndarray, gradient: np.ndarray) -> None:
        mean, square, steps = self.kept.get(name, (0.0, 0.0, 0))
        mean, square, steps = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2, steps + 1
        self.kept[name] = (mean, square, steps)
        value -= self.rate * (mean / (1 - 0.9**steps)) / (np.sqrt(square / (1 - 0.99**steps)) + 1e-8)


WAYS = ("none", "auxiliary loss", "bias")


def train(
    way: str = "none",
    *,
    experts: int = 8,
    top_k: int = 2,
    steps: int = 400,
    tokens: int = 512,
    strength: float = 0.3,  # of the auxiliary loss, added to the mean squared error
    rate: float = 0.001,  # of the bias, a step
    seed: int = 0,
    say: Callable[[int, float, np.ndarray], None] = lambda step, loss, loads: None,
) -> Trained:
    """Train one layer from the same start and on the same tokens, whatever the way of balancing."""
    require.one_of(WAYS, way=way)
    require.count(experts=experts, top_k=top_k, steps=steps, tokens=tokens)
    require.at_most(experts, "a token picks different experts", top_k=top_k)
    require.not_negative(strength=strength, rate=rate)
    world, rng = task(seed=seed), np.random.default_rng(seed + 1)
    hidden = world.centres.shape[1]
    layer = Layer(
        0.1 * rng.standard_normal((hidden, experts)),
        rng.standard_normal((experts, hidden, hidden)) * hidden**-0.5,
        np.zeros(experts),
    )
    adam, losses, loads = Adam(0.01), [], []
    for step in range(steps):
        x, wanted = world.draw(tokens, rng)
        seen = forward(layer, x, top_k)
        by_logits, by_experts = gradients(layer, x, wanted, seen)
        losses.append(float(((seen.out - wanted) ** 2).mean()))
        loads.append(loads_of(seen.topk_ids, experts))
        if way == "auxiliary loss":
            by_logits += strength * auxiliary_loss(seen.logits, seen.topk_ids)[1]
        if way == "bias":
            layer.bias = bias_update(layer.bias, loads[-1], rate)
        adam("router", layer.router, x.T @ by_logits)
        adam("experts", layer.experts, by_experts)
        say(step, losses[-1], loads[-1])
    x, wanted = world.draw(8 * tokens, rng)
    seen = forward(layer, x, top_k)
    fresh = float(((seen.out - wanted) ** 2).mean())
    return Trained(layer, np.array(losses), np.array(loads), fresh, loads_of(seen.topk_ids, experts))

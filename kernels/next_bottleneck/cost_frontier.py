"""Compute the efficiency frontier, where throughput, latency, cost, quality and memory pull against each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernels import require
from kernels.machines import Machine
from kernels.next_bottleneck.cost_chain import Transformer, decode_chain

DIMENSIONS = (  # name, how it is measured, what pulls against it
    ("throughput", "tokens a second", "larger batches raise latency"),
    ("latency", "time to first token, time between tokens", "smaller batches cost more a token"),
    ("cost", "dollars a million tokens", "the cheapest may miss latency or quality"),
    ("quality", "perplexity, benchmarks, human preference", "narrow numbers and guesses need guardrails"),
    ("memory", "peak GPU memory", "contexts and batches take room from the model"),
)


@dataclass(frozen=True)
class Configuration:
    """Hold one way to serve the same 70B model on H100 GPUs. `reported_` figures are the source's."""

    name: str
    gpus: int
    users: int
    between_tokens_s: float
    weights: str
    speculation: bool
    reported_tokens_s: float
    reported_usd_per_1k: float

    @property
    def tokens_s(self) -> float:
        """Return the rate at which every user gets a token each interval, the only consistent one."""
        return self.users / self.between_tokens_s


# B is reported at 4,000 tokens/s an H100, 16,000 on four. 64 users at 120 ms a token are 533 in all.
LATENCY = Configuration("A: latency", 8, 1, 0.020, "fp16", True, 50, 0.12)
THROUGHPUT = Configuration("B: throughput", 4, 64, 0.120, "int4", False, 4 * 4000, 0.002)


@dataclass(frozen=True)
class Fastest:
    """Hold the least time between two tokens of every user, at the ceilings of all GPUs, without links and launches."""

    weights_s: float  # every weight read once, or multiplied for all users, whichever is slower
    caches_s: float  # each user's tokens so far, read once a token

    @property
    def between_tokens_s(self) -> float:
        return self.weights_s + self.caches_s


def fastest(
    model: Transformer, machine: Machine, *, users: int, gpus: int, weight_bits: float, context: int
) -> Fastest:
    """Return a step's parts at best. Users share one reading of the weights until arithmetic takes longer, never caches."""
    parts = decode_chain(
        model, machine, batch=users, context=context, devices=gpus, weight_bits=weight_bits, graphs=True
    )
    return Fastest(parts["linear weights"], parts["attention"])


def most_users(model: Transformer, machine: Machine, *, gpus: int, weight_bits: float, context: int) -> int:
    """Return how many caches of `context` 16-bit tokens fit next to the weights, 0 if the weights alone don't fit."""
    require.count(gpus=gpus, context=context)
    require.positive(weight_bits=weight_bits)
    cache_bytes = model.cached_per_token * context * 2
    room = gpus * machine.memory_bytes - model.parameters * weight_bits / 8
    return max(0, int(room // cache_bytes))


def usd_per_1k_tokens(gpus: int, usd_per_gpu_hour: float, tokens_s: float) -> float:
    require.count(gpus=gpus)
    require.positive(usd_per_gpu_hour=usd_per_gpu_hour, tokens_s=tokens_s)
    return gpus * usd_per_gpu_hour / 3600 / tokens_s * 1000


def implied_usd_per_gpu_hour(gpus: int, usd_per_1k: float, tokens_s: float) -> float:
    """Return the price of a GPU hour that a price of tokens implies. A's $0.12 implies $2.70."""
    require.count(gpus=gpus)
    require.positive(usd_per_1k=usd_per_1k, tokens_s=tokens_s)
    return usd_per_1k / 1000 * tokens_s * 3600 / gpus


def implied_tokens_s(gpus: int, usd_per_gpu_hour: float, usd_per_1k: float) -> float:
    """Return the rate that a price of tokens needs at a price of GPU hours."""
    require.count(gpus=gpus)
    require.positive(usd_per_gpu_hour=usd_per_gpu_hour, usd_per_1k=usd_per_1k)
    return gpus * usd_per_gpu_hour / 3600 / usd_per_1k * 1000


def dominates(one: Mapping[str, float], other: Mapping[str, float], goals: Mapping[str, str]) -> bool:
    """Return whether a point is at least as good in every goal ('more' or 'less') and better in one."""
    signs = {}
    for name, goal in goals.items():
        require.one_of(("more", "less"), **{f"goal of {name}": goal})
        signs[name] = 1 if goal == "more" else -1
    gains = [sign * (one[name] - other[name]) for name, sign in signs.items()]
    return min(gains) >= 0 < max(gains)


def frontier(points: Sequence[Mapping[str, float]], goals: Mapping[str, str]) -> list[int]:
    """Return the indices of the points that no other point dominates."""
    require.not_empty(points=points, goals=goals)
    return [
        i
        for i, point in enumerate(points)
        if not any(dominates(other, point, goals) for j, other in enumerate(points) if j != i)
    ]

"""List the shapes and routings, from even to collapsed, on which the layer is tested and measured. Odd ones say why."""

import functools
from dataclasses import dataclass

import numpy as np

from kernels import require
from kernels.expert_load_balance import toy_router
from kernels.expert_load_balance.beside_model import Measured
from kernels.expert_load_balance.cost_placement import Placement, contiguous, greedy, replicate
from kernels.routing import assignments, expert_loads, hot_loads
from kernels.tiny_model import kept


@dataclass(frozen=True)
class Shape:
    name: str
    experts: int
    top_k: int
    hidden: int
    intermediate: int

    @property
    def pair_flops(self) -> int:
        """Count one token with one expert, which takes three matmuls."""
        return 6 * self.hidden * self.intermediate


MIXTRAL = Shape("Mixtral-like", 8, 2, 4096, 14336)
QWEN = Shape("Qwen3-like", 128, 8, 2048, 768)
DEEPSEEK = Shape("DeepSeek-like", 256, 8, 7168, 2048)
SMALL = Shape("small", 8, 2, 64, 128)
MANY = Shape("many small", 32, 4, 128, 64)

SKEWS = {
    "even": lambda tokens, k, experts: expert_loads(tokens, k, experts),
    "Zipf": lambda tokens, k, experts: expert_loads(tokens, k, experts, skew=1.0),
    "one hot": lambda tokens, k, experts: hot_loads(tokens, k, experts, 1.0),
    "same few": lambda tokens, k, experts: (tokens,) * k + (0,) * (experts - k),
}  # in the last two every token picks expert 0, or every token picks the same experts, as after a router's collapse


# Real ones, which the tiny model's second router chose on unseen text. Its layer has 8 experts, 2 for each token.
TRACED = {"traced": "none", "traced, balanced": "bias"}


@functools.cache
def traced(way: str) -> np.ndarray:
    """Return (tokens, 2), token after token of running text, by how the router was balanced."""
    return kept.traces()[way][1].astype(np.int64)


@functools.cache
def learned(way: str) -> toy_router.Trained:
    """Train the toy router balanced this way, here and now, in a second of numpy."""
    return toy_router.train(way)


def _of_trace(skew: str, tokens: int, top_k: int, experts: int) -> np.ndarray:
    if (experts, top_k) != (8, 2):
        raise ValueError(
            f"skew must be one of {', '.join(SKEWS)} for {experts} experts and top {top_k}, got {skew!r}; "
            "the traces are of 8 experts and top 2"
        )
    return np.resize(traced(TRACED[skew]), (tokens, top_k))


def loads_of_skew(skew: str, tokens: int, top_k: int, experts: int) -> tuple[int, ...]:
    """Return the tokens of each expert in a batch of `tokens`. A drawn routing's hot experts have the lowest numbers."""
    require.one_of((*SKEWS, *TRACED), skew=skew)
    if skew in TRACED:
        return tuple(
            np.bincount(_of_trace(skew, tokens, top_k, experts).reshape(-1), minlength=experts).tolist()
        )
    return tuple(SKEWS[skew](tokens, top_k, experts))


def routing(skew: str, tokens: int, top_k: int, experts: int, seed: int = 0):
    """Return topk_ids (tokens, top_k) with the skew's loads, and topk_weights that sum to 1. Drawn pairs are dealt to
    tokens at random, and those of a trace stay in the order of their text.
    """
    rng = np.random.default_rng(seed)
    require.one_of((*SKEWS, *TRACED), skew=skew)
    if not tokens:
        return np.zeros((0, top_k), np.int64), np.zeros((0, top_k), np.float32)
    if skew in TRACED:
        topk_ids = _of_trace(skew, tokens, top_k, experts)
    else:
        choices = assignments(loads_of_skew(skew, tokens, top_k, experts), tokens, top_k)
        topk_ids = rng.permuted(np.asarray(choices, np.int64)[rng.permutation(tokens)], axis=1)
    topk_weights = rng.uniform(0.2, 1.0, topk_ids.shape)
    return topk_ids, (topk_weights / topk_weights.sum(axis=1, keepdims=True)).astype(np.float32)


PLACEMENTS = {
    "contiguous": lambda loads, ranks: contiguous(len(loads), ranks),
    "greedy": greedy,
    "replicated": lambda loads, ranks: replicate(loads, ranks, spare_slots=ranks),
}  # replicated, with one slot more on every rank


def place(how: str, loads, ranks: int) -> Placement:
    require.one_of(tuple(PLACEMENTS), placement=how)
    return PLACEMENTS[how](loads, ranks)


def recorded(run: dict) -> Measured:
    """Return a run of `measure`, read from its JSON, together with the cost model."""
    return Measured(run, loads_of_skew, place)


@dataclass(frozen=True)
class Setting:
    """Hold one measured step, with `tokens` on each of `ranks`."""

    shape: Shape
    ranks: int
    tokens: int
    skew: str = "even"
    placement: str = "contiguous"
    parts: int = 1  # more than 1 overlaps exchanges with the experts
    split: str = "experts"  # the unit of the parts, one of overlap.SPLITS
    home_first: bool = False
    dtype: str = "bf16"

    @property
    def loads(self) -> tuple[int, ...]:
        return loads_of_skew(self.skew, self.ranks * self.tokens, self.shape.top_k, self.shape.experts)

    @property
    def placed(self) -> Placement:
        return place(self.placement, self.loads, self.ranks)


# Tokens of each rank in the check of bits. An odd number says why.
CHECKED_TOKENS = {
    "alike": lambda ranks: [24] * ranks,
    "one rank has none": lambda ranks: [0] + [17] * (ranks - 1),  # a sender of nothing still takes part
    "one token in all": lambda ranks: [0] * (ranks - 1) + [1],  # most slots stay empty
    "none at all": lambda ranks: [0] * ranks,
}


SKEWED = ("Zipf", "one hot", "same few")


def settings(ranks: int, device: str, quick: bool = False) -> list[Setting]:
    """List all measured settings, those of one shape together, because its weights are drawn once."""
    shapes = TIMED[device]
    found = []
    for shape in shapes if not quick else list(shapes)[:1]:
        counts = shapes[shape]
        most = counts[-1:] if quick else counts[-2:]
        one = functools.partial(Setting, shape, ranks, dtype=DTYPE[device])
        real = TRACED if (shape.experts, shape.top_k) == (8, 2) and not quick else ()
        found += [one(tokens, skew) for tokens in (most if quick else counts) for skew in (*SKEWS, *real)]
        for tokens in most:
            for skew in (*SKEWED, *real):
                found += [one(tokens, skew, how) for how in ("greedy", "replicated")]
                found.append(one(tokens, skew, "replicated", home_first=True))
            found += [one(tokens, parts=n, split=what) for what in ("experts", "tokens") for n in (2, 4)]
    return found


TIMED = {
    "cuda": {shape: (16, 256, 1024, 4096) for shape in (MIXTRAL, QWEN, DEEPSEEK)},
    "cpu": {SMALL: (16, 128), MANY: (16, 128)},
}
DTYPE = {"cuda": "bf16", "cpu": "fp32"}


def _busiest(shape: Shape, ranks: int, tokens: int, skew: str, placements=tuple(PLACEMENTS)) -> tuple:
    return tuple(Setting(shape, ranks, tokens, skew, how) for how in placements)


# Whose busiest device is timed on one GPU, by placement.
BUSIEST = (
    *_busiest(DEEPSEEK, 8, 4096, "Zipf"),
    *_busiest(DEEPSEEK, 8, 64, "Zipf"),  # a decode step, which mostly reads weights
    *_busiest(MIXTRAL, 2, 4096, "Zipf"),
    # of 8 experts on 8 devices each is alone, so greedy only moves them, and the busiest has the same rows
    *_busiest(MIXTRAL, 8, 4096, "traced", ("contiguous", "replicated")),
    *_busiest(QWEN, 8, 4096, "Zipf"),
)

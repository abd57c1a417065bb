"""Count the decode chain: where a step's time goes, which part is next, and the gain of curing parts in turn."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernels import parts, require
from kernels.machines import Machine
from kernels.next_bottleneck.cost_overlap import all_reduce

# "Beyond attention" speaks of ~34 GB of weights read a pass: that is a quarter of 141 GB in bf16, one GPU of 4.
REPORTED_WEIGHT_READ_BYTES = 34e9

REMEDIES = {  # part of the chain -> what to try when it is the largest
    "linear weights": "quantize the weights, with a kernel tuned for the format and the GPU",
    "attention": "a fused kernel, then fewer or narrower cached keys and values",
    "element-wise": "fuse it into its neighbours",
    "all-reduce": "overlap it, or split it into reduce-scatter and all-gather",
    "MoE all-to-all": "check the routing balance and the experts' GPUs",
    "sampling": "fuse the chain from logits to token, or use a batched kernel",
    "launch gaps": "CUDA Graphs, batching, or the scheduler",
}


@dataclass(frozen=True)
class Transformer:
    """Hold the sizes of a dense decoder with grouped-query attention and a gated MLP."""

    name: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int

    @property
    def linear_parameters(self) -> int:
        """Return the weights that a step multiplies by: every layer's matrices and the output head."""
        attention = 2 * self.hidden * (self.heads + self.kv_heads) * self.head_dim
        return self.layers * (attention + 3 * self.hidden * self.intermediate) + self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """Return the parameters with the embedding table, of which a step reads one row a token."""
        return self.linear_parameters + self.vocabulary * self.hidden

    @property
    def cached_per_token(self) -> int:
        """Return the numbers that a token leaves in the cache: a key and a value in each layer."""
        return 2 * self.layers * self.kv_heads * self.head_dim


LLAMA_70B = Transformer("Llama-3-70B", 80, 8192, 28672, 64, 8, 128, 128256)
LLAMA_8B = Transformer("Llama-3-8B", 32, 4096, 14336, 32, 8, 128, 128256)


def decode_chain(
    model: Transformer,
    machine: Machine,
    *,
    batch: int,
    context: int,
    devices: int = 1,
    weight_bits: float = 16,
    kv_bits: float = 16,
    kernels_per_layer: int = 30,
    elementwise_passes: int = 12,
    sampling_kernels: int = 12,
    graphs: bool = False,
    launch_s: float | None = None,
) -> dict[str, float]:
    """Return the seconds of each part of one decode step, at the machine's ceilings, nothing overlapped.

    `elementwise_passes` are reads or writes of a hidden state a layer. A graph pays one launch for all.
    """
    require.count(batch=batch, context=context, devices=devices, kernels_per_layer=kernels_per_layer)
    require.positive(weight_bits=weight_bits, kv_bits=kv_bits)
    require.whole(elementwise_passes=elementwise_passes, sampling_kernels=sampling_kernels)
    launch_s = machine.launch_s if launch_s is None else launch_s
    require.not_negative(launch_s=launch_s)
    weights = model.linear_parameters / devices
    cached = model.cached_per_token * context * batch / devices
    score_flops = 4 * model.layers * model.heads * model.head_dim * context * batch / devices
    state = batch * model.hidden * 2
    kernels = kernels_per_layer * model.layers + sampling_kernels
    one_sum = all_reduce(state, devices, machine.link_bandwidth or machine.bandwidth, launch_s).total_s
    return {
        "linear weights": machine.time(2 * weights * batch, weights * weight_bits / 8),
        "attention": machine.time(score_flops, cached * kv_bits / 8),
        "element-wise": machine.time(0, elementwise_passes * model.layers * state),
        "all-reduce": 2 * model.layers * one_sum if devices > 1 else 0.0,
        "sampling": machine.time(0, 2 * sampling_kernels * batch * model.vocabulary * 4),
        "launch gaps": launch_s * (1 if graphs else kernels),
    }


@dataclass(frozen=True)
class Next:
    part: str
    share: float
    ceiling: float  # the speedup if the part took no time at all
    remedy: str


def next_bottleneck(parts_s: Mapping[str, float], leave_out: tuple[str, ...] = ()) -> Next:
    """Return the largest part that is not left out (say, attention that was just made fast), and what to try."""
    part = parts.largest(parts_s, leave_out)
    share = parts.shares(parts_s)[part]
    ceiling = 1 / (1 - share) if share < 1 else float("inf")
    return Next(part, share, ceiling, REMEDIES.get(part, "profile inside it"))


@dataclass(frozen=True)
class Cure:
    part: str
    before_s: float  # of the whole step
    after_s: float
    parts_s: dict[str, float]

    @property
    def speedup(self) -> float:
        return self.before_s / self.after_s


def cure_in_turn(parts_s: Mapping[str, float], cuts: Mapping[str, float]) -> list[Cure]:
    """Profile, cut the largest part that has a cure left, profile again, until no cure is left."""
    now, left, steps = dict(parts_s), dict(cuts), []
    require.one_of(tuple(now), **{f"cut of {name}": name for name in left})
    while left:
        part = parts.largest({name: now[name] for name in left})
        after = parts.cut(now, {part: left.pop(part)})
        require.positive(**{"time left after the cuts": sum(after.values())})
        steps.append(Cure(part, sum(now.values()), sum(after.values()), after))
        now = after
    return steps

"""Compute what one decode step of a Qwen3-MoE-style transformer must move and compute, slot by slot, and in how many
launches.

Bytes are those that no kernel can avoid: weights of the expected experts, keys and values of every row, and a slot's
inputs and outputs, each once. A time is the largest of a slot's limits: bytes, arithmetic, launches.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kernels import require
from kernels.next_bottleneck.shapes import Shape

SIXTEEN, INT32, FP32 = 2.0, 4.0, 4.0  # bytes
# Launches of a slot: the course's kernels as decode_step.py wires them, and PyTorch's operations as plain.py writes
# them, where one operation may be several launches.
LAUNCHES = {
    "embed": {"course": 1, "plain": 1},
    "norm": {"course": 1, "plain": 10},
    "qkv": {"course": 1, "plain": 1},
    "rotary": {"course": 1, "plain": 42},
    "attention": {"course": 2, "plain": 10},
    "out": {"course": 1, "plain": 1},
    "router": {"course": 1, "plain": 5},
    "order": {"course": 1, "plain": 12},
    "experts": {"course": 2, "plain": 5},
    "combine": {"course": 1, "plain": 6},
    "head": {"course": 1, "plain": 1},
    "sample": {"course": 2, "plain": 2},
}
# Attention adds up in a second launch, unless no sequence is split, since rows times key heads fill an H200, or the keys
# are one tile.
FILLED, TILE = 198, 128
# For a few rows the program that arrives last finishes the sampling, and a second launch is not needed.
FEW = 4
ONCE = ("embed", "last norm", "head", "sample")  # the others are there in every layer


@dataclass(frozen=True)
class Work:
    """Hold the work of one slot in one step, all layers together."""

    bytes: float
    flop: float
    launches: int

    def __add__(self, other: "Work") -> "Work":
        return Work(self.bytes + other.bytes, self.flop + other.flop, self.launches + other.launches)

    def times(self, count: int) -> "Work":
        return Work(self.bytes * count, self.flop * count, self.launches * count)

    def seconds(self, byte_s: float, flop_s: float, launch_s: float) -> float:
        """Return the time that no filling with this number of launches can beat."""
        require.positive(byte_s=byte_s, flop_s=flop_s)
        require.not_negative(launch_s=launch_s)
        return max(self.bytes / byte_s, self.flop / flop_s, self.launches * launch_s)


def expected_experts(rows: int, top_k: int, experts: int) -> float:
    """Return how many experts at least one row chooses, if none is preferred."""
    require.count(rows=rows, top_k=top_k, experts=experts)
    require.at_most(experts, "a row picks different experts", top_k=top_k)
    return experts * (1 - (1 - top_k / experts) ** rows)


def code_bytes(numbers: float, bits: float, group: int) -> float:
    """Return the bytes of weights, where below 16 bits each group has a 16-bit scale."""
    require.positive(bits=bits)
    require.count(group=group)
    return numbers * (bits / 8 + (SIXTEEN / group if bits < 16 else 0))


def step_work(
    shape: Shape,
    rows: int,
    keys: float,
    *,
    expert_bits: float = 4,
    linear_bits: float = 16,
    head_bits: float = 16,
    by: str = "course",
) -> dict[str, Work]:
    """Return each slot's work for `rows` sequences of `keys` keys each, their own included. "last norm" isn't in a layer."""
    require.count(rows=rows)
    require.positive(keys=keys)
    require.one_of(("course", "plain"), by=by)
    s = shape
    hidden, pairs = rows * s.hidden * SIXTEEN, rows * s.top_k
    met = expected_experts(rows, s.top_k, s.experts)
    each = 3 * s.hidden * s.intermediate

    def product(n, k, bits, out=SIXTEEN):
        return Work(code_bytes(n * k, bits, s.group) + rows * (k * SIXTEEN + n * out), 2.0 * rows * n * k, 0)

    q, kv = rows * s.q_width * SIXTEEN, rows * s.kv_width * SIXTEEN
    cache = rows * keys * 2 * s.kv_width * SIXTEEN
    norm = Work(4 * hidden + s.hidden * SIXTEEN, 5.0 * rows * s.hidden, 0)
    of_layer = {
        "norm": norm.times(2),
        "qkv": product(s.qkv_width, s.hidden, linear_bits),
        "rotary": Work(
            2 * (q + 2 * kv) + 2 * rows * INT32 + rows * s.head_dim * FP32, 10.0 * rows * s.qkv_width, 0
        ),
        "attention": Work(cache + 2 * q, 4.0 * rows * keys * s.q_width, 0),
        "out": product(s.hidden, s.q_width, linear_bits),
        "router": Work(
            s.experts * s.hidden * SIXTEEN + hidden + pairs * (INT32 + FP32),
            2.0 * rows * s.experts * s.hidden,
            0,
        ),
        "order": Work(hidden + pairs * s.hidden * SIXTEEN + (2 * pairs + s.experts + 1) * INT32, 0.0, 0),
        "experts": Work(
            code_bytes(met * each, expert_bits, s.group) + 2 * pairs * s.hidden * SIXTEEN,
            2.0 * pairs * each,
            0,
        ),
        "combine": Work(pairs * (s.hidden * SIXTEEN + INT32 + FP32) + hidden, 2.0 * pairs * s.hidden, 0),
    }
    launches = {name: LAUNCHES[name][by] for name in of_layer} | {"norm": 2 * LAUNCHES["norm"][by]}
    if by == "course" and (keys <= TILE or rows * s.kv_heads > FILLED):
        launches["attention"] = 1
    found = {
        name: Work(work.bytes, work.flop, launches[name]).times(s.layers) for name, work in of_layer.items()
    }
    logits = rows * s.vocabulary
    samples = 1 if by == "course" and rows <= FEW else LAUNCHES["sample"][by]
    head = product(s.vocabulary, s.hidden, head_bits, FP32)
    return {
        "embed": Work(2 * hidden + rows * INT32, 0.0, LAUNCHES["embed"][by]),
        **found,
        "last norm": Work(norm.bytes, norm.flop, LAUNCHES["norm"][by]),
        "head": Work(head.bytes, head.flop, LAUNCHES["head"][by]),
        "sample": Work(logits * FP32 + rows * INT32, float(logits), samples),
    }


def total(works: Mapping[str, Work]) -> Work:
    """Return the sum of all slots."""
    require.not_empty(works=works)
    return sum(works.values(), Work(0.0, 0.0, 0))


def waterfall(
    works: Mapping[str, Work], *, byte_s: float, flop_s: float, launch_s: float
) -> dict[str, float]:
    """Return each slot's seconds, as its largest limit predicts them. Slots run in sequence."""
    require.not_empty(works=works)
    return {name: work.seconds(byte_s, flop_s, launch_s) for name, work in works.items()}


def gap_closed(plain_s: float, own_s: float, bound_s: float) -> float:
    """Return which share of the gap between the plain step and its bound is closed. Below 0 it has grown."""
    require.positive(plain_s=plain_s, own_s=own_s, bound_s=bound_s)
    require.must(
        bound_s < plain_s,
        "bound_s",
        f"below the plain step's {plain_s:g}",
        f"{bound_s:g}",
        "a bound that is reached leaves no gap",
    )
    return (plain_s - own_s) / (plain_s - bound_s)

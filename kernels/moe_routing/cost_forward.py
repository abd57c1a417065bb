"""Run an MoE forward on numbers small enough to read: router, top-k, permute, experts, un-permute, combine."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernels import require

Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Expert:
    """Apply a gated MLP, (silu(x @ gate) * (x @ up)) @ down."""

    gate: Matrix  # hidden x intermediate
    up: Matrix
    down: Matrix  # intermediate x hidden


@dataclass(frozen=True)
class MoeForward:
    """Hold every step's result. Rows of the permuted tables are (token, slot) pairs, grouped by expert."""

    logits: list[list[float]]  # tokens x experts
    topk_ids: list[list[int]]  # tokens x top_k, best first
    topk_weights: list[list[float]]  # tokens x top_k, the softmax over the chosen
    loads: list[int]  # tokens of each expert
    expert_offsets: list[int]  # where each expert's rows begin
    order: list[tuple[int, int]]  # permuted row -> (token, slot)
    permuted: list[list[float]]  # rows x hidden
    expert_rows: list[list[float]]  # rows x hidden, after the experts
    restored: list[list[list[float]]]  # tokens x top_k x hidden
    combined: list[list[float]]  # tokens x hidden


def _row_times(row: Sequence[float], matrix: Matrix) -> list[float]:
    return [sum(x * matrix[i][j] for i, x in enumerate(row)) for j in range(len(matrix[0]))]


def _softmax(values: Sequence[float]) -> list[float]:
    largest = max(values)
    powers = [math.exp(value - largest) for value in values]
    return [power / sum(powers) for power in powers]


def _run(expert: Expert, row: Sequence[float]) -> list[float]:
    gate, up = _row_times(row, expert.gate), _row_times(row, expert.up)
    return _row_times([g / (1 + math.exp(-g)) * u for g, u in zip(gate, up, strict=True)], expert.down)


def _route(x: Matrix, router: Matrix, experts: Sequence[Expert], top_k: int):
    """Return logits, the k best experts of each token (of equals, the lower), and their weights."""
    require.not_empty(x=x, router=router, experts=experts)
    require.count(top_k=top_k)
    require.at_most(len(experts), "a token picks different experts", top_k=top_k)
    if any(len(row) != len(router) for row in x) or any(len(row) != len(experts) for row in router):
        raise ValueError(
            f"router must be hidden x experts, got {len(router)} x {len(router[0])}; "
            f"tokens have {len(x[0])} numbers and there are {len(experts)} experts"
        )
    logits = [_row_times(row, router) for row in x]
    topk_ids = [sorted(range(len(row)), key=lambda e, row=row: (-row[e], e))[:top_k] for row in logits]
    topk_weights = [_softmax([row[e] for e in best]) for row, best in zip(logits, topk_ids, strict=True)]
    return logits, topk_ids, topk_weights


def _weighted(rows: Matrix, topk_weights: Sequence[float]) -> list[float]:
    return [
        sum(w * value for w, value in zip(topk_weights, column, strict=True))
        for column in zip(*rows, strict=True)
    ]


def moe_forward(x: Matrix, router: Matrix, experts: Sequence[Expert], top_k: int) -> MoeForward:
    logits, topk_ids, topk_weights = _route(x, router, experts, top_k)
    pairs = [(expert, token, slot) for token, best in enumerate(topk_ids) for slot, expert in enumerate(best)]
    pairs.sort(key=lambda pair: pair[0])  # stable, so tokens keep their order within an expert
    loads = [sum(pair[0] == expert for pair in pairs) for expert in range(len(experts))]
    expert_offsets = [sum(loads[:expert]) for expert in range(len(experts))]
    permuted = [list(x[token]) for _, token, _ in pairs]
    expert_rows = [_run(experts[pair[0]], row) for pair, row in zip(pairs, permuted, strict=True)]
    restored = [[[] for _ in best] for best in topk_ids]
    for (_, token, slot), row in zip(pairs, expert_rows, strict=True):
        restored[token][slot] = row
    combined = [_weighted(rows, w) for rows, w in zip(restored, topk_weights, strict=True)]
    order = [(token, slot) for _, token, slot in pairs]
    return MoeForward(
        logits,
        topk_ids,
        topk_weights,
        loads,
        expert_offsets,
        order,
        permuted,
        expert_rows,
        restored,
        combined,
    )


def direct_forward(x: Matrix, router: Matrix, experts: Sequence[Expert], top_k: int) -> list[list[float]]:
    """Compute the same sum token by token, without permuting, as the result that the six steps must equal."""
    _, topk_ids, topk_weights = _route(x, router, experts, top_k)
    return [
        _weighted([_run(experts[e], row) for e in best], w)
        for row, best, w in zip(x, topk_ids, topk_weights, strict=True)
    ]


def _small(rows: int, columns: int, seed: int) -> list[list[float]]:
    """Return fifths from -1.2 to 1.2, different for each seed below 13."""
    return [[((5 * i + 3 * j + 7 * seed + i * j) % 13 - 6) / 5 for j in range(columns)] for i in range(rows)]


def example(tokens: int = 6, experts: int = 4, hidden: int = 3, intermediate: int = 2):
    """Return (x, router, experts), small fixed numbers, so that every step can be followed by hand."""
    require.count(tokens=tokens, experts=experts, hidden=hidden, intermediate=intermediate)
    mlps = tuple(
        Expert(
            _small(hidden, intermediate, 3 * e + 1),
            _small(hidden, intermediate, 3 * e + 2),
            _small(intermediate, hidden, 3 * e + 3),
        )
        for e in range(experts)
    )
    return _small(tokens, hidden, 0), _small(hidden, experts, 4), mlps

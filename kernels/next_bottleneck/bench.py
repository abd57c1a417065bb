"""Rows of the benchmark: a decode step at the shapes of Qwen3-30B-A3B, next to PyTorch's own, each captured as one graph.

Eight of the 48 layers are timed, with the head, because all layers are alike, and a rival's 48 layers in 16 bits
would leave no room for the cache. "head and sampler" times the parts that exist once, so that 6 x (step - head) +
head is the whole step. The whole model runs too, without rivals. The bound counts the bytes of cost_step.py. Weights
and cache are drawn, and each row chooses its own eight of 128 experts, as even as a router can be.
"""

from dataclasses import dataclass, replace
from functools import cache

import torch

from kernels.bench.row import Row
from kernels.compare import relative_error
from kernels.next_bottleneck import peers, plain, reference
from kernels.next_bottleneck.cache import PagedCache
from kernels.next_bottleneck.cost_step import step_work, total
from kernels.next_bottleneck.shapes import QWEN3_30B_A3B, Shape
from kernels.next_bottleneck.step import Step
from kernels.next_bottleneck.weights import Codes, Weights, drawn, quantize
from kernels.tensors import to_numpy

TIMED = 8  # of the layers
# Of the logits, which eight layers in bf16 leave: a router's near tie may pick another eighth expert. Roundings add up
# as a random walk does, so deeper models get the square root of their depth.
TOLERANCE = 0.1
LINEAR_BITS = 4  # of qkv and out, for ours and the 4-bit rival alike (the router and the head have 16)


@dataclass(frozen=True)
class Case:
    rows: int
    keys: int  # of each row
    layers: int = TIMED
    quick: bool = True

    @property
    def name(self) -> str:
        of = f"{self.layers} layers" if self.layers < QWEN3_30B_A3B.layers else "whole"
        return f"{of}, {self.rows} x {self.keys} keys"

    @property
    def shape(self) -> Shape:
        return replace(QWEN3_30B_A3B, layers=self.layers)


CASES = (
    Case(1, 4096),
    Case(16, 4096),
    Case(64, 4096),
    Case(64, 8192, quick=False),  # 512k tokens of cache in all
)
WHOLE = tuple(Case(rows, 4096, QWEN3_30B_A3B.layers, False) for rows in (1, 16))


def rows(device, fillings):
    for case in (*CASES, *WHOLE):
        works = step_work(case.shape, case.rows, case.keys, linear_bits=LINEAR_BITS)
        rivals = RIVALS if case.layers == TIMED else {}
        yield row("decode step", case, works, draw, ours(fillings), check, rivals, device)
        if case in CASES[:3]:
            last = {name: works[name] for name in ("head", "sample")}
            yield row(
                "head and sampler", case, last, draw_last, ours_last(fillings), check_last, LAST, device
            )


def row(op: str, case: Case, works: dict, draw, ours, check, rivals, device) -> Row:
    work = total(works)
    return Row(
        op=op,
        case=case.name,
        dtype="bf16",
        flops=work.flop,
        bytes=work.bytes,
        inputs=lambda seed: draw(case, seed, device),
        ours=ours,
        check=check,
        tolerance=TOLERANCE * max(1.0, case.layers / TIMED) ** 0.5,
        peers=rivals,
        quick=case.quick,
        facts={"launches": work.launches, "slots": {name: one.bytes for name, one in works.items()}},
    )


@cache
def weights_of(layers: int, device) -> Weights:
    """Return the weights. One set serves all batches, and the last one used is kept."""
    weights_of.cache_clear()
    found = drawn(replace(QWEN3_30B_A3B, layers=layers), device=device)
    group = found.shape.group

    def narrow(w) -> Codes:
        return quantize(w[None], group)

    return replace(
        found, layers=tuple(replace(one, qkv=narrow(one.qkv), out=narrow(one.out)) for one in found.layers)
    )


def draw(case: Case, seed: int, device) -> dict:
    weights, rng = weights_of(case.layers, device), torch.Generator(device).manual_seed(seed)
    cache = PagedCache(case.shape, sequences=case.rows, most=case.keys, dtype=weights.dtype, device=device)
    for sequence in range(case.rows):
        cache.grow(sequence, case.keys)
    for one in (*cache.keys, *cache.values):
        one.normal_(generator=rng)
    token = torch.randint(case.shape.vocabulary, (case.rows,), device=device, generator=rng)
    lens = torch.full((case.rows,), case.keys, dtype=torch.int32, device=device)
    return {"case": case, "weights": weights, "cache": cache, "tokens": token.int(), "lens": lens}


def step_of(inputs, fillings):
    """Return logits and the tokens that they draw. The last key is written at every call, always the same."""
    step = Step(inputs["weights"], inputs["cache"], fillings)
    table = inputs["cache"].table.contiguous()

    def call():
        logits = step.logits(inputs["tokens"], inputs["lens"], table)
        return logits, step.sample(logits, inputs["lens"])

    return call


def ours(fillings):
    return lambda inputs: step_of(inputs, fillings)


def check(inputs, found) -> float:
    """Return how far logits are from plain PyTorch's slots, and whether each token is its row's largest logit."""
    logits, tokens = found
    if "expected" not in inputs:
        inputs["expected"] = to_numpy(step_of(inputs, plain.FILLINGS)()[0])
    if (logits.argmax(-1) != tokens).any():
        return float("inf")
    return relative_error(to_numpy(logits), inputs["expected"])


def rival(bits: int):
    def factory(inputs):
        shape, keys = inputs["case"].shape, inputs["case"].keys
        turns = torch.from_numpy(reference.turns(keys, shape.head_dim, shape.theta)).float()
        table = inputs["cache"].table
        one = peers.Rival(
            inputs["weights"], inputs["cache"], inputs["lens"], table, turns.to(table.device), bits
        )

        def call():
            logits = one(inputs["tokens"])
            return logits, logits.argmax(-1).int()

        return call

    return factory


RIVALS = {
    "torch.compile, 16 bits": rival(16),
    "torch.compile, int4pack": rival(4),
    "plain slots": lambda inputs: step_of(inputs, plain.FILLINGS),
}


def draw_last(case: Case, seed: int, device) -> dict:
    rng, s = torch.Generator(device).manual_seed(seed), case.shape
    x, w = (
        torch.randn(n, s.hidden, device=device, generator=rng).bfloat16() for n in (case.rows, s.vocabulary)
    )
    lens = torch.full((case.rows,), case.keys, dtype=torch.int32, device=device)
    return {"case": case, "x": x, "w": w, "lens": lens}


def ours_last(fillings):
    def factory(inputs):
        head = fillings["head"].make(inputs["w"], inputs["case"].shape)
        sample = fillings["sample"].make((0.0, 0), inputs["case"].shape)

        def call():
            logits = head(inputs["x"])
            return logits, sample(logits, inputs["lens"])

        return call

    return factory


def check_last(inputs, found) -> float:
    logits, tokens = found
    if (logits.argmax(-1) != tokens).any():
        return float("inf")
    return relative_error(to_numpy(logits), to_numpy(inputs["x"].float() @ inputs["w"].float().T))


def torch_last(inputs):
    def call():
        logits = torch.mm(inputs["x"], inputs["w"].T, out_dtype=torch.float32)
        return logits, logits.argmax(-1).int()

    return call


LAST = {"torch": torch_last}

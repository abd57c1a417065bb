"""python -m kernels.decode_step [PROMPT] [--by course|plain]: the model speaks, on the course's kernels or on PyTorch.

The one module that wires the topics together: no topic imports another, and the decode step receives its kernels here.
"""

import argparse
import sys
import time
from importlib.util import find_spec

import torch

from kernels.next_bottleneck import plain
from kernels.next_bottleneck.slots import Filling, filled
from kernels.next_bottleneck.weights import Codes

BY = ("course", "plain")


def norm(weight, shape):
    from kernels.next_bottleneck.residual_norm import residual_norm

    return lambda x, residual: residual_norm(x, residual, weight, shape.eps)


def packed(weight: Codes, gated: bool = False):
    """Return the codes as the 4-bit kernels read them."""
    from kernels.quantization_layouts.packed import assemble, gated_rows

    codes, scales = weight.codes(), weight.scales
    if gated:
        codes, scales = gated_rows(codes), gated_rows(scales)
    return assemble(codes, scales, None, None, 4, weight.group)


def linear(weight, shape):
    """16-bit weights go through the GEMM, 4-bit ones through the dispatcher of quantized layers."""
    if isinstance(weight, Codes):
        from kernels.quantization_layouts.candidates import layer
        from kernels.quantization_layouts.dispatch import linear

        one = layer(packed(weight))
        return lambda x: linear(x, one)
    from kernels.gemm_tiling.gemm import gemm

    turned = weight.t()
    return lambda x: gemm(x, turned)


def head(weight, shape):
    from kernels.gemm_tiling.gemm import gemm

    turned = plain.dense_of(weight).t()
    return lambda x: gemm(x, turned, x.new_empty(len(x), shape.vocabulary, dtype=torch.float32))


def rotary(weight, shape):
    from kernels.next_bottleneck.rotary_cache import rotary_cache

    return lambda *given: rotary_cache(*given, *weight, shape.eps)


def attention(weight, shape):
    from kernels.flash_attention.decode import decode

    def call(q, k_cache, v_cache, lens, table):
        return decode(q, k_cache, v_cache, lens, table=table, check_values=False)[0]

    return call


def prompt(weight, shape):
    from kernels.flash_attention.forward import attention

    def call(q, k, v):
        return attention(q.transpose(0, 1)[None], k[None], v[None], causal=True)[0][0].transpose(0, 1)

    return call


def routed(weight, shape):
    from kernels.moe_routing.routed import route
    from kernels.moe_routing.rules import Rule

    rule = Rule(shape.top_k)

    def call(x):
        found = route(x, weight, rule, tile=1, copy=True)
        return found.chosen, found.weights, found.rows, found.offsets, found.place

    return call


def router(weight, shape):
    both = routed(weight, shape)
    return lambda x: both(x)[:2]


def order(weight, shape):
    from kernels.moe_routing.routed import order_of

    def call(x, chosen):
        found = order_of(x, chosen, None, shape.experts, tile=1, copy=True)
        return found.rows, found.offsets, found.place

    return call


def experts(weight, shape):
    from kernels.quantization_layouts.experts import Experts, experts

    gate_up, down = weight
    held = Experts(packed(gate_up, gated=True), packed(down))
    return lambda rows, offsets: experts(rows, offsets, held, most=len(rows) // shape.top_k)


def combine(weight, shape):
    from kernels.moe_routing.combine import combine
    from kernels.moe_routing.routed import Routed

    def call(rows, place, weights):
        return combine(rows, Routed(place, weights, 1, None, None, place[None], None, None))

    return call


def sample(weight, shape):
    from kernels.sampling_fusion.fused import Workspace, sample
    from kernels.sampling_fusion.requests import Requests
    from kernels.sampling_fusion.state import State

    temperature, seed = weight
    made = {}  # by batch: tables that a captured graph finds again

    def call(logits, lens):
        batch = len(logits)
        if batch not in made:
            requests = Requests.of(batch, shape.vocabulary, temperature=temperature, seed=seed)
            space = Workspace.of(batch, shape.vocabulary, logits.device)
            made[batch] = State.of(requests, logits.device), space
        state, space = made[batch]
        if temperature:
            state.position.copy_(lens)  # a fresh draw at every length
        return sample(logits, state, space).tokens

    return call


# Slot -> its maker, and the module whose kernel it hands over.
KERNELS = {
    "norm": (norm, "next_bottleneck.residual_norm"),
    "qkv": (linear, "gemm_tiling.gemm"),
    "rotary": (rotary, "next_bottleneck.rotary_cache"),
    "attention": (attention, "flash_attention.decode"),
    "prompt": (prompt, "flash_attention.forward"),
    "out": (linear, "gemm_tiling.gemm"),
    "routed": (routed, "moe_routing.routed"),
    "router": (router, "moe_routing.routed"),
    "order": (order, "moe_routing.routed"),
    "experts": (experts, "quantization_layouts.experts"),
    "combine": (combine, "moe_routing.combine"),
    "head": (head, "gemm_tiling.gemm"),
    "sample": (sample, "sampling_fusion.fused"),
}
# A student edition has no tuned kernels: there plain PyTorch stands in, and a step's `sources` says so.
COURSE = {
    name: Filling(make, "course")
    for name, (make, module) in KERNELS.items()
    if find_spec(f"kernels.{module}") is not None
}


def fillings(by: str = "course", **own: Filling) -> dict[str, Filling]:
    """Return a filling for every slot: the course's kernels or plain PyTorch, and `own` ones where given."""
    if by not in BY:
        raise ValueError(f"by must be one of {', '.join(BY)}, got {by!r}; pick a listed one")
    return filled(plain.FILLINGS if by == "plain" else plain.FILLINGS | COURSE, **own)


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels.decode_step", description=__doc__)
    parser.add_argument("prompt", nargs="?", default="The kernel")
    parser.add_argument("--by", choices=BY, default="course")
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    from kernels.next_bottleneck.cache import PagedCache
    from kernels.next_bottleneck.step import Sampling, Step, generate
    from kernels.speaking_model import kept
    from kernels.speaking_model.tokens import END

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and options.by == "course":
        from tilescope import launcher

        launcher.install()
    weights, tokenizer = kept.weights().to(device), kept.tokenizer()
    given = tokenizer.encode(options.prompt)
    if not given:
        parser.error("PROMPT must hold a letter that the tokenizer knows, got none; write plain English")
    cache = PagedCache(
        weights.shape, sequences=1, most=len(given) + options.tokens, dtype=weights.dtype, device=device
    )
    step = Step(weights, cache, fillings(options.by), Sampling(options.temperature, options.seed))
    started = time.monotonic()
    said = generate(step, [given], options.tokens, END)[0]
    print(options.prompt + tokenizer.decode(said).rstrip("\n"))
    print(
        f"{len(said)} tokens by {options.by} on {device} in {time.monotonic() - started:.1f} s",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

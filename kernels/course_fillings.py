"""Offer the course's kernels as fillings of the decode step's slots.

Wire the topics together, in the only module that may. No topic imports another, and the step receives its kernels
here. Each is imported when its slot is filled. On a Hopper launches begin early (kernels/overlap.py): weights are at
rest here, and so are lens and table, because the step's first launch, the lookup, comes after they were written.
"""

import torch

from kernels.next_bottleneck import plain
from kernels.next_bottleneck.slots import Filling
from kernels.next_bottleneck.weights import Codes


def embed(weight, shape):
    from kernels.next_bottleneck.embedding import embedding

    return lambda tokens: embedding(tokens, weight)


def norm(weight, shape):
    from kernels.next_bottleneck.residual_norm import residual_norm

    return lambda x, residual: residual_norm(x, residual, weight, shape.eps, early=True)


def packed(weight: Codes, gated: bool = False):
    """Return the codes as the 4-bit kernels read them."""
    from kernels.quantization_layouts.packed import assemble, gated_rows

    codes, scales = weight.codes(), weight.scales
    if gated:
        codes, scales = gated_rows(codes), gated_rows(scales)
    return assemble(codes, scales, None, None, 4, weight.group)


def linear(weight, shape):
    """Return a call of the GEMM for 16-bit weights, and of the quantized layers' dispatcher for 4-bit ones."""
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

    return lambda *given: rotary_cache(*given, *weight, shape.eps, early=True)


def attention(weight, shape):
    from kernels.flash_attention.decode import decode

    def call(q, k_cache, v_cache, lens, table):
        return decode(q, k_cache, v_cache, lens, table=table, check_values=False, early=True)[0]

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
        found = route(x, weight, rule, tile=1, copy=True, early=True)
        return found.topk_ids, found.topk_weights, found.rows, found.expert_offsets, found.inv_permuted_idx

    return call


def router(weight, shape):
    both = routed(weight, shape)
    return lambda x: both(x)[:2]


def order(weight, shape):
    from kernels.moe_routing.routed import order_of

    def call(x, topk_ids):
        found = order_of(x, topk_ids, None, shape.experts, tile=1, copy=True)
        return found.rows, found.expert_offsets, found.inv_permuted_idx

    return call


def experts(weight, shape):
    from kernels.quantization_layouts.experts import Experts, experts

    gate_up, down = weight
    held = Experts(packed(gate_up, gated=True), packed(down))
    return lambda rows, expert_offsets: experts(rows, expert_offsets, held, most=len(rows) // shape.top_k)


def combine(weight, shape):
    from kernels.moe_routing.combine import combine
    from kernels.moe_routing.routed import Routed

    def call(rows, inv_permuted_idx, topk_weights):
        found = Routed(inv_permuted_idx, topk_weights, 1, None, None, inv_permuted_idx[None], None, None)
        return combine(rows, found)

    return call


def sample(weight, shape):
    from kernels.sampling_fusion.fused import Workspace, sample
    from kernels.sampling_fusion.requests import Requests
    from kernels.sampling_fusion.state import State

    temperature, seed = weight
    made = {}  # by batch, for tables that a captured graph finds again

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


COURSE = {
    name: Filling(make, "course")
    for name, make in {
        "embed": embed,
        "norm": norm,
        "qkv": linear,
        "rotary": rotary,
        "attention": attention,
        "prompt": prompt,
        "out": linear,
        "routed": routed,
        "router": router,
        "order": order,
        "experts": experts,
        "combine": combine,
        "head": head,
        "sample": sample,
    }.items()
}

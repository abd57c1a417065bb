"""Time PyTorch's own decode step, by torch.compile in 16 bits and through int4pack in 4 bits.

Both get their best conditions: a contiguous cache of exactly the existing keys, so that SDPA needs no mask, and a
layer that is compiled once and called for each. The benchmark captures each step as one CUDA graph, as it captures
ours. PyTorch has no grouped 4-bit matmul. One row's experts run one by one on weights that are selected on the GPU.
With more rows every expert multiplies all, since the host doesn't know the chosen ones.
"""

from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F

from kernels import torch_grouped
from kernels.next_bottleneck.plain import dense_of, gathered
from kernels.next_bottleneck.weights import Codes, Layer, Weights

INNER_TILES = 8  # of int4pack's layout, which needs K in whole multiples of 16 times this


def rms(x, weight, eps: float):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * weight.float()).to(x.dtype)


def turned(x, cos, sin):
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)


@dataclass(frozen=True)
class Int4:
    """A stack of experts' matrices as int4pack reads them. A dense layer is one expert."""

    words: torch.Tensor
    scales_and_zeros: torch.Tensor
    group: int

    def one(self, e: int) -> tuple:
        return self.words[e], self.scales_and_zeros[e], self.group

    def chosen(self, e) -> tuple:
        """The expert whose number a tensor (1,) holds."""
        words, scales = (t.index_select(0, e)[0] for t in (self.words, self.scales_and_zeros))
        return words, scales, self.group


def int4(weight: Codes) -> Int4:
    codes = weight.codes()
    pairs = codes[..., ::2] << 4 | codes[..., 1::2]
    words = torch.stack([torch._convert_weight_to_int4pack(one.contiguous(), INNER_TILES) for one in pairs])
    scales = weight.scales.transpose(1, 2)
    both = torch.stack([scales, torch.zeros_like(scales)], -1).contiguous()  # (code - 8) * scale + zero
    return Int4(words, both, weight.group)


def product(x, w):
    """Compute x @ w.T of a 16-bit matrix, or of a matrix in int4pack's layout."""
    if isinstance(w, tuple):
        words, scales_and_zeros, group = w
        return torch._weight_int4pack_mm(x, words, group, scales_and_zeros)
    return F.linear(x, w)


def before_experts(x, residual, turn, at, k_cache, v_cache, norms, qkv, out, router, sizes):
    """Return (y, residual, each pair's expert and weight): all of a layer up to its experts.

    Everything that differs from layer to layer is a tensor, so that the code compiled for one serves them all.
    """
    input_norm, q_norm, k_norm, post_norm = norms
    q_heads, kv_heads, head_dim, top_k, eps = sizes
    residual = residual + x
    heads = product(rms(residual, input_norm, eps), qkv).unflatten(1, (-1, head_dim))
    q, k, v = heads.split((q_heads, kv_heads, kv_heads), dim=1)
    cos, sin = turn.chunk(2, dim=-1)
    q, k = (turned(rms(one, w, eps), cos, sin) for one, w in ((q, q_norm), (k, k_norm)))
    k_cache[:, :, at] = k[:, :, None]  # as gpt-fast writes it, without a copy once compiled
    v_cache[:, :, at] = v[:, :, None]
    y = F.scaled_dot_product_attention(q[:, :, None], k_cache, v_cache, enable_gqa=True)
    residual = residual + product(y.flatten(1), out)
    y = rms(residual, post_norm, eps)
    best, topk_ids = F.linear(y, router).float().topk(top_k)
    return y, residual, topk_ids, best.softmax(-1)


def gathered_experts(y, topk_ids, topk_weights, gate_up, down):
    """Compute one row's experts, as gpt-fast writes them, with the gather fused into the matmul."""
    gate, up = torch.einsum("h,knh->kn", y[0], gate_up[topk_ids[0]]).chunk(2, dim=-1)
    z = torch.einsum("kn,khn->kh", F.silu(gate) * up, down[topk_ids[0]])
    return (z.float() * topk_weights[0, :, None]).sum(0, keepdim=True).to(y.dtype)


def grouped_experts(y, topk_ids, topk_weights, gate_up, down):
    """Experts of many rows, through grouped_mm."""
    grouped, flat = torch_grouped.product(), topk_ids.flatten()
    by_row = flat.argsort(stable=True)
    ends = (flat[:, None] == torch.arange(len(gate_up), device=y.device)).sum(0).cumsum(0).int()
    token = by_row // topk_ids.shape[1]
    gate, up = grouped(y[token], gate_up.transpose(1, 2), offs=ends).chunk(2, dim=-1)
    z = grouped(F.silu(gate) * up, down.transpose(1, 2), offs=ends)
    z = (z.float() * topk_weights.flatten()[by_row, None]).to(y.dtype)
    return torch.zeros_like(y).index_add(0, token, z)


def int4_experts(y, topk_ids, topk_weights, gate_up: Int4, down: Int4):
    if len(y) == 1:
        parts = []
        for e in topk_ids[0].split(1):
            gate, up = product(y, gate_up.chosen(e)).chunk(2, dim=-1)
            parts.append(product(F.silu(gate) * up, down.chosen(e)))
        return (torch.cat(parts).float() * topk_weights[0, :, None]).sum(0, keepdim=True).to(y.dtype)
    count = len(gate_up.words)
    gate, up = torch.stack([product(y, gate_up.one(e)) for e in range(count)]).chunk(2, dim=-1)
    h = F.silu(gate) * up
    z = torch.stack([product(h[e], down.one(e)) for e in range(count)])
    share = torch.zeros(len(y), count, device=y.device).scatter_(1, topk_ids, topk_weights)
    return torch.einsum("te,eth->th", share, z.float()).to(y.dtype)


@cache
def compiled(function):
    """The function through torch.compile, once for all layers and rows."""
    return torch.compile(function, dynamic=False)


class Rival:
    """Run the whole step. `bits` of its linear layers and experts are 16 or 4."""

    def __init__(self, weights: Weights, cache, lens, table, turns, bits: int):
        self.weights, self.bits, self.rows = weights, bits, len(lens)
        self.at = lens[:1].long() - 1  # all rows are of one length
        keys = int(lens[0])
        self.turn = turns[self.at].expand(self.rows, -1)[:, None]
        self.caches = [
            tuple(gathered(one, table)[:, :, :keys].contiguous() for one in pair)
            for pair in zip(cache.keys, cache.values, strict=True)
        ]
        self.layers = [self._layer(layer) for layer in weights.layers]
        self.before = compiled(before_experts)
        if bits == 4:
            self.experts = int4_experts
        else:
            self.experts = compiled(gathered_experts if self.rows == 1 else grouped_experts)

    def _layer(self, layer: Layer):
        if self.bits == 4:
            qkv, out = (int4(w).one(0) for w in (layer.qkv, layer.out))
            held = int4(layer.gate_up), int4(layer.down)
        else:
            qkv, out = (dense_of(w) for w in (layer.qkv, layer.out))
            held = layer.gate_up.dense(), layer.down.dense()
        norms = layer.input_norm, layer.q_norm, layer.k_norm, layer.post_norm
        return (norms, qkv, out, layer.router), held

    def __call__(self, tokens):
        """Return fp32 logits (rows, vocabulary)."""
        s = self.weights.shape
        sizes = s.q_heads, s.kv_heads, s.head_dim, s.top_k, s.eps
        x = F.embedding(tokens, self.weights.embedding)
        residual = torch.zeros_like(x)
        for (given, held), caches in zip(self.layers, self.caches, strict=True):
            y, residual, topk_ids, share = self.before(
                x, residual, self.turn, self.at, *caches, *given, sizes
            )
            x = self.experts(y, topk_ids, share, *held)
        y = rms(residual + x, self.weights.norm, s.eps)
        w = self.weights.head
        return torch.mm(y, w.T, out_dtype=torch.float32) if y.is_cuda else y.float() @ w.float().T

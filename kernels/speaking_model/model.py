"""Define the speaking model for training: plain PyTorch over whole rows of text, no cache and no kernels.

Names of weights are those of a Qwen3-MoE checkpoint, so that the same loader reads either.
"""

import torch
import torch.nn.functional as F
from torch import nn

from kernels.next_bottleneck.shapes import SPEAKING, Shape


def rotated(x: torch.Tensor, theta: float) -> torch.Tensor:
    """Rotate (batch, heads, length, head_dim) by angles that grow with the position. Halves are the pairs."""
    length, half = x.shape[2], x.shape[3] // 2
    speed = theta ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angle = torch.arange(length, device=x.device)[:, None] * speed
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], dim=-1)


class Attention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        self.q_proj = nn.Linear(shape.hidden, shape.q_width, bias=False)
        self.k_proj = nn.Linear(shape.hidden, shape.kv_width, bias=False)
        self.v_proj = nn.Linear(shape.hidden, shape.kv_width, bias=False)
        self.o_proj = nn.Linear(shape.q_width, shape.hidden, bias=False)
        self.q_norm = nn.RMSNorm(shape.head_dim, eps=shape.eps)
        self.k_norm = nn.RMSNorm(shape.head_dim, eps=shape.eps)

    def forward(self, x):
        def heads(y):
            return y.unflatten(-1, (-1, self.shape.head_dim))

        q = rotated(self.q_norm(heads(self.q_proj(x))).transpose(1, 2), self.shape.theta)
        k = rotated(self.k_norm(heads(self.k_proj(x))).transpose(1, 2), self.shape.theta)
        v = heads(self.v_proj(x)).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class Moe(nn.Module):
    """Send each token through its `top_k` experts. `balance` is the auxiliary loss of the last batch."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.top_k = shape.top_k
        self.gate = nn.Linear(shape.hidden, shape.experts, bias=False)
        wide = (shape.experts, 2 * shape.intermediate, shape.hidden)
        self.gate_up = nn.Parameter(torch.randn(wide) * shape.hidden**-0.5)
        self.down = nn.Parameter(
            torch.randn(shape.experts, shape.hidden, shape.intermediate) * shape.intermediate**-0.5
        )
        self.balance = None

    def forward(self, x):
        rows = x.flatten(0, 1)
        chances = self.gate(rows).softmax(-1)
        weights, chosen = chances.topk(self.top_k)
        weights = weights / weights.sum(-1, keepdim=True)
        experts = chances.shape[1]
        picks, order = chosen.flatten().sort(stable=True)
        loads = torch.bincount(picks, minlength=experts)
        self.balance = experts * (loads / chosen.numel() * chances.mean(0)).sum()
        token = order // self.top_k
        parts = rows[token].split(loads.tolist())
        done = []
        for e, part in enumerate(parts):
            gate, up = (part @ self.gate_up[e].T).chunk(2, dim=-1)
            done.append((F.silu(gate) * up) @ self.down[e].T)
        out = torch.zeros_like(rows)
        return out.index_add(0, token, weights.flatten()[order, None] * torch.cat(done)).view_as(x)


class Block(nn.Module):
    def __init__(self, shape: Shape, dropout: float):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.input_layernorm = nn.RMSNorm(shape.hidden, eps=shape.eps)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, eps=shape.eps)
        self.mlp = Moe(shape)

    def forward(self, x):
        x = x + self.drop(self.self_attn(self.input_layernorm(x)))
        return x + self.drop(self.mlp(self.post_attention_layernorm(x)))


class SpeakingModel(nn.Module):
    """`dropout` keeps a model from learning its text by heart, where there is time to read it often."""

    def __init__(self, shape: Shape = SPEAKING, dropout: float = 0.0):
        super().__init__()
        self.shape = shape
        self.drop = nn.Dropout(dropout)
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        nn.init.normal_(self.embed_tokens.weight, std=shape.hidden**-0.5)
        self.layers = nn.ModuleList(Block(shape, dropout) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, eps=shape.eps)

    def forward(self, tokens):
        """Return (batch, length, vocabulary) logits of each next token of (batch, length)."""
        x = self.drop(self.embed_tokens(tokens))
        for block in self.layers:
            x = block(x)
        return self.norm(x) @ self.embed_tokens.weight.T

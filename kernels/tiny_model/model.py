"""Define a language model with a mixture of experts, small enough for a laptop. It reads bytes and says the next one.

Two blocks of attention with grouped heads and an MoE MLP. Norms are RMS, positions are rotary, embedding and output
share their weights: the parts of the large models, at a hundred-thousandth of their size.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Config:
    vocabulary: int = 256  # bytes
    hidden: int = 64
    blocks: int = 2
    q_heads: int = 4
    kv_heads: int = 2
    experts: int = 8
    top_k: int = 2
    intermediate: int = 48  # of each expert
    length: int = 128  # tokens that a training row has

    @property
    def head_dim(self) -> int:
        return self.hidden // self.q_heads


def rotated(x: torch.Tensor) -> torch.Tensor:
    """Rotate (batch, heads, length, head_dim), pairs of numbers turned by an angle that grows with the position."""
    length, half = x.shape[2], x.shape[3] // 2
    speed = 1e4 ** (-torch.arange(half, device=x.device) / half)
    angle = torch.arange(length, device=x.device)[:, None] * speed
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], dim=-1)


class Attention(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.heads = (c.q_heads, c.kv_heads, c.kv_heads)
        self.qkv = nn.Linear(c.hidden, sum(self.heads) * c.head_dim, bias=False)
        self.out = nn.Linear(c.hidden, c.hidden, bias=False)

    def forward(self, x):
        qkv = self.qkv(x).unflatten(-1, (sum(self.heads), -1)).transpose(1, 2)
        q, k, v = qkv.split(self.heads, dim=1)
        y = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Moe(nn.Module):
    """Send each token through its `top_k` experts. `routed` keeps the router's output of the last batch."""

    def __init__(self, c: Config):
        super().__init__()
        self.top_k = c.top_k
        self.router = nn.Linear(c.hidden, c.experts, bias=False)
        self.gate, self.up = (
            nn.Parameter(torch.randn(c.experts, c.hidden, c.intermediate) * c.hidden**-0.5) for _ in range(2)
        )
        self.down = nn.Parameter(torch.randn(c.experts, c.intermediate, c.hidden) * c.intermediate**-0.5)
        self.register_buffer("bias", torch.zeros(c.experts))  # chooses, weighs nothing
        self.routed = None

    def forward(self, x):
        rows = x.flatten(0, 1)
        logits = self.router(rows)
        chosen = (logits.softmax(-1) + self.bias).topk(self.top_k).indices
        weights = logits.gather(1, chosen).softmax(-1)
        self.routed = (logits, chosen)
        out = torch.zeros_like(rows)
        for e in range(len(self.gate)):
            token, place = (chosen == e).nonzero(as_tuple=True)
            inner = F.silu(rows[token] @ self.gate[e]) * (rows[token] @ self.up[e])
            out = out.index_add(0, token, weights[token, place, None] * (inner @ self.down[e]))
        return out.view_as(x)


class Block(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.before_attention, self.attention = nn.RMSNorm(c.hidden), Attention(c)
        self.before_moe, self.moe = nn.RMSNorm(c.hidden), Moe(c)

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.moe(self.before_moe(x))


class TinyModel(nn.Module):
    def __init__(self, config: Config = Config()):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.hidden)
        nn.init.normal_(self.embedding.weight, std=config.hidden**-0.5)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.norm = nn.RMSNorm(config.hidden)

    def forward(self, tokens):
        """Return the logits of each next byte, (batch, length) of bytes -> (batch, length, vocabulary)."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.embedding.weight.T

"""Write every slot in plain PyTorch, as a model's code looks before any kernel exists.

On a CPU it computes in fp32 and rounds once, so that its answers are those of a GPU's 16-bit products. On a GPU no call
waits for it, so that a graph may capture the step.
"""

import torch
import torch.nn.functional as F

from kernels import torch_grouped
from kernels.next_bottleneck.slots import Filling
from kernels.next_bottleneck.weights import Codes


def embed(weight, shape):
    return lambda tokens: F.embedding(tokens, weight)


def norm(weight, shape):
    def call(x, residual):
        if x is not None:
            residual.add_(x)
        wide = residual.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + shape.eps)
        return (wide * weight.float()).to(residual.dtype)

    return call


def dense_of(weight) -> torch.Tensor:
    """Return (N, K), or (experts, N, K) where there are several."""
    if not isinstance(weight, Codes):
        return weight
    dense = weight.dense()
    return dense[0] if len(dense) == 1 else dense


def linear(weight, shape):
    w = dense_of(weight)
    if w.is_cuda:
        return lambda x: F.linear(x, w)
    w = w.float()
    return lambda x: F.linear(x.float(), w).to(x.dtype)


def head(weight, shape):
    w = dense_of(weight)
    if w.is_cuda:
        return lambda x: torch.mm(x, w.T, out_dtype=torch.float32)
    w = w.float()
    return lambda x: F.linear(x.float(), w)


def rotary(weight, shape):
    q_norm, k_norm, turns = weight
    split = (shape.q_heads, shape.kv_heads, shape.kv_heads)

    def normed(x, w):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + shape.eps) * w.float()

    def turned(x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

    def call(qkv, lens, table, k_cache, v_cache):
        q, k, v = qkv.unflatten(1, (-1, shape.head_dim)).float().split(split, dim=1)
        at = lens.long() - 1
        cos, sin = turns[at][:, None].chunk(2, dim=-1)
        page = table.gather(1, (at // shape.page)[:, None]).long()[:, 0]
        k_cache[page, :, at % shape.page] = turned(normed(k, k_norm), cos, sin).to(qkv.dtype)
        v_cache[page, :, at % shape.page] = v.to(qkv.dtype)
        return turned(normed(q, q_norm), cos, sin).to(qkv.dtype)

    return call


def gathered(cache, table) -> torch.Tensor:
    """Return (rows, kv heads, keys, head dim) of pages (pages, kv heads, page, head dim)."""
    return cache[table.long()].transpose(1, 2).flatten(2, 3)


def attention(weight, shape):
    def call(q, k_cache, v_cache, lens, table):
        if not q.is_cuda:
            table = table[:, : -(-int(lens.max()) // shape.page)]
        k, v = gathered(k_cache, table), gathered(v_cache, table)
        seen = torch.arange(k.shape[2], device=q.device) < lens[:, None]
        wide = torch.float32 if not q.is_cuda else q.dtype
        q, k, v = q[:, :, None].to(wide), k.to(wide), v.to(wide)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None, None], enable_gqa=True)
        return y[:, :, 0].to(k_cache.dtype)

    return call


def prompt(weight, shape):
    def call(q, k, v):
        length, keys = len(q), k.shape[1]
        place = torch.arange(length, device=q.device)[:, None] + keys - length
        seen = torch.arange(keys, device=q.device) <= place
        wide = torch.float32 if not q.is_cuda else q.dtype
        given = (x.to(wide)[None] for x in (q.transpose(0, 1), k, v))
        y = F.scaled_dot_product_attention(*given, attn_mask=seen, enable_gqa=True)
        return y[0].transpose(0, 1).to(q.dtype)

    return call


def router(weight, shape):
    w = weight.float()

    def call(x):
        best, topk_ids = F.linear(x.float(), w).topk(shape.top_k)
        return topk_ids.int(), best.softmax(-1)

    return call


def order(weight, shape):
    def call(x, topk_ids):
        flat = topk_ids.flatten()
        by_row = flat.argsort(stable=True)
        counts = (flat[:, None] == torch.arange(shape.experts, device=x.device)).sum(0)
        expert_offsets = F.pad(counts.cumsum(0), (1, 0)).int()
        inv_permuted_idx = torch.empty_like(by_row)
        inv_permuted_idx[by_row] = torch.arange(len(flat), device=x.device)
        return x[by_row // shape.top_k], expert_offsets, inv_permuted_idx.int().view_as(topk_ids)

    return call


def by_row(rows, expert_offsets, gate_up, down):
    """Compute every row with a copy of its expert's weights, which suits few rows, without waiting for a GPU."""
    whose = torch.searchsorted(
        expert_offsets[1:].contiguous(), torch.arange(len(rows), device=rows.device), right=True
    )
    gate, up = torch.bmm(gate_up[whose], rows[:, :, None])[..., 0].chunk(2, dim=-1)
    return torch.bmm(down[whose], (F.silu(gate) * up)[:, :, None])[..., 0]


def experts(weight, shape):
    gate_up, down = (part.dense() for part in weight)
    if gate_up.is_cuda and gate_up.dtype != torch.bfloat16:  # grouped_mm takes bf16 alone
        return lambda rows, expert_offsets: by_row(rows, expert_offsets, gate_up, down)
    if gate_up.is_cuda:
        product = torch_grouped.product()

        def call(rows, expert_offsets):
            gate, up = product(rows, gate_up.transpose(1, 2), offs=expert_offsets[1:]).chunk(2, dim=-1)
            return product(F.silu(gate) * up, down.transpose(1, 2), offs=expert_offsets[1:])

        return call
    gate_up, down = gate_up.float(), down.float()

    def call(rows, expert_offsets):
        y, edges = torch.empty_like(rows), expert_offsets.tolist()
        for e, (first, last) in enumerate(zip(edges, edges[1:], strict=False)):
            if first < last:
                gate, up = F.linear(rows[first:last].float(), gate_up[e]).chunk(2, dim=-1)
                h = (F.silu(gate) * up).to(rows.dtype).float()
                y[first:last] = F.linear(h, down[e]).to(rows.dtype)
        return y

    return call


def combine(weight, shape):
    def call(rows, inv_permuted_idx, topk_weights):
        return (rows[inv_permuted_idx.long()].float() * topk_weights[..., None]).sum(1).to(rows.dtype)

    return call


def sample(weight, shape):
    """`weight` is (temperature, seed). A draw adds Gumbel noise that depends on the seed and on the row's length."""
    temperature, seed = weight

    def call(logits, lens):
        if temperature == 0:
            return logits.argmax(-1).int()
        noise = torch.empty_like(logits)
        for row, length in enumerate(lens.tolist()):
            rng = torch.Generator(logits.device).manual_seed(seed + length)
            noise[row].exponential_(generator=rng)
        return (logits / temperature - noise.log()).argmax(-1).int()

    return call


FILLINGS = {
    name: Filling(make, "plain")
    for name, make in {
        "embed": embed,
        "norm": norm,
        "qkv": linear,
        "rotary": rotary,
        "attention": attention,
        "prompt": prompt,
        "out": linear,
        "router": router,
        "order": order,
        "experts": experts,
        "combine": combine,
        "head": head,
        "sample": sample,
    }.items()
}

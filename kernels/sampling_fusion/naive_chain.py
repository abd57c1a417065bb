"""Run the chain as a framework does: one small kernel a rule, each reading and writing all logits.

Each kernel is right and none is silly. The sort is torch's. The slow part is the number of launches and the trips of
B * V logits to memory and back, which `cost.naive_chain` counts line by line. It modifies its copy of the logits in
place, rule after rule. Ties, NaN and empty rows follow reference.py.
"""

import torch
import triton
import triton.language as tl

from kernels.sampling_fusion.philox import GUMBEL, INVERSE
from kernels.sampling_fusion.rules import OURS
from kernels.sampling_fusion.state import State
from kernels.sampling_fusion.tiles import bit_of, clean, noise, penalise, uniform, word_of

BLOCK = 1024
GUMBEL_STREAM, INVERSE_STREAM = tl.constexpr(GUMBEL), tl.constexpr(INVERSE)


@triton.jit
def clean_kernel(logits_ptr, x_ptr, V, stride_b, BLOCK: tl.constexpr):
    b, offs = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + b * stride_b + offs, mask=offs < V, other=0.0)
    tl.store(x_ptr + b * V + offs, clean(x), mask=offs < V)


@triton.jit
def grammar_kernel(x_ptr, allowed_ptr, V, W, BLOCK: tl.constexpr):
    b, offs = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + b * V + offs, mask=offs < V, other=0.0)
    allowed = bit_of(allowed_ptr + b * W, offs, offs < V)
    tl.store(x_ptr + b * V + offs, tl.where(allowed, x, float("-inf")), mask=offs < V)


@triton.jit
def bias_kernel(x_ptr, bias_ptr, V, BLOCK: tl.constexpr):
    b, offs = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + b * V + offs, mask=offs < V, other=0.0)
    bias = tl.load(bias_ptr + b * V + offs, mask=offs < V, other=0.0)
    tl.store(x_ptr + b * V + offs, clean(x + bias), mask=offs < V)


@triton.jit
def repetition_kernel(x_ptr, seen_ptr, numbers_ptr, V, W, BLOCK: tl.constexpr):
    b, offs = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + b * V + offs, mask=offs < V, other=0.0)
    seen = bit_of(seen_ptr + b * W, offs, offs < V)
    x = penalise(x, seen, tl.zeros_like(offs), 0.0, 0.0, tl.load(numbers_ptr + b * 6 + 5))
    tl.store(x_ptr + b * V + offs, x, mask=offs < V)


@triton.jit
def counts_kernel(x_ptr, counts_ptr, numbers_ptr, V, BLOCK: tl.constexpr):
    """Apply frequency and presence, which gather the same counts."""
    b, offs = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + b * V + offs, mask=offs < V, other=0.0)
    count = tl.load(counts_ptr + b * V + offs, mask=offs < V, other=0)
    presence, frequency = tl.load(numbers_ptr + b * 6 + 3), tl.load(numbers_ptr + b * 6 + 4)
    x = penalise(x, count < 0, count, presence, frequency, 1.0)
    tl.store(x_ptr + b * V + offs, clean(x), mask=offs < V)


@triton.jit
def weights_kernel(x_ptr, weight_ptr, numbers_ptr, V, BLOCK: tl.constexpr):
    """Compute temperature and the numerator of softmax, of a sorted row, whose maximum comes first."""
    b, offs = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    temperature = tl.load(numbers_ptr + b * 6)
    inv_t = tl.where(temperature == 0, 1.0, tl.minimum(1.0 / temperature, 1e30))
    best = tl.load(x_ptr + b * V)
    x = tl.load(x_ptr + b * V + offs, mask=offs < V, other=float("-inf"))
    weight = tl.where(x > float("-inf"), tl.exp((x - best) * inv_t), 0.0)
    tl.store(weight_ptr + b * V + offs, weight, mask=offs < V)


@triton.jit
def top_k_kernel(weight_ptr, top_k_ptr, numbers_ptr, V, BLOCK: tl.constexpr):
    b, offs = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.where(tl.load(numbers_ptr + b * 6) == 0, 1, tl.load(top_k_ptr + b))
    cut = (offs < V) & (offs >= tl.where(k == 0, V, k))
    tl.store(weight_ptr + b * V + offs, tl.zeros([BLOCK], tl.float32), mask=cut)


@triton.jit
def top_p_kernel(weight_ptr, upto_ptr, numbers_ptr, V, BLOCK: tl.constexpr):
    """`upto` is the running sum of the weights. Its last entry is the mass of all tokens."""
    b, offs = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    top_p = tl.load(numbers_ptr + b * 6 + 1)
    limit = tl.where(top_p < 1, top_p * tl.load(upto_ptr + b * V + V - 1), float("inf"))
    before = tl.load(upto_ptr + b * V + offs - 1, mask=(offs > 0) & (offs < V), other=0.0)
    tl.store(weight_ptr + b * V + offs, tl.zeros([BLOCK], tl.float32), mask=(offs < V) & (before >= limit))


@triton.jit
def min_p_kernel(weight_ptr, numbers_ptr, V, BLOCK: tl.constexpr):
    b, offs = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    weight = tl.load(weight_ptr + b * V + offs, mask=offs < V, other=0.0)
    keep = weight >= tl.load(numbers_ptr + b * 6 + 2)
    tl.store(weight_ptr + b * V + offs, tl.where(keep, weight, 0.0), mask=offs < V)


@triton.jit
def gumbel_kernel(weight_ptr, token_ptr, score_ptr, seed_ptr, position_ptr, V, BLOCK: tl.constexpr):
    b, offs = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    weight = tl.load(weight_ptr + b * V + offs, mask=offs < V, other=0.0)
    token = tl.load(token_ptr + b * V + offs, mask=offs < V, other=0).to(tl.int32)
    word = word_of(token, tl.load(seed_ptr + b), tl.load(position_ptr + b), GUMBEL_STREAM)
    score = tl.where(weight > 0, tl.log(weight) + noise(word), float("-inf"))
    tl.store(score_ptr + b * V + offs, score, mask=offs < V)


@triton.jit
def inverse_kernel(weight_ptr, upto_ptr, score_ptr, seed_ptr, position_ptr, V, BLOCK: tl.constexpr):
    """Score the ranks so that the best is where the running sum passes u, the last rank that starts at u or before."""
    b, offs = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    word, _, _, _ = tl.philox(tl.load(seed_ptr + b), 0, tl.load(position_ptr + b), INVERSE_STREAM, 0)
    target = uniform(word) * tl.load(upto_ptr + b * V + V - 1)
    weight = tl.load(weight_ptr + b * V + offs, mask=offs < V, other=0.0)
    before = tl.load(upto_ptr + b * V + offs - 1, mask=(offs > 0) & (offs < V), other=0.0)
    hit = (weight > 0) & (before <= target)
    tl.store(score_ptr + b * V + offs, tl.where(hit, offs.to(tl.float32), float("-inf")), mask=offs < V)


def sample(logits: torch.Tensor, state: State, *, draw: str = "gumbel") -> torch.Tensor:
    """Turn logits [B, V] into tokens int64 [B] by a dozen launches and more, one rule at a time."""
    if state.rules != OURS:
        raise ValueError(f"rules must be ours, got {state.rules}; the chain follows no other")
    batch, V = logits.shape
    W, s = triton.cdiv(V, 32), state
    grid = (batch, triton.cdiv(V, BLOCK))
    x = torch.empty(batch, V, device=logits.device)
    clean_kernel[grid](logits, x, V, logits.stride(0), BLOCK=BLOCK)
    if s.allowed is not None:
        grammar_kernel[grid](x, s.allowed, V, W, BLOCK=BLOCK)
    if s.bias is not None:
        bias_kernel[grid](x, s.bias, V, BLOCK=BLOCK)
    if s.counts is not None:
        repetition_kernel[grid](x, s.seen, s.numbers, V, W, BLOCK=BLOCK)
        counts_kernel[grid](x, s.counts, s.numbers, V, BLOCK=BLOCK)
    x, token = x.sort(dim=-1, descending=True, stable=True)
    weight = torch.empty_like(x)
    weights_kernel[grid](x, weight, s.numbers, V, BLOCK=BLOCK)
    top_k_kernel[grid](weight, s.top_k, s.numbers, V, BLOCK=BLOCK)
    top_p_kernel[grid](weight, weight.cumsum(dim=-1), s.numbers, V, BLOCK=BLOCK)
    min_p_kernel[grid](weight, s.numbers, V, BLOCK=BLOCK)
    score = x
    if draw == "inverse":
        inverse_kernel[grid](weight, weight.cumsum(dim=-1), score, s.seed, s.position, V, BLOCK=BLOCK)
    else:
        gumbel_kernel[grid](weight, token, score, s.seed, s.position, V, BLOCK=BLOCK)
    best, rank = score.max(dim=-1, keepdim=True)
    return torch.where(best > float("-inf"), token.gather(1, rank), -1)[:, 0]

"""Compute attention forward, softmax(scale * Q K^T) V and its log-sum-exp, without storing the score matrix.

`attention` takes a batch of equal lengths, `attention_varlen` packed sequences of any lengths. Both check their
arguments, then launch the kernel that suits the GPU: forward_hopper where it fits, forward_portable elsewhere.
"""

from dataclasses import dataclass

import torch

from kernels.replays import Replays, form
from kernels.require import must

from . import arguments, forward_portable


@dataclass(frozen=True)
class Plan:
    """Hold the arguments of a kernel other than its tensors."""

    batch: int
    q_per_kv: int
    block_d: int
    q_len: int  # the longest, when packed
    k_len: int
    scale: float
    softcap: float
    left: int | None
    right: int | None
    varlen: bool = False
    cu_q: torch.Tensor | None = None
    cu_k: torch.Tensor | None = None


REPLAYS = Replays()


def attention(q, k, v, *, causal=False, scale=None, window=None, softcap=0.0, config=None):
    """q (batch, heads, length, head_dim), k and v (batch, kv heads, keys, head_dim) -> out like q, lse (batch, heads, length).

    Query i has the position of key i + keys - length. `window` = (left, right) limits how many keys to each side of
    its own position a query sees. `causal` means a right side of 0. A row that sees no key gives zeros and a
    log-sum-exp of -inf.
    """
    key = None
    if config is None and (window is None or type(window) is tuple):
        key = form(q), form(k), form(v), causal, scale, window, softcap, *map(type, window or ())
        ready = REPLAYS.get(key)
        if ready:
            out, lse = torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32)
            if ready(q, k, v, out, lse):
                return out, lse
    q_per_kv, block_d = arguments.qkv(q, k, v, rank=4)
    must(k.shape[0] == q.shape[0], "k", f"of batch {q.shape[0]}", k.shape[0], "one set of keys per sequence")
    left, right = arguments.visible(causal, window)
    scale, softcap = arguments.softmax_scale(scale, q.shape[-1]), arguments.cap(softcap)
    plan = Plan(q.shape[0], q_per_kv, block_d, q.shape[2], k.shape[2], scale, softcap, left, right)
    out = torch.empty_like(q)
    lse = q.new_empty(q.shape[:3], dtype=torch.float32)
    with REPLAYS.recording(key, q, k, v, out, lse):
        return _run(q, k, v, out, lse, plan, config)


def attention_varlen(
    q,
    k,
    v,
    cu_q,
    cu_k,
    max_q,
    *,
    causal=False,
    scale=None,
    window=None,
    softcap=0.0,
    config=None,
    check_values=True,
):
    """Packed q (tokens, heads, head_dim), k and v (keys, kv heads, head_dim) -> out like q, lse (heads, tokens).

    Sequence b has rows cu_q[b] .. cu_q[b + 1] of q and cu_k[b] .. cu_k[b + 1] of k, and `max_q` is the longest query
    length. `check_values` looks at the totals and so waits for the GPU. Turn it off where nothing may wait.
    """
    q_per_kv, block_d = arguments.qkv(q, k, v, rank=3)
    batch = arguments.totals(q, k, cu_q, cu_k, int(max_q), check_values)
    left, right = arguments.visible(causal, window)
    scale, softcap = arguments.softmax_scale(scale, q.shape[-1]), arguments.cap(softcap)
    plan = Plan(batch, q_per_kv, block_d, int(max_q), 0, scale, softcap, left, right, True, cu_q, cu_k)
    out = torch.empty_like(q)
    lse = torch.empty(q.shape[1], q.shape[0], dtype=torch.float32, device=q.device)
    return _run(q, k, v, out, lse, plan, config)


def _run(q, k, v, out, lse, plan, config):
    if q.numel() == 0:
        return out, lse
    if k.numel() == 0:
        return out.zero_(), lse.fill_(float("-inf"))
    if arguments.suit_hopper(q, k, v):
        from . import forward_hopper_launch

        forward_hopper_launch.launch(q, k, v, out, lse, plan, config)
    else:
        forward_portable.launch(q, k, v, out, lse, plan, config)
    return out, lse

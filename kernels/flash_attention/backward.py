"""Compute the gradients of attention, with weights recomputed tile by tile from the saved log-sum-exp.

With P = exp(S - lse) and delta_i = sum_d dO_id O_id:  dV = P^T dO,  dS = P * (dO V^T - delta),  dQ = scale dS K, dK =
scale dS^T Q. Arguments are checked here. Then the kernel that suits the GPU runs.
"""

import torch

from kernels.replays import Replays, form
from kernels.require import must

from . import arguments, backward_portable
from .forward import Plan

HOPPER_HEAD_DIMS = (64, 128)
REPLAYS = Replays()


def attention_backward(
    dout,
    q,
    k,
    v,
    out,
    lse,
    *,
    causal=False,
    scale=None,
    window=None,
    softcap=0.0,
    deterministic=False,
    config=None,
):
    """dout, q, out (batch, heads, length, head_dim), k and v (batch, kv heads, keys, head_dim), lse from `attention`
    -> dq, dk, dv, each contiguous and of its tensor's dtype.

    Where backward_hopper serves (Hopper, 16 bits, head dim 64 or 128, no window and no cap), it is the faster one.
    Its dQ is a sum of atomic additions, in fp32, whose order and last bits change from run to run. `deterministic`
    asks for the same bits every time, and takes the portable kernels everywhere. So does `config`, a dict of their
    kv_config and q_config.
    """
    given, key = (dout, q, k, v, out, lse), None
    if config is None and (window is None or type(window) is tuple):
        sides = window, *map(type, window or ())
        key = *map(form, given), causal, scale, softcap, deterministic, *sides
        if ready := REPLAYS.get(key):
            grads = tuple(torch.empty_like(t, memory_format=torch.contiguous_format) for t in (q, k, v))
            if ready(*given, *grads):
                return grads
    q_per_kv, block_d = arguments.qkv(q, k, v, rank=4)
    arguments.same_kind(q=q, dout=dout, out=out)
    for name, t in (("dout", dout), ("out", out)):
        must(
            t.shape == q.shape,
            name,
            f"of q's shape {tuple(q.shape)}",
            tuple(t.shape),
            "use the forward's tensors",
        )
    must(k.shape[0] == q.shape[0], "k", f"of batch {q.shape[0]}", k.shape[0], "one set of keys per sequence")
    arguments.numbers("lse", lse, torch.float32, tuple(q.shape[:3]), q.device)
    left, right = arguments.visible(causal, window)
    scale, softcap = arguments.softmax_scale(scale, q.shape[-1]), arguments.cap(softcap)
    arguments.programs("sequences times query heads", q.shape[0] * q.shape[1])
    dq, dk, dv = grads = [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in (q, k, v)]
    if q.numel() == 0 or k.numel() == 0:
        return dq.zero_(), dk.zero_(), dv.zero_()
    plan = Plan(q.shape[0], q_per_kv, block_d, q.shape[2], k.shape[2], scale, softcap, left, right)
    with REPLAYS.recording(key, *given, *grads):
        _run(dout, q, k, v, out, lse, grads, plan, deterministic, config)
    return dq, dk, dv


def _run(dout, q, k, v, out, lse, grads, plan: Plan, deterministic: bool, config) -> None:
    if (
        not deterministic
        and config is None
        and _plain(plan, q.shape[-1])
        and arguments.suit_hopper(dout, q, k, v, out)
    ):
        from . import backward_hopper_launch

        backward_hopper_launch.launch(dout, q, k, v, out, lse, grads, plan)
    else:
        backward_portable.launch(dout, q, k, v, out, lse, grads, plan, **(config or {}))


def _plain(plan, d: int) -> bool:
    return d in HOPPER_HEAD_DIMS and plan.left is None and plan.right in (None, 0) and plan.softcap == 0

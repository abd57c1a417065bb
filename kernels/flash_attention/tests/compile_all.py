"""Compile the topic's kernels as they are launched, for GPUs that are not here; prints facts as JSON."""

import dataclasses
import json
from functools import partial

import torch

from kernels.flash_attention import (
    backward,
    backward_hopper_launch,
    backward_portable,
    decode,
    forward,
    forward_hopper_launch,
    forward_portable,
)
from kernels.tests.compiled import Found, facts_of, kernels

LENGTH = 1024
MASKS = {"full": (None, None), "causal": (None, 0), "window": (256, 0)}


def plan(d, left, right, **more):
    return forward.Plan(
        1, 1, max(16, 1 << (d - 1).bit_length()), LENGTH, LENGTH, d**-0.5, 0.0, left, right, **more
    )


def tensors(d, count=3, dtype=torch.bfloat16):
    return [torch.empty(1, 2, LENGTH, d, dtype=dtype) for _ in range(count)]


def forwards(found):
    lse = torch.empty(1, 2, LENGTH)
    for d, mask in ((64, "full"), (64, "causal"), (128, "full"), (128, "causal"), (256, "window")):
        q, k, v, out = tensors(d, 4)
        call = partial(forward_hopper_launch.launch, q, k, v, out, lse, plan(d, *MASKS[mask]))
        found.add(f"hopper {d} {mask}", call, 90)
    q, k, v, out = tensors(128, 4)
    for target in (80, 90, 100):
        call = partial(forward_portable.launch, q, k, v, out, lse, plan(128, None, 0))
        found.add(f"portable {target}", call, target)


def decoded(found, name: str, call, capability: int) -> None:
    """Add the pass over the keys and the launch that adds its splits."""
    if found.wants(name):
        splits, sums = kernels(call, capability)
        found |= {name: facts_of(splits), f"sums of {name}": facts_of(sums)}


def decodes(found):
    q = torch.empty(4, 32, 128, dtype=torch.bfloat16)
    lens = torch.full((4,), 4096, dtype=torch.int32)
    flat = [torch.empty(4, 8, 4096, 128, dtype=torch.bfloat16) for _ in "kv"]
    paged = [torch.empty(64, 16, 8, 128, dtype=torch.bfloat16).transpose(1, 2) for _ in "kv"]
    table = torch.zeros(4, 256, dtype=torch.int32)
    one = torch.ones(1, 8, 1)
    decoded(found, "decode 80", partial(decode.decode, q, *flat, lens, splits=8), 80)
    narrow = [t.to(torch.float8_e4m3fn) for t in flat]
    for units in (1, 2 * 132):  # few sequences and many
        kinds = {
            "plain": partial(decode.decode, q, *flat),
            "paged": partial(decode.decode, q, *paged, lens, table=table, check_values=False),
            "narrow": partial(decode.decode, q, *narrow, lens, k_scale=one, v_scale=one),
        }
        for kind, call in kinds.items():
            config = decode.choose_config(kind, 128, units, 132)
            decoded(found, f"decode {kind} {units} 90", partial(call, splits=8, config=config), 90)


def packed(found):
    cu = torch.tensor([0, LENGTH], dtype=torch.int32)
    for d, right in ((64, None), (128, 0), (256, 0)):
        q, k, v, out = (t[0].transpose(0, 1).contiguous() for t in tensors(d, 4))
        form = dataclasses.replace(plan(d, None, right), varlen=True, cu_q=cu, cu_k=cu)
        call = partial(forward_hopper_launch.launch, q, k, v, out, torch.empty(2, LENGTH), form)
        found.add(f"packed {d}", call, 90)


def gradients(found):
    lse = torch.empty(1, 2, LENGTH)
    for d in (64, 128):
        dout, q, k, v, out, *grads = tensors(d, 8)
        call = partial(backward.attention_backward, dout, q, k, v, out, lse, causal=True)
        if found.wants(f"backward {d}"):
            for kernel in kernels(call, 90)[1:]:
                found[f"{kernel.metadata.name} {d}"] = facts_of(kernel)
        for mask, right in (("full", None), ("causal", 0)):
            if found.wants(f"backward hopper {d} {mask}"):
                form = plan(d, None, right)
                call = partial(backward_hopper_launch.launch, dout, q, k, v, out, lse, grads, form)
                before, kernel, after = kernels(call, 90)
                found[f"{kernel.metadata.name} {d} {mask}"] = facts_of(kernel)


def wide(found):
    """fp32: twice the bytes of every tile. A head dim that is padded to 128, and the largest."""
    lse, cu = torch.empty(1, 2, LENGTH), torch.tensor([0, LENGTH], dtype=torch.int32)
    for d in (72, 256):
        dout, q, k, v, out, *grads = tensors(d, 8, torch.float32)
        form = dataclasses.replace(plan(d, None, 0), varlen=True, cu_q=cu, cu_k=cu)
        flat = [t[0].transpose(0, 1).contiguous() for t in (q, k, v, out)]
        call = partial(forward_portable.launch, q, k, v, out, lse, plan(d, None, 0))
        found.add(f"fp32 forward {d}", call, 90)
        call = partial(forward_portable.launch, *flat, torch.empty(2, LENGTH), form)
        found.add(f"fp32 packed {d}", call, 90)
        call = partial(backward_portable.launch, dout, q, k, v, out, lse, grads, plan(d, None, 0))
        if found.wants(f"fp32 backward {d}"):
            for kernel in kernels(call, 90)[1:]:
                found[f"fp32 {kernel.metadata.name} {d}"] = facts_of(kernel)


def main():
    found = Found()
    forwards(found)
    decodes(found)
    packed(found)
    gradients(found)
    wide(found)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

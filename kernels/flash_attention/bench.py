"""List the rows of the benchmark: forward, backward and decode against PyTorch's backends and installed libraries."""

import numpy as np
import torch

from kernels.bench.row import Row
from kernels.compare import relative_error, spread
from kernels.flash_attention import cases, cost, peers, reference
from kernels.flash_attention.backward import attention_backward
from kernels.flash_attention.decode import decode
from kernels.flash_attention.decode_parts import Workspace
from kernels.flash_attention.forward import attention
from kernels.tensors import to_numpy

CHECKED_ROWS, CHECKED_HEADS = 24, 6
TOLERANCE = 8e-3  # bf16 weights and outputs


def rows(device):
    for case in cases.TIMED:
        yield Row(
            op="attention",
            case=case.name,
            dtype=case.dtype,
            flops=cost.flops(case.shape),
            bytes=cost.compulsory_bytes(case.shape),
            inputs=lambda seed, case=case: draw(case, seed, device),
            ours=ours,
            check=check,
            tolerance=TOLERANCE,
            peers=peers.FORWARD,
            quick=case in cases.TIMED[:2],
        )
    for case in cases.TIMED_DECODE:
        yield Row(
            op="decode",
            case=case.name,
            dtype=case.dtype,
            flops=cost.decode_flops(case.cost),
            bytes=cost.decode_bytes(case.cost),
            inputs=lambda seed, case=case: draw_decode(case, seed, device),
            ours=ours_decode,
            check=check_decode,
            tolerance=TOLERANCE,
            peers=peers.DECODE,
            quick=case in cases.TIMED_DECODE[:2],
        )
    for case in cases.TIMED_BACKWARD:
        yield Row(
            op="attention backward",
            case=case.name,
            dtype=case.dtype,
            flops=cost.backward_flops(case.shape),
            bytes=2 * cost.compulsory_bytes(case.shape),
            inputs=lambda seed, case=case: draw(case, seed, device),
            ours=ours_backward,
            check=check_backward,
            tolerance=2 * TOLERANCE,
            peers=peers.BACKWARD,
        )


def draw(case, seed, device) -> dict:
    rng = torch.Generator(device).manual_seed(seed)
    drawn = {"case": case}
    for name, heads, length in (
        ("q", case.q_heads, case.length),
        ("k", case.kv_heads, case.keys),
        ("v", case.kv_heads, case.keys),
        ("dout", case.q_heads, case.length),
    ):
        size = (case.batch, heads, length, case.head_dim)
        drawn[name] = torch.randn(size, device=device, generator=rng).to(torch.bfloat16)
    return drawn


def ours(inputs):
    q, k, v, options = inputs["q"], inputs["k"], inputs["v"], inputs["case"].options
    return lambda: attention(q, k, v, **options)[0]


def check(inputs, out) -> float:
    """Check some rows of some heads. A row's keys are cut out, so nothing in them is masked."""
    case = inputs["case"]
    got, expected = [], []
    for unit in spread(CHECKED_HEADS, case.batch * case.q_heads):
        b, h = divmod(int(unit), case.q_heads)
        kv = h * case.kv_heads // case.q_heads
        q, k, v = (to_numpy(inputs[name][b, i])[None, None] for name, i in (("q", h), ("k", kv), ("v", kv)))
        for row in spread(CHECKED_ROWS, case.length, seed=int(unit)):
            low, high = cost.key_range(case.shape, int(row))
            part = reference.attention(q[:, :, row : row + 1], k[:, :, low:high], v[:, :, low:high])
            expected.append(part[0].ravel())
            got.append(to_numpy(out[b, h, row]))
    return relative_error(np.stack(got), np.stack(expected))


def ours_backward(inputs):
    q, k, v, dout, options = (*(inputs[n] for n in ("q", "k", "v", "dout")), inputs["case"].options)
    out, lse = attention(q, k, v, **options)
    return lambda: attention_backward(dout, q, k, v, out, lse, **options)


def check_backward(inputs, grads) -> float:
    """Return one key head of one sequence, whole, with all query heads that share this key head."""
    case = inputs["case"]
    b, kv, group = case.batch - 1, case.kv_heads // 2, case.q_heads // case.kv_heads
    heads = {"q": slice(kv * group, (kv + 1) * group), "k": slice(kv, kv + 1)}
    heads |= {"dout": heads["q"], "v": heads["k"]}
    one = [to_numpy(inputs[name][b, heads[name]])[None] for name in ("dout", "q", "k", "v")]
    expected = reference.attention_backward(*one, **case.options)
    got = [to_numpy(grad[b, heads[name]])[None] for name, grad in zip("qkv", grads, strict=True)]
    return max(relative_error(a, e) for a, e in zip(got, expected, strict=True))


def draw_decode(case, seed, device) -> dict:
    """Draw a decode on the GPU, because caches are large. A check copies only the part that it compares."""
    rng = torch.Generator(device).manual_seed(seed)
    size = (case.batch, case.kv_heads, case.keys, case.head_dim)
    drawn = {
        "case": case,
        "q": torch.randn(case.batch, case.q_heads, case.head_dim, device=device, generator=rng),
    }
    drawn["q"] = drawn["q"].to(torch.bfloat16)
    for name in "kv":
        cache = torch.randn(size, device=device, generator=rng)
        if case.cache == "fp8":
            scale = cache.abs().amax(dim=(0, 2, 3), keepdim=True) / 448
            drawn[f"{name}_scale"] = scale[..., 0]
            drawn[name] = (cache / scale).to(torch.float8_e4m3fn)
        else:
            drawn[name] = cache.to(torch.bfloat16)
    if case.page_size:
        drawn["lens"] = torch.full((case.batch,), case.keys, dtype=torch.int32, device=device)
        pages = case.keys // case.page_size
        order = torch.randperm(case.batch * pages, device=device, generator=rng)
        drawn["table"] = order.to(torch.int32).view(case.batch, pages)
        for (
            name
        ) in "kv":  # (pages, page size, kv heads, head_dim) in memory, as caches are filled token by token
            cut = drawn[name].view(case.batch, case.kv_heads, pages, case.page_size, case.head_dim)
            home = torch.empty_like(
                cut.permute(0, 2, 3, 1, 4).flatten(0, 1), memory_format=torch.contiguous_format
            )
            home[order] = cut.permute(0, 2, 3, 1, 4).flatten(0, 1)
            drawn[name] = home.transpose(1, 2)
    return drawn


def decode_arguments(inputs) -> dict:
    return {name: x for name, x in inputs.items() if name != "case"}


def ours_decode(inputs):
    workspace = Workspace(inputs["q"].device)
    arguments = decode_arguments(inputs) | inputs["case"].options
    return lambda: decode(**arguments, workspace=workspace, check_values=False)[0]


def check_decode(inputs, out) -> float:
    case = inputs["case"]
    got, expected = [], []
    for b in spread(3, case.batch):
        one = decode_arguments(inputs) | {"q": inputs["q"][b : b + 1]}
        if case.page_size:
            one["lens"] = inputs["lens"][b : b + 1]
            one["table"] = inputs["table"][b : b + 1]
            used = one["table"].flatten().long()
            one |= {name: inputs[name][used] for name in "kv"}
            one["table"] = torch.arange(len(used), dtype=torch.int32)[None]
        else:
            one |= {name: inputs[name][b : b + 1] for name in "kv"}
        arrays = {name: to_numpy(x) for name, x in one.items()}
        expected.append(reference.decode(**arrays, **case.options)[0])
        got.append(to_numpy(out[b : b + 1]).reshape(expected[-1].shape))
    return relative_error(np.stack(got), np.stack(expected))

"""Call other implementations, for the benchmark, with one factory each, absent where not installed."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from kernels.bench.row import Absent


def _plain(case) -> None:
    """Return PyTorch's own, whose backends know causal and full, and align queries on the left."""
    if case.window or case.softcap or (case.causal and case.length != case.keys):
        raise Absent("this backend takes only full and square causal masks")


def _sdpa(backend, name):
    def factory(inputs):
        case, q, k, v = (inputs[n] for n in ("case", "q", "k", "v"))
        _plain(case)
        grouped = case.q_heads != case.kv_heads

        def call():
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=case.causal, enable_gqa=grouped)

        return call

    factory.__name__ = name
    return factory


def flex(inputs):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    case, q, k, v = (inputs[n] for n in ("case", "q", "k", "v"))
    left, right = case.shape.left, case.shape.right
    shift = case.keys - case.length

    def seen(b, h, i, j):
        mask = j >= 0
        if right is not None:
            mask = mask & (j <= i + shift + right)
        if left is not None:
            mask = mask & (j >= i + shift - left)
        return mask

    masked = left is not None or right is not None
    blocks = create_block_mask(seen, None, None, case.length, case.keys, device=q.device) if masked else None
    torch._dynamo.reset()  # each case is compiled on its own, or dynamo gives up after eight
    compiled = torch.compile(flex_attention, dynamic=False)
    grouped = case.q_heads != case.kv_heads
    return lambda: compiled(q, k, v, block_mask=blocks, enable_gqa=grouped)


def flex_decode(inputs):
    from torch.nn.attention.flex_attention import flex_attention

    _contiguous(inputs["case"])
    q, k, v = inputs["q"].unsqueeze(2), inputs["k"], inputs["v"]
    torch._dynamo.reset()
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda: compiled(q, k, v, enable_gqa=True)


def _contiguous(case) -> None:
    if case.page_size or case.cache != "same":
        raise Absent("takes a contiguous 16-bit cache")


def _sides(case) -> dict:
    left, right = case.window or (None, None)
    size = tuple(-1 if side is None else side for side in (left, right))
    return {"causal": case.causal, "window_size": size}


def flash_attention_2(inputs):
    from flash_attn import flash_attn_func

    case, (q, k, v) = inputs["case"], (inputs[n].transpose(1, 2) for n in ("q", "k", "v"))
    return lambda: flash_attn_func(q, k, v, **_sides(case)).transpose(1, 2)


def flash_attention_3(inputs):
    from flash_attn_interface import flash_attn_func

    case, (q, k, v) = inputs["case"], (inputs[n].transpose(1, 2) for n in ("q", "k", "v"))

    def call():
        out = flash_attn_func(q, k, v, **_sides(case))
        return (out[0] if isinstance(out, tuple) else out).transpose(1, 2)

    return call


def flash_attention_4(inputs):
    from flash_attn.cute import flash_attn_func

    case, (q, k, v) = inputs["case"], (inputs[n].transpose(1, 2) for n in ("q", "k", "v"))
    left, right = case.window or (None, None)
    more = {"causal": case.causal, "window_size": (left, right)}
    return lambda: flash_attn_func(q, k, v, **more)[0].transpose(1, 2)


def _sdpa_decode(backend):
    def factory(inputs):
        _contiguous(inputs["case"])
        q, k, v = inputs["q"].unsqueeze(2), inputs["k"], inputs["v"]

        def call():
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

        return call

    return factory


def flashinfer(inputs):
    from flashinfer import BatchDecodeWithPagedKVCacheWrapper

    case = inputs["case"]
    if not case.page_size or case.cache != "same":
        raise Absent("compared on 16-bit pages")
    device, pages = inputs["q"].device, inputs["table"].shape[1]
    space = torch.empty(128 * 2**20, dtype=torch.uint8, device=device)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(space, "NHD", use_tensor_cores=True)
    starts = torch.arange(case.batch + 1, dtype=torch.int32, device=device) * pages
    last = torch.full((case.batch,), case.page_size, dtype=torch.int32, device=device)
    heads = (case.q_heads, case.kv_heads, case.head_dim, case.page_size)
    wrapper.plan(
        starts, inputs["table"].flatten(), last, *heads, data_type=torch.bfloat16, q_data_type=torch.bfloat16
    )
    cache = tuple(inputs[name].transpose(1, 2) for name in "kv")
    return lambda: wrapper.run(inputs["q"], cache)


def _sdpa_backward(backend):
    def factory(inputs):
        case = inputs["case"]
        _plain(case)
        leaves = [inputs[name].detach().requires_grad_() for name in ("q", "k", "v")]
        # autograd returns to the forward's stream, and the default stream cannot take part in a captured graph
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), sdpa_kernel(backend):
            grouped = case.q_heads != case.kv_heads
            out = F.scaled_dot_product_attention(*leaves, is_causal=case.causal, enable_gqa=grouped)
        torch.cuda.current_stream().wait_stream(side)
        return lambda: torch.autograd.grad(out, leaves, inputs["dout"], retain_graph=True)

    return factory


def flash_attention_4_backward(inputs):
    from flash_attn.cute import flash_attn_func

    case = inputs["case"]
    _plain(case)
    leaves = [inputs[name].transpose(1, 2).detach().requires_grad_() for name in ("q", "k", "v")]
    side = torch.cuda.Stream()  # as for PyTorch's own backends
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        out = flash_attn_func(*leaves, causal=case.causal)[0]
    torch.cuda.current_stream().wait_stream(side)
    dout = inputs["dout"].transpose(1, 2)

    def call():
        grads = torch.autograd.grad(out, leaves, dout, retain_graph=True)
        return [grad.transpose(1, 2) for grad in grads]

    return call


FORWARD = {
    "SDPA flash": _sdpa(SDPBackend.FLASH_ATTENTION, "flash"),
    "SDPA cuDNN": _sdpa(SDPBackend.CUDNN_ATTENTION, "cudnn"),
    "SDPA efficient": _sdpa(SDPBackend.EFFICIENT_ATTENTION, "efficient"),
    "FlexAttention": flex,
    "FlashAttention 2": flash_attention_2,
    "FlashAttention 3": flash_attention_3,
    "FlashAttention 4": flash_attention_4,
}
DECODE = {
    "SDPA flash": _sdpa_decode(SDPBackend.FLASH_ATTENTION),
    "SDPA cuDNN": _sdpa_decode(SDPBackend.CUDNN_ATTENTION),
    "FlexAttention": flex_decode,
    "FlashInfer": flashinfer,
}
BACKWARD = {
    "SDPA flash": _sdpa_backward(SDPBackend.FLASH_ATTENTION),
    "SDPA cuDNN": _sdpa_backward(SDPBackend.CUDNN_ATTENTION),
    "SDPA efficient": _sdpa_backward(SDPBackend.EFFICIENT_ATTENTION),
    "FlashAttention 4": flash_attention_4_backward,
}

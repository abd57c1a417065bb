"""What an answer is timed against: what people would use instead. Each takes the named tensors of one input set."""

import torch


def matmul(t: dict) -> None:
    torch.matmul(t["a"], t["b"], out=t["c"])


def copy(t: dict) -> None:
    """One read and one write of the first input: what no fused element-wise kernel can beat."""
    t["y"].copy_(t["x"])


def sdpa_flash(t: dict) -> None:
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        torch.nn.functional.scaled_dot_product_attention(
            t["q"], t["k"], t["v"], is_causal=True, enable_gqa=True
        )


def matmul_of_codes(t: dict) -> None:
    """fp8 without a kernel for its scales: both operands widened to C's dtype, then multiplied."""
    torch.matmul(t["a"].to(t["c"].dtype), t["b"].to(t["c"].dtype), out=t["c"])


def sdpa_one_query(t: dict) -> None:
    """Decoding as torch does it: one query a sequence, all keys seen."""
    q = t["q"][:, :, None]
    torch.nn.functional.scaled_dot_product_attention(q, t["k"], t["v"], enable_gqa=True)


def sdpa_backward(t: dict) -> None:
    """Gradients by the flash kernel that torch carries, from the output and log-sum-exp that are there already."""
    none = torch.zeros((), dtype=torch.int64, device=t["q"].device)  # no dropout, so its seed is never read
    torch.ops.aten._scaled_dot_product_flash_attention_backward(
        *(t[name] for name in ("do", "q", "k", "v", "o", "lse")),
        None, None, t["q"].shape[2], t["k"].shape[2], 0.0, True, none, none, scale=None,
    )  # fmt: skip


def noise_and_argmax(t: dict) -> None:
    """A draw without fusion: scale, noise, add, argmax, each a launch over all logits."""
    scaled = t["logits"] / t["temperature"].clamp_min(1e-6)[:, None]
    noise = -torch.empty_like(scaled).exponential_().log()
    torch.argmax(scaled + noise, dim=-1)


BARS = {
    bar.__name__: bar
    for bar in (matmul, copy, sdpa_flash, matmul_of_codes, sdpa_one_query, sdpa_backward, noise_and_argmax)
}

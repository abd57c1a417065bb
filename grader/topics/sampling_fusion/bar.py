"""Time answers of this topic against the usual alternative. Each baseline takes the named tensors of a case."""

import torch


def noise_and_argmax(t: dict) -> None:
    """Draw without fusion: scale, noise, add, argmax, each a launch over all logits."""
    scaled = t["logits"] / t["temperature"].clamp_min(1e-6)[:, None]
    noise = -torch.empty_like(scaled).exponential_().log()
    torch.argmax(scaled + noise, dim=-1)


def topk_and_draw(t: dict) -> None:
    """Draw by top-k, the usual way: the 64 best of every row, those beyond its own k removed, noise, argmax, and
    their token."""
    best, token = torch.topk(t["logits"], 64, dim=-1)
    beyond = torch.arange(64, device=best.device) >= t["top_k"][:, None]
    scaled = best.masked_fill(beyond, float("-inf")) / t["temperature"].clamp_min(1e-6)[:, None]
    noise = -torch.empty_like(scaled).exponential_().log()
    torch.gather(token, 1, torch.argmax(scaled + noise, dim=-1, keepdim=True))


BARS = {bar.__name__: bar for bar in (noise_and_argmax, topk_and_draw)}

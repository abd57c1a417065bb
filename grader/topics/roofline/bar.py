"""Time answers of this topic against the usual alternative. Each baseline takes the named tensors of a case."""


def copy(t: dict) -> None:
    """Read and write the first input once, which no fused element-wise kernel can beat."""
    t["y"].copy_(t["x"])


BARS = {bar.__name__: bar for bar in (copy,)}

"""What an answer of this topic is timed against: what people would use instead. Each takes the named tensors of a case."""


def copy(t: dict) -> None:
    """One read and one write of the first input: what no fused element-wise kernel can beat."""
    t["y"].copy_(t["x"])


BARS = {bar.__name__: bar for bar in (copy,)}

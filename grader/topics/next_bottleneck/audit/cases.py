"""Compute the reference of *audit* and draw its inputs."""


def audit(before_s, after_s, share, tokens_s):
    """Return the implied cut of the part, the step without it, and the requests in flight."""
    return (before_s - after_s) / (share * before_s), before_s * (1 - share), tokens_s * after_s


def report(rng):
    """Draw a report. Every second report can't be true."""
    before, share = float(rng.uniform(0.02, 0.2)), float(rng.uniform(0.1, 0.6))
    gone = float(rng.uniform(0.2, 1.8)) * share
    return before, before * (1 - min(gone, 0.9)), share, float(rng.uniform(100, 4000))

"""Compute the reference of *suspect* and draw its inputs."""

from kernels.next_bottleneck import cost


def suspect(input_wait, launch_gap, skew, exposed, intensity, ridge, compute, bandwidth):
    """Return the bottleneck of a profile, by the lesson's flowchart."""
    seen = cost.Symptoms(input_wait, launch_gap, exposed, skew, intensity, ridge, compute, bandwidth)
    return cost.diagnose(seen).bottleneck


def seen(rng, **given):
    """Draw a profile without waits, and change what is given."""
    names = ("input_wait", "launch_gap", "skew", "exposed", "intensity", "ridge", "compute", "bandwidth")
    calm = {
        "input_wait": rng.uniform(0, 0.09),
        "launch_gap": rng.uniform(0, 0.09),
        "skew": rng.uniform(1, 1.04),
        "exposed": rng.uniform(0, 0.09),
        "intensity": rng.uniform(1, 200),
        "ridge": rng.uniform(210, 300),
        "compute": rng.uniform(0.0, 0.3),
        "bandwidth": rng.uniform(0.75, 0.95),
    } | given
    return tuple(float(calm[name]) for name in names)

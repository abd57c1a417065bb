"""Draw the inputs of *time terms* and limit their cost."""

import numpy as np

from grader.questions.draws import log_uniform
from grader.topics.roofline.shared_concepts import machine
from kernels.roofline import cost


def time_terms(flops, bytes_moved, overhead_s, peak, bandwidth, efficiency) -> tuple:
    """Seconds of bytes, seconds of arithmetic, seconds in all where the two overlap, and the largest term's name."""
    law = cost.iron_law(
        flops, bytes_moved, overhead_s, peak_flop_s=peak, bandwidth_byte_s=bandwidth, efficiency=efficiency
    )
    return law.memory_s, law.compute_s, law.overlapped_s, law.binding


def work(rng: np.random.Generator, largest: str) -> tuple:
    """Draw work with one largest term, whatever the other two are."""
    (peak, bandwidth), efficiency = machine(rng), rng.uniform(0.3, 0.9)
    seconds = {"memory": 1.0, "compute": 1.0, "overhead": 1.0}
    seconds |= {name: rng.uniform(0.2, 0.8) for name in seconds if name != largest}
    scale = log_uniform(rng, 1e-6, 1e-2)
    flops = seconds["compute"] * scale * peak * efficiency
    return (
        flops,
        seconds["memory"] * scale * bandwidth,
        seconds["overhead"] * scale,
        peak,
        bandwidth,
        efficiency,
    )

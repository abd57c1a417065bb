"""Draw the inputs of *step times* and limit their cost."""

from grader.questions.draws import between, log_uniform
from kernels.quantization_layouts import cost

H200 = (989e12, 4.8e12)


def step_times(m, weights, bits, unpack_s, tile_rows, peak, bandwidth):
    paid = cost.payoff(
        2 * weights / bandwidth,
        bits=bits,
        dequant_s_per_weight=unpack_s,
        bandwidth_byte_s=bandwidth,
        peak_flop_s=peak,
        batch=m,
        placement="fused",
        tile_rows=tile_rows,
    )
    return paid.dense_step_s, paid.quant_step_s


def _machine(rng):
    return log_uniform(rng, 1e14, 2e15), log_uniform(rng, 1e12, 9e12)


def step(rng, limit):
    """Draw a step in which one term is the longest by far: the stream of packed weights, or arithmetic with its
    unpacking."""
    (peak, bandwidth), weights = _machine(rng), between(rng, 10**6, 10**9)
    tile_rows, bits = 16 * between(rng, 1, 8), between(rng, 2, 7) + between(rng, 1, 7) / 8
    m = tile_rows * between(rng, 2, 5) + between(rng, 1, tile_rows - 1)
    stream_s, arithmetic_s = bits / 8 / bandwidth, 2 * m / peak
    if limit == "stream":
        m = max(1, int(rng.uniform(0.02, 0.06) * stream_s / 2 * peak))
        unpack_s = rng.uniform(0.2, 0.6) * stream_s / -(-m // tile_rows)
    else:
        unpack_s = rng.uniform(1.5, 4.0) * max(stream_s, arithmetic_s) / -(-m // tile_rows)
    return m, weights, bits, unpack_s, tile_rows, peak, bandwidth

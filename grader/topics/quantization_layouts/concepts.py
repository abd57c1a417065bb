"""Quantized layouts in numpy: codes into words and out again, group scales, their error, and what a layer's bytes are worth."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between, log_uniform
from grader.topics.quantization_layouts.concepts_wrong import CELLS
from kernels.quantization_layouts import checkpoints, cost, reference

LESSON = "course/02_quantization_layouts"
H200 = (989e12, 4.8e12)


def pack_words(codes):
    """GPTQ's order along K, as words without a sign."""
    return checkpoints.packed_words(codes, checkpoints.GPTQ_ORDER).view(np.uint32)


def unpack_words(words):
    return checkpoints.codes_of(words, checkpoints.GPTQ_ORDER)


def to_planes(codes, bits):
    return np.ascontiguousarray(np.moveaxis(reference.bit_planes(codes, bits), -1, 0))


def quantize_groups(w, group, zero_points):
    q = reference.quantize_int4(w, group, zero_points)
    zeros = q.zeros if zero_points else np.full(q.scales.shape, reference.MIDDLE, np.uint8)
    return q.codes, q.scales, zeros


def quantization_error(w, codes, scales, zeros, group):
    """Root mean square of the error as a share of the weights' own, and the largest error in steps of its scale."""
    off = np.abs(reference.values(reference.Int4(codes, scales, zeros, group)) - w)
    steps = off / reference.along_k(scales, group)
    return float(np.sqrt((off**2).mean() / (w**2).mean())), float(steps.max())


def layer_bytes(m, n, k, bits, group, zero_bits):
    return cost.linear_cost(m, n, k, bits=bits, group=group, zero_bits=zero_bits).bytes_moved


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


def _codes(rng, n, k, bits=4):
    return rng.integers(0, 2**bits, (n, k)).astype(np.uint8)


def _words(rng, n, words):
    return rng.integers(0, 2**32, (n, words), np.uint32)


def _planes(rng, bits):
    return _codes(rng, between(rng, 2, 7), 32 * between(rng, 2, 5), bits), bits


def _weights(rng, group, *, n=0, groups=0, shift=0.0, size=1.0):
    n, groups = n or between(rng, 3, 9), groups or between(rng, 2, 5)
    return size * (rng.standard_normal((n, groups * group)) + shift)


def _tiny(rng, group, largest=-6.3):
    """Weights whose scales are among fp16's smallest numbers, where rounding one moves it by a third or to nothing."""
    sizes = np.repeat(10.0 ** rng.uniform(largest - 1.7, largest, (6, 8)), group, axis=1)
    return sizes * rng.standard_normal(sizes.shape)


def _with_zeros(rng, group):
    w = _weights(rng, group)
    w[between(rng, 0, len(w) - 1), :group] = 0.0
    return w


def _all_below(w):
    """The same sizes, no weight above 0."""
    return -np.abs(w)


def _halves(rng, group, zero_points):
    """Weights that lie half a step between two codes, exactly, as do half of the zero points: scales are powers of two."""
    n, groups = between(rng, 4, 8), between(rng, 3, 6)
    steps = rng.integers(-6, 6, (n, groups, group)) + 0.5
    low = rng.integers(-27, -2, (n, groups)) / 2 if zero_points else np.full((n, groups), -7.0)
    if zero_points:
        low[0, :2] = -3.0, -2.5  # an odd zero point, and one half way between two
    high = low + 15 if zero_points else -low
    steps = np.clip(steps, low[..., None], high[..., None])
    steps[..., 0], steps[..., 1] = low, high
    return (steps * 2.0 ** rng.integers(-6, 3, (n, groups, 1))).reshape(n, -1)


def _quantized(rng, group, zero_points, **more):
    """A weight whose groups differ in size, quantized: neither a scale nor a zero point will do for another's."""
    w = _weights(rng, group, **more)
    w *= np.repeat(2.0 ** rng.uniform(-4, 2, (len(w), w.shape[1] // group)), group, axis=1)
    return w, *quantize_groups(w, group, zero_points), group


def _machine(rng):
    return log_uniform(rng, 1e14, 2e15), log_uniform(rng, 1e12, 9e12)


def _step(rng, limit):
    """A step in which one term is the longest by far: the stream of packed weights, or arithmetic with its unpacking."""
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


PACK_WORDS = NumpyQuestion(
    id="quantization_layouts.pack_words",
    notebook="concepts",
    asks="pack_words(codes): uint8 codes of four bits, (N, K), as uint32 words, (N, K / 8): word i of a row holds columns 8 i to 8 i + 7, the first in its lowest four bits",
    entry="pack_words",
    parts=(Part("values", 2, "calls"),),
    reference=pack_words,
    public=(
        Call((np.arange(8, dtype=np.uint8).reshape(1, 8),), "one word"),
        Call((_codes(np.random.default_rng(1), 2, 16),), "two rows of two words"),
    ),
    hidden=lambda rng: (
        [Call((_codes(rng, between(rng, 2, 9), 8 * between(rng, 2, 9)),), "other codes") for _ in range(5)]
        + [Call((np.full((2, 24), 15, np.uint8),), "nothing but the largest code")]
    ),
    where=f'{LESSON}/c_packing.ipynb, "Packing: where the bits lie"',
    hints=(
        "Eight codes of four bits fill 32. How far must the second be shifted so that it stands above the first, and the third?",
        "Code j of a word is shifted by 4 j. Widen first: codes.reshape(n, -1, 8).astype(np.uint32); then shift, and add up the last axis.",
        "(codes.reshape(len(codes), -1, 8).astype(np.uint32) << (4 * np.arange(8, dtype=np.uint32))).sum(-1, dtype=np.uint32)",
    ),
    mistakes=CELLS.mistakes("pack_words"),
)

UNPACK_WORDS = NumpyQuestion(
    id="quantization_layouts.unpack_words",
    notebook="concepts",
    asks="unpack_words(words): the codes again, (N, K), from uint32 words (N, K / 8) that hold eight neighbours each, the first in the lowest four bits",
    entry="unpack_words",
    parts=(Part("values", 1, "calls"),),
    reference=unpack_words,
    public=(
        Call((np.array([[0x76543210]], np.uint32),), "one word"),
        Call((_words(np.random.default_rng(2), 2, 2),), "two rows of two words"),
    ),
    hidden=lambda rng: [
        Call((_words(rng, between(rng, 2, 9), between(rng, 2, 9)),), "other words") for _ in range(5)
    ],
    where=f'{LESSON}/c_packing.ipynb, "Packing: where the bits lie"',
    hints=(
        "Undo it: which shift brings the third code to the bottom, and what is still above it then?",
        "words[..., None] >> (4 * np.arange(8)) has all eight at the bottom, one for each entry of a new last axis. Cut off what is above with & 15.",
        "(words[..., None] >> (4 * np.arange(8, dtype=np.uint32)) & 15).reshape(len(words), -1)",
    ),
    mistakes=CELLS.mistakes("unpack_words"),
)

TO_PLANES = NumpyQuestion(
    id="quantization_layouts.to_planes",
    notebook="concepts",
    asks="to_planes(codes, bits): codes (N, K) of `bits` bits as uint32 planes (bits, N, K / 32): word i of plane b holds bit b of columns 32 i to 32 i + 31, the first column in its lowest bit",
    entry="to_planes",
    parts=(Part("values", 2, "calls"),),
    reference=to_planes,
    public=(
        Call((_codes(np.random.default_rng(3), 1, 32, 3), 3), "one word a plane"),
        Call((_codes(np.random.default_rng(4), 2, 64, 5), 5), "five bits"),
    ),
    hidden=lambda rng: [Call(_planes(rng, bits), f"{bits} bits") for bits in (2, 3, 4, 5)],
    where=f'{LESSON}/c_packing.ipynb, "Packing: where the bits lie"',
    hints=(
        "Three bits fit no word evenly, but one bit of 32 codes does. Which words do you get for bit 0 alone?",
        "For one plane: codes.reshape(n, -1, 32).astype(np.uint32) >> b & 1 is a bit for each column; shift column j by j and add up. Then one plane after the other.",
        "np.stack([((each >> b & 1) << np.arange(32, dtype=np.uint32)).sum(-1, dtype=np.uint32) for b in range(bits)]), where each is codes.reshape(n, -1, 32).astype(np.uint32)",
    ),
    mistakes=CELLS.mistakes("to_planes"),
)

QUANTIZE_GROUPS = NumpyQuestion(
    id="quantization_layouts.quantize_groups",
    notebook="concepts",
    asks="quantize_groups(w, group, zero_points): (codes, scales, zeros) of a float64 weight (N, K), `group` neighbours of a row sharing an fp16 scale and a zero point, w being near (code - zero) scale",
    entry="quantize_groups",
    parts=(Part("values", 3, "calls"),),
    reference=quantize_groups,
    public=(
        Call((_weights(np.random.default_rng(5), 32, n=2, groups=2), 32, False), "without zero points"),
        Call((_weights(np.random.default_rng(6), 32, n=2, groups=2), 32, True), "with zero points"),
        Call((_with_zeros(np.random.default_rng(7), 32), 32, False), "a group of zeros"),
    ),
    hidden=lambda rng: [
        *(Call((_weights(rng, g), g, z), "another group") for g in (32, 64, 128) for z in (False, True)),
        Call((_weights(rng, 32, shift=4.0), 32, True), "weights of one sign"),
        Call((_all_below(_weights(rng, 32, shift=-4.0)), 32, True), "weights of one sign"),
        Call((_weights(rng, 64, shift=-1.5), 64, True), "weights that lean to one side"),
        *(Call((_halves(rng, 32, z), 32, z), "weights half a step between two codes") for z in (False, True)),
        Call(
            (_all_below(_tiny(rng, 32, -5.7)), 32, True),
            "weights near the smallest numbers of fp16, all below 0",
        ),
        Call((_with_zeros(rng, 32), 32, True), "a group of zeros"),
        Call((_tiny(rng, 32), 32, False), "weights near the smallest numbers of fp16"),
        Call((_tiny(rng, 32), 32, True), "weights near the smallest numbers of fp16, with zero points"),
        Call((_weights(rng, 32, n=24, groups=12, size=0.02), 32, False), "many weights"),
        Call((_weights(rng, 32, n=24, groups=12, size=0.02), 32, True), "many weights, with zero points"),
    ],
    where=f'{LESSON}/b_codes.ipynb, "From numbers to codes"',
    hints=(
        "w.reshape(n, -1, group) has a group along its last axis. Which number of each group decides the scale, with zero points and without?",
        "Without: the largest magnitude over 7, codes np.rint(w / scale) + 8. With: low and high, widened to hold 0, the scale (high - low) / 15, the zero point np.rint(-low / scale), codes np.rint(w / scale) + zero. Round the scale to fp16 before you divide by it, and clip.",
        "scales = (np.abs(blocks).max(-1) / 7).astype(np.float16); s = scales.astype(float); step = np.divide(1.0, s, out=np.zeros_like(s), where=s > 0); codes = np.clip(np.rint(blocks * step[..., None]), -7, 7) + 8",
    ),
    mistakes=CELLS.mistakes("quantize_groups"),
)

QUANTIZATION_ERROR = NumpyQuestion(
    id="quantization_layouts.quantization_error",
    notebook="concepts",
    asks="quantization_error(w, codes, scales, zeros, group): the root mean square of the error as a share of the root mean square of w, and the largest error of all, each counted in steps of its own group's scale",
    entry="quantization_error",
    parts=(Part("values", 2, "calls"),),
    reference=quantization_error,
    public=(
        Call(_quantized(np.random.default_rng(8), 32, False, n=2, groups=2), "without zero points"),
        Call(_quantized(np.random.default_rng(9), 32, True, n=2, groups=3), "with zero points"),
    ),
    hidden=lambda rng: (
        [Call(_quantized(rng, g, z), "another weight") for g in (32, 64) for z in (False, True)]
        + [Call(_quantized(rng, 32, True, shift=2.0), "weights that lean to one side")]
    ),
    where=f'{LESSON}/b_codes.ipynb, "From numbers to codes"',
    hints=(
        "First the weights that the codes stand for. How does a scale of shape (N, K / group) meet codes of shape (N, K)?",
        "np.repeat(scales, group, axis=1) gives each column its group's scale. Widen the codes before you subtract the zero point: uint8 has no -1.",
        "off = (codes.astype(float) - z) * s - w; then np.sqrt((off**2).mean() / (w**2).mean()), (np.abs(off) / s).max()",
    ),
    mistakes=CELLS.mistakes("quantization_error"),
)

LAYER_BYTES = NumpyQuestion(
    id="quantization_layouts.layer_bytes",
    notebook="concepts",
    asks="layer_bytes(m, n, k, bits, group, zero_bits): bytes that Y = X W.T moves when X (m, k), Y (m, n), the packed W (n, k) and its groups' 16-bit scales and zero points each cross the memory once",
    entry="layer_bytes",
    parts=(Part("values", 2, "calls"),),
    reference=layer_bytes,
    public=(
        Call((1, 28672, 8192, 4, 128, 0)),
        Call((16, 4096, 4096, 4, 64, 4), "with zero points"),
        Call((8, 100, 200, 3, 128, 8), "a group that is not full"),
    ),
    hidden=lambda rng: (
        [
            Call(
                (
                    *(between(rng, 1, 5000) for _ in range(3)),
                    between(rng, 2, 8),
                    2 ** between(rng, 5, 8),
                    zero_bits,
                ),
                "another layer",
            )
            for zero_bits in (0, 2, 4, 8)
        ]
        + [
            Call(
                (
                    between(rng, 1, 64),
                    between(rng, 100, 900),
                    128 * between(rng, 2, 9) + between(rng, 1, 127),
                    4,
                    128,
                    4,
                ),
                "a group that is not full",
            )
        ]
    ),
    where=f'{LESSON}/a_account.ipynb, "The account"',
    hints=(
        "Three things are read and one is written. Which of them has fewer bits than before, and what came with it?",
        "n k weights of `bits` bits; a scale of 16 bits and a zero point of zero_bits for each of n ceil(k / group) groups; X and Y with 2 bytes a number.",
        "n * k * bits / 8 + n * math.ceil(k / group) * (16 + zero_bits) / 8 + 2 * (m * k + m * n)",
    ),
    mistakes=CELLS.mistakes("layer_bytes"),
)

STEP_TIMES = NumpyQuestion(
    id="quantization_layouts.step_times",
    notebook="concepts",
    asks="step_times(m, weights, bits, unpack_s, tile_rows, peak, bandwidth): seconds of m rows with 16-bit weights, and with packed ones that each tile of tile_rows rows unpacks anew, unpack_s a weight, hidden under the stream of weights but not under the arithmetic",
    entry="step_times",
    parts=(Part("values", 2, "calls"),),
    reference=step_times,
    public=(
        Call((1, 234881024, 4.125, 2e-13, 64, *H200), "one row"),
        Call((64, 234881024, 4.125, 2e-13, 64, *H200), "a whole tile"),
        Call((500, 234881024, 4.125, 2e-13, 64, *H200), "a tile that is part full"),
    ),
    hidden=lambda rng: [
        Call(_step(rng, limit), f"{limit} limits") for limit in ("stream", "arithmetic") for _ in range(3)
    ],
    where=f'{LESSON}/d_which_kernel.ipynb, "When it loses"',
    hints=(
        "Bytes and arithmetic overlap, so the longer of the two is the time. Which of the two does the unpacking make longer?",
        "Dense: the larger of 2 weights / bandwidth and 2 m weights / peak. Packed: the stream takes weights bits / 8 / bandwidth; the arithmetic is the same, and unpacking comes on top of it, once for each of ceil(m / tile_rows) tiles.",
        "max(weights * bits / 8 / bandwidth, 2 * m * weights / peak + weights * unpack_s * math.ceil(m / tile_rows))",
    ),
    mistakes=CELLS.mistakes("step_times"),
)

QUESTIONS = (
    PACK_WORDS,
    UNPACK_WORDS,
    TO_PLANES,
    QUANTIZE_GROUPS,
    QUANTIZATION_ERROR,
    LAYER_BYTES,
    STEP_TIMES,
)
# Answers that hold for some calls alone.
SHORTCUTS = {
    QUANTIZE_GROUPS.id: {
        "groups of 128": lambda w, group, zero_points: quantize_groups(w, 128, zero_points),
        "never zero points": lambda w, group, zero_points: quantize_groups(w, group, False),
    },
    LAYER_BYTES.id: {
        "one row": lambda m, n, k, bits, group, zero_bits: layer_bytes(1, n, k, bits, group, zero_bits),
        "four bits": lambda m, n, k, bits, group, zero_bits: layer_bytes(m, n, k, 4, group, zero_bits),
    },
}

"""Ask *step times*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.quantization_layouts.shared import LESSON
from grader.topics.quantization_layouts.step_times import cases
from grader.topics.quantization_layouts.step_times.mistakes import MISTAKES

QUESTION = NumpyQuestion(
    id="quantization_layouts.step_times",
    notebook="concepts",
    asks="step_times(m, weights, bits, unpack_s, tile_rows, peak, bandwidth): seconds for m rows with 16-bit weights, and with packed weights. Each tile of tile_rows rows unpacks all packed weights again, in unpack_s per weight. Unpacking hides behind the stream of weights but not behind the arithmetic",
    entry="step_times",
    parts=(Part("values", 2, "calls"),),
    reference=cases.step_times,
    public=(
        Call((1, 234881024, 4.125, 2e-13, 64, *cases.H200), "one row"),
        Call((64, 234881024, 4.125, 2e-13, 64, *cases.H200), "a whole tile"),
        Call((500, 234881024, 4.125, 2e-13, 64, *cases.H200), "a tile that is part full"),
    ),
    hidden=lambda rng: [
        Call(cases.step(rng, limit), f"{limit} limits")
        for limit in ("stream", "arithmetic")
        for _ in range(3)
    ],
    where=f'{LESSON}/d_which_kernel.ipynb, "When it loses"',
    hints=(
        "Bytes and arithmetic overlap, so the longer of the two is the time. Which of the two does the unpacking make longer?",
        "Dense: the larger of 2 weights / bandwidth and 2 m weights / peak. Packed: the stream takes weights bits / 8 / bandwidth. The arithmetic is the same as before, and unpacking is added to it, once for each of ceil(m / tile_rows) tiles.",
        "max(weights * bits / 8 / bandwidth, 2 * m * weights / peak + weights * unpack_s * math.ceil(m / tile_rows))",
    ),
    mistakes=MISTAKES,
)

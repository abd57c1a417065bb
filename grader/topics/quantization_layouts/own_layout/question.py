"""Ask *own layout*, and weigh its parts."""

from grader.questions import WEIGHTS, Case, Free, KernelQuestion, Part, Prepare, Speed, Steers, UpTo, samples
from grader.topics.quantization_layouts.own_layout import cases
from grader.topics.quantization_layouts.own_layout.mistakes import MISTAKES
from grader.topics.quantization_layouts.shared import EXACT, few_weights
from grader.topics.quantization_layouts.shared_kbit import (
    BITS,
    LEVELS,
    OPERATIONS,
    SHOWN,
    X,
    Y,
    long_rows,
    sizes,
    useful,
)
from grader.topics.quantization_layouts.shared_wanted import layer, within

QUESTION = KernelQuestion(
    id="quantization_layouts.own_layout",
    notebook="kernel",
    entry="launch_own",
    bonus=True,
    asks="Y = X W.T for any number of rows of X. pack(codes, scales, bits) puts W's codes into arrays of your own design, once, and the kernel reads these arrays. The weight is c[code] times the scale of its 32 columns",
    parts=(
        Part(
            "values",
            2,
            "values",
            asks="right for {public} that you can see and more that you can't, as in section 8. At most four packed arrays, which together take at most a fifteenth more than the course's own layout (rows padded to 128, columns to vectors of 16 bytes), plus one word per row",
        ),
        Part(
            "traffic",
            1,
            "traffic",
            asks="the packed arrays are loaded once (a tenth more is allowed for gaps between codes), scales at most twice. X, Y and scratch as in section 8, and all products in `tl.dot`",
        ),
        Part(
            "sectors",
            1,
            "traffic",
            asks="the sectors of 32 bytes that the loads of packed arrays touch take at most a third more bytes than the codes, plus four times the bytes of the scales",
        ),
        Part(
            "unpacking",
            1,
            "traffic",
            gpu="speed",
            asks=f"without a GPU: at most {cases.UNPACKING} integer operations per weight, including those for addresses and masks, and at most {OPERATIONS} float operations per weight outside `tl.dot`. With one, at {{timed[N]:,}} × {{timed[K]:,}} with {{timed[BITS]}} bits and M = {{timed[M]}}: full points from {{full_speed}} of the speed of cuBLAS on the 16-bit weight, none below {{none_speed}}",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[N]} × {compiled[K]} with {compiled[BITS]} bits and M = {compiled[M]}, {spills}, on tensor cores",
        ),
    ),
    prepare=Prepare("pack", cases.bare, cases.most_packed, cases.shapes),
    tensors=(
        LEVELS,
        X,
        Y,
    ),
    inputs=cases.met,
    reference=layer,
    tolerance=within,
    public=(
        *SHOWN,
        Case(sizes(5, 33, 192, 20), layout={"x": "transposed"}, kind="X column by column"),
    ),
    hidden=cases.hidden,
    rows="M",
    alone=(EXACT,),  # its scales are of a size for its x, whose y only fp32 holds
    crossed=few_weights,
    in_corners=samples.rows("M"),
    alike=("c", "x"),
    regular_case=long_rows,
    balanced=({"c": 1, "x": -1}, {"scales": 1, "x": -1}, {"scales": 1}),
    free={"x": Free(1000, 1e6, "M", anywhere=False, least=1e-6)},
    up_to={"BITS": BITS, "N": UpTo(32_768), "K": UpTo(16_384, 32, 32), "M": UpTo(8192)},
    metered=cases.metered,
    blocks={"M": 32, "N": 64, "K": 128},
    vector=32,  # a lane may take a word of codes
    steered=(Steers(WEIGHTS, ("c", WEIGHTS)),),
    budgets={"traffic": cases.traffic, "sectors": cases.sectors, "unpacking": cases.unpacking},
    useful=useful,
    most_launches=2,
    compile_case=Case(sizes(5, 512, 1024, 16), "bf16", sm_count=132),
    targets=(90, 80),
    instruction={80: "mma.sync"},
    most_spills=256,
    speed=Speed("linear_in_16_bits", cases.TIMED, full=2.6, none=5.2, bound=cases.bound),
    where=f'{cases.LESSON}/c_packing.ipynb, "Packing: where the bits lie"',
    hints=(
        "A plane holds one bit of each code. Which widths divide a word evenly, and how can three or five bits be put together from fields of such widths?",
        "Three bits are two and one, and five are four and one. Keep the low bits in a field of their own, 16 or 8 codes per word, and the top bit in a plane. Then three- and five-bit codes take two shifts, two ANDs, a shift and an OR.",
        "words = [field of low bits | plane of the top bit] along each row, K * bits / 32 words of 32 bits; in the kernel: code = tl.reshape((low[:, :, None] >> (LOW * tl.arange(0, 32 // LOW))[None, None, :]) & (2**LOW - 1), (BLOCK_N, BLOCK_K)); if BITS % 2 == 1: code |= tl.reshape((high[:, :, None] >> tl.arange(0, 32)[None, None, :]) & 1, (BLOCK_N, BLOCK_K)) << LOW",
    ),
    mistakes=MISTAKES,
)

"""Ask *split decode*, and weigh its parts."""

from grader.questions import Free, KernelQuestion, Part, Speed, Tensor, UpTo, samples
from grader.questions.model import ONE_ANOTHER
from grader.topics.flash_attention.shared import DEEPEST, LESSON, LOWEST, TIED, within
from grader.topics.flash_attention.split_decode import cases
from grader.topics.flash_attention.split_decode.mistakes import MISTAKES

QUESTION = KernelQuestion(
    id="flash_attention.split_decode",
    notebook="kernel",
    entry="launch_decode",
    asks="decoding with one query per sequence over a long cache: the keys are split over programs, whose results are combined by log-sum-exp",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: odd lengths, a single key, groups of three and of twenty heads, long caches, extreme scores, scores far below zero (below −10⁹ too), a NaN in V, a strided cache, other scales (from 0.001 to 30), values up to 60,000 in fp16",
        ),
        Part(
            "traffic",
            3,
            "traffic",
            asks="each byte of the cache is loaded once, at least as many programs read the cache as there are multiprocessors, and at most {launches}",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[N]} keys of {compiled[G]} key heads of {compiled[D]}, {spills}",
        ),
        Part(
            "speed",
            2,
            "traffic",
            gpu="speed",
            asks="without a GPU: all bytes that move are at most 1.3 times those of the cache, the queries and the outputs, and the partial results of as many splits as fill the SMs; no operand of `tl.dot` is wider than 16 bits. Operations of every kind have a limit too. With a GPU, at {timed[B]} × {timed[N]:,} keys: full points up to {full} times the time of PyTorch's attention, none beyond {none} times",
        ),
    ),
    tensors=(
        Tensor("q", "bhd", ("B", "H", "D")),
        Tensor("k", "bhnd", ("B", "G", "N", "D")),
        Tensor("v", "bhnd", ("B", "G", "N", "D")),
        Tensor("o", "bhd", ("B", "H", "D"), role="out"),
    ),
    inputs=cases.decode_operands,
    reference=cases.decoded,
    tolerance=within(cases.decoded),
    public=(
        cases.decode_case(1, 1, 1, 64, 64),
        cases.decode_case(1, 4, 2, 300, 64, kind="keys that fill no block"),
        cases.decode_case(2, 8, 2, 128, 64, "bf16"),
    ),
    hidden=cases.hidden_decode,
    rows="B",
    alone=(LOWEST, DEEPEST, TIED),
    any_scalar=("scale",),
    alike=("q", "k", "v"),
    balanced=({"q": 1, "k": -1}, {"v": 1}),
    free={"v": Free(30_000, 1e15, "D", anywhere=False, least=1e-4)},
    up_to={"B": UpTo(128), "H": UpTo(128), "G": UpTo(128), "N": UpTo(33_000), "D": (32, 64, 128)},
    sized=cases.sized,
    metered=cases.metered_decode,
    blocks={"N": 256},
    compared=(ONE_ANOTHER, "0", "inf", "-inf"),
    budgets={"traffic": cases.decode, "speed": cases.decode_moved},
    useful=cases.decode_useful,
    most_launches=2,
    compile_case=cases.decode_case(1, 8, 2, 4096, 128, "bf16", sm_count=132),
    targets=(90, 80),
    most_spills=64,
    speed=Speed(
        "sdpa_one_query",
        cases.LONG_CACHE,
        full=1.5,
        none=3.0,
        bound=cases.decode_bound,
        sampled=samples.batches,
    ),
    where=f'{LESSON}/c_decode.ipynb, "Decoding: split the keys"',
    hints=(
        "Each program takes one key head and a range of keys, and stores its own maximum, sum and output in scratch. A second launch combines them.",
        "All query heads of a group go into the rows of one tile, padded to the next power of two and to at least 16, so that tl.dot accepts the tile.",
        "combine: m = max over splits; weight_s = l_s * exp(m_s - m); o = sum(weight_s * o_s) / sum(weight_s), with o_s already divided by l_s",
    ),
    mistakes=MISTAKES,
)

"""Ask *backward*, and weigh its parts."""

from grader.questions import Free, KernelQuestion, Part, Speed, Tensor, UpTo, samples
from grader.questions.model import ONE_ANOTHER
from grader.topics.flash_attention.backward import cases
from grader.topics.flash_attention.backward.mistakes import MISTAKES
from grader.topics.flash_attention.shared import LESSON, case

QUESTION = KernelQuestion(
    id="flash_attention.backward",
    notebook="kernel",
    entry="launch_backward",
    bonus=True,
    asks="dq, dk and dv of causal attention from do, with the weights computed again from q, k and the log-sum-exp",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: more keys than queries, bf16 in a batch, long rows, other scales (from 0.001 to 30), sums that are beyond fp16 before they cancel, everything strided. dq has 16 bits: atomics may add it up in fp32 scratch, which a later launch converts",
        ),
        Part(
            "traffic",
            1,
            "traffic",
            asks="at most {launches}, at most seven products over the tiles up to the diagonal, and no more loads than 32 × 32 tiles would make, counted near 750 tokens",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[H]} heads of {compiled[M]} × {compiled[D]}, {spills}",
        ),
        Part(
            "speed",
            1,
            "traffic",
            gpu="speed",
            asks="without a GPU: no more loads than 64 × 64 tiles would make, no operand of `tl.dot` wider than 16 bits, and at least one program for every 256 keys and for every 256 rows of a head, up to one per multiprocessor. With one, at {timed[B]} × {timed[H]} heads of {timed[M]} × {timed[D]}: full points up to {full} times the time of PyTorch's own backward, none beyond {none} times",
        ),
    ),
    tensors=(
        cases.rows("q"),
        cases.keys("k"),
        cases.keys("v"),
        cases.rows("o"),
        cases.rows("do"),
        Tensor("lse", "bhm", ("B", "H", "M"), "fp32"),
        cases.rows("dq", "out"),
        cases.keys("dk", "out"),
        cases.keys("dv", "out"),
    ),
    inputs=cases.backward_operands,
    reference=cases.gradients,
    tolerance=cases.gradient_within,
    public=(case(1, 1, 1, 64, 64, 64), case(1, 2, 2, 70, 70, 64, kind="a ragged length")),
    hidden=cases.hidden_backward,
    rows="B",
    alone=(cases.CANCELLING,),
    crossed=cases.crossed,
    any_scalar=("scale",),
    alike=("do",),
    balanced=({"q": 1, "k": -1}, {"v": 1, "o": 1, "do": -1}, {"do": 1}),
    free={"do": Free(100, 1e4, "B", anywhere=False, least=1e-3)},
    up_to={"B": UpTo(128), "H": UpTo(128), "G": UpTo(128), "M": UpTo(2048), "N": UpTo(8192), "D": (32, 64)},
    repeats=False,  # o and lse are results of the other inputs
    sized=cases.sized,
    metered=cases.metered_backward,
    blocks={"M": 128, "N": 128},
    compared=(ONE_ANOTHER, "0", "inf", "-inf"),
    budgets={"traffic": cases.backward, "speed": cases.backward_reuse},
    useful=cases.backward_useful,
    most_launches=4,
    compile_case=case(1, 2, 2, 512, 512, 64, "bf16", sm_count=132),
    targets=(90,),
    most_spills=4096,
    repeatable=False,
    speed=Speed(
        "sdpa_backward", cases.TRAINED, full=1.5, none=3.0, bound=cases.backward_bound, sampled=samples.heads
    ),
    where=f'{LESSON}/appendix.ipynb, "Backward: compute it again"',
    hints=(
        "delta = sum(o * do) over the head dimension, one number per row, is all that softmax's gradient needs to know about the output.",
        "In one kernel each program owns a tile of keys and loops over the rows for dk and dv. In another each program owns a tile of rows and loops over the keys for dq. Then no two programs write the same element.",
        "p = exp(s - lse); dv += p^T do; dp = do v^T; ds = p * (dp - delta); dk += ds^T q * scale; dq += ds k * scale",
    ),
    mistakes=MISTAKES,
)

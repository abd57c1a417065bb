"""Ask *grouped draw*, and weigh its parts."""

from grader.questions import Case, Free, KernelQuestion, Part, Speed, Steers, Tensor, UpTo, samples
from grader.questions.model import ANYTHING
from grader.topics.sampling_fusion.grouped_draw import cases
from grader.topics.sampling_fusion.grouped_draw.mistakes import MISTAKES
from grader.topics.sampling_fusion.shared import WORK, size, useful
from grader.topics.sampling_fusion.shared_rows import agree, exact, tokens_wanted
from kernels.sampling_fusion import cost

QUESTION = KernelQuestion(
    id="sampling_fusion.grouped_draw",
    notebook="kernel",
    entry="launch_grouped",
    asks="the draw among the top_k[b] (1 to 64) largest logits, with the lowest ids first among equals, for rows that don't fit into a block",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: odd vocabularies and large ones, fewer tokens than top-k asks for, the best tokens far apart and side by side, equal logits at the border, zeros of both signs, bf16, negative logits, −∞, far below zero and next to zero, any strides, scores that lie close together",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks=f"each logit is loaded once, and at most {cases.MOST} groups of {cost.GROUP} in each row a second time. Little goes through scratch, in at most {{launches}}",
        ),
        Part(
            "speed",
            1,
            "traffic",
            gpu="speed",
            asks=f"without a GPU, the logits move in whole sectors, and each that is read takes at most {WORK} operations. With a GPU, at {{timed[B]}} × {{timed[V]:,}}: full points up to {{full}} times the time of PyTorch's top-k and a draw from what it leaves, none beyond {{none}} times",
        ),
    ),
    tensors=(
        Tensor("logits", "bv", ("B", "V")),
        Tensor("temperature", "b", ("B",), "fp32"),
        Tensor("seed", "b", ("B",), "i32"),
        Tensor("top_k", "b", ("B",), "i32"),
        Tensor("token", "b", ("B",), "i32", role="out"),
    ),
    inputs=cases.inputs,
    reference=tokens_wanted,
    tolerance=exact,
    agree=agree,
    public=(
        Case(size(16, 640), "fp32"),
        Case(size(12, 1000), "fp32", kind="a last group that is not whole"),
    ),
    hidden=cases.hidden,
    rows="B",
    alone=tuple(cases.APART),
    crossed=cases.crossed,
    alike=("logits",),
    free={"logits": Free(3e4, 3e4, "B"), "temperature": Free(10, 10, "B", least=0.05)},
    up_to={"B": UpTo(1024), "V": UpTo(262_144, 70)},
    metered=cases.metered,
    blocks={"V": 16384},
    compared=(ANYTHING,),
    steered=tuple(Steers(name, whether=True) for name in ("logits", "temperature", "top_k")),
    budgets={"traffic": cases.read_again, "speed": cases.by_sectors},
    useful=useful,
    most_launches=4,
    speed=Speed(
        "topk_and_draw",
        Case(size(32, 128256), "fp32", sm_count=132),
        full=0.4,
        none=0.8,
        bound=cases.bound,
        sampled=samples.rows("B"),
    ),
    where='course/06_sampling_fusion/c_one_kernel.ipynb, "A row that does not fit"',
    hints=(
        "Use three launches. The first finds a maximum for each group of 64, the second finds the numbers of the top_k best groups, and the third draws among the tokens of these groups, 64 x 64 at most.",
        "The second launch finds the k-th best maximum as your filtered draw finds the k-th logit. tl.cumsum over the kept groups gives the index at which each group's number is stored.",
        "at = tl.arange(0, 4096); group = tl.load(chosen_ptr + b * 64 + at // 64); offs = group * 64 + at % 64, with no token where group is -1.",
    ),
    mistakes=MISTAKES,
    bonus=True,
)

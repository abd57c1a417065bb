"""Ask *draw*, and weigh its parts."""

from grader.questions import SCRATCH, Case, Free, KernelQuestion, Part, Speed, Steers, UpTo, samples
from grader.questions.model import ANYTHING
from grader.topics.sampling_fusion.draw import cases
from grader.topics.sampling_fusion.draw.mistakes import MISTAKES
from grader.topics.sampling_fusion.shared import (
    LESSON,
    LOGITS,
    ROWS,
    TOKEN,
    WORK,
    columns,
    one_read,
    size,
    useful,
)
from grader.topics.sampling_fusion.shared_rows import (
    LOW_NOISE,
    TIED_BY_NOISE,
    agree,
    exact,
    plain_inputs,
    tokens_wanted,
    uncrossed,
)

QUESTION = KernelQuestion(
    id="sampling_fusion.draw",
    notebook="kernel",
    asks="token[b]: the id with the largest logit where temperature[b] is 0, else with the largest logit / T + noise, where noise = -log(-log(tl.rand(seed[b], token id))). Among equal scores take the lowest id, and where all logits are -inf, -1",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: odd vocabularies and large ones, one token, bf16, large logits, equal logits, logits of −∞, far below zero and next to zero, strided rows, scores that lie close together, temperatures from 0.002 to 1,000, any seed that int32 holds",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks="each logit is loaded once, and little goes through scratch, in at most {launches}",
        ),
        Part(
            "compiled",
            1,
            "compiled",
            asks="compiles for {targets} at {compiled[B]} × {compiled[V]:,}, within shared memory, {spills}",
        ),
        Part(
            "speed",
            2,
            "traffic",
            gpu="speed",
            asks=f"without a GPU, the logits move in whole sectors, and each takes at most {WORK} operations. There is at least one program for every {ROWS} rows. With a GPU, at {{timed[B]}} × {{timed[V]:,}}: full points up to {{full}} times the time of PyTorch's division, noise, sum and argmax, none beyond {{none}} times",
        ),
    ),
    tensors=(LOGITS, *columns("temperature", "seed"), TOKEN),
    inputs=plain_inputs,
    reference=tokens_wanted,
    tolerance=exact,
    agree=agree,
    public=(Case(size(8, 64), "fp32"), Case(size(4, 100), "fp32", kind="a vocabulary that fills no block")),
    hidden=cases.hidden_plain,
    rows="B",
    in_corners=samples.rows("B"),
    far="B",
    alike=("logits",),
    free={"logits": Free(3e4, 3e4, "B"), "temperature": Free(1000, 1000, "B", least=0.002)},
    alone=(TIED_BY_NOISE, LOW_NOISE),
    crossed=uncrossed,
    up_to={"B": UpTo(128), "V": UpTo(262_144)},
    metered=cases.metered_plain,
    blocks={"V": 1024},
    compared=(ANYTHING,),
    steered=(
        Steers("temperature", whether=True),
        *(Steers(name, (SCRATCH,)) for name in ("logits", "seed")),
    ),
    budgets={"traffic": one_read, "speed": cases.by_sectors},
    useful=useful,
    most_launches=2,
    compile_case=Case(size(2, 128256), "fp32", sm_count=132),
    speed=Speed(
        "noise_and_argmax", cases.LARGE, full=2.9, none=5.8, bound=cases.bound, sampled=samples.rows("B")
    ),
    where=f'{LESSON}, "One read, one token"',
    hints=(
        "Take one program per row. Walk over the vocabulary in blocks, and remember for each element of the block the best score so far and the id of its token.",
        "tl.rand(seed, offs) gives the uniform numbers of a block. For a temperature of 0, use tl.where to choose the logit without noise.",
        "better = s > best; best = tl.where(better, s, best); who = tl.where(better, offs, who); after the loop take the largest score, and among equal scores the lowest id.",
    ),
    mistakes=MISTAKES,
)

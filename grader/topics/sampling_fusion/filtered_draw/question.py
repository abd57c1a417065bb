"""Ask *filtered draw*, and weigh its parts."""

from grader.questions import Case, Free, KernelQuestion, Part, Steers, UpTo, samples
from grader.questions.model import ANYTHING
from grader.topics.sampling_fusion.filtered_draw import cases
from grader.topics.sampling_fusion.filtered_draw.mistakes import MISTAKES
from grader.topics.sampling_fusion.shared import (
    LESSON,
    LOGITS,
    ROWS,
    TOKEN,
    columns,
    size,
    useful,
)
from grader.topics.sampling_fusion.shared_rows import (
    BORDER,
    FAINT_TAIL,
    agree,
    exact,
    tokens_wanted,
    uncrossed,
)

QUESTION = KernelQuestion(
    id="sampling_fusion.filtered_draw",
    notebook="kernel",
    entry="launch_filtered",
    asks="the draw among the survivors of top-k (0 is off), top-p and min-p, in one launch (V up to 2048)",
    parts=(
        Part(
            "values",
            5,
            "values",
            asks=f"right for {{public}} that you can see and more that you can't: odd vocabularies, bf16, fewer tokens than top-k, large logits, logits of −∞, far below zero and next to zero, zeros of both signs, equal logits at the border and ones that differ in their last bit, a mass of exactly p, where fp32 sums are exact (elsewhere a token may stay or go if the mass before it is within {BORDER:g} of p), a top-k up to V, a top-p from 0.0005 to 0.9995, a min-p up to 1, a weight of exactly min_p, greedy rows, temperatures from 0.05 to 10",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks=f"each logit is loaded once, by at least one program for every {ROWS} rows, in {{launches}}",
        ),
    ),
    tensors=(LOGITS, *columns("temperature", "seed", "top_k", "top_p", "min_p"), TOKEN),
    inputs=cases.filtered_inputs,
    reference=tokens_wanted,
    tolerance=exact,
    agree=agree,
    public=(
        Case(size(16, 12), "fp32", values="few tokens"),
        Case(size(4, 500), "fp32", kind="a vocabulary that fills no block"),
    ),
    hidden=cases.hidden_filtered,
    rows="B",
    in_corners=samples.rows("B"),
    alike=("logits",),
    free={
        "logits": Free(3e4, 3e4, "B"),
        "temperature": Free(10, 10, "B", least=0.05),
        "top_p": Free(0.9995, 0.9995, "B", least=0.0005),
        "min_p": Free(1, 1, "B", least=0.001),
    },
    alone=(FAINT_TAIL,),
    crossed=uncrossed,
    up_to={"B": UpTo(2048), "V": UpTo(2048, 8)},
    metered=cases.metered_filtered,
    blocks={"V": 2048},
    compared=(ANYTHING,),
    steered=(Steers("temperature", whether=True),),
    budgets={"traffic": cases.traffic},
    useful=useful,
    most_launches=1,
    where=f'{LESSON}, "Selection without sorting"',
    hints=(
        "The row fits into one block, so you can compare all of it at once. Which single number decides whether a token is among the k largest?",
        "Find a threshold: halve an interval of logits until you have the highest number that at least k logits reach, counting with tl.sum. If several logits equal this number, more than k may reach it, and tl.cumsum picks the lowest ids among the equal ones.",
        "For top-p, halve once more: inside = tl.sum(tl.where(x > middle, kept, 0.0), 0) < p * tl.sum(kept, 0), where kept holds the weights of top-k's tokens and 0 elsewhere. If inside is true, the border is at middle or below. For equal logits at the border, tl.cumsum adds up the mass before each.",
    ),
    mistakes=MISTAKES,
)

"""From logits to a token: the rules in numpy with their edges, then one kernel that does them all in one read.

Tokens are compared with the one that noise, rules and logits give, so no right kernel fails by chance. Close calls see
a temperature off by 1%, for which a histogram needs 730,000 draws (grader/topics/sampling_fusion/tests/biases.py). They cannot
see what moves a score by less than a thousandth, nor what happens once in billions of draws.
"""

from grader.questions import Case, KernelQuestion, Part, Speed, Tensor, samples
from grader.topics.sampling_fusion import (
    budgets,
    cases,
    grouped,
    mistakes,
    mistakes_filtered,
    mistakes_grouped,
    mistakes_masked,
    picks,
    rules,
)
from grader.topics.sampling_fusion.cases import size
from grader.topics.sampling_fusion.rows import (
    agree,
    exact,
    filtered_inputs,
    masked_inputs,
    plain_inputs,
    tokens_wanted,
)

LESSON = "course/06_sampling_fusion/c_one_kernel.ipynb"
COLUMN = {"seed": "i32", "top_k": "i32"}  # all others are fp32
LOGITS = Tensor("logits", "bv", ("B", "V"))
TOKEN = Tensor("token", "b", ("B",), "i32", role="out")
LARGE = Case(size(32, 128256), "fp32", sm_count=132)


def columns(*names: str) -> tuple[Tensor, ...]:
    return tuple(Tensor(name, "b", ("B",), COLUMN.get(name, "fp32")) for name in names)


def bound(case: Case) -> tuple[float, float]:
    return budgets.useful(case), budgets.compulsory(case)


DRAW = KernelQuestion(
    id="sampling_fusion.draw",
    notebook="kernel",
    asks="token[b]: the largest logit where temperature[b] is 0, else the largest logit / T + noise, with noise = -log(-log(tl.rand(seed[b], token id))); of equals the lowest id, and -1 where all logits are -inf",
    parts=(
        Part(
            "values",
            3,
            "values",
            asks="right for {public} that you can see and more that you can't: odd vocabularies and large ones, one token, bf16, large logits, equal logits, logits of −∞ and far below zero, strided rows, scores that lie close together",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks="each logit is loaded once; little goes through scratch; at most {launches}",
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
            asks=f"without a GPU: whole sectors of logits, and at most {budgets.WORK} operations for each; a program at least for every {budgets.ROWS} rows; operations of every kind have a limit too. With one, at {{timed[B]}} × {{timed[V]:,}}: full points up to {{full}} times the time of PyTorch's division, noise, sum and argmax, none beyond {{none}} times",
        ),
    ),
    tensors=(LOGITS, *columns("temperature", "seed"), TOKEN),
    inputs=plain_inputs,
    reference=tokens_wanted,
    tolerance=exact,
    agree=agree,
    public=(Case(size(8, 64), "fp32"), Case(size(4, 100), "fp32", kind="a vocabulary that fills no block")),
    hidden=cases.hidden_plain,
    metered=budgets.metered_plain,
    budgets={"traffic": budgets.one_read, "speed": budgets.by_sectors},
    useful=budgets.useful,
    most_launches=2,
    compile_case=Case(size(2, 128256), "fp32", sm_count=132),
    speed=Speed("noise_and_argmax", LARGE, full=2.9, none=5.8, bound=bound, sampled=samples.rows("B")),
    where=f'{LESSON}, "One read, one token"',
    hints=(
        "One program a row: walk over the vocabulary in blocks and remember, for each lane, the best score so far and whose it was.",
        "tl.rand(seed, offs) gives the uniform numbers of a block; a temperature of 0 takes tl.where to the bare logit.",
        "better = s > best; best = tl.where(better, s, best); who = tl.where(better, offs, who); at the end the largest, and of equals the lowest id.",
    ),
    mistakes=mistakes.DRAW,
)


MASKED_DRAW = KernelQuestion(
    id="sampling_fusion.masked_draw",
    notebook="kernel",
    entry="launch_masked",
    asks="the draw after the grammar's bit mask (bit v % 32 of allowed[b, v // 32]) and the penalties on history[b] (-1 is empty); a row with nothing left gives -1",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: odd vocabularies, a long history, bf16, a row that bans everything, a mask that ends within a word, equal logits, logits far below zero, strided rows, scores that lie close together",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks=f"each logit is loaded once, by a program at least for every {budgets.ROWS} rows; at most {{launches}}",
        ),
    ),
    tensors=(
        LOGITS,
        Tensor("allowed", "bw", lambda s: (s["B"], -(-s["V"] // 32)), "i32"),
        Tensor("history", "bl", ("B", "L"), "i32"),
        *columns("temperature", "seed", "repetition", "frequency", "presence"),
        TOKEN,
    ),
    inputs=masked_inputs,
    reference=tokens_wanted,
    tolerance=exact,
    agree=agree,
    public=(Case(size(8, 64, 4), "fp32"), Case(size(4, 200, 12), "fp32", kind="a longer history")),
    hidden=cases.hidden_masked,
    metered=budgets.metered_masked,
    budgets={"traffic": budgets.one_read_masked},
    useful=budgets.useful,
    most_launches=2,
    where=f'{LESSON}, "Masks and memories"',
    hints=(
        "Take your draw kernel; only the logit changes before it is scaled. Where does a lane find its mask bit?",
        "(tl.load(allowed + offs // 32) >> (offs % 32)) & 1. For the counts, loop over the history and compare each entry with offs.",
        "count += (offs == tl.load(history + l)); x = tl.where(count > 0, tl.where(x > 0, x / r, x * r), x) - f * count - p * (count > 0)",
    ),
    mistakes=mistakes_masked.MASKED,
)


FILTERED_DRAW = KernelQuestion(
    id="sampling_fusion.filtered_draw",
    notebook="kernel",
    entry="launch_filtered",
    asks="the draw among the survivors of top-k (0 is off), top-p and min-p, without sorting the vocabulary (V up to 2048)",
    parts=(
        Part(
            "values",
            5,
            "values",
            asks="right for {public} that you can see and more that you can't: odd vocabularies, bf16, fewer tokens than top-k, large logits, logits of −∞ and far below zero, zeros of both signs, equal logits at the border, a mass of exactly p, a weight of exactly min_p",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks=f"each logit is loaded once, by a program at least for every {budgets.ROWS} rows; {{launches}}",
        ),
    ),
    tensors=(LOGITS, *columns("temperature", "seed", "top_k", "top_p", "min_p"), TOKEN),
    inputs=filtered_inputs,
    reference=tokens_wanted,
    tolerance=exact,
    agree=agree,
    public=(
        Case(size(16, 12), "fp32", values="few tokens"),
        Case(size(4, 500), "fp32", kind="a vocabulary that fills no block"),
    ),
    hidden=cases.hidden_filtered,
    metered=budgets.metered_filtered,
    budgets={"traffic": budgets.row_by_row},
    useful=budgets.useful,
    most_launches=1,
    where=f'{LESSON}, "Selection without sorting"',
    hints=(
        "The row fits in one block, so everything can be asked of it at once. What single number decides whether a token is among the k largest?",
        "A threshold: halve an interval of logits until exactly k lie at or above it, counting with tl.sum; of equals, tl.cumsum keeps the lowest ids.",
        "For top-p look for the threshold whose mass above it is the largest still below p of the kept mass; then noise, and the largest of what is left.",
    ),
    mistakes=mistakes_filtered.FILTERED,
)

QUESTIONS = (*rules.QUESTIONS, *picks.QUESTIONS, DRAW, MASKED_DRAW, FILTERED_DRAW, grouped.GROUPED_DRAW)
SHORTCUTS = {
    **rules.SHORTCUTS,
    **picks.SHORTCUTS,
    DRAW.id: mistakes.DRAW_SHORTCUTS,
    MASKED_DRAW.id: mistakes_masked.MASKED_SHORTCUTS,
    FILTERED_DRAW.id: mistakes_filtered.FILTERED_SHORTCUTS,
    grouped.GROUPED_DRAW.id: mistakes_grouped.GROUPED_SHORTCUTS,
}

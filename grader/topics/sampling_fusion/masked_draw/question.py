"""Ask *masked draw*, and weigh its parts."""

from grader.questions import Case, Free, KernelQuestion, Part, Steers, Tensor, UpTo, samples
from grader.questions.model import ANYTHING
from grader.topics.sampling_fusion.masked_draw import cases
from grader.topics.sampling_fusion.masked_draw.mistakes import MISTAKES
from grader.topics.sampling_fusion.shared import LESSON, LOGITS, ROWS, TOKEN, columns, size, useful
from grader.topics.sampling_fusion.shared_rows import agree, exact, tokens_wanted
from kernels.sampling_fusion.cost import GROUP

QUESTION = KernelQuestion(
    id="sampling_fusion.masked_draw",
    notebook="kernel",
    entry="launch_masked",
    asks="the draw after the grammar's bit mask (bit v % 32 of allowed[b, v // 32]) and the penalties on history[b] (-1 is empty). A row with no token left gives -1",
    parts=(
        Part(
            "values",
            4,
            "values",
            asks="right for {public} that you can see and more that you can't: odd vocabularies, a long history, a token that was produced thousands of times, bf16, a row that bans everything, a mask that ends within a word, equal logits, logits far below zero, repetition penalties from 0.1 to 10 and others from −2 to 2, greedy rows, temperatures from 0.05 to 10, strided rows, scores that lie close together",
        ),
        Part(
            "traffic",
            2,
            "traffic",
            asks=f"each logit is loaded once, by at least one program for every {ROWS} rows, in at most {{launches}}. A row's history may be loaded once for every {GROUP} logits",
        ),
    ),
    tensors=(
        LOGITS,
        Tensor("allowed", "bw", lambda s: (s["B"], -(-s["V"] // 32)), "i32"),
        Tensor("history", "bl", ("B", "L"), "i32"),
        *columns("temperature", "seed", "repetition", "frequency", "presence"),
        TOKEN,
    ),
    inputs=cases.masked_inputs,
    reference=tokens_wanted,
    tolerance=exact,
    agree=agree,
    public=(Case(size(8, 64, 4), "fp32"), Case(size(4, 200, 12), "fp32", kind="a longer history")),
    hidden=cases.hidden_masked,
    rows="B",
    crossed=cases.crossed,
    sized=cases.sized,
    in_corners=samples.rows("B"),
    far="B",
    alike=("logits",),
    free={
        "logits": Free(3e4, 3e4, "B"),
        "temperature": Free(10, 10, "B", least=0.05),
        "repetition": Free(10, 10, "B", least=0.1),
        "frequency": Free(2, 2, "B", least=0.01),
        "presence": Free(2, 2, "B", least=0.01),
    },
    up_to={"B": UpTo(2048), "V": UpTo(131_072), "L": UpTo(4096)},
    metered=cases.metered_masked,
    blocks={"V": 2048},
    vector=32,  # a lane may take a word of the mask
    compared=(ANYTHING,),
    steered=(
        Steers("temperature", whether=True),
        Steers("allowed", ("logits",), whether=True),
        *(Steers(name, ("history",), whether=True) for name in ("repetition", "frequency", "presence")),
    ),
    budgets={"traffic": cases.one_read_masked},
    useful=useful,
    most_launches=2,
    where=f'{LESSON}, "Masks and memories"',
    hints=(
        "Take your draw kernel. Only the logit changes, before it is scaled. Where does the kernel find the mask bit of a token?",
        "(tl.load(allowed + offs // 32) >> (offs % 32)) & 1. For the counts, loop over the history and compare each entry with offs.",
        "count += (offs == tl.load(history + l)); x = tl.where(count > 0, tl.where(x > 0, x / r, x * r), x) - f * count - p * (count > 0)",
    ),
    mistakes=MISTAKES,
)

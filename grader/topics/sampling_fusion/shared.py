"""Share sizes, references and costs among questions of sampling fusion."""

from grader.box.serve.frames import DTYPES
from grader.questions import Budget, Case, Tensor
from grader.questions.min_programs import side_by_side
from kernels.sampling_fusion import cost


def size(b, v, n=None) -> dict:
    return {"B": int(b), "V": int(v)} | ({"L": int(n)} if n else {})


ONCE = "how often the logits come from memory: scale, add noise and keep the best as they pass"
NEIGHBOURS = "which neighbouring lanes read neighbouring logits: a sector is 32 bytes, used or not"
LEFT = "what goes through memory between two launches: a score and a token for each program are enough"
WORK = 48  # operations a logit, where two logarithms, a division, a sum and a comparison take some 10
ALL_WORK = 320  # of every kind, a logit, most of which makes a random number
SECTOR = 8  # fp32 logits
ROWS = 2  # the most rows for one program


def useful(case: Case) -> float:
    return 10.0 * case.sizes["B"] * case.sizes["V"]


def compulsory(case: Case) -> float:
    return cost.compulsory_bytes(case.sizes["B"], case.sizes["V"], DTYPES[case.dtype].itemsize)


def logits(case: Case) -> int:
    return case.sizes["B"] * case.sizes["V"] * DTYPES[case.dtype].itemsize


def one_read(case: Case) -> list[Budget]:
    b, v = case.sizes["B"], case.sizes["V"]
    every, groups = logits(case), -(-v // cost.GROUP)
    return [
        Budget(
            what="read of the logits",
            tensor="logits",
            most=every,
            least=every,
            look=ONCE,
            model=f"{b} rows of {v} logits of 4 bytes, once",
        ),
        Budget(
            what="scratch, loaded and stored",
            tensor="scratch",
            access="any",
            most=2 * b * groups * (cost.FP32 + cost.INT32),
            look=LEFT,
            model=f"a score and a token for every {cost.GROUP} of {b} x {v} logits, out and in",
        ),
        Budget(
            what="write of the tokens",
            tensor="token",
            access="store",
            most=cost.TOKENS * b,
            least=cost.TOKENS * b,
            look=LEFT,
            model=f"{b} tokens of 4 bytes, once",
        ),
    ]


def row_by_row(case: Case) -> list[Budget]:
    """One read, by programs side by side."""
    b = case.sizes["B"]
    rows = side_by_side(
        "read the logits", "logits", "load", -(-b // ROWS), f"one for every {ROWS} of {b} rows"
    )
    return [*one_read(case), rows]


LESSON = "course/06_sampling_fusion/c_one_kernel.ipynb"
COLUMN = {"seed": "i32", "top_k": "i32"}  # all others are fp32
LOGITS = Tensor("logits", "bv", ("B", "V"))
TOKEN = Tensor("token", "b", ("B",), "i32", role="out")


def columns(*names: str) -> tuple[Tensor, ...]:
    return tuple(Tensor(name, "b", ("B",), COLUMN.get(name, "fp32")) for name in names)

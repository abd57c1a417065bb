"""Ask *dispatch*, and weigh its parts."""

from grader.questions import Call, NumpyQuestion, Part
from grader.topics.quantization_layouts.dispatch import cases
from grader.topics.quantization_layouts.dispatch.mistakes import MISTAKES

QUESTION = NumpyQuestion(
    id="quantization_layouts.dispatch",
    notebook="kernel",
    asks='dispatch(rows, measured, gemv_rows, dense_kept): the name of the fastest kernel that may run with `rows` rows, according to a table of (rows, kernel, microseconds). "gemv" may take up to gemv_rows rows, and "dense" needs dense_kept',
    entry="dispatch",
    parts=(Part("values", 3, "calls"),),
    reference=cases.dispatch,
    public=(
        Call((1, cases.PUBLIC, 4, False), "one row"),
        Call((12, cases.PUBLIC, 4, False), "rows between two measurements"),
        Call((256, cases.PUBLIC, 4, True), "a dense copy is kept"),
    ),
    hidden=cases.hidden,
    where=f'{cases.LESSON}/d_which_kernel.ipynb, "Kernel families, by M"',
    hints=(
        "First decide which measured number of rows to look up, then which kernels may run at all, then which of these is fastest.",
        "Take the smallest measured number that is not below `rows`, or the largest number if there is none. Strike out the gemv if rows > gemv_rows, and dense if no copy is kept. Of the remaining kernels at that number, take the one with the smallest time.",
        "known = sorted({m for m, _, _ in measured}); at = next((m for m in known if m >= rows), known[-1]); then min((us, name) for m, name, us in measured if m == at and it may run)[1]",
    ),
    mistakes=MISTAKES,
)

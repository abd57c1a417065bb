"""List the mistakes of *turned*, a row each."""

from grader.questions.families import within_limit
from grader.topics.roofline.shared_mistakes import changed, gives, of_ladder

GRID_TURNED = "(triton.cdiv(p.M, 32), triton.cdiv(p.N, 16))"


MISTAKES = of_ladder(
    ("y",),
    {
        "a copy": gives(
            "y's memory is a copy of x's: y[j, i] is at j * M + i",
            lambda t, c: t["x"].reshape(t["x"].T.shape),
            by=[("y_ptr + offs_n * M + offs_m", "y_ptr + offs_m * N + offs_n")],
        ),
        "rows of x a program": changed(
            (GRID_TURNED, "(p.M, triton.cdiv(p.N, 64))"),
            ('"BLOCK_M": 32, "BLOCK_N": 16', '"BLOCK_M": 1, "BLOCK_N": 64'),
            part="traffic",
        ),
        "columns of x a program": changed(
            (GRID_TURNED, "(triton.cdiv(p.M, 64), p.N)"),
            ('"BLOCK_M": 32, "BLOCK_N": 16', '"BLOCK_M": 64, "BLOCK_N": 1'),
            part="traffic",
        ),
        "four rows": changed(
            (GRID_TURNED, "(triton.cdiv(p.M, 4), triton.cdiv(p.N, 64))"),
            ('"BLOCK_M": 32, "BLOCK_N": 16', '"BLOCK_M": 4, "BLOCK_N": 64'),
            part="traffic",
        ),
        "rows of M": changed(("offs_m * N + offs_n", "offs_m * M + offs_n")),
        "rows of y as long as x's": changed(("offs_n * M + offs_m", "offs_n * N + offs_m")),
        "loaded beyond the end": changed(
            ("tl.load(x_ptr + offs_m * N + offs_n, mask=mask)", "tl.load(x_ptr + offs_m * N + offs_n)")
        ),
        "stored beyond the end": changed(("x, mask=mask)", "x)")),
        "through fp16": changed(("x, mask=mask)", "x.to(tl.float16), mask=mask)")),
        "large numbers as infinities": changed(
            ("x, mask=mask)", "tl.where(tl.abs(x) > 1e6, x * 1e38 * 1e38, x), mask=mask)")
        ),
        "tiles of the diagonal": changed(("tl.program_id(1)", "tl.program_id(0)")),
        "grid rounded down": changed((GRID_TURNED, "(max(1, p.M // 32), max(1, p.N // 16))")),
    },
)


SHORTCUTS = {"M up to 128": within_limit("M", 128), "N up to 128": within_limit("N", 128)}

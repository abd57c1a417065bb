"""List the mistakes of *tile settings*, a row each."""

from grader.questions.families import within_limit
from grader.topics.roofline.shared_mistakes import changed, of_ladder

SIZED = '"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64'
GIVEN = '"num_warps": 8, "num_stages": 3'


MISTAKES = of_ladder(
    ("c",),
    {
        "tiles of 64 by 64": changed(
            (SIZED, '"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64'),
            ("(p.M // 128, p.N // 256)", "(p.M // 64, p.N // 64)"),
            part="traffic",
        ),
        "tiles of 128 by 128": changed(
            (SIZED, '"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64'),
            ("(p.M // 128, p.N // 256)", "(p.M // 128, p.N // 128)"),
            part="traffic",
        ),
        "four warps": changed((GIVEN, '"num_warps": 4, "num_stages": 3'), part="compiled"),
        "five stages": changed((GIVEN, '"num_warps": 8, "num_stages": 5'), part="compiled"),
        "steps of 128": changed(('"BLOCK_K": 64', '"BLOCK_K": 128'), part="compiled"),
        "tiles of 256 by 256": changed(
            (SIZED, '"BLOCK_M": 256, "BLOCK_N": 256, "BLOCK_K": 64'),
            ("(p.M // 128, p.N // 256)", "(p.M // 256, p.N // 256)"),
            part="compiled",
        ),
        "grid the other way round": changed(("(p.M // 128, p.N // 256)", "(p.N // 256, p.M // 128)")),
        "one program": changed(("(p.M // 128, p.N // 256)", "(1, 1)")),
        "a program for each element": changed(("(p.M // 128, p.N // 256)", "(p.M, p.N)")),
    },
)


SHORTCUTS = {f"{side} up to 256": within_limit(side, 256) for side in "MNK"}

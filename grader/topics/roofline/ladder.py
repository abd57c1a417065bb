"""First kernels: a ladder of ten tiny questions, one idea each. The formula of a row is its specification."""

import numpy as np

from grader.questions import Part
from grader.questions.draws import between, odd, spread
from grader.topics.roofline.rungs import (
    case,
    each_moved_once,
    few_idle_lanes,
    halves,
    in_dots,
    large_tiles,
    paced,
    pieces_by_tile,
    rung,
    smoothed,
    twice,
    whole_sectors,
)

LESSON = "course/00_roofline/a_machine.ipynb"
FUSION = 'course/00_roofline/d_fusion.ipynb, "Fusion: what stays on the chip"'
PROGRAMS = f'{LESSON}, "One function, many programs"'
SECTORS = 'course/00_roofline/b_addresses.ipynb, "Thirty-two addresses"'
DOUBLED = rung(
    id="roofline.doubled",
    asks="y = 2 x, for N that is a multiple of 64: each program its own 64 numbers",
    reads=("x n",),
    writes=("y n",),
    formula=lambda t, c: 2 * t["x"],
    public=(case(N=64, kind="one program"), case(N=256)),
    hidden=lambda rng: [
        case(N=64 * between(rng, 5, 9), kind="more programs"),
        case(N=64 * between(rng, 70, 90), kind="many programs"),
    ],
    metered=lambda rng: case(N=64 * between(rng, 12, 20), kind="the metered size"),
    a_program=("n", 64),
    budgets={"traffic": each_moved_once("x n", "y n!")},
    where=PROGRAMS,
    hints=(
        "Each program has 64 places of its own. Which are those of program 0, which those of program 3?",
        "Program pid begins at pid * BLOCK; tl.arange(0, BLOCK) counts from there.",
        "offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK); then tl.load(x_ptr + offs), and tl.store(y_ptr + offs, ...)",
    ),
)

DIFFERENCES = rung(
    id="roofline.differences",
    asks="y[i] = x[i] - x[i - 1], and y[0] = x[0], for any N",
    reads=("x n",),
    writes=("y n",),
    formula=lambda t, c: np.diff(t["x"], prepend=0.0),
    public=(case(N=64), case(N=100, kind="a last piece that is not full")),
    hidden=lambda rng: [
        case(N=1, kind="a single number"),
        case(N=odd(rng, 131, 999), kind="another length"),
        case(N=between(rng, 4200, 5000), kind="many programs"),
        case(N=between(rng, 65, 127), values="far from zero", kind="numbers far from zero"),
    ],
    metered=lambda rng: case(N=between(rng, 900, 1100), kind="the metered size"),
    a_program=("n", 256),
    budgets={"traffic": lambda c: [*twice(c), *each_moved_once("y n!")(c)]},
    where=PROGRAMS,
    hints=(
        "Two things can leave the array: the last program at its end, and one lane of the first program at its beginning.",
        "Load x twice, at offs and at offs - 1, each with a mask of its own; a lane that is masked gets the value of other=.",
        "before = tl.load(x_ptr + offs - 1, mask=(offs > 0) & (offs < N), other=0.0)",
    ),
)

SUBTRACTED = rung(
    id="roofline.subtracted",
    asks="y = x - z for matrices of M x N with any strides, in tiles",
    reads=("x mn", "z mn"),
    writes=("y mn",),
    formula=lambda t, c: t["x"] - t["z"],
    public=(
        case(M=32, N=64),
        case(M=20, N=50, kind="ragged tiles"),
        case(M=33, N=40, layout={"z": "transposed"}, kind="z lies column by column"),
    ),
    hidden=lambda rng: [
        case(
            M=between(rng, 17, 90), N=between(rng, 17, 90), layout=spread(rng, *"xzy"), kind="no stride of 1"
        ),
        case(M=1, N=between(rng, 1100, 1500), kind="a single row"),
        case(M=between(rng, 1100, 1500), N=1, kind="a single column"),
        case(
            M=odd(rng, 65, 129),
            N=odd(rng, 129, 257),
            layout={"x": "padded", "y": "transposed"},
            kind="strided matrices",
        ),
    ],
    metered=lambda rng: case(M=between(rng, 140, 170), N=between(rng, 260, 300), kind="the metered size"),
    a_program=("mn", 128 * 128),
    budgets={"traffic": each_moved_once("x mn", "z mn", "y mn!")},
    where=PROGRAMS,
    hints=(
        "A tile has rows and columns: one block of row numbers, one of column numbers, and a program id for each.",
        "Make the row numbers a column, offs_m[:, None], and the column numbers a row, offs_n[None, :]; what is computed from both is a tile.",
        "x = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))",
    ),
)

TURNED = rung(
    id="roofline.turned",
    asks="y = x transposed, in whole sectors on both sides",
    reads=("x mn",),
    writes=("y nm",),
    formula=lambda t, c: t["x"].T,
    public=(case(M=32, N=64), case(M=20, N=50, kind="ragged tiles")),
    hidden=lambda rng: [
        case(M=between(rng, 17, 90), N=between(rng, 17, 90), kind="other sizes"),
        case(M=1, N=between(rng, 1100, 1500), kind="a single row"),
        case(M=between(rng, 1100, 1500), N=between(rng, 2, 9), kind="many short rows"),
    ],
    metered=lambda rng: case(M=8 * between(rng, 18, 22), N=8 * between(rng, 33, 40), kind="the metered size"),
    a_program=("mn", 128 * 128),
    budgets={"traffic": whole_sectors},
    where=SECTORS,
    hints=(
        "Where are two neighbours of a row of x, once they are in y? One of the two sides always walks against the memory.",
        "A tile has rows that are pieces of x's rows, and columns that are pieces of y's rows. Both pieces must be long enough for a sector.",
        "Load x_ptr + offs_m[:, None] * N + offs_n[None, :], store the same tile to y_ptr + offs_n[None, :] * M + offs_m[:, None], with 32 x 32 tiles",
    ),
)

OUTER_DIFFERENCE = rung(
    id="roofline.outer_difference",
    asks="y[i, j] = a[i] - b[j], a and b loaded once for each tile",
    reads=("a m", "b n"),
    writes=("y mn",),
    formula=lambda t, c: t["a"][:, None] - t["b"][None, :],
    public=(case(M=32, N=64), case(M=20, N=50, kind="ragged tiles")),
    hidden=lambda rng: [
        case(M=between(rng, 33, 90), N=between(rng, 91, 150), kind="other sizes"),
        case(M=1, N=between(rng, 1100, 1500), kind="a single row"),
        case(M=between(rng, 1100, 1500), N=1, kind="a single column"),
    ],
    metered=lambda rng: case(M=between(rng, 140, 180), N=between(rng, 260, 320), kind="the metered size"),
    a_program=("mn", 128 * 128),
    budgets={"traffic": lambda c: [*pieces_by_tile(c), *each_moved_once("y mn!")(c)]},
    where=PROGRAMS,
    hints=(
        "A tile of 16 x 64 results needs 16 numbers of a and 64 of b. Load just these.",
        "Load a as a block of BLOCK_M numbers and b as one of BLOCK_N; give each the dimension that it lacks, and subtract.",
        "a[:, None] - b[None, :] has BLOCK_M rows and BLOCK_N columns",
    ),
)

SUM_AND_MAX = rung(
    id="roofline.sum_and_max",
    asks="s[i] = the sum of row i of x, m[i] = its largest number, N at most 1024; x is loaded once",
    reads=("x mn",),
    writes=("s m", "m m"),
    formula=lambda t, c: (t["x"].sum(1), t["x"].max(1)),
    size_of_terms=lambda t, c: (np.abs(t["x"]).sum(1), np.zeros(len(t["x"]))),
    public=(case(M=4, N=64), case(M=3, N=100, kind="a row that fills no block")),
    hidden=lambda rng: [
        case(M=between(rng, 3, 9), N=odd(rng, 5, 63), values="below zero", kind="all numbers below zero"),
        case(
            M=between(rng, 3, 9),
            N=between(rng, 17, 60),
            values="far below zero",
            kind="all numbers far below zero",
        ),
        case(M=between(rng, 3, 9), N=between(rng, 520, 1000), kind="long rows"),
        case(M=between(rng, 100, 200), N=1, values="the lowest", kind="rows of one number"),
        case(M=3, N=1024, kind="the longest row"),
    ],
    metered=lambda rng: case(M=between(rng, 20, 30), N=between(rng, 300, 500), kind="the metered size"),
    a_program=("m", 8),
    budgets={"traffic": each_moved_once("x mn", "s m!", "m m!")},
    where=FUSION,
    hints=(
        "What must a masked lane hold so that the sum doesn't notice it? And so that the maximum doesn't?",
        "0 for the sum and minus infinity for the maximum. One load can give only one of the two; tl.where(mask, a, b) makes the other.",
        "tl.max(tl.where(offs < N, x, float('-inf')), axis=0), and tl.sum(x, axis=0) of what was loaded with other=0.0",
    ),
)

LONG_MEAN = rung(
    id="roofline.long_mean",
    asks="y[i] = the mean of row i of x, for rows of any length, in pieces",
    reads=("x mn",),
    writes=("y m",),
    formula=lambda t, c: t["x"].mean(1),
    size_of_terms=lambda t, c: np.abs(t["x"]).mean(1),
    public=(case(M=2, N=512), case(M=3, N=300, kind="a last piece that is not full")),
    hidden=lambda rng: [
        case(M=2, N=between(rng, 9000, 12000), kind="a long row"),
        case(M=between(rng, 30, 60), N=between(rng, 2, 9), kind="rows shorter than a piece"),
        case(M=4, N=256 * between(rng, 3, 5) + 1, values="far from zero", kind="one more than whole pieces"),
    ],
    metered=lambda rng: case(M=between(rng, 8, 12), N=between(rng, 1030, 1110), kind="the metered size"),
    a_program=("m", 4),
    budgets={"traffic": lambda c: [*each_moved_once("x mn", "y m!")(c), *few_idle_lanes(c)]},
    where=FUSION,
    hints=(
        "Walk along the row, BLOCK numbers at a time. What has to survive from one turn to the next?",
        "A block of BLOCK running sums, zeros at first; each turn adds the piece it loads, and after the loop one tl.sum is left.",
        "for start in range(0, N, BLOCK): total += tl.load(x_ptr + row * N + start + offs, mask=start + offs < N, other=0.0)",
    ),
)

SMOOTHED = rung(
    id="roofline.smoothed",
    asks="y[t] = (1 - alpha) y[t - 1] + alpha x[t] down the columns of x, T x M, from y[-1] = 0",
    reads=("x tm",),
    writes=("y tm",),
    formula=lambda t, c: smoothed(t["x"], c.scalars["alpha"]),
    size_of_terms=lambda t, c: np.broadcast_to(np.abs(t["x"]).max(0), t["x"].shape),
    public=(paced(0.5, T=4, M=64), paced(0.25, T=10, M=100, kind="a last piece that is not full")),
    hidden=lambda rng: [
        paced(rng.uniform(0.05, 0.95), T=between(rng, 20, 40), M=between(rng, 65, 300), kind="another alpha"),
        paced(rng.uniform(0.05, 0.95), T=1, M=between(rng, 4200, 4500), kind="a single step of many columns"),
        paced(
            rng.uniform(0.6, 0.9), T=between(rng, 150, 200), M=3, values="far from zero", kind="many steps"
        ),
    ],
    metered=lambda rng: paced(0.5, T=between(rng, 20, 30), M=between(rng, 150, 250), kind="the metered size"),
    a_program=("m", 128),
    budgets={"traffic": each_moved_once("x tm", "y tm!")},
    where=PROGRAMS,
    hints=(
        "Columns have nothing to do with one another, steps have. Which of the two do you share out among programs?",
        "A program owns BLOCK columns and keeps one number for each, h. A loop over t loads a row's piece, changes h, stores it.",
        "h = (1 - alpha) * h + alpha * tl.load(x_ptr + t * M + offs, mask=offs < M, other=0.0)",
    ),
)

SMALL_PRODUCT = rung(
    id="roofline.small_product",
    asks="C = A B with fp16 operands and fp32 sums, for M, N and K of at most 32, in one tl.dot",
    reads=("a mk fp16", "b kn fp16"),
    writes=("c mn",),
    formula=lambda t, c: t["a"] @ t["b"],
    size_of_terms=lambda t, c: np.abs(t["a"]) @ np.abs(t["b"]),
    public=(
        halves(M=16, N=16, K=16),
        halves(M=3, N=5, K=6, kind="sides far below 16"),
        halves(M=20, N=32, K=17, kind="sides beyond 16"),
    ),
    hidden=lambda rng: [
        halves(M=between(rng, 17, 31), N=between(rng, 3, 15), K=between(rng, 18, 31), kind="other sides"),
        halves(M=1, N=32, K=32, kind="a single row"),
        halves(M=between(rng, 2, 15), N=1, K=between(rng, 2, 15), kind="a single column"),
        halves(M=32, N=32, K=1, kind="K of one"),
        halves(
            M=between(rng, 2, 15),
            N=between(rng, 17, 31),
            K=between(rng, 2, 31),
            values="far from zero",
            kind="numbers far from zero",
        ),
    ],
    metered=lambda rng: halves(
        M=between(rng, 26, 31), N=between(rng, 26, 31), K=between(rng, 26, 31), kind="the metered size"
    ),
    budgets={"traffic": lambda c: [*in_dots(c), *each_moved_once("c mn!")(c)]},
    where="course/01_gemm_tiling/b_kernel.ipynb",
    hints=(
        "tl.dot takes blocks; a matrix of 5 x 9 is no block. What may stand in the places that it doesn't fill?",
        "Make every side a power of two of 16 or more, mask the loads with other=0.0, and the store by M and N: zeros add nothing.",
        "a = tl.load(a_ptr + offs[:, None] * K + offs[None, :], mask=(offs[:, None] < M) & (offs[None, :] < K), other=0.0), with 32 for every side",
    ),
)

TILE_SETTINGS = rung(
    id="roofline.tile_settings",
    asks="the grid, the tile, the warps and the stages of a given kernel, for sizes that are multiples of 256",
    reads=("a mk fp16", "b kn fp16"),
    writes=("c mn",),
    formula=lambda t, c: t["a"] @ t["b"],
    size_of_terms=lambda t, c: np.abs(t["a"]) @ np.abs(t["b"]),
    parts=(
        Part("values", 1, "values", asks="right for {public} that you can see and more that you can't"),
        Part(
            "traffic",
            1,
            "traffic",
            asks="no more loads of A and B than tiles of 128 × 256, or 256 × 128, make",
        ),
        Part(
            "compiled",
            2,
            "compiled",
            asks="compiles for {targets} (H100, H200) with {spills}, within shared memory, on tensor cores (by `wgmma`, their instruction there)",
        ),
    ),
    public=(halves(M=256, N=256, K=256),),
    hidden=lambda rng: [
        halves(M=256, N=512, K=256, kind="more columns"),
        halves(M=512, N=256, K=512, kind="more rows"),
        halves(M=768, N=256, K=256, kind="more rows than any size that is named"),
        halves(M=256, N=768, K=256, kind="more columns than any size that is named"),
        halves(M=256, N=256, K=768, kind="a longer sum than any that is named"),
    ],
    metered=lambda rng: halves(
        M=256 * between(rng, 1, 2), N=512, K=256 * between(rng, 1, 2), kind="the metered size"
    ),
    budgets={"traffic": lambda c: [*large_tiles(c), *each_moved_once("c mn!")(c)]},
    compile_case=halves(M=512, N=512, K=256),
    instruction={90: "wgmma"},
    where=f'{LESSON}, "Waiting, and how to hide it"',
    hints=(
        "The budget allows the loads of 128 x 256 tiles. How many fp32 numbers is such a tile, and who keeps them?",
        "Its sums are shared out among 32 * num_warps threads, each of which has 255 registers at most and needs some for other things.",
        "Registers a thread for the sums: 128 * 256 / (32 * num_warps). Shared memory: num_stages * (128 + 256) * BLOCK_K * 2 bytes.",
    ),
)

LADDER = (
    DOUBLED,
    DIFFERENCES,
    SUBTRACTED,
    TURNED,
    OUTER_DIFFERENCE,
    SUM_AND_MAX,
    LONG_MEAN,
    SMOOTHED,
    SMALL_PRODUCT,
    TILE_SETTINGS,
)

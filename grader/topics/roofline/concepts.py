"""The roofline in numpy: FLOP per byte, the roof above it, the three terms, sectors of a tile, bytes of a fused chain."""

import numpy as np

from grader.questions import Call, NumpyQuestion, Part
from grader.questions.draws import between, log_uniform
from grader.topics.roofline.concepts_wrong import CELLS
from kernels.roofline import cost

LESSON = "course/00_roofline/c_roofline.ipynb"
H200 = (989e12, 4.8e12)


def roof(intensity: float, peak: float, bandwidth: float) -> tuple[float, str]:
    """The rate that can be reached at this many FLOP per byte, and what limits it."""
    return (
        cost.attainable_flop_s(intensity, peak, bandwidth),
        cost.bound(intensity, cost.ridge(peak, bandwidth)),
    )


def time_terms(flops, bytes_moved, overhead_s, peak, bandwidth, efficiency) -> tuple:
    """Seconds of bytes, seconds of arithmetic, seconds in all where the two overlap, and the largest term's name."""
    law = cost.iron_law(
        flops, bytes_moved, overhead_s, peak_flop_s=peak, bandwidth_byte_s=bandwidth, efficiency=efficiency
    )
    return law.memory_s, law.compute_s, law.overlapped_s, law.binding


def tile_sectors(rows: int, cols: int, row_length: int, elem_bytes: int) -> int:
    """Sectors that hold the first `cols` elements of each of the first `rows` rows."""
    starts = (row * row_length for row in range(rows))
    return cost.sectors(((s + c) * elem_bytes for s in starts for c in range(cols)), elem_bytes)


def plan_bytes(groups: list[int], rows: int, width: int, elem_bytes: float) -> tuple[float, float]:
    """Bytes that a chain moves when it is cut into these kernels, and how many fewer than one kernel an operation."""
    plan, single = (
        cost.chain_traffic(kernels, rows, width, elem_bytes).unfused_bytes
        for kernels in (len(groups), sum(groups))
    )
    return plan, single - plan


def _machine(rng: np.random.Generator) -> tuple[float, float]:
    return log_uniform(rng, 1e13, 5e15), log_uniform(rng, 3e11, 1e13)


def _near_ridge(rng: np.random.Generator) -> tuple[float, float, float]:
    """A machine, and work at its very ridge: powers of two, so that no rounding blurs which side it is on."""
    ridge = 2.0 ** between(rng, 5, 9)
    return ridge, ridge * 2.0**42, 2.0**42


def _work(rng: np.random.Generator, largest: str) -> tuple:
    """Work of which one term is the largest, whatever the other two are."""
    (peak, bandwidth), efficiency = _machine(rng), rng.uniform(0.3, 0.9)
    seconds = {"memory": 1.0, "compute": 1.0, "overhead": 1.0}
    seconds |= {name: rng.uniform(0.2, 0.8) for name in seconds if name != largest}
    scale = log_uniform(rng, 1e-6, 1e-2)
    flops = seconds["compute"] * scale * peak * efficiency
    return (
        flops,
        seconds["memory"] * scale * bandwidth,
        seconds["overhead"] * scale,
        peak,
        bandwidth,
        efficiency,
    )


PRODUCT_INTENSITY = NumpyQuestion(
    id="roofline.product_intensity",
    notebook="concepts",
    asks="product_intensity(m, n, k, elem_bytes): FLOP per byte of C = A B when each matrix crosses the memory once",
    entry="product_intensity",
    parts=(Part("values", 2, "calls"),),
    reference=lambda m, n, k, elem_bytes: cost.gemm(m, n, k, elem_bytes).intensity,
    public=(
        Call((512, 512, 512, 2)),
        Call((1, 8192, 8192, 2), "a single row"),
        Call((64, 32, 16, 4), "fp32"),
    ),
    hidden=lambda rng: [
        Call((*(between(rng, 2, 5000) for _ in range(3)), between(rng, 1, 8)), "other sizes")
        for _ in range(6)
    ],
    where=f'{LESSON}, "The roofline"',
    hints=(
        "FLOP above, bytes below. How many multiply-adds does one element of C take, and which matrices cross the memory?",
        "2 m n k FLOP, since a multiply-add is two. A has m k elements, B k n, C m n, each of elem_bytes.",
        "2 * m * n * k / (elem_bytes * (m * k + k * n + m * n))",
    ),
    mistakes=CELLS.mistakes("product_intensity"),
)

ROOF = NumpyQuestion(
    id="roofline.roof",
    notebook="concepts",
    asks='roof(intensity, peak, bandwidth): the FLOP/s that can be reached, and "memory" left of the ridge or "compute" from the ridge on',
    entry="roof",
    parts=(Part("values", 2, "calls"),),
    reference=roof,
    public=(
        Call((1.0, *H200), "decoding"),
        Call((500.0, *H200), "a large product"),
        Call((200.0, 312e12, 2.0e12), "another machine"),
    ),
    hidden=lambda rng: [
        *(Call((log_uniform(rng, 1, 5000), *_machine(rng)), "another machine") for _ in range(4)),
        Call(_near_ridge(rng), "work at the very ridge"),
        Call((rng.uniform(1, 9), 1e15, 1e12), "left of the ridge"),
        Call((rng.uniform(2000, 9000), 1e15, 1e12), "right of the ridge"),
    ],
    where=f'{LESSON}, "The roofline"',
    hints=(
        "There are two roofs above every intensity. Which of them is met first?",
        "Memory allows bandwidth * intensity FLOP per second, the units allow peak; the lower one counts. The ridge is peak / bandwidth.",
        'min(peak, bandwidth * intensity), "memory" if intensity < peak / bandwidth else "compute"',
    ),
    mistakes=CELLS.mistakes("roof"),
)

TIME_TERMS = NumpyQuestion(
    id="roofline.time_terms",
    notebook="concepts",
    asks='time_terms(flops, bytes_moved, overhead_s, peak, bandwidth, efficiency): (seconds of bytes, of arithmetic, in all with these two overlapped, "memory", "compute" or "overhead", whichever term is the largest)',
    entry="time_terms",
    parts=(Part("values", 3, "calls"),),
    reference=time_terms,
    public=(
        Call((2e9, 4e8, 5e-6, *H200, 0.7)),
        Call((1e12, 4e8, 5e-6, *H200, 0.7), "much arithmetic"),
        Call((1e6, 1e6, 5e-6, *H200, 1.0), "little of either"),
    ),
    hidden=lambda rng: [
        Call(_work(rng, name), f"the most is {name}")
        for name in ("memory", "compute", "overhead")
        for _ in range(2)
    ],
    where=f'{LESSON}, "The iron law"',
    hints=(
        "Three terms, each a time. Which two can happen at the same moment?",
        "Bytes over bandwidth; FLOP over the rate that is really reached, peak * efficiency; the larger of the two, and the overhead on top.",
        "m, c = bytes_moved / bandwidth, flops / (peak * efficiency); then m, c, max(m, c) + overhead_s, and the name of max(m, c, overhead_s)",
    ),
    mistakes=CELLS.mistakes("time_terms"),
)

TILE_SECTORS = NumpyQuestion(
    id="roofline.tile_sectors",
    notebook="concepts",
    asks="tile_sectors(rows, cols, row_length, elem_bytes): 32-byte sectors that hold the top left tile of a row-major matrix which begins on a sector",
    entry="tile_sectors",
    parts=(Part("values", 3, "calls"),),
    reference=tile_sectors,
    public=(
        Call((1, 32, 4096, 4), "a row"),
        Call((32, 1, 4096, 4), "a column"),
        Call((4, 5, 100, 4), "rows that end within a sector"),
    ),
    hidden=lambda rng: [
        *(
            Call(
                (between(rng, 3, 40), between(rng, 3, 40), between(rng, 41, 300), 2 ** between(rng, 0, 3)),
                "another tile",
            )
            for _ in range(5)
        ),
        Call(
            (between(rng, 5, 9), between(rng, 4, 12), 8 * between(rng, 5, 9) + 3, 4),
            "rows that begin within a sector",
        ),
        Call((between(rng, 8, 20), 2, 3, 2), "rows that share a sector"),
        Call(
            (between(rng, 3, 9), 8 * between(rng, 1, 6), 8 * between(rng, 9, 40), 4),
            "rows that end where a sector ends",
        ),
    ],
    where='course/00_roofline/b_addresses.ipynb, "Thirty-two addresses"',
    hints=(
        "A sector is 32 bytes that begin at a multiple of 32. In which one lies the element of row r and column c?",
        "Its address is (r * row_length + c) * elem_bytes, its sector that address // 32. How many different ones do all elements of the tile have?",
        "len({(r * row_length + c) * elem_bytes // 32 for r in range(rows) for c in range(cols)})",
    ),
    mistakes=CELLS.mistakes("tile_sectors"),
)

PLAN_BYTES = NumpyQuestion(
    id="roofline.plan_bytes",
    notebook="concepts",
    asks="plan_bytes(groups, rows, width, elem_bytes): bytes that a chain moves, cut into kernels of groups[0], groups[1], ... operations, and how many fewer that are than with one kernel for each operation",
    entry="plan_bytes",
    parts=(Part("values", 2, "calls"),),
    reference=plan_bytes,
    public=(
        Call(([1, 1, 1], 256, 1024, 2), "nothing fused"),
        Call(([3], 256, 1024, 2), "all in one"),
        Call(([2, 1, 3], 100, 70, 4), "three kernels"),
    ),
    hidden=lambda rng: [
        Call(
            (
                [between(rng, 1, 6) for _ in range(between(rng, 2, 5))] + [between(rng, 2, 6)],
                between(rng, 1, 4000),
                between(rng, 1, 4000),
                2 ** between(rng, 1, 3),
            ),
            "another plan",
        )
        for _ in range(6)
    ],
    where='course/00_roofline/d_fusion.ipynb, "Fusion: what stays on the chip"',
    hints=(
        "What does a kernel move, however many operations are in it?",
        "Each kernel reads one tensor and writes one: 2 * rows * width * elem_bytes. Count the kernels of the plan, and those of the unfused chain.",
        "one = 2 * rows * width * elem_bytes; len(groups) * one, (sum(groups) - len(groups)) * one",
    ),
    mistakes=CELLS.mistakes("plan_bytes"),
)

QUESTIONS = (PRODUCT_INTENSITY, ROOF, TIME_TERMS, TILE_SECTORS, PLAN_BYTES)

"""Draw the inputs of *dispatch* and limit their cost."""

import numpy as np

from grader.questions import Call
from grader.questions.draws import between

LESSON = "course/02_quantization_layouts"
SLOW = 10.0**7  # times, which are microseconds
MANY = 600  # measured numbers of rows
KERNELS = ("gemv", "gemm", "unpack + library", "dense")


def dispatch(rows, measured, gemv_rows, dense_kept):
    """The fastest kernel that may run, by the first measured number of rows that is not below, or by the last."""
    known = sorted({m for m, _, _ in measured})
    at = next((m for m in known if m >= rows), known[-1])
    barred = ({"gemv"} if rows > gemv_rows else set()) | (set() if dense_kept else {"dense"})
    return min((r for r in measured if r[0] == at and r[1] not in barred), key=lambda r: r[2])[1]


PUBLIC = [
    (1, "gemv", 6.1), (1, "gemm", 7.9), (1, "unpack + library", 31.0), (1, "dense", 10.8),
    (16, "gemv", 9.0), (16, "gemm", 8.2), (16, "unpack + library", 32.0), (16, "dense", 11.0),
    (256, "gemv", 90.0), (256, "gemm", 41.0), (256, "unpack + library", 37.0), (256, "dense", 24.0),
]  # fmt: skip


def _table(rng: np.random.Generator, fastest: list[str]) -> list[tuple[int, str, float]]:
    """Draw measurements of all kernels at rising numbers of rows, no two alike at one number. `fastest` names each winner,
    except the gemv."""
    known, table = [1], []
    for _ in fastest[1:]:
        known.append(known[-1] * between(rng, 3, 5) + between(rng, 1, 3))
    for i, (m, best) in enumerate(zip(known, fastest, strict=True)):
        slower = rng.choice(np.arange(1.1, 3.0, 0.01), len(KERNELS), replace=False)
        times = {name: (20 + 9 * i) * by for name, by in zip(KERNELS, slower, strict=True)}
        times[best] = (20 + 9 * i) * rng.uniform(0.8, 1.0)
        table += [(m, name, round(float(times[name]), 2)) for name in rng.permutation(KERNELS).tolist()]
    return table


def _shuffled(rng, table):
    """Return the same measurements in random order, so that rows don't rise and the last listed isn't the largest."""
    known = sorted({m for m, _, _ in table})
    while True:
        found = [table[i] for i in rng.permutation(len(table))]
        if list(dict.fromkeys(m for m, _, _ in found)) != known and found[-1][0] != known[-1]:
            return found


def _between(rng, table, i: int) -> int:
    """Return rows between measured numbers i and i + 1, nearer to the first."""
    known = sorted({m for m, _, _ in table})
    return known[i] + max(1, (known[i + 1] - known[i]) // 3)


def hidden(rng: np.random.Generator) -> list[Call]:
    found = []
    for _ in range(3):
        table = _table(rng, ["gemv", "gemm", "unpack + library", "gemm"])
        last = max(m for m, _, _ in table)
        found += [
            Call((1, table, 4, False), "one row"),
            Call((_between(rng, table, 0), table, 64, False), "rows between two measurements"),
            Call((_between(rng, table, 1), table, 64, False), "rows between two measurements"),
            Call((last + between(rng, 1, 999), table, 4, False), "more rows than were measured"),
        ]
        table = _table(rng, ["gemm", "gemv", "gemv", "dense"])
        known = sorted({m for m, _, _ in table})
        found += [
            Call((known[2], table, known[2] - 1, True), "more rows than the gemv takes"),
            Call((known[1], table, known[1], True), "as many rows as the gemv takes"),
            Call((known[1] - 1, table, known[1] - 1, True), "rows that the gemv takes, measured at more"),
            Call((known[3], table, 4, True), "a dense copy is kept"),
            Call((known[3], table, 4, False), "no dense copy is kept"),
            Call(
                (known[3] + between(rng, 1, 999), table, 4, False),
                "more rows than were measured, the fastest barred",
            ),
        ]
        table = _table(rng, ["gemm", "unpack + library", "gemm", "gemv"])
        rows = max(table)[0] + between(rng, 1, 999)
        found.append(Call((rows, table, rows - 1, True), "more rows than were measured, the fastest barred"))
        table = _shuffled(rng, _table(rng, ["gemv", "gemm", "unpack + library", "gemm"]))
        found += [Call((_between(rng, table, i), table, 64, False), "a table in no order") for i in range(3)]
        table = _shuffled(rng, _table(rng, ["gemm", "gemm", "gemm", "unpack + library"]))
        rows = max(table)[0] + between(rng, 1, 999)
        found.append(Call((rows, table, 4, False), "a table in no order"))
    table = _table(rng, ["gemm", "gemm", "gemm", "gemm"])
    slow = [(m, name, round(SLOW * time, 2)) for m, name, time in table]
    found.append(Call((_between(rng, table, 0), slow, 64, False), "times of minutes"))
    long = [(m, name, float(rng.uniform(5, 500))) for m in range(1, MANY + 1) for name in KERNELS]
    found.append(Call((between(rng, MANY // 2, MANY), long, 4, False), "a table of thousands of rows"))
    return found

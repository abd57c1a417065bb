"""Compare the real model's step on an H200, slot by slot, with the formulas' prediction and the record."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from kernels.next_bottleneck import cost_step
from kernels.next_bottleneck.shapes import QWEN3_30B_A3B

KEPT = Path(cost_step.__file__).parent
CASE = "8 layers, 1 x 4096 keys"
LINEAR_BITS = 4
SHORTEST_S = 1.2e-6  # of a kernel on an H200, as the profiler sees the smallest of the recorded step
TOGETHER = "router, order"  # the course's kernel does both in one launch


@dataclass(frozen=True)
class Recorded:
    """Rows of (slot, MB, launches, predicted µs, µs in kernels, µs of gaps). The last row is the sum."""

    rows: list[tuple]
    step_us: float
    bound_us: float
    plain_us: float
    launches: int
    traced: bool
    eager_us: float = 0.0  # 0 if no trace is kept

    def graph_words(self) -> str:
        """Say what the recorded step takes as one graph."""
        eager = f"{self.eager_us:.0f} µs eagerly and " if self.eager_us else ""
        return (
            f"On an H200 the real step's {self.launches} launches took {eager}{self.step_us:.0f} µs as one graph, "
            f"{self.step_us / self.bound_us:.1f} times what its bytes need."
        )

    def words(self) -> str:
        rest = self.step_us - self.bound_us
        said = (
            f"The recorded step took {self.step_us:.0f} µs as one graph, and plain PyTorch's, a graph as well, {self.plain_us:.0f} µs.\n"
            f"Its bytes need {self.bound_us:.0f} µs at the rate of a copy.\n"
            f"The remainder is {rest:.0f} µs over {self.launches} launches, {rest / self.launches:.1f} µs each."
        )
        if not self.traced:
            return f"{said}\nNo trace by slot is kept with this edition."
        over = max(self.rows[:-1], key=lambda row: row[4] + row[5] - row[3])
        return (
            f"{said}\nOnly {self.rows[-1][5]:.0f} µs of it are gaps between kernels.\n"
            f"The slot furthest above its prediction is {over[0]}: {over[4] + over[5]:.0f} µs, predicted {over[3]:.0f}."
        )


def recorded(h200) -> Recorded:
    row = next(
        one
        for one in json.loads((KEPT / "results/h200.json").read_text(encoding="utf-8"))["rows"]
        if one["op"] == "decode step" and one["case"] == CASE
    )
    path = KEPT / "tables/h200_trace.json"
    trace = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    shares = trace.get("shares", {}) if trace.get("case") == CASE else {}
    works = cost_step.step_work(replace(QWEN3_30B_A3B, layers=8), 1, 4096, linear_bits=LINEAR_BITS)
    works["norm"] += works.pop("last norm")
    works = {
        TOGETHER if name == "router" else name: work + works["order"] if name == "router" else work
        for name, work in works.items()
        if name != "order"
    }
    rows = []
    for name, work in works.items():
        best = work.seconds(h200.bandwidth, h200.rate("bf16"), SHORTEST_S)
        share = shares.get("routed" if name == TOGETHER else name, {})
        took = (share.get("busy_us", 0.0), share.get("gap_us", 0.0)) if shares else ("", "")
        rows.append((name, work.bytes / 1e6, work.launches, 1e6 * best, *took))
    sums = [sum(one[i] for one in rows) for i in range(1, 4)]
    took = [sum(one[i] for one in rows) for i in (4, 5)] if shares else ["", ""]
    return Recorded(
        [*rows, ("all", *sums, *took)],
        row["us"],
        row["limit_us"],
        row["peers"]["plain slots"]["us"],
        sums[1],
        bool(shares),
        trace.get("eager_us", 0.0),
    )

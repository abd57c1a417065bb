"""Time random shapes by the dispatcher against every library that is installed.

    python -m kernels.quantization_layouts.sweep [--shapes 200] [--seed 1] [--settle] [--json FILE] [--explain N] [--table FILE]

Draws (N, K, M, group) of packed weights, checks and times each, and prints those that are slower than the fastest
library, with the whole 99% interval of the ratio below 0.98. As in the benchmark, small weights rotate, as a decode
loop sees them, and large weights find a cold cache. With --settle each layer first times its likeliest candidates, as
a model's loader may let it (settle.py). For the first N slow rows it then times every candidate, which shows whether
the dispatcher chose badly (a better candidate is there) or the kernels fall short. --table keeps these times as rows
that the dispatcher can read.
"""

import argparse
import json
import math
import random
import sys
import time
from pathlib import Path

from kernels.bench.here import NO_GPU, about, has_gpu
from kernels.bench.record import dumps, is_behind, verdict
from kernels.quantization_layouts import calibrate, cases

ROWS = (1, 2, 3, 4, 5, 8, 12, 16, 24, 32, 48, 64, 96, 128, 200, 256)
GROUPS = (32, 64, 128)
LEAST, MOST = 512, 28672  # of N and of K
MOST_WEIGHTS = 2**28
BOOKS = (2, 3, 4, 5)
EVERY_BOOK = 4  # one case in four has a codebook, the others are int4
SECONDS, WARM = 0.03, 0.03  # for each contender of a case, and before it
SMALL, MOST_COPIES = 2**25, 32  # weights up to this size rotate, over at most 32 copies


def drawn(count: int, seed: int) -> list[cases.Case]:
    """Return cases of the seed: N a multiple of 64 and K of 128, evenly by their logarithms."""
    rng = random.Random(seed)

    def side(step: int) -> int:
        return step * round(math.exp(rng.uniform(math.log(LEAST), math.log(MOST))) / step)

    found = []
    while len(found) < count:
        n, k, m, group = side(64), side(128), rng.choice(ROWS), rng.choice(GROUPS)
        if n * k > MOST_WEIGHTS:
            continue
        if len(found) % EVERY_BOOK:
            found.append(cases.Case(m, n, k, group=group, dtype="bf16"))
        else:
            found.append(cases.book(m, n, k, rng.choice(BOOKS), group))
    return found


def compile_some(some: list[cases.Case]) -> int:
    """Launch what the dispatcher chooses, in a process of its own, to fill Triton's cache."""
    import torch

    from kernels.quantization_layouts import bench

    for case in some:
        bench.ours(bench.draw(case, 0, torch.device("cuda", 0)))()
    torch.cuda.synchronize()
    return len(some)


def compile_contenders(some: list[cases.Case]) -> int:
    """Launch all that a layer would time of these."""
    import torch

    from kernels.quantization_layouts import bench
    from kernels.quantization_layouts.candidates import CANDIDATES, bound, layer
    from kernels.quantization_layouts.dispatch import table_of_device
    from kernels.quantization_layouts.settle import contenders

    for case in some:
        drawn = bench.draw(case, 0, torch.device("cuda", 0))
        one = layer(drawn["packed"], keep_dense=True)
        for name in contenders(one, case.m, table_of_device(0)):
            bound(CANDIDATES[name], drawn["x"], one, None)()
    torch.cuda.synchronize()
    return len(some)


class Settled:
    """Make our calls of one case. The first layer times its candidates, and the others do as it does."""

    def __init__(self):
        self.name = None

    def __call__(self, inputs):
        from kernels.quantization_layouts import bench
        from kernels.quantization_layouts.settle import settle

        m = inputs["case"].m
        return bench.ours(inputs, lambda one: self.choose(one, m, settle))

    def choose(self, one, m: int, settle) -> None:
        if self.name is None:
            self.name = settle(one, m)
        one.packed.settled[m, False] = self.name


def compared(case: cases.Case, device, settled: bool = False) -> dict:
    """Return the benchmark's record of one case, on a cold cache."""
    from kernels.bench.measure import measured_with
    from kernels.bench.row import Row
    from kernels.quantization_layouts import bench, cost, peers

    ours = Settled() if settled else bench.ours
    bound = cost.linear_cost(case.m, case.n, case.k, bits=case.bits, group=case.group)
    row = Row(
        mode="rotate" if case.n * case.k < SMALL else "cold",
        most_copies=MOST_COPIES,
        op="linear",
        case=case.name,
        dtype=case.dtype,
        flops=bound.flops,
        bytes=bound.bytes_moved,
        inputs=lambda seed: bench.draw(case, seed, device),
        ours=ours,
        check=bench.check,
        tolerance=bench.TOLERANCE[case.dtype],
        peers=peers.of(case),
        facts={"kernel": bench.chosen(case, device)},
    )
    found = measured_with(row, device, SECONDS, {"warm": WARM})
    return found | ({"kernel": ours.name, "guess": found["kernel"]} if settled else {})


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kernels.quantization_layouts.sweep", description=__doc__.split(":", 1)[1]
    )
    parser.add_argument("--shapes", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--settle", action="store_true", help="each layer times its likeliest candidates first"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all cases, machine and versions")
    parser.add_argument(
        "--explain", type=int, default=0, metavar="N", help="of rows behind: time all candidates"
    )
    parser.add_argument("--table", type=Path, metavar="FILE", help="where --explain keeps candidates' times")
    parser.add_argument("--until", type=float, default=math.inf, metavar="SECONDS", help="stop then")
    options = parser.parse_args(argv)
    import torch

    if not has_gpu():
        return NO_GPU

    started = time.monotonic()
    device = torch.device("cuda", torch.cuda.current_device())
    run = about(device) | {"state": "sustained", "seed": options.seed, "settled": options.settle, "rows": []}
    todo = drawn(options.shapes, options.seed)
    parts = min(calibrate.MOST_JOBS, len(todo))
    work = compile_contenders if options.settle else compile_some
    calibrate.side_by_side(work, [todo[i::parts] for i in range(parts)])
    print(f"compiled for {len(todo)} shapes in {time.monotonic() - started:.0f} s", flush=True)
    late = []
    for case in todo:
        if time.monotonic() - started > options.until:
            break
        row = said(case, device, options.settle)
        run["rows"].append(row)
        if is_behind(row):
            late.append(case)
        print(line(row), flush=True)
        torch.cuda.empty_cache()
        if options.json:
            options.json.write_text(dumps(run), encoding="utf-8")
    trouble = [row for row in run["rows"] if "us" not in row]
    print(f"{len(run['rows'])} of {len(todo)} shapes, {len(late)} behind, {len(trouble)} wrong or failed")
    for row in filter(is_behind, run["rows"]):
        print("behind:", line(row))
    if options.explain and late:
        explain(late[: options.explain], device, run, options)
    return 1 if trouble else 0


def said(case: cases.Case, device, settled: bool) -> dict:
    try:
        return compared(case, device, settled)
    except Exception as why:  # costs its own row alone
        return {"op": "linear", "case": case.name, "failed": f"{type(why).__name__}: {why}"[:200]}


def line(row: dict) -> str:
    if "us" not in row:
        return f"{row['case']:<40} {row.get('wrong') or row['failed']}"
    best, ratio, _, _ = verdict(row)
    mark = "  BEHIND" if is_behind(row) else ""
    return f"{row['case']:<40} {row['us']:8.1f} us, {ratio:.3f} of {best}, {row['kernel']}{mark}"


def explain(late: list[cases.Case], device, run: dict, options) -> None:
    """Time all candidates of the slower rows, as a calibration does, and say how long the best one would take."""
    calibrate.compile_all(late, False)
    rows = []
    for case in late:
        row = calibrate.measure(case, device, calibrate.SECONDS)
        rows.append(row)
        us, here = row["us"], next(one for one in run["rows"] if one["case"] == case.name)
        taken = us.get(here["kernel"])
        shown = f"{taken:.1f}" if taken else "not among the fast ones"
        print(f"{case.name:<40} taken {here['kernel']} {shown}; best {row['best']} {us[row['best']]:.1f}")
        if options.table:
            kept = json.loads(options.table.read_text(encoding="utf-8")) if options.table.exists() else {}
            kept = {name: run[name] for name in ("machine", "versions", "date")} | kept
            kept["rows"] = calibrate.others(kept.get("rows", []), [case]) + [row]
            options.table.write_text(dumps(kept), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

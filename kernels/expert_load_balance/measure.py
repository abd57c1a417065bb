"""Measure what expert parallelism costs here (python -m kernels.expert_load_balance.measure --ranks N [--json FILE]
[--quick]).

It starts a process for each rank, compares the layer with one device's bit for bit, and then times it by tokens,
skew, placement and overlap, against the bare link and against one device that does all the work.
"""

import argparse
import datetime
import sys
from pathlib import Path
from statistics import median

from kernels.bench import record
from kernels.expert_load_balance import cases, cost, measure_rank
from kernels.expert_load_balance.ranks import Ranks, RanksEnded
from kernels.machines import MACHINES

STEPS, QUICK_STEPS = 20, 5
LINK_BYTES = {"cuda": (2**16, 2**20, 2**24, 2**27, 2**29), "cpu": (2**12, 2**16, 2**20, 2**22)}
MOST_ERROR = {"bf16": 8e-3, "fp32": 1e-5}
HEADER = (
    f"{'shape':<13} {'tokens':>6} {'skew':<16} {'placement':<16} {'parts':<12} {'step us':>9} {'busiest':>7} "
    f"{'1 device':>9} {'speedup':>7} {'each':>5} {'sent MB':>8} {'of link':>7}"
)


def parse(argv):
    parser = argparse.ArgumentParser(
        prog="python -m kernels.expert_load_balance.measure", description=__doc__
    )
    parser.add_argument(
        "--ranks", type=int, required=True, metavar="N", help="processes, one per GPU on GPUs"
    )
    parser.add_argument("--device", choices=tuple(LINK_BYTES), help="cuda where there are GPUs, else cpu")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    parser.add_argument("--quick", action="store_true", help="one shape, few settings")
    parser.add_argument(
        "--patience", type=float, default=60.0, metavar="S", help="seconds with no rank moving"
    )
    options = parser.parse_args(argv)
    gpus = gpus_here()
    options.device = options.device or ("cuda" if gpus else "cpu")
    if options.ranks < 1:
        parser.error(f"--ranks must be at least 1, got {options.ranks}; give a number of processes")
    if options.device == "cuda" and options.ranks > gpus:
        parser.error(
            f"--ranks must be at most the {gpus} GPUs here, got {options.ranks}; or add --device cpu"
        )
    if options.patience <= 0:
        parser.error(f"--patience must be above 0, got {options.patience:g}; a minute is usual")
    if options.json and options.json.is_dir():
        parser.error(f"--json must be a file, got the folder {options.json}; add a name such as h200_x2.json")
    return options


def gpus_here() -> int:
    import torch

    return torch.cuda.device_count()


def busiest(results: list[dict]) -> dict:
    """Return rows by rank: the rows that each computes, and the most that a rank sends or receives over its link."""
    to = [one["rows_to"] for one in results]
    ranks = range(len(to))
    held = [sum(line[r] for line in to) for r in ranks]
    out = [sum(to[r]) - to[r][r] for r in ranks]
    into = [held[r] - to[r][r] for r in ranks]
    return {"rows": held, "over_link": max(*out, *into) * results[0]["row_bytes"]}


def slowest(results: list[list[float]]) -> float:
    """Return the seconds of a step, the median over steps of the slowest rank, for which all others wait."""
    return median(max(step) for step in zip(*results, strict=True))


def link(ranks: Ranks, steps: int) -> list[dict]:
    """Return the byte/s that leave a rank in a plain all-to-all, by size."""
    rows = []
    for size in LINK_BYTES[ranks.device]:
        seconds = slowest(ranks.run(measure_rank.link, size, steps))
        leaves = size * (ranks.count - 1) / ranks.count
        rows.append({"bytes": size, "us": seconds * 1e6, "gb_s": leaves / seconds / 1e9})
        print(
            f"plain all-to-all of {size / 1e6:10.3f} MB a rank: {seconds * 1e6:9.1f} us, {rows[-1]['gb_s']:7.2f} GB/s leave"
        )
    return rows


def row(setting: cases.Setting, results: list[dict], alone_s: float, link_gb_s: float) -> dict:
    """Hold one line of the table, and of the JSON."""
    seconds, most = slowest([one["seconds"] for one in results]), busiest(results)
    stages = {name: max(one["stages"][name] for one in results) for name in results[0]["stages"]}
    found = {
        "shape": setting.shape.name,
        "experts": setting.shape.experts,
        "top_k": setting.shape.top_k,
        "hidden": setting.shape.hidden,
        "intermediate": setting.shape.intermediate,
        "dtype": setting.dtype,
        "tokens": setting.tokens,
        "skew": setting.skew,
        "placement": setting.placement + ", home first" * setting.home_first,
        "slots": cost.slots_used(setting.placed),
        "parts": f"{setting.parts} of {setting.split}" if setting.parts > 1 else "1",
        "us": seconds * 1e6,
        "imbalance": cost.imbalance(most["rows"]),
        "one_device_us": alone_s * 1e6,
        "speedup": alone_s / seconds,
        "efficiency": alone_s / seconds / setting.ranks,
        "sent_mb": most["over_link"] / 1e6,
        "stages_us": {name: s * 1e6 for name, s in stages.items()},
        "error": max(one["error"] for one in results),
        "computed_by": results[0]["experts"],
    }
    if "dispatch" in stages and link_gb_s:
        found["dispatch_gb_s"] = most["over_link"] / stages["dispatch"] / 1e9
        found["link_share"] = found["dispatch_gb_s"] / link_gb_s
    if found["error"] > MOST_ERROR[setting.dtype]:
        found["wrong"] = f"error must be at most {MOST_ERROR[setting.dtype]:g}, got {found['error']:g}"
    return found


def line(r: dict) -> str:
    share = f"{r['link_share']:>7.1%}" if "link_share" in r else f"{'':>7}"
    return (
        f"{r['shape']:<13} {r['tokens']:>6} {r['skew']:<16} {r['placement'][:16]:<16} {r['parts']:<12} "
        f"{r['us']:>9.1f} {r['imbalance']:>7.2f} {r['one_device_us']:>9.1f} {r['speedup']:>6.2f}x "
        f"{r['efficiency']:>5.0%} {r['sent_mb']:>8.3f} {share}"
        + f"  WRONG: {r.get('wrong')}"
        * ("wrong" in r)
    )


def bought(rows: list[dict]) -> list[str]:
    """Return what placement, copies and overlap buy: each time over that of the same tokens without them."""
    groups = {}
    for r in rows:
        what = r["placement"] if r["parts"] == "1" else f"in parts, {r['parts']}"
        groups.setdefault(f"{r['shape']}, {r['tokens']} tokens a rank, {r['skew']}", {})[what] = r
    said = []
    for name, kinds in groups.items():
        base = kinds.pop("contiguous", None)
        if base and kinds:
            times = ", ".join(f"{what} {r['us'] / base['us']:.2f}" for what, r in kinds.items())
            said.append(f"{name}: {base['us']:.0f} us. As a share of this time: {times}")
    return said


def measure(ranks: Ranks, options, run: dict) -> None:
    """Fill `run` step by step, so that an interrupted run keeps its results."""
    steps = QUICK_STEPS if options.quick else STEPS
    run |= ranks.run(measure_rank.describe)[0]
    datasheet = MACHINES.get(run["machine"].get("gpu", "").removeprefix("NVIDIA ").split(" ")[0])
    print(f"{ranks.count} ranks on {run['machine']}, {run['date']}", flush=True)
    differ = sorted(set(sum(ranks.run(measure_rank.same_bits), [])))
    forms = len(measure_rank.FORMS) * len(cases.SKEWS) * len(cases.CHECKED_TOKENS)
    run["same_bits"] = {"compared": forms, "differ": differ}
    print(f"bit for bit as on one device, in fp32: {forms - len(differ)} of {forms} ways", flush=True)
    if differ:
        raise RanksEnded(f"the layer's bits differ from one device's: {'; '.join(differ[:4])}")
    run["link"] = link(ranks, steps) if ranks.count > 1 else []
    best = max((one["gb_s"] for one in run["link"]), default=0.0)
    if datasheet and best:
        run["link_of_datasheet"] = best * 1e9 / datasheet.link_bandwidth
        print(f"the best is {run['link_of_datasheet']:.0%} of the datasheet's link")
    print(HEADER, flush=True)
    alone = {}
    for setting in cases.settings(ranks.count, ranks.device, options.quick):
        same = (setting.shape, setting.tokens, setting.skew)
        if same not in alone:
            alone[same] = slowest(ranks.run(measure_rank.one_device, setting, steps))
        results = ranks.run(measure_rank.timed, setting, steps)
        run["rows"].append(row(setting, results, alone[same], best))
        print(line(run["rows"][-1]), flush=True)
        if options.json:
            options.json.write_text(record.dumps(run), encoding="utf-8")


def main(argv=None) -> int:
    options = parse(argv)
    given = ["--ranks", str(options.ranks), "--device", options.device, *["--quick"] * options.quick]
    run = {
        "command": " ".join(["python -m kernels.expert_load_balance.measure", *given]),
        "date": datetime.date.today().isoformat(),
        "ranks": options.ranks,
        "rows": [],
    }
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
    try:
        with Ranks(options.ranks, options.device, options.patience) as ranks:
            measure(ranks, options, run)
    except RanksEnded as why:
        run["ended"] = str(why)
        print(f"the run ended because {why}", file=sys.stderr)
    print(*bought(run["rows"]), sep="\n")
    if options.json:
        options.json.write_text(record.dumps(run), encoding="utf-8")
    return 1 if "ended" in run or any("wrong" in r for r in run["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())

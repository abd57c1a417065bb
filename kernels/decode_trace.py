"""Find where a decode step's time goes (python -m kernels.decode_trace [--rows N] [--keys N] [--layers N] --json
FILE).

It runs the step at Qwen3-30B-A3B's shapes on a GPU, eagerly and as a graph, under torch.profiler. The file keeps both
timelines (host, calls that launch, kernels by stream), each slot's bytes and share, where the two runs' launches differ,
and the times without a profiler. It stays below 300 KB.
"""

import argparse
import json
import re
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from kernels.bench.here import NO_GPU, has_gpu

MOST_BYTES = 300_000


def marked(fillings: dict) -> dict:
    """Return fillings whose calls tell a profiler their slot."""
    from kernels.next_bottleneck.slots import Filling
    from kernels.next_bottleneck.timeline import annotated

    def telling(name, one):
        return Filling(lambda weight, shape: annotated(name, one.make(weight, shape)), one.source)

    return {name: telling(name, one) for name, one in fillings.items()}


class Words(list):
    """Number names in the order in which they are first met, so that a file holds each once."""

    def place(self, word: str) -> int:
        if word not in self:
            self.append(word)
        return self.index(word)


def shortened(name: str) -> str:
    """Return a kernel's name without its C++ arguments, at most 60 letters."""
    return re.split(r"[(<]", name.removeprefix("void "))[0].strip()[:60] or name[:60]


def rows_of(events: list[dict], launches: list, slots: Words, kernels: Words) -> dict[str, list]:
    """Return what a trace shows, in µs from the first call of the host: slots, calls that launch, and launches.

    `launches` are timeline's, whose times count from the first kernel.
    """
    from kernels.next_bottleneck import timeline

    asked = [e for e in events if timeline.launches_something(e)]
    ranges = timeline.slot_ranges(events)
    ran = timeline.kernels_of(events)
    starts = [start for start, _, _ in ranges] + [e["ts"] for e in (*asked, *ran)]
    zero = min(starts, default=0.0)
    offset = ran[0]["ts"] - zero if ran else 0.0
    return {
        "host": [
            [slots.place(slot), round(start - zero, 2), round(end - start, 2)] for start, end, slot in ranges
        ],
        "calls": [[kernels.place(e["name"]), round(e["ts"] - zero, 2), round(e["dur"], 2)] for e in asked],
        "launches": [
            [
                slots.place(one.slot),
                kernels.place(shortened(one.kernel)),
                round(one.start_us + offset, 2),
                round(one.us, 2),
                one.stream,
            ]
            for one in launches
        ],
    }


def record(eager: list[dict], graph: list[dict]) -> dict:
    """Return both timelines, each slot's share of the graph's, and where the two differ, from two traces' events."""
    from kernels.next_bottleneck import timeline

    told = timeline.labels(eager)
    slots, kernels = Words(), Words()
    own, _ = timeline.timeline(eager, told)
    found, differ = timeline.timeline(graph, told)
    return {
        "shares": {name: asdict(share) for name, share in timeline.by_slot(found).items()},
        "differ": differ,
        "eager": rows_of(eager, own, slots, kernels),
        "graph": rows_of(graph, found, slots, kernels),
        "slots": slots,
        "kernels": kernels,
    }


def traced(rows: int, keys: int, layers: int) -> dict:
    """Return the launches of one step, eagerly and captured, and each slot's share and bytes."""
    from kernels import decode_step, timing
    from kernels.bench import machine
    from kernels.next_bottleneck import bench, timeline
    from kernels.next_bottleneck.cost_step import step_work

    device = torch.device("cuda", torch.cuda.current_device())
    case = bench.Case(rows, keys, layers)
    inputs = bench.draw(case, 0, device)
    call = bench.step_of(inputs, marked(decode_step.fillings()))
    graph = timing.capture([call])
    for run in (call, graph.replay):
        timeline.events_of(run)  # the profiler's own start is in the first trace
    works = step_work(case.shape, rows, keys, linear_bits=bench.LINEAR_BITS)
    return {
        "machine": machine.describe(device),
        "versions": machine.versions(),
        "date": machine.today(),
        "case": case.name,
        "eager_us": 1e6 * timing.elapsed(call),  # both without a profiler
        "graph_us": 1e6 * timing.elapsed(graph.replay),
        "bytes": {name: round(work.bytes) for name, work in works.items()},
        **record(timeline.events_of(call), timeline.events_of(graph.replay)),
    }


def dumps(found: dict) -> str:
    """Return JSON with a line for each bar."""

    def lines(rows: list) -> str:
        return "[\n" + ",\n".join(f"    {json.dumps(row)}" for row in rows) + "\n  ]"

    def part(value) -> str:
        if isinstance(value, dict) and "launches" in value:
            return "{" + ", ".join(f"{json.dumps(name)}: {lines(rows)}" for name, rows in value.items()) + "}"
        return json.dumps(value)

    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {part(one)}" for name, one in found.items()) + "\n}\n"


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels.decode_trace", description=__doc__)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--keys", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--json", type=Path, metavar="FILE", required=True)
    options = parser.parse_args(argv)
    if not has_gpu("traced"):
        return NO_GPU
    found = traced(options.rows, options.keys, options.layers)
    text = dumps(found)
    if len(text) > MOST_BYTES:
        print(f"The trace has {len(text)} bytes and may have {MOST_BYTES}. Trace fewer layers.")
        return 1
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(text, encoding="utf-8")
    for slot, share in found["shares"].items():
        print(
            f"{slot:<10} {share['launches']:>4} launches {share['busy_us']:>9.1f} us, {share['gap_us']:>8.1f} us before"
        )
    for said in found["differ"]:
        print(said)
    print(
        f"{found['graph_us']:.1f} us a step as a graph, {found['eager_us']:.1f} us eagerly, without the profiler"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

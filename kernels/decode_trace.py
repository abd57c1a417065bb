"""python -m kernels.decode_trace [--rows N] [--keys N] [--layers N] --json FILE: where a captured decode step's time goes.

It runs the step at Qwen3-30B-A3B's shapes on a GPU, eagerly and as a graph, under torch.profiler, and keeps every launch
with its slot, each slot's bound, and what the profiler itself cost. The file stays below 300 KB.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import torch

NO_GPU = 3
MOST_BYTES = 300_000


def events_of(call) -> list[dict]:
    """What a profiler saw of one call, on the GPU and around it."""
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        seen.export_chrome_trace(str(path))
        return json.loads(path.read_text(encoding="utf-8"))["traceEvents"]


def marked(fillings: dict) -> dict:
    """Fillings whose calls tell a profiler their slot."""
    from kernels.next_bottleneck.slots import Filling
    from kernels.next_bottleneck.timeline import annotated

    def telling(name, one):
        return Filling(lambda weight, shape: annotated(name, one.make(weight, shape)), one.source)

    return {name: telling(name, one) for name, one in fillings.items()}


def traced(rows: int, keys: int, layers: int) -> dict:
    """The launches of one captured step, and each slot's share and bytes."""
    from kernels import decode_step, timing
    from kernels.next_bottleneck import bench, timeline
    from kernels.next_bottleneck.cost_step import step_work

    device = torch.device("cuda", torch.cuda.current_device())
    case = bench.Case(rows, keys, layers)
    inputs = bench.draw(case, 0, device)
    call = bench.step_of(inputs, marked(decode_step.fillings()))
    graph = timing.capture([call])
    told = timeline.labels(events_of(call))
    graph.replay()
    found = timeline.timeline(events_of(graph.replay), told)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    works = step_work(case.shape, rows, keys, linear_bits=bench.LINEAR_BITS)
    return {
        "case": case.name,
        "gpu": torch.cuda.get_device_name(device),
        "step_us": start.elapsed_time(end) * 1e3,  # without a profiler
        "traced_us": max(one.end_us for one in found),
        "slots": {name: asdict(share) for name, share in timeline.by_slot(found).items()},
        "bytes": {name: work.bytes for name, work in works.items()},
        "launches": [[one.slot, one.kernel[:60], round(one.start_us, 2), round(one.us, 2)] for one in found],
    }


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels.decode_trace", description=__doc__)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--keys", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--json", type=Path, metavar="FILE", required=True)
    options = parser.parse_args(argv)
    if not torch.cuda.is_available():
        print("PyTorch finds no NVIDIA GPU here, so nothing was traced; run this where there is one.")
        return NO_GPU
    found = traced(options.rows, options.keys, options.layers)
    text = json.dumps(found)
    if len(text) > MOST_BYTES:
        print(f"The trace has {len(text)} bytes and may have {MOST_BYTES}; trace fewer layers.")
        return 1
    options.json.write_text(text + "\n", encoding="utf-8")
    for slot, share in found["slots"].items():
        print(
            f"{slot:<10} {share['launches']:>4} launches {share['busy_us']:>9.1f} us, {share['gap_us']:>8.1f} us before"
        )
    print(f"{found['step_us']:.1f} us a step, {found['traced_us']:.1f} us under the profiler")
    return 0


if __name__ == "__main__":
    sys.exit(main())

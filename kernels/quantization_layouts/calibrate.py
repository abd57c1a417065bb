"""python -m kernels.quantization_layouts.calibrate [--quick] [--resume] [--again] [--forms ..] [--shapes ..] [--rows ..] [--group G]: the dispatcher's table for the GPU found here.

For each shape, form and M every candidate is checked against the reference matmul, then all are timed in turns over
rotating copies of the weight, sustained, as a decode loop sees them. A candidate wins against 16 bits only if the 99%
interval of its ratio is below 1. The table is written after every row, and an interrupted run goes on with --resume.
"""

import argparse
import itertools
import json
import math
import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median

from kernels.bench.here import NO_GPU, about, has_gpu
from kernels.bench.record import dumps
from kernels.quantization_layouts import cases
from kernels.quantization_layouts.kbit_tables import MOE, MOE_EXPERTS, SHAPES
from kernels.quantization_layouts.reference import GROUPS

ROWS = {  # of X, by form, with more steps for the forms of most weights
    **dict.fromkeys(("int4", 4), (1, 2, 4, 8, 16, 32, 64, 128, 256)),
    **dict.fromkeys((2, 3, 5, "zero"), (1, 4, 16, 64)),
}
FORMS = tuple(ROWS)
LARGE = {"big": (28672, 8192), "square": (4096, 4096)}
COMMON = {  # N x K of served models' layers, gate and up as one, with shared ones listed once
    "5120x5120": (5120, 5120),
    "llama 8b qkv": (6144, 4096),
    "llama 8b gate": (14336, 4096),
    "llama 8b gate and up": (28672, 4096),
    "llama 8b down": (4096, 14336),
    "llama 70b qkv": (10240, 8192),
    "llama 70b o": (8192, 8192),
    "llama 70b gate and up": (57344, 8192),
    "llama 70b down": (8192, 28672),
    "qwen3 8b gate and up": (24576, 4096),
    "qwen3 8b down": (4096, 12288),
    "qwen3 32b qkv": (10240, 5120),
    "qwen3 32b o": (5120, 8192),
    "qwen3 32b gate and up": (51200, 5120),
    "qwen3 32b down": (5120, 25600),
    "deepseek q_a": (1536, 7168),
    "deepseek q_b": (24576, 1536),
    "deepseek o": (7168, 16384),
    "deepseek gate and up": (36864, 7168),
    "deepseek down": (7168, 18432),
    "deepseek shared gate and up": (4096, 7168),
    "deepseek shared down": (7168, 2048),
}
ODD = {  # shapes far from the common ones, with short sums, few rows, or a K that no usual step divides
    f"{n}x{k}": (n, k)
    for n, k in (
        (640, 1536),
        (1024, 640),
        (2752, 1408),
        (3328, 640),
        (9472, 768),
        (16448, 640),
        (1088, 2688),
        (1024, 6272),
        (1152, 13312),
        (6720, 6912),
        (12032, 13952),
    )
}
SERVED = ("int4",)  # the forms that these are calibrated in
NAMED = {"common": COMMON, "odd": ODD}
TOLERANCE = {"fp16": 1e-3, "bf16": 8e-3}
MOST_COPIES = 64
HOPELESS = 1.6  # times the best one's time after a glance, past which no longer look would make it the best
SECONDS = 0.015  # for each candidate of a row
WARM = 0.05
MOST_JOBS, PARTS = 15, 15
SMALL = 2048  # rows of a weight that is only compiled for


def parse(argv):
    parser = argparse.ArgumentParser(
        prog="python -m kernels.quantization_layouts.calibrate", description=__doc__
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="else tables/<gpu>.json, where dispatch reads it"
    )
    parser.add_argument("--quick", action="store_true", help="k = 4 alone, at M = 1, 4, 16, 64 and 256")
    parser.add_argument("--resume", action="store_true", help="keep the rows that the file already has")
    parser.add_argument(
        "--again", action="store_true", help="measure anew what is asked for, and keep the file's other rows"
    )
    parser.add_argument(
        "--forms", nargs="+", default=[str(f) for f in FORMS], choices=[str(f) for f in FORMS]
    )
    shapes = [*SHAPES, *LARGE, *COMMON, *ODD]
    parser.add_argument(
        "--shapes", nargs="+", choices=[*shapes, *NAMED], metavar="SHAPE", help=f"of {', '.join(shapes)}"
    )
    parser.add_argument(
        "--group", type=int, nargs="+", choices=GROUPS, help="weights that share a scale, for all forms"
    )
    parser.add_argument(
        "--rows", nargs="+", type=int, metavar="M", help="of X: these alone, of those that a form has"
    )
    parser.add_argument(
        "--overlapping", action="store_true", help="time launches that overlap, a few others and 16 bits"
    )
    parser.add_argument("--dtype", default="fp16", choices=tuple(TOLERANCE))
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"for each candidate, {SECONDS} unless told"
    )
    return parser.parse_args(argv)


def plan(options):
    """The cases to measure, those first that a short run should have."""
    quick = {4: (1, 4, 16, 64, 256)}
    asked = {form: rows for form, rows in ROWS.items() if str(form) in options.forms}
    if options.rows is not None:
        asked = {form: [m for m in rows if m in options.rows] for form, rows in asked.items()}
    for form, rows in (quick if options.quick else asked).items():
        for shape in shapes_of(form, options.shapes):
            n, k = (SHAPES | LARGE | COMMON | ODD)[shape]
            experts = MOE_EXPERTS if shape in MOE else 1
            for m, group in itertools.product(rows, options.group or [cases.usual_group(form)]):
                many = {"dtype": options.dtype, "experts": experts, "group": group}
                if form in ("int4", "zero"):
                    yield cases.Case(m, n, k, zero_points=form == "zero", **many)
                else:
                    yield cases.book(m, n, k, form, **many)


def shapes_of(form, asked: list[str] | None) -> list[str]:
    """Return the shapes that were asked for, or else the small and the large ones, and the common ones of a served form."""
    if asked is None:
        return [*SHAPES, *LARGE, *(COMMON if form in SERVED else ())]
    return [each for one in asked for each in NAMED.get(one, [one])]


def key(case) -> dict:
    form = ("zero" if case.zero_points else "int4") if case.kind == "int4" else f"k{case.bits}"
    found = {"n": case.n, "k": case.k, "experts": case.experts, "form": form, "m": case.m}
    return found | {"group": case.group}


def place(row: dict) -> dict:
    """Return the key of a table's row, in the form of key()."""
    found = {name: row[name] for name in ("n", "k", "experts", "form", "m")}
    return found | {"group": row.get("group", cases.usual_group(row["form"]))}


def others(rows: list[dict], todo: list) -> list[dict]:
    """The rows that are not to be measured again."""
    asked = [key(case) for case in todo]
    return [row for row in rows if place(row) not in asked]


def decide(times: dict[str, list[float]], intervals: dict[str, tuple]) -> dict:
    """Return the best by median among those certain not to lose to 16 bits, and the best that needs packed weights alone."""
    from kernels.quantization_layouts.candidates import SIXTEEN

    us = {name: median(series) * 1e6 for name, series in times.items()}
    packed = min((name for name in us if name != SIXTEEN), key=us.__getitem__)
    sure = [name for name in us if name != SIXTEEN and intervals[name][2] < 1]
    return {"best": min(sure, key=us.__getitem__, default=SIXTEEN), "best_packed": packed, "us": us}


def measure(case, device, seconds: float, overlapping: bool = False) -> dict:
    """Measure one row and name the right candidates, the fastest, and the failed."""
    import torch

    from kernels import timing
    from kernels.quantization_layouts import bench
    from kernels.quantization_layouts.candidates import SIXTEEN, bound, layer, worth

    first = bench.draw(case, 0, device)
    l2 = torch.cuda.get_device_properties(device).L2_cache_size
    weight_bytes = first["packed"].bytes
    copies = max(2, min(MOST_COPIES, math.ceil(2 * l2 / weight_bytes)))
    layers = [layer(first["packed"].copy(), keep_dense=True) for _ in range(copies)]
    watches, keep, wrong = {}, [], {}
    for one in worth(case.m, first["packed"], overlapping):
        out = torch.empty(first["x"].shape[0], case.n, dtype=first["x"].dtype, device=device)
        calls = [bound(one, first["x"], each, out) for each in layers]
        try:
            error = bench.check(first, calls[0]())
        except Exception as why:  # one that this GPU cannot hold costs itself alone
            wrong[one.name] = f"{type(why).__name__}: {why}".splitlines()[0][:160]
            continue
        if not error <= TOLERANCE[case.dtype]:
            wrong[one.name] = f"error {error:.2g}"
            continue
        graph = timing.capture(calls)
        keep.append((calls, graph))
        watches[one.name] = timing.stopwatch(graph)
    watches = hopeful(watches, SIXTEEN)
    times = timing.interleave(watches, seconds * len(watches), warm=WARM)
    intervals = {name: timing.ratio(series, times[SIXTEEN]) for name, series in times.items()}
    times = {name: [t / copies for t in series] for name, series in times.items()}
    found = key(case) | decide(times, intervals)
    return found | ({"wrong": wrong} if wrong else {})


def hopeful(watches: dict, always: str) -> dict:
    """Return the candidates that a quick timing doesn't leave far back, so that time goes to possible winners."""
    from kernels import timing

    glance = {name: median(series) for name, series in timing.interleave(watches, 0.0, warm=WARM / 2).items()}
    best = min(t for name, t in glance.items() if name != always)
    return {
        name: watch for name, watch in watches.items() if name == always or glance[name] < HOPELESS * best
    }


def shares(todo: list, overlapping: bool = False) -> list[tuple[list, int, bool]]:
    """Split the candidates for parallel compiling, of each form all shapes, and every `PARTS`-th, so that no two do
    the same."""
    by_form: dict = {}
    for case in todo:
        small = replace(case, n=min(case.n, SMALL), experts=min(case.experts, 2))  # neither is compiled for
        by_form.setdefault(case.form, []).append(small)
    return [(cases_of_form, part, overlapping) for cases_of_form in by_form.values() for part in range(PARTS)]


def of_share(m: int, part: int, overlapping: bool = False) -> list:
    from kernels.quantization_layouts.candidates import CANDIDATES, worth

    place = {name: i % PARTS for i, name in enumerate(CANDIDATES)}
    return [one for one in worth(m, None, overlapping) if place[one.name] == part]


def compile_share(share: tuple[list, int, bool]) -> int:
    """Launch candidates in a process of its own to fill Triton's cache, and return how many were launched."""
    import torch

    from kernels.quantization_layouts import bench
    from kernels.quantization_layouts.candidates import bound, layer

    device, done = torch.device("cuda", 0), set()
    for case in share[0]:
        fresh = [one for one in of_share(case.m, *share[1:]) if (one.name, case.n, case.k) not in done]
        if not fresh:
            continue
        x = bench.draw(case, 0, device)
        one_layer = layer(x["packed"], keep_dense=True)
        for one in fresh:
            done.add((one.name, case.n, case.k))
            if not one.takes(x["packed"]):
                continue
            try:
                bound(one, x["x"], one_layer, None)()
            except Exception:  # it will be said where it is timed
                continue
    torch.cuda.synchronize()
    return len(done)


def compile_all(todo: list, overlapping: bool) -> None:
    """Compiling would be most of a calibration's time, and needs processors rather than the GPU."""
    side_by_side(compile_share, shares(todo, overlapping))


def side_by_side(work: Callable, tasks: list) -> None:
    """Do all tasks in processes of their own, unless there is one or one processor. Each returns its number of launches."""
    jobs = min(MOST_JOBS, os.cpu_count() or 1, len(tasks))
    if jobs < 2:
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for i, count in enumerate(pool.map(work, tasks)):
            print(f"compiled {i + 1}/{len(tasks)} parts ({count} launches)", flush=True)


def main(argv=None) -> int:
    options = parse(argv)
    import torch

    if not has_gpu():
        return NO_GPU
    from kernels.bench import machine
    from kernels.quantization_layouts.dispatch import TABLES

    device = torch.device("cuda", torch.cuda.current_device())
    run = about(device) | {"dtype": options.dtype, "rows": []}
    path = options.out or TABLES / f"{machine.short_name(run['machine']['gpu'])}.json"
    if (options.resume or options.again) and path.exists():
        run["rows"] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    todo = list(plan(options))
    if options.again:
        run["rows"] = others(run["rows"], todo)
    known = [place(row) for row in run["rows"]]
    todo = [case for case in todo if key(case) not in known]
    path.parent.mkdir(parents=True, exist_ok=True)
    compile_all(todo, options.overlapping)
    for i, case in enumerate(todo):
        row = measure(case, device, options.seconds, options.overlapping)
        run["rows"].append(row)
        path.write_text(dumps(run), encoding="utf-8")
        sixteen, best = row["us"]["16 bits"], row["us"][row["best"]]
        print(
            f"{i + 1}/{len(todo)} {case.name:<44} {row['best']:<36} {best:8.2f} us, 16 bits {sixteen:8.2f}",
            flush=True,
        )
        torch.cuda.empty_cache()
    print(f"{path}: {len(run['rows'])} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())

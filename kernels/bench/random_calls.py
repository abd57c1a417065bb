"""Call the tuned kernels with random arguments and check every result.

    python -m kernels.bench.random_calls [--calls 1000] [--seed 0] [--jobs 12] [--seconds S] [--json FILE]

Sizes, dtypes, layouts and options are drawn. Each result is compared with the topic's reference in float64, and held
to the tolerance of the topic's benchmark. Every process has a share of the calls. It stops when the seconds are over,
and the last line says how many calls were made.
"""

import argparse
import math
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kernels.bench.here import NO_GPU, about, has_gpu
from kernels.bench.record import dumps


@dataclass(frozen=True)
class Call:
    """Hold one drawn call, of a topic's case by the benchmark's own functions."""

    name: str
    draw: Callable  # (seed, device) -> inputs
    ours: Callable  # inputs -> call
    check: Callable  # (inputs, output) -> error
    tolerance: float


def size(rng: random.Random, most: int, step: int = 1) -> int:
    """Return a size, evenly by its logarithm, up to `most` steps."""
    return step * max(1, round(math.exp(rng.uniform(0, math.log(most)))))


def of_case(bench, case, tolerance: float, name: str, kind: str = "") -> Call:
    draw, ours, check = (getattr(bench, f"{word}{kind}") for word in ("draw", "ours", "check"))
    return Call(name, lambda seed, device: draw(case, seed, device), ours, check, tolerance)


def product(rng) -> Call:
    from kernels.gemm_tiling import bench, cases

    layouts = ("rows", "columns", "padded")
    sides = size(rng, 1500), size(rng, 1500), size(rng, 1500)
    case = cases.Case(*sides, rng.choice(("bf16", "fp16")), rng.choice(layouts), rng.choice(layouts))
    return of_case(bench, case, 3e-3, f"gemm {case.name}")


def scaled_product(rng) -> Call:
    from kernels.gemm_tiling import bench, cases

    case = cases.Case(size(rng, 700), size(rng, 60, 16), size(rng, 60, 16), "fp8", b="columns")
    return of_case(bench, case, 3e-3, f"block-scaled gemm {case.name}", "_scaled")


def normalized(rng) -> Call:
    from kernels.roofline import bench, cases

    case = cases.Case(size(rng, 300), size(rng, 20000), "bf16")
    return of_case(bench, case, 4e-3, f"layernorm_gelu {case.name}")


def attended(rng) -> Call:
    from kernels.flash_attention import bench, cases

    case = attention_case(rng, cases, (None, None, (100, 0), (0, 64)))
    return of_case(bench, case, 8e-3, f"attention {case.name}")


def attended_backward(rng) -> Call:
    from kernels.flash_attention import bench, cases

    case = attention_case(rng, cases, (None,), least=16)
    call = of_case(bench, case, 16e-3, f"attention backward {case.name}")
    return Call(call.name, call.draw, bench.ours_backward, bench.check_backward, call.tolerance)


def attention_case(rng, cases, windows, least: int = 1):
    """Queries are no more than keys, so that every row sees a key.

    A gradient has at least 16 of each: with two keys and one query dQ is a difference of two nearly equal numbers, and
    out's own rounding to 16 bits costs more than 20% of dQ in 1 of 100 draws, by whatever kernel.
    """
    heads, keys = rng.choice((1, 2, 3)), max(least, size(rng, 700))
    length = keys if rng.random() < 0.6 else rng.randint(min(least, keys), keys)
    window = rng.choice(windows)
    return cases.Case(
        rng.choice((1, 2)),
        heads * rng.choice((1, 2, 4)),
        heads,
        length,
        keys,
        rng.choice((32, 64, 72, 128)),
        causal=window is None and rng.random() < 0.5,
        window=window,
    )


def decoded(rng) -> Call:
    from kernels.flash_attention import bench, cases

    heads, page = rng.choice((1, 2, 8)), rng.choice((0, 0, 16, 64))
    case = cases.DecodeCase(
        rng.randint(1, 6),
        heads * rng.choice((1, 2, 4, 8)),
        heads,
        size(rng, 60, page) if page else size(rng, 3000),
        rng.choice((64, 128)),
        page_size=page,
    )
    return of_case(bench, case, 8e-3, f"decode {case.name}", "_decode")


def packed(rng) -> Call:
    from kernels.quantization_layouts import bench, cases

    group, dtype = rng.choice((32, 64, 128)), rng.choice(("fp16", "bf16"))
    sides = size(rng, 128), size(rng, 3000), size(rng, 32, group)
    more = {"group": group, "dtype": dtype, "experts": rng.choice((1, 1, 1, 2, 5))}
    if rng.random() < 0.5:
        case = cases.Case(*sides, zero_points=rng.random() < 0.5, **more)
    else:
        case = cases.book(*sides, rng.choice((2, 3, 4, 5)), **more)
    return of_case(bench, case, bench.TOLERANCE[dtype], f"linear {case.name}")


def narrow(rng) -> Call:
    from kernels.quantization_layouts import bench_formats

    form = rng.choice(("w8a8", "fp8", "w8a16", "mxfp4", "nvfp4"))
    case = bench_formats.Timed(form, size(rng, 300), size(rng, 900), size(rng, 40, 32))
    return of_case(bench_formats, case, bench_formats.BF16_RESULT, f"format {case.name}")


def routed(rng) -> Call:
    from kernels.moe_routing import bench, cases
    from kernels.moe_routing.rules import Rule

    experts = rng.choice((1, 2, 5, 8, 32, 130))
    top_k = rng.randint(1, min(experts, 8))
    rule = Rule(top_k, rng.choice(("sigmoid", "softmax of all", "softmax of chosen")))
    case = cases.Case(
        size(rng, 500),
        experts,
        rule,
        size(rng, 40, 8),
        size(rng, 30, 8),
        shared=rng.choice((0, 0, 1, 2)),
    )
    return of_case(bench, case, bench.TOLERANCE, f"MoE layer {case.name} {case.hidden} x {case.intermediate}")


def sampled(rng) -> Call:
    from kernels.sampling_fusion import bench, cases

    ask = {"top_k": rng.choice((0, 1, 50, 400)), "top_p": rng.choice((1.0, 0.9, 0.3))}
    ask |= {"min_p": rng.choice((0.0, 0.05)), "temperature": rng.choice((0.7, 1.0))}
    dtype = rng.choice(("fp32", "bf16"))
    case = cases.Case("drawn", rng.randint(1, 12), size(rng, 40000), dtype, ask=ask)
    return of_case(bench, case, 0.0, f"sampling B{case.batch} V{case.vocabulary} {dtype} {ask}")


KINDS = (
    product,
    scaled_product,
    normalized,
    attended,
    attended_backward,
    decoded,
    packed,
    packed,
    packed,
    narrow,
    routed,
    routed,
    sampled,
)


@dataclass(frozen=True)
class Share:
    """Hold every jobs-th call of a seed, from the first on."""

    seed: int
    calls: int
    first: int
    jobs: int
    until: float


def run_share(share: Share) -> dict:
    """Make the calls, and return the number right by kind, and what went wrong."""
    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    right, wrong, worst = Counter(), [], 0.0
    for i in range(share.first, share.calls, share.jobs):
        if time.time() > share.until:
            break
        kind = KINDS[i % len(KINDS)]
        call = kind(random.Random(1000003 * share.seed + i))
        error = made(call, share.seed + i, device)
        if isinstance(error, str) or not error <= call.tolerance:
            wrong.append({"call": call.name, "number": i, "error": error})
            continue
        right[kind.__name__] += 1
        worst = max(worst, error / call.tolerance if call.tolerance else 0.0)
    return {"right": dict(right), "wrong": wrong, "worst": worst}


def made(call: Call, seed: int, device) -> float | str:
    """Return the error of one call, or what it raised."""
    try:
        inputs = call.draw(seed, device)
        return float(call.check(inputs, call.ours(inputs)()))
    except Exception as why:  # all drawn arguments are allowed, so a refusal is a fault as well
        return f"{type(why).__name__}: {why}"[:200]


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kernels.bench.random_calls", description=__doc__.split("(", 1)[0]
    )
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(argv)
    import torch

    if not has_gpu():
        return NO_GPU
    until = time.time() + options.seconds
    shares = [Share(options.seed, options.calls, first, options.jobs, until) for first in range(options.jobs)]
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        parts = list(pool.map(run_share, shares))
    right = sum((Counter(part["right"]) for part in parts), Counter())
    wrong = [one for part in parts for one in part["wrong"]]
    for one in wrong:
        print(f"WRONG: call {one['number']}, {one['call']}: {one['error']}")
    done = right.total() + len(wrong)
    worst = max(part["worst"] for part in parts)
    print(f"{done} calls, {len(wrong)} wrong; the worst error of a right one is {worst:.2f} of its tolerance")
    if options.json:
        device = torch.device("cuda", torch.cuda.current_device())
        run = about(device) | {
            "seed": options.seed,
            "calls": done,
            "worst": worst,
            "right": dict(right),
            "rows": wrong,
        }
        options.json.write_text(dumps(run), encoding="utf-8")
    return 1 if wrong or done < options.calls else 0


if __name__ == "__main__":
    sys.exit(main())

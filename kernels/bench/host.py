"""Time what an eager call costs Python, ours and PyTorch's own in turns ([TILE_REPLAYS=0] python -m
kernels.bench.host [--json FILE]).

Shapes are small, so that the GPU is done before Python asks for more. A call's first two forms are not counted: the first
compiles, the second is recorded unless TILE_REPLAYS is 0 (kernels/replays.py).
"""

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from kernels.bench.here import NO_GPU, about, has_gpu
from kernels.bench.record import dumps

ROUNDS, CALLS = 9, 200


def operations(device) -> dict[str, Callable]:
    """Return calls by name. Names of PyTorch's own calls contain "PyTorch"."""
    import torch
    import torch.nn.functional as F

    from kernels.flash_attention.backward import attention_backward
    from kernels.flash_attention.decode import decode
    from kernels.flash_attention.forward import attention
    from kernels.gemm_tiling.block_scaled_gemm import block_scaled_gemm
    from kernels.gemm_tiling.gemm import gemm
    from kernels.moe_routing.arguments import Experts
    from kernels.moe_routing.layer import layer as moe
    from kernels.moe_routing.rules import QWEN3
    from kernels.quantization_layouts import bench, bench_formats, cases
    from kernels.quantization_layouts.candidates import layer
    from kernels.quantization_layouts.dispatch import linear
    from kernels.quantization_layouts.formats import product
    from kernels.roofline.layernorm_gelu import layernorm_gelu

    def bf16(*shape):
        return torch.randn(*shape, device=device, dtype=torch.bfloat16)

    a, b, out = bf16(256, 256), bf16(256, 256).t(), bf16(256, 256)
    row, row_out = bf16(1, 256), bf16(1, 256)
    fp8 = [x.to(torch.float8_e4m3fn) for x in (a, b)]
    sa, sb = torch.rand(2, 256, device=device).t(), torch.rand(2, 2, device=device).t()
    q, k, v, grad = (bf16(1, 4, 128, 128) for _ in range(4))
    o, lse = attention(q, k, v, causal=True)
    token = bf16(1, 4, 128)
    x, weight, bias, y = bf16(8, 1024), bf16(1024), bf16(1024), bf16(8, 1024)
    found = {
        "gemm": lambda: gemm(a, b, out),
        "gemm of one row": lambda: gemm(row, b, row_out),
        "torch.matmul": lambda: torch.matmul(a, b, out=out),
        "block-scaled fp8": lambda: block_scaled_gemm(*fp8, sa, sb, out),
        "attention": lambda: attention(q, k, v, causal=True),
        "torch's SDPA": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        "attention, backward": lambda: attention_backward(grad, q, k, v, o, lse, causal=True),
        "decode": lambda: decode(token, k, v),
        "layernorm_gelu": lambda: layernorm_gelu(x, weight, bias, out=y),
        "torch's gelu and layer_norm": lambda: F.layer_norm(F.gelu(x), (1024,), weight, bias),
    }
    for m in (1, 4, 16, 64):
        drawn = bench.draw(cases.Case(m, 4096, 4096, dtype="bf16"), 0, device)
        given = drawn["x"], layer(drawn["packed"], keep_dense=True), bf16(m, 4096)
        found[f"4-bit linear, M = {m}"] = lambda given=given: linear(*given)
    drawn = bench_formats.draw(bench_formats.Timed("fp8", 16, 1024, 1024), 0, device)
    given = *drawn["given"], drawn["w"], bf16(16, 1024)
    found["fp8 product"] = lambda: product(*given)
    experts, router = Experts(bf16(32, 256, 256), bf16(32, 256, 128)), bf16(32, 256)
    for tokens in (1, 16, 256, 2048):
        x_moe, out_moe = bf16(tokens, 256), bf16(tokens, 256)
        found[f"MoE layer, {tokens} tokens"] = lambda x=x_moe, out=out_moe: moe(
            x, router, experts, QWEN3, out=out
        )
    return found


def cost(
    calls: dict[str, Callable], settle: Callable[[], None], rounds=ROUNDS, each=CALLS
) -> dict[str, float]:
    """Return the median microseconds of a call by name, in rounds of random order. `settle` waits for pending work."""
    times, rng = {name: [] for name in calls}, random.Random(0)
    for call in calls.values():
        for _ in range(3):
            call()
    for _ in range(rounds):
        for name in rng.sample(list(calls), len(calls)):
            settle()
            start = time.perf_counter()
            for _ in range(each):
                calls[name]()
            times[name].append((time.perf_counter() - start) / each * 1e6)
    return {name: median(series) for name, series in times.items()}


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels.bench.host", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write it with machine, versions and date")
    options = parser.parse_args(argv)
    import torch

    if not has_gpu():
        return NO_GPU

    device = torch.device("cuda", torch.cuda.current_device())
    found = cost(operations(device), torch.cuda.synchronize)
    for name, us in found.items():
        print(f"{name:<30} {us:7.1f} us")
    if options.json:
        run = about(device)
        options.json.write_text(
            dumps(run | {"rows": [{"op": name, "us": us} for name, us in found.items()]}), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Check whether a token's result has the same bits alone and among others (python -m kernels.batch_invariance
[FILE]).

Each operation computes row 0 by itself and as one of 256 rows. Operations that choose a tile, a split or a kernel by the
number of rows may add in another order. Rows are padded to 256 for the last column: what one fixed form costs a lone
token. Writes FILE, or moe_routing/results/batch/<gpu>.json.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch

from kernels import decode_step
from kernels.next_bottleneck.cache import PagedCache
from kernels.next_bottleneck.shapes import QWEN3_30B_A3B, Shape
from kernels.next_bottleneck.weights import drawn, quantize

HERE = Path(__file__).parent / "moe_routing" / "results" / "batch"
ROWS, KEYS = 256, 1024
SECONDS = 0.1


def operations(
    shape: Shape, rows: int, keys: int, device, seed: int = 0
) -> Iterator[tuple[str, str, Callable]]:
    """Yield (operation, whose kernel, call): call(n) returns the result of the first n rows."""
    weights = drawn(replace(shape, layers=1), device=device, seed=seed)
    layer, shape, fill = weights.layers[0], weights.shape, decode_step.fillings()
    rng = torch.Generator(device).manual_seed(seed)

    def made(name, weight=None):
        return fill[name].make(weight, shape)

    def normal(*size):
        return torch.randn(*size, device=device, generator=rng).to(weights.dtype)

    x = normal(rows, shape.hidden)
    wide, narrow = layer.qkv, quantize(layer.qkv[None], shape.group)
    gemm, packed = made("qkv", wide), made("qkv", narrow)
    yield "16-bit linear layer", "torch.matmul", lambda n: torch.matmul(x[:n], wide.T)
    yield "16-bit linear layer", "ours", lambda n: gemm(x[:n])
    yield "4-bit linear layer", "ours", lambda n: packed(x[:n])
    norm = made("norm", layer.input_norm)
    yield "RMSNorm", "ours", lambda n: norm(None, x[:n])
    router, order = made("router", layer.router), made("order")
    experts, combine = made("experts", (layer.gate_up, layer.down)), made("combine")
    topk_ids, topk_weights = router(x)  # the same for all, because a router's near tie is another question

    def mixture(n):
        rows, expert_offsets, inv_permuted_idx = order(x[:n], topk_ids[:n].contiguous())
        y = experts(rows, expert_offsets)
        return combine(y, inv_permuted_idx, topk_weights[:n].contiguous())

    yield "mixture of experts, 4 bits", "ours", mixture
    cache = PagedCache(shape, sequences=rows, most=keys, dtype=weights.dtype, device=device)
    for sequence in range(rows):
        cache.grow(sequence, keys)
    held = cache.keys[0].normal_(generator=rng), cache.values[0].normal_(generator=rng)
    attention, q = made("attention"), normal(rows, shape.q_heads, shape.head_dim)
    lens = torch.full((rows,), keys, dtype=torch.int32, device=device)
    yield (
        "decode attention",
        "ours",
        lambda n: attention(q[:n], *held, lens[:n], cache.table[:n].contiguous()),
    )


def compared(call: Callable, rows: int) -> dict:
    """Return the share of row 0's elements that differ alone and among the others, and the largest difference."""
    alone, among = call(1)[0], call(rows)[0]
    apart = (alone.float() - among.float()).abs()
    return {
        "differ": (alone != among).float().mean().item(),
        "most": (apart.max() / among.float().abs().max()).item(),
    }


def microseconds(call: Callable, rows: int) -> dict:
    """Time one row, and the number a fixed form would pad it to, each a replayed graph on a cold cache."""
    from statistics import median

    from kernels import timing

    flush = timing.Flush(torch.cuda.current_device())
    watches = {
        name: timing.stopwatch(timing.capture([lambda n=n: call(n)]), flush)
        for name, n in (("alone_us", 1), ("padded_us", rows))
    }
    times = timing.interleave(watches, SECONDS, warm=0.1)
    return {name: 1e6 * median(took) for name, took in times.items()}


def main(argv: list[str]) -> int:
    from kernels.bench import here, kept

    found = kept.begin(argv, HERE)
    if found is None:
        return here.NO_GPU
    found.keep(batch=ROWS, keys=KEYS)
    rows = []
    for name, by, call in operations(QWEN3_30B_A3B, ROWS, KEYS, found.device):
        row = {"operation": name, "by": by, **compared(call, ROWS), **microseconds(call, ROWS)}
        rows.append(row)
        found.keep(operations=rows)
        print(
            f"{name}, {by}: {row['differ']:.1%} of row 0 differ, {row['alone_us']:.1f} us alone", flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

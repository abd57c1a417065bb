"""Let a layer time the likeliest candidates itself, once, for the rows of X that it will see.

The table cannot know every shape, and its guess for an unmeasured one takes some percent longer than the best on
average. A model's loader can spend a tenth of a second a layer instead:

    for rows in (1, 16, 64):
        settle(layer, rows)

A small weight is timed over copies that don't fit the L2 together, as calibration does it, and a large one alone, after
a flush. linear() follows what was found.
"""

import math
from statistics import median

import torch

from kernels import require, timing
from kernels.quantization_layouts.candidates import CANDIDATES, LIBRARY, SIXTEEN, Layer, bound
from kernels.quantization_layouts.dispatch import Choice, likeliest, table_of_device

COUNT = 6  # candidates, beside 16 bits
LARGE = 2**25  # weights
SECONDS, WARM = 0.01, 0.02  # for each candidate; before all of them
MOST_COPIES = 32


def contenders(layer: Layer, rows: int, choices: tuple[Choice, ...]) -> list[str]:
    """Return the names to time, the dispatcher's choice first, or that alone where it was measured."""
    names = likeliest(layer, rows, choices)
    if len(names) == 1 or layer.dense is None:
        return names[:COUNT]
    ours = [
        name for name in names if name not in (SIXTEEN, LIBRARY)
    ]  # what is unpacked first cannot be faster
    return sorted([*ours[:COUNT], SIXTEEN], key=names.index)


def settle(layer: Layer, rows: int, choices: tuple[Choice, ...] | None = None) -> str:
    """Time candidates for so many rows of X (of each expert), and return the fastest, which linear() takes from now on.

    Waits for the GPU, so call it while loading, not while a graph is captured.
    """
    require.count(rows=rows)
    w = layer.packed
    if choices is None:
        choices = table_of_device(w.device.index or 0) if w.device.type == "cuda" else ()
    names = contenders(layer, rows, choices)
    best = names[0]
    if len(names) > 1:
        times = timed(names, layer, rows)
        best = min(times, key=times.__getitem__)
    w.settled[rows, layer.dense is None] = best
    w.replays.clear()  # of the earlier choice
    w.chosen.clear()
    return best


def timed(names: list[str], layer: Layer, rows: int) -> dict[str, float]:
    """Return the median seconds of a call by candidate."""
    w = layer.packed
    x = torch.randn(rows * w.experts, w.k, device=w.device).to(w.dtype)
    out = torch.empty(rows * w.experts, w.n, dtype=w.dtype, device=w.device)
    large = w.n * w.k * w.experts >= LARGE
    flush = timing.Flush(w.device) if large else None
    layers = [layer, *(copied(layer) for _ in range(0 if large else copies(w) - 1))]
    calls = {name: [bound(CANDIDATES[name], x, each, out) for each in layers] for name in names}
    graphs = {name: timing.capture(some) for name, some in calls.items()}
    watches = {name: timing.stopwatch(graph, flush) for name, graph in graphs.items()}
    times = timing.interleave(watches, SECONDS * len(watches), warm=WARM)
    return {name: median(series) / len(layers) for name, series in times.items()}


def copied(layer: Layer) -> Layer:
    return Layer(layer.packed.copy(), None if layer.dense is None else layer.dense.clone())


def copies(w) -> int:
    """Return how many weights are four L2s together, at least two."""
    l2 = torch.cuda.get_device_properties(w.device).L2_cache_size
    return max(2, min(MOST_COPIES, math.ceil(4 * l2 / w.bytes)))

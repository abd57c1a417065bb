"""Run the hybrid path as one CUDA graph, so that Python need not launch unpacking and the library's GEMM.

A graph fixes addresses, so it reads the rows from `x` and leaves the answer in `out`, both made here.
"""

from dataclasses import dataclass

import torch

from kernels import timing
from kernels.quantization_layouts.candidates import LIBRARY, Layer
from kernels.quantization_layouts.dispatch import CANDIDATES, linear
from kernels.require import must


@dataclass
class Replay:
    x: torch.Tensor
    out: torch.Tensor
    graph: torch.cuda.CUDAGraph

    def __call__(self, x=None) -> torch.Tensor:
        """Copy x in, unless it was written into `self.x` already, and replay. The result is in `self.out`."""
        if x is not None:
            shape = tuple(self.x.shape)
            must(
                tuple(x.shape) == shape, "x", f"{shape} as captured", tuple(x.shape), "capture another graph"
            )
            self.x.copy_(x)
        self.graph.replay()
        return self.out


def capture(layer: Layer, rows: int, name: str | None = None) -> Replay:
    """Capture one graph for `rows` rows of each expert: a candidate by name, by default the hybrid, or 'dispatch'."""
    w = layer.packed
    must(w.device.type == "cuda", "layer", "on a GPU", w.device, "move it there with packed.to('cuda')")
    must(rows >= 1, "rows", "at least 1", rows, "a graph of nothing is none")
    x = torch.zeros(rows * w.experts, w.k, dtype=w.dtype, device=w.device)
    out = torch.empty(rows * w.experts, w.n, dtype=w.dtype, device=w.device)
    name = name or LIBRARY
    if name == "dispatch":
        return Replay(x, out, timing.capture([lambda: linear(x, layer, out)]))
    must(name in CANDIDATES, "name", f"one of {', '.join(CANDIDATES)}", name, "pick a listed one")
    return Replay(x, out, timing.capture([lambda: CANDIDATES[name].call(x, layer, out)]))

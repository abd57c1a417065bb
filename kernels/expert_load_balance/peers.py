"""Compute the experts of one device in other ways, for the benchmark, with one factory each, absent where not
installed.

All take rows by sender, with the slot of each, and leave every result in its row's position.
"""

import torch
import torch.nn.functional as F

from kernels import torch_grouped
from kernels.bench.row import Absent


def loop(inputs):
    """Loop over the experts, with the rows of each known beforehand."""
    x, gate_up, down = inputs["x"], inputs["gate_up"], inputs["down"]
    mine = [torch.nonzero(inputs["slots"][:, 0] == e)[:, 0] for e in range(len(down))]
    mine = [(e, rows) for e, rows in enumerate(mine) if len(rows)]

    def call():
        out = torch.empty_like(x)
        for e, rows in mine:
            gate, up = F.linear(x[rows], gate_up[e]).chunk(2, -1)
            out.index_copy_(0, rows, F.linear(F.silu(gate) * up, down[e]))
        return out

    return call


def grouped_mm(inputs):
    """Sort the rows by expert, torch's grouped product twice, and put them back."""
    product = torch_grouped.product()
    if product is None:
        raise Absent("this PyTorch has no grouped_mm")
    x, slots = inputs["x"], inputs["slots"][:, 0]
    gate_up, down = inputs["gate_up"].transpose(1, 2), inputs["down"].transpose(1, 2)
    every = torch.arange(len(down), dtype=slots.dtype, device=x.device)

    def call():
        whose, order = slots.sort(stable=True)
        ends = torch.searchsorted(whose, every, right=True).to(torch.int32)
        gate, up = product(x[order], gate_up, offs=ends).chunk(2, -1)
        y = product(F.silu(gate) * up, down, offs=ends)
        return torch.empty_like(y).index_copy_(0, order, y)

    return call


def vllm(inputs):
    """Run vLLM's fused Triton experts, each row with one expert of weight 1."""
    from vllm.model_executor.layers.fused_moe import fused_experts

    x, slots = inputs["x"], inputs["slots"]
    ones = torch.ones(slots.shape, device=x.device)
    return lambda: fused_experts(x, inputs["gate_up"], inputs["down"], ones, slots)


EXPERTS = {"torch loop": loop, "torch grouped_mm": grouped_mm, "vLLM": vllm}

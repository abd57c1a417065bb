"""List the rows of the benchmark: packed weights by the dispatched kernel, against 16-bit cuBLAS and other 4-bit kernels.

Integer rows find a cold cache. K-bit rows rotate over copies of the weight, as a decode loop does. The bound counts
the packed weight, its scales, X and Y once. Calibrate first (python -m kernels.quantization_layouts.calibrate),
because without a table the dispatcher follows a rule.
"""

import numpy as np
import torch

from kernels.bench.row import Row
from kernels.compare import relative_error, spread
from kernels.quantization_layouts import bench_formats, cases, cost, peers, reference
from kernels.quantization_layouts.candidates import Layer, layer
from kernels.quantization_layouts.cost_blocks import normal_codebook
from kernels.quantization_layouts.dispatch import choose, linear, table_of_device
from kernels.quantization_layouts.packed import TORCH, assemble
from kernels.tensors import to_numpy

CHECKED_COLUMNS, CHECKED_ROWS = 128, 32
TOLERANCE = {"fp16": 1e-3, "bf16": 8e-3}


def rows(device):
    for case in cases.TIMED:
        bound = cost.linear_cost(
            case.m, case.n, case.k, bits=case.bits, group=case.group, zero_bits=8 * case.zero_points
        )
        yield Row(
            op="grouped linear" if case.experts > 1 else "linear",
            case=case.name,
            dtype=case.dtype,
            mode=case.mode,
            flops=case.experts * bound.flops,
            bytes=case.experts * bound.bytes_moved,
            inputs=lambda seed, case=case: draw(case, seed, device),
            ours=ours,
            check=check,
            tolerance=TOLERANCE[case.dtype],
            peers=peers.of(case),
            quick=case.quick,
            facts={"kernel": chosen(case, device)},
        )
    yield from bench_formats.rows(device)


def draw(case, seed: int, device) -> dict:
    """Draw codes and scales at random, shuffled on the device, because quantizing a large weight would take minutes."""
    rng = torch.Generator(device).manual_seed(seed)
    shape = (case.experts, case.n, case.k)
    groups = (case.experts, case.n, case.k // case.group)
    drawn = {"case": case}
    drawn["codes"] = torch.randint(0, 2**case.bits, shape, device=device, generator=rng, dtype=torch.uint8)
    scales = (torch.rand(groups, device=device, generator=rng) + 0.5) / case.k**0.5
    drawn["scales"] = scales.to(TORCH[case.dtype])
    drawn["zeros"] = None
    if case.zero_points:
        drawn["zeros"] = torch.randint(0, 16, groups, device=device, generator=rng, dtype=torch.uint8)
    drawn["levels"] = None
    if case.kind == "book":
        drawn["levels"] = torch.tensor(normal_codebook(case.bits), device=device).to(TORCH[case.dtype])
    parts = (drawn[name] for name in ("codes", "scales", "zeros", "levels"))
    drawn["packed"] = assemble(*parts, case.bits, case.group)
    x = torch.randn(case.experts * case.m, case.k, device=device, generator=rng)
    return drawn | {"x": x.to(TORCH[case.dtype])}


def ours(inputs, prepare=lambda one: None):
    """Return our call. `prepare` may do with the layer what a loader would."""
    one = layer(inputs["packed"], keep_dense=True)
    prepare(one)
    x, case = inputs["x"], inputs["case"]
    out = torch.full((x.shape[0], case.n), float("nan"), device=x.device).to(x.dtype)
    return lambda: linear(x, one, out)


def chosen(case, device) -> str:
    """The kernel that dispatch takes of a layer that keeps its 16 bits, too, as the rows do."""
    choices = table_of_device(device.index or 0) if device.type == "cuda" else ()
    nothing = stand_in(case, device)
    return choose(Layer(nothing, dense=nothing.scales), case.m, choices) if choices else "by rule"


def stand_in(case, device="cpu"):
    """Return an empty weight of this form and shape, on a device that a kernel may need."""
    nothing = torch.empty(0, dtype=TORCH[case.dtype], device=device)
    from kernels.quantization_layouts.packed import Packed

    book = nothing if case.kind == "book" else None
    zeros = nothing if case.zero_points else None
    return Packed((nothing,), nothing, zeros, book, case.bits, case.group, case.experts, case.n, case.k)


def check(inputs, out) -> float:
    """Check some rows of X and columns of Y from every stretch. The whole result must be finite and of the right
    shape."""
    case = inputs["case"]
    if tuple(out.shape) != (case.experts * case.m, case.n) or not out.isfinite().all():
        return float("inf")
    at_n, at_m = spread(CHECKED_COLUMNS, case.n), spread(CHECKED_ROWS, case.m)
    if "expected" not in inputs:
        inputs["expected"] = np.stack([expected(inputs, e, at_m, at_n) for e in range(case.experts)])
    return relative_error(
        to_numpy(out.view(case.experts, case.m, -1))[:, at_m][:, :, at_n], inputs["expected"]
    )


def expected(inputs, expert: int, at_m, at_n) -> np.ndarray:
    case = inputs["case"]
    codes, scales = (to_numpy(inputs[name][expert, at_n]) for name in ("codes", "scales"))
    if case.kind == "int4":
        zeros = None if inputs["zeros"] is None else to_numpy(inputs["zeros"][expert, at_n])
        q = reference.Int4(codes, scales, zeros, case.group)
    else:
        q = reference.KBit(codes, scales, to_numpy(inputs["levels"]), case.group, case.bits)
    x = to_numpy(inputs["x"].view(case.experts, case.m, -1)[expert])[at_m]
    return reference.linear(x, reference.values(q))

"""List the rows of the benchmark: LayerNorm(GELU(x)) against torch.compile and PyTorch's two kernels."""

import numpy as np
import torch
import torch.nn.functional as F

from kernels.bench.row import Row
from kernels.compare import relative_error, spread
from kernels.roofline import cases, cost, reference
from kernels.roofline.layernorm_gelu import layernorm_gelu
from kernels.tensors import to_numpy

CHECKED_ROWS = 64


def rows(device):
    for case in cases.TIMED:
        yield Row(
            op="layernorm_gelu",
            case=case.name,
            dtype="bf16",
            flops=0,
            bytes=cost.row_kernel_bytes(case.rows, case.cols),
            inputs=lambda seed, case=case: draw(case, seed, device),
            ours=ours,
            check=check,
            tolerance=4e-3,
            peers={"torch.compile": compiled, "two kernels": eager},
            quick=case.cols == 8192,
        )


def draw(case, seed, device) -> dict:
    rng = torch.Generator(device).manual_seed(seed)
    shapes = {"x": (case.rows, case.cols), "weight": (case.cols,), "bias": (case.cols,)}
    return {k: torch.randn(s, device=device, generator=rng).bfloat16() for k, s in shapes.items()}


def ours(x):
    out = torch.full_like(x["x"], float("nan"))
    return lambda: layernorm_gelu(x["x"], x["weight"], x["bias"], out=out)


def torch_layernorm_gelu(x, weight, bias):
    return F.layer_norm(F.gelu(x), x.shape[1:], weight, bias)


def compiled(x):
    torch._dynamo.reset()  # or the ninth shape would run uncompiled
    call = torch.compile(torch_layernorm_gelu, dynamic=False)
    return lambda: call(x["x"], x["weight"], x["bias"])


def eager(x):
    return lambda: torch_layernorm_gelu(x["x"], x["weight"], x["bias"])


def check(x, out) -> float:
    if not out.isfinite().all():
        return float("inf")
    if "expected" not in x:
        some = spread(CHECKED_ROWS, out.shape[0])
        x["expected"] = reference.layernorm_gelu(
            *(to_numpy(v) for v in (x["x"][some], x["weight"], x["bias"]))
        )
        x["rows"] = np.asarray(some)
    return relative_error(to_numpy(out)[x["rows"]], x["expected"])

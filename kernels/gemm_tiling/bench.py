"""List the rows of the benchmark: GEMM, GEMV and block-scaled FP8 against cuBLAS and installed libraries."""

import numpy as np
import torch

from kernels.bench.row import Absent, Row
from kernels.compare import relative_error, spread
from kernels.gemm_tiling import cases, cost, reference
from kernels.gemm_tiling.block_scaled_gemm import block_scaled_gemm
from kernels.gemm_tiling.gemm import gemm
from kernels.tensors import laid_out, to_numpy

CHECKED_ROWS = 64
TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.float8_e4m3fn}


def rows(device):
    for case in cases.TIMED:
        yield Row(
            op="gemv" if case.m == 1 else "gemm",
            case=case.name,
            dtype=case.dtype,
            flops=cost.flops(case.m, case.n, case.k),
            bytes=cost.compulsory_bytes(case.m, case.n, case.k),
            inputs=lambda seed, case=case: draw(case, seed, device),
            ours=ours,
            check=check,
            tolerance=3e-3,
            peers={"cuBLAS": cublas, "quack": quack, "DeepGEMM": deep_gemm},
            quick=case.k == 8192 or case.m == 4096,
        )
    if torch.cuda.get_device_capability(device) < (8, 9):
        return
    for case in cases.TIMED_BLOCK_SCALED:
        yield Row(
            op="block_scaled_gemm",
            case=case.name,
            dtype="fp8",
            flops=cost.flops(case.m, case.n, case.k),
            bytes=cost.block_scaled_bytes(case.m, case.n, case.k),
            inputs=lambda seed, case=case: draw_scaled(case, seed, device),
            ours=ours_scaled,
            check=check_scaled,
            tolerance=3e-3,
            peers={"cuBLAS": cublas_scaled, "DeepGEMM": deep_gemm_scaled},
            quick=case.m == case.n,
        )


def draw(case, seed, device) -> dict:
    rng = torch.Generator(device).manual_seed(seed)
    a = torch.randn(case.m, case.k, device=device, generator=rng).to(TORCH[case.dtype])
    b = torch.randn(case.k, case.n, device=device, generator=rng).to(TORCH[case.dtype])
    return {"a": laid_out(a, case.a), "b": laid_out(b, case.b)}


def draw_scaled(case, seed, device) -> dict:
    scales = zip(("sa", "sb"), cases.scales(case, seed), strict=True)
    return draw(case, seed, device) | {
        k: laid_out(torch.from_numpy(v).to(device), "columns") for k, v in scales
    }


def ours(x):
    out = torch.full((x["a"].shape[0], x["b"].shape[1]), float("nan"), device=x["a"].device).to(x["a"].dtype)
    return lambda: gemm(x["a"], x["b"], out)


def cublas(x):
    out = torch.empty(x["a"].shape[0], x["b"].shape[1], device=x["a"].device, dtype=x["a"].dtype)
    return lambda: torch.matmul(x["a"], x["b"], out=out)


def quack(x):
    from quack.gemm_interface import gemm as quack_gemm

    return lambda: quack_gemm(x["a"], x["b"], tuned=False)


def ours_scaled(x):
    shape = (x["a"].shape[0], x["b"].shape[1])
    out = torch.full(shape, float("nan"), device=x["a"].device, dtype=torch.bfloat16)
    return lambda: block_scaled_gemm(x["a"], x["b"], x["sa"], x["sb"], out)


def cublas_scaled(x):
    if torch.cuda.get_device_capability() != (9, 0):
        raise Absent("cuBLAS multiplies with block scales on sm_90 only")
    from torch.nn.functional import ScalingType, scaled_mm

    kinds = ScalingType.BlockWise1x128, ScalingType.BlockWise128x128
    more = {
        "output_dtype": torch.bfloat16
    }  # sa and sb as drawn, A's along M and B's along K, as it wants them
    return lambda: scaled_mm(x["a"], x["b"], x["sa"], kinds[0], x["sb"], kinds[1], **more)


def deep_gemm(x):
    import deep_gemm

    if x["b"].stride(0) != 1:
        raise Absent("compared with b as a linear layer stores its weight")
    out = torch.empty(x["a"].shape[0], x["b"].shape[1], device=x["a"].device, dtype=x["a"].dtype)

    def call():
        deep_gemm.bf16_gemm_nt(x["a"], x["b"].t(), out)
        return out

    return call


def deep_gemm_scaled(x):
    import deep_gemm

    out = torch.empty(x["a"].shape[0], x["b"].shape[1], device=x["a"].device, dtype=torch.bfloat16)
    a, b = (x["a"], x["sa"]), (x["b"].t(), x["sb"].t().contiguous())

    def call():
        deep_gemm.fp8_gemm_nt(a, b, out)
        return out

    return call


def some_rows(x) -> np.ndarray:
    return spread(CHECKED_ROWS, x["a"].shape[0])


def check(x, out) -> float:
    """Check one row of every stretch and all columns, so that every tile is covered. All values must be finite."""
    if not out.isfinite().all():
        return float("inf")
    if "expected" not in x:
        x["expected"] = reference.gemm(to_numpy(x["a"])[some_rows(x)], to_numpy(x["b"]))
    return relative_error(to_numpy(out)[some_rows(x)], x["expected"])


def check_scaled(x, out) -> float:
    if not out.isfinite().all():
        return float("inf")
    if "expected" not in x:
        a, sa = (to_numpy(x[name])[some_rows(x)] for name in ("a", "sa"))
        x["expected"] = reference.block_scaled_gemm(a, to_numpy(x["b"]), sa, to_numpy(x["sb"]))
    return relative_error(to_numpy(out)[some_rows(x)], x["expected"])

"""List the rows of the ladder: every rung on one matmul, checked, timed and modelled, interleaved with cuBLAS."""

import torch

from kernels.bench.row import Row
from kernels.gemm_tiling import cost
from kernels.gemm_tiling.bench import check, cublas, draw
from kernels.gemm_tiling.cases import Case
from kernels.gemm_tiling.ladder import rungs


def rows(device):
    sms = torch.cuda.get_device_properties(device).multi_processor_count
    for rung in rungs.runnable(torch.cuda.get_device_capability(device)):
        case = Case(rung.size, rung.size, rung.size, "bf16")
        yield Row(
            op="ladder",
            case=rung.name,
            dtype=case.dtype,
            flops=cost.flops(case.m, case.n, case.k),
            bytes=cost.compulsory_bytes(case.m, case.n, case.k),
            facts=described(rung, sms),
            inputs=lambda seed, case=case: draw(case, seed, device),
            ours=ours(rung),
            check=check,
            tolerance=3e-3,
            peers={"cuBLAS": cublas},
            quick=True,
        )


def described(rung, sms: int) -> dict:
    """Return the rung's description and the bytes that it should move."""
    s = rung.setting
    return {
        "lever": rung.lever,
        "file": f"ladder/{rung.file}.py",
        "aside": rung.aside,
        "size": rung.size,
        "tile": [s.block_m, s.block_n, s.block_k],
        "group_m": s.group_m,
        "warps": s.warps,
        "stages": s.stages,
        "resident": rung.resident,
        "sectors": rung.sectors,
        "bytes_asked": rung.bytes_asked(),
        "bytes_hbm": rung.bytes_hbm(sms),
    }


def ours(rung):
    def factory(x):
        shape = (x["a"].shape[0], x["b"].shape[1])
        out = torch.full(shape, float("nan"), device=x["a"].device, dtype=x["a"].dtype)

        def call():
            rung.run(x["a"], x["b"], out)
            return out

        return call

    return factory

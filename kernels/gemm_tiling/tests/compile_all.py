"""Compile the topic's kernels as they are launched, for GPUs that are not here; prints facts as JSON."""

import json
from functools import partial

import torch

from kernels import hopper_fp8
from kernels.gemm_tiling import block_scaled_gemm as scaled
from kernels.gemm_tiling import gemm, hopper_gemm
from kernels.gemm_tiling.gemv import gemv
from kernels.tests.compiled import Found

N = 1024


def main():
    a, b, out = (torch.empty(N, N, dtype=torch.bfloat16) for _ in range(3))
    few = torch.empty(16, N, dtype=torch.bfloat16)
    codes = torch.empty(N, N, dtype=torch.float8_e4m3fn)
    scales = torch.empty(N // 128, N)
    block_scales = torch.empty(N // 128, N // 128)
    fp8 = codes, codes.t(), scales, block_scales.t(), out
    portable_fp8 = codes, codes.t(), scales.t(), block_scales.t(), out
    found = Found()
    for target in (80, 89, 90, 100):
        tile = gemm.pointer_tile(4096, 4096, divmod(target, 10))
        found.add(f"pointers {target}", partial(gemm.pointers, a, b, out, tile), target)
        thin = gemm.DEEP if target >= 90 else gemm.THIN
        found.add(f"small {target}", partial(gemm.pointers, a, b.t(), out, gemm.SMALL), target)
        found.add(f"thin {target}", partial(gemm.thin, few, b.t(), few, thin), target)
        found.add(f"gemv {target}", partial(gemv, b, a[0], out[0]), target)
        if target >= 89:
            found.add(f"block_scaled {target}", partial(scaled.portable, *portable_fp8), target)
    for target in (90, 100):
        found.add(f"descriptors {target}", partial(gemm.descriptors, a, b.t(), out), target)
    for name, config in hopper_gemm.CONFIGS.items():
        for order, right in (("rows", b), ("columns", b.t())):
            call = partial(hopper_gemm.launch, a, right, out, config, 132)
            found.add(f"hopper {name} {order}", call, 90)
    for config in hopper_gemm.HANDOVER_NS:
        found.add(
            "hopper even square columns", partial(hopper_gemm.launch, a, b.t(), out, config, 132, 2), 90
        )
    by_row = codes, codes.t(), torch.empty(N), torch.empty(N), out
    for config in hopper_fp8.ROUND_NS:
        for name, given in (("block_scaled", fp8), ("row_scaled", by_row)):
            call = partial(hopper_fp8.launch, *given, config, 132)
            found.add(f"hopper {name} {config.consumers}x{config.block_n}", call, 90)
            if config in hopper_fp8.HANDOVER_NS:
                call = partial(hopper_fp8.launch, *given, config, 132, 2)
                found.add(f"hopper even {name} {config.consumers}x{config.block_n}", call, 90)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

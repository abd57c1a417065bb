"""Compile the topic's kernels as they are launched, for GPUs that are not here; prints facts as JSON."""

import json
from functools import partial

import torch

from kernels.gemm_tiling import block_scaled_gemm as scaled
from kernels.gemm_tiling import gemm, hopper_block_scaled, hopper_gemm
from kernels.gemm_tiling.gemv import gemv
from kernels.tests.compiled import facts

N = 1024


def main():
    a, b, out = (torch.empty(N, N, dtype=torch.bfloat16) for _ in range(3))
    few = torch.empty(16, N, dtype=torch.bfloat16)
    codes = torch.empty(N, N, dtype=torch.float8_e4m3fn)
    scales = torch.empty(N // 128, N)
    block_scales = torch.empty(N // 128, N // 128)
    fp8 = codes, codes.t(), scales, block_scales.t(), out
    portable_fp8 = codes, codes.t(), scales.t(), block_scales.t(), out
    found = {}
    for target in (80, 89, 90, 100):
        tile = gemm.pointer_tile(4096, 4096, divmod(target, 10))
        found[f"pointers {target}"] = facts(lambda tile=tile: gemm.pointers(a, b, out, tile), target)
        thin = gemm.DEEP if target >= 90 else gemm.THIN
        found[f"small {target}"] = facts(lambda: gemm.pointers(a, b.t(), out, gemm.SMALL), target)
        found[f"thin {target}"] = facts(lambda tile=thin: gemm.thin(few, b.t(), few, tile), target)
        found[f"gemv {target}"] = facts(lambda: gemv(b, a[0], out[0]), target)
        if target >= 89:
            found[f"block_scaled {target}"] = facts(lambda: scaled.portable(*portable_fp8), target)
    for target in (90, 100):
        found[f"descriptors {target}"] = facts(lambda: gemm.descriptors(a, b.t(), out), target)
    for name, config in hopper_gemm.CONFIGS.items():
        for order, right in (("rows", b), ("columns", b.t())):
            call = partial(hopper_gemm.launch, a, right, out, config, 132)
            found[f"hopper {name} {order}"] = facts(call, 90)
    for name in ("BLOCKS", "FEW_ROWS", "FEW_TILES"):
        config = getattr(hopper_block_scaled, name)
        call = partial(hopper_block_scaled.launch, *fp8, config, 132)
        found[f"hopper block_scaled {name.lower()}"] = facts(call, 90)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

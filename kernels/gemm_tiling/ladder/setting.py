"""Hold a rung's settings other than its operands: its tile of C, its order of tiles, and the resources of a program."""

from dataclasses import dataclass

import triton


@dataclass(frozen=True)
class Setting:
    block_m: int
    block_n: int
    block_k: int = 1
    group_m: int = 1  # 1 is row by row
    warps: int = 4
    stages: int = 1  # tiles in flight (with 1 a tile is requested when it is needed)

    def tiles(self, out) -> int:
        return triton.cdiv(out.shape[0], self.block_m) * triton.cdiv(out.shape[1], self.block_n)

    def meta(self) -> dict:
        """Return the keywords that all kernels over tiles share."""
        return {
            "BLOCK_M": self.block_m,
            "BLOCK_N": self.block_n,
            "BLOCK_K": self.block_k,
            "GROUP_M": self.group_m,
            "num_warps": self.warps,
            "num_stages": self.stages,
        }

    def check(self, a, b) -> None:
        """The rungs carry no masks, so that each shows its one idea. They need whole tiles and rows side by side."""
        (m, k), n = a.shape, b.shape[1]
        for name, size, block in (("M", m, self.block_m), ("N", n, self.block_n), ("K", k, self.block_k)):
            if size % block:
                raise ValueError(f"{name} must be a multiple of {block}, got {size}; gemm takes any size")
        for name, x in (("a", a), ("b", b)):
            if not x.is_contiguous():
                raise ValueError(
                    f"{name} must be contiguous, got strides {x.stride()}; gemm takes any strides"
                )

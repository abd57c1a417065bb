"""List the ladder, from a loop a beginner would write to the tuned kernel, one lever a rung."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from kernels.gemm_tiling import cost
from kernels.gemm_tiling.ladder.setting import Setting

WARP, SECTOR = 32, 32  # lanes of a warp, and bytes of the smallest memory access


@dataclass(frozen=True)
class Rung:
    name: str
    lever: str  # what it changes from the rung before
    file: str  # module of this folder
    setting: Setting
    resident: int  # programs that an SM of an H100 or H200 runs at a time, by registers and shared memory
    # sectors that a warp's load of its lanes' operand touches, or None where whole tiles are loaded
    sectors: int | None = None
    hopper: bool = False  # sm_90 only
    size: int = 4096  # M = N = K of what it is timed on
    aside: bool = False  # not a rung, but an earlier lever looked at again, where more depends on it

    def run(self, a, b, out):
        """out = a @ b, for bf16 or fp16 with all rows side by side and sizes that are multiples of the tile."""
        self.setting.check(a, b)
        launch: Callable = import_module(f"kernels.gemm_tiling.ladder.{self.file}").launch
        return launch(a, b, out, self.setting)

    def bytes_asked(self) -> int:
        """Return the bytes that all programs load, as if nothing were kept between them, with C written once."""
        return cost.gemm_bytes(*3 * (self.size,), self.setting.block_m, self.setting.block_n, 2)

    def bytes_hbm(self, sms: int) -> int:
        """Return the bytes that simultaneous programs touch, each byte once a wave, with C written once."""
        s, programs = self.setting, self.resident * sms
        waves = cost.unique_bytes_per_wave(*3 * (self.size,), s.block_m, s.block_n, s.group_m, programs)
        return sum(waves) + 2 * self.size**2


FMA = {"block_m": 64, "block_n": 64, "block_k": 32, "warps": 4}
MMA = {"block_m": 128, "block_n": 128, "block_k": 64, "group_m": 8, "warps": 8}
LARGE = {"block_m": 128, "block_n": 256, "block_k": 64, "group_m": 8, "warps": 8}

# Settings for sm_90.
RUNGS = (
    Rung("naive", "one element of C a lane, lanes down a column", "naive", Setting(128, 1), 16, sectors=WARP),
    Rung("coalesced", "lanes along a row", "coalesced", Setting(1, 128), 16, sectors=WARP * 2 // SECTOR),
    Rung("tiles", "a tile of C a program, on the CUDA cores", "tiles", Setting(**FMA), 5),
    Rung("grouped", "programs walk in groups of 8 rows of tiles", "tiles", Setting(**FMA, group_m=8), 5),
    Rung("tensor cores", "one instruction a 64 x 16 piece, a larger tile", "tensor_cores", Setting(**MMA), 2),
    Rung("stages", "3 tiles in flight", "tensor_cores", Setting(**MMA, stages=3), 2),
    Rung("TMA", "the copy engine fetches", "tma", Setting(**MMA, stages=3), 2),
    Rung("larger tile", "128 x 256 for each program", "tma", Setting(**LARGE, stages=3), 1),
    Rung(
        "warp specialised",
        "a warp that only fetches",
        "warp_specialised",
        Setting(**LARGE, stages=4),
        1,
        hopper=True,
    ),
    Rung(
        "tuned",
        "programs stay: storing and fetching overlap",
        "tuned",
        Setting(**LARGE | {"group_m": 16}, stages=4),
        1,
        hopper=True,
    ),
    # At 4096 a wave that walks row by row already spans 8 rows of tiles, and groups win nothing. At 8192 it spans 4.
    Rung(
        "row by row at 8192",
        "no groups",
        "tma",
        Setting(**LARGE | {"group_m": 1}, stages=3),
        1,
        size=8192,
        aside=True,
    ),
    Rung("groups at 8192", "groups of 8 again", "tma", Setting(**LARGE, stages=3), 1, size=8192, aside=True),
)


def runnable(capability: tuple[int, int]) -> list[Rung]:
    """Return the rungs that run on a GPU. The copy engine came with 9.0, and the last two are written for it alone."""
    return [
        r
        for r in RUNGS
        if (capability == (9, 0) if r.hopper else capability >= (9, 0) if r.file == "tma" else True)
    ]

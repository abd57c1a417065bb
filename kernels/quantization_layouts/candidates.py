"""Name every way to run a quantized layer. Calibration times them and the dispatcher chooses from them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from kernels.overlap import at_rest
from kernels.quantization_layouts.dequantize import by_library, dequantize, library
from kernels.quantization_layouts.direct import Direct, direct
from kernels.quantization_layouts.packed import Packed
from kernels.quantization_layouts.ring_launch import Ring, ring, takes
from kernels.quantization_layouts.stream import Stream, stream
from kernels.quantization_layouts.tile import MIDDLE, NARROW, WIDE, Tile, tile
from kernels.require import must

SIXTEEN = "16 bits"
LIBRARY = "dequantize + library"


@dataclass
class Layer:
    """A packed weight, the same in 16 bits where memory allows, and room to unpack in."""

    packed: Packed
    dense: torch.Tensor | None = None  # (N, K), or (experts, N, K)
    room: torch.Tensor | None = None

    def __post_init__(self):
        at_rest(self.packed)

    def workspace(self) -> torch.Tensor:
        """Made at the first use and kept, so that a captured graph finds it where it was."""
        if self.room is None:
            w = self.packed
            shape = (w.n, w.k) if w.experts == 1 else (w.experts, w.n, w.k)
            self.room = torch.empty(shape, dtype=w.dtype, device=w.device)
        return self.room


def layer(packed: Packed, keep_dense: bool = False) -> Layer:
    """`keep_dense` also holds a 16-bit copy, which takes more memory, and then no M is slower than 16 bits."""
    return Layer(packed, dequantize(packed) if keep_dense else None)


@dataclass(frozen=True)
class Candidate:
    name: str
    family: str  # one of cost_kbit's, or "16 bits"
    call: Callable  # (x, layer, out) -> out
    most: int = 2**31  # rows of an expert for which it is worth timing
    least: int = 1
    config: Stream | Direct | Ring | None = None
    takes: Callable[[Packed], bool] = lambda w: True  # weights that it can run as they are
    ragged: bool = True  # experts may differ in rows

    @property
    def early(self) -> bool:
        return self.config is not None and self.config.early


def _beside(config: Stream | Direct) -> str:
    """Return how a launch shares the GPU with the next one."""
    return (f", {config.registers} registers" if config.registers else "") + (
        ", early" if config.early else ""
    )


MOST_STEPS = 8  # that a program may request together, since more would take minutes to compile
MOST_STEPS_OF_FIVE_BITS = 4  # whose look-ups need most registers themselves
OTHER_REGISTERS = 40  # in addition to the words and scales in flight (sm_90, compiled 2026-11-28)


def _holds(config: Stream | Direct, w: Packed) -> bool:
    """Return whether all that a program needs of the weight may be in flight together, if it is to be.

    Words and scales that don't fit the thread's registers are spilled, and then 16 bits are faster.
    """
    if not config.whole:
        return True
    run, warps = w.cut(config.run, config.warps)
    steps = -(-w.k // (run * warps))
    words, scales = 16 * run * w.bits / 1024, run / w.group
    held = steps * config.bricks * (words + scales) + OTHER_REGISTERS
    return steps <= (MOST_STEPS_OF_FIVE_BITS if w.bits == 5 else MOST_STEPS) and held <= (
        config.registers or 255
    )


def _streamed(config: Stream) -> Candidate:
    unit = "MMA" if config.tensor else "scalar GEMV"
    shape = f"{16 * config.bricks} rows, {config.warps} x {config.run}"
    shape += f", {config.cols} cols" if config.tensor else ""
    shape += f", {config.stages} stages" if config.stages > 1 else ""
    shape += ", whole" if config.whole else ""
    shape += _beside(config)
    return Candidate(
        f"{unit} {shape}",
        unit,
        lambda x, layer, out, **more: stream(x, layer.packed, out, config=config, **more),
        (4 if config.cols > 8 else 2) * config.cols if config.tensor else 4,
        1 if config.cols == 8 else config.cols // 2,
        config,
        partial(_holds, config),
    )


def _fetched(config: Direct) -> str:
    return ", whole" if config.whole else "" if config.ahead else ", not ahead"


def _direct(config: Direct) -> Candidate:
    name = f"MMA direct {16 * config.bricks} rows, {config.warps} x {config.run}, {config.cols} cols"
    return Candidate(
        name + _fetched(config) + _beside(config),
        "MMA",
        lambda x, layer, out, **more: direct(x, layer.packed, out, config=config, **more),
        2 * config.cols,
        1 if config.cols == 8 else config.cols // 2,
        config,
        partial(_holds, config),
    )


def _tiled(config: Tile) -> Candidate:
    call = lambda x, layer, out, **more: tile(x, layer.packed, out, config=config, **more)  # noqa: E731
    name = f"MMA tile {16 * config.warps} x {config.cols}"
    return Candidate(name, "MMA", call, 8 * config.cols, config.cols // 4)


def _ringed(config: Ring) -> Candidate:
    call = lambda x, layer, out: ring(x, layer.packed, out, config)  # noqa: E731
    name = (
        f"MMA ring {config.consumers} x {64 * config.pieces} rows, {config.cols} cols, {config.stages} stages"
    )
    name += "" if config.even else ", whole parts"
    name += ", two beside each other" if config.two else ""
    name += ", early" if config.early else ""
    return Candidate(
        name, "MMA", call, 2 * config.cols, 1 if config.cols == 8 else config.cols // 2, config, takes, False
    )


def _sixteen(x, layer: Layer, out):
    must(layer.dense is not None, "dense", "there", None, "build the layer with keep_dense=True")
    w = layer.packed
    return by_library(x, layer.dense.mT, out, w.experts, x.shape[0] // w.experts)


# H200, 2026-11-22, the fastest ones somewhere. 16 and 32 rows by several pieces, or by 256 of W a warpgroup, never
# were
RINGS = (
    Ring(8, stages=5, even=False),
    Ring(8, 2, stages=8, even=False),
    Ring(16, stages=4),
    Ring(16, stages=6),
    Ring(16, 2, stages=8, even=False),
    Ring(32, stages=6),
    Ring(32, 2, stages=8, even=False),
    Ring(64, stages=6),
    Ring(64, 2, stages=8, even=False),
    Ring(64, 2, 2, 6, even=False),
    Ring(128, 2, 2, 4),
    Ring(128, 2, 2, 4, even=False),
    # each weight is unpacked once for 256 rows; their sums fill the registers, so weights are scaled before the product
    Ring(256, 2, stages=3, late=False),
    Ring(256, 2, stages=3, late=False, even=False),
    # of small layers, whose launches overlap
    Ring(16, 2, stages=8, even=False, early=True),
    Ring(16, 2, stages=6, two=True, early=True),
    Ring(64, 2, stages=8, even=False, early=True),
)
CANDIDATES = {
    one.name: one
    for one in (
        *map(
            _streamed,
            (
                Stream(1, 4, 512, tensor=False),
                Stream(1, 8, 256, tensor=False),
                Stream(1, 4, 512),
                Stream(1, 4, 256, stages=3),
                Stream(1, 8, 256, stages=3),
                Stream(2, 4, 256, stages=4),
                Stream(2, 4, 256, cols=16),
                Stream(1, 8, 256, stages=2),
                Stream(1, 4, 256, cols=16, stages=3),
                Stream(1, 8, 256, tensor=False, early=True),
                Stream(1, 4, 512, tensor=False, early=True),
                Stream(1, 4, 512, early=True),
                Stream(1, 4, 512, early=True, registers=168),
                Stream(1, 4, 256, whole=True, early=True, registers=168),
                Stream(1, 8, 128, whole=True, early=True, registers=128),
                Stream(1, 4, 256, cols=16, whole=True, early=True, registers=168),
                Stream(1, 4, 128, cols=16, whole=True, early=True),
            ),
        ),
        *map(
            _direct,
            (
                Direct(1, 4, 256),
                Direct(1, 4, 256, ahead=False),
                Direct(1, 4, 128),
                Direct(1, 8, 256),
                Direct(1, 8, 128),
                Direct(1, 16, 128),
                Direct(2, 4, 256),
                Direct(1, 4, 256, cols=16),
                Direct(2, 4, 256, cols=16),
                Direct(4, 4, 128, cols=16),
                Direct(2, 4, 128, cols=32),
                Direct(1, 8, 512),
                Direct(1, 2, 256, early=True),
                Direct(1, 4, 256, ahead=False, early=True),
                Direct(1, 4, 512, early=True),
                Direct(1, 4, 512, ahead=False, early=True, registers=128),
                Direct(1, 8, 256, early=True),
                Direct(1, 8, 256, ahead=False, early=True, registers=80),
                Direct(1, 8, 512, early=True),
                Direct(1, 4, 512, whole=True, early=True, registers=168),
                Direct(1, 4, 256, whole=True, early=True, registers=168),
                Direct(1, 4, 256, whole=True, early=True, registers=128),
                Direct(1, 4, 128, whole=True, early=True, registers=128),
                Direct(1, 8, 128, whole=True, early=True),
                Direct(1, 8, 128, whole=True, early=True, registers=128),
                Direct(1, 8, 256, whole=True, early=True, registers=128),
            ),
        ),
        *map(_tiled, (Tile(4, 16), NARROW, MIDDLE, Tile(8, 64), WIDE)),
        *map(_ringed, RINGS),
        Candidate(
            LIBRARY,
            LIBRARY,
            lambda x, layer, out: library(x, layer.packed, out, layer.workspace()),
            least=8,
            ragged=False,
        ),
        Candidate(SIXTEEN, SIXTEEN, _sixteen, ragged=False),
    )
}


# A short run's reasons against launches that overlap.
PLAIN = (
    "scalar GEMV 16 rows, 8 x 256",
    "MMA 16 rows, 4 x 512, 8 cols",
    "MMA direct 16 rows, 4 x 256, 8 cols, not ahead",
    LIBRARY,
    SIXTEEN,
)


def worth(rows: int, w: Packed | None = None, overlapping: bool = False) -> list[Candidate]:
    """Return the candidates that may be the fastest for this number of rows of that weight. 16 bits is always
    included."""
    able = (one for one in CANDIDATES.values() if w is None or one.takes(w))
    able = (one for one in able if not overlapping or one.early or one.name in PLAIN)
    return [one for one in able if one.least <= rows <= one.most]


def bound(one: Candidate, x, layer: Layer, out) -> Callable[[], torch.Tensor]:
    return partial(one.call, x, layer, out)

"""List the rows of the benchmark for W8A8, FP8, W8A16, MXFP4 and NVFP4, against cuBLAS and torch's own kernels.

If activations are narrow, all contenders get them quantized, so only the matmul is timed, as in torch's own benchmark.
"""

from dataclasses import dataclass

import numpy as np
import torch

from kernels import hopper_fp8
from kernels.bench.row import Absent, Row
from kernels.compare import relative_error, spread
from kernels.quantization_layouts import cost, reference
from kernels.quantization_layouts.formats import BLOCKS, Narrow, linear, prepared, product, tile_for
from kernels.quantization_layouts.quantize_rows import NUMBERS, quantize_rows
from kernels.quantization_layouts.reference import E2M1
from kernels.quantization_layouts.ring_launch import multiprocessors
from kernels.tensors import to_numpy

CHECKED = 64
BF16_RESULT = 8e-3
DECODE = (28672, 8192)


@dataclass(frozen=True)
class Timed:
    form: str
    m: int
    n: int
    k: int
    quick: bool = False

    @property
    def name(self) -> str:
        return f"{self.m} x {self.n} x {self.k} {self.form}"

    @property
    def cost(self) -> cost.LinearCost:
        bits, block = (4, BLOCKS[self.form]) if self.form in BLOCKS else (8, None)  # a scale a row is nothing
        return cost.linear_cost(self.m, self.n, self.k, bits=bits, group=block, scale_bits=8)

    @property
    def bytes_moved(self) -> float:
        """Of X one byte a number, not two, where it was quantized before."""
        return self.cost.bytes_moved - self.m * self.k * (self.form in NUMBERS)


TIMED = (
    *(Timed(form, m, *DECODE, quick=m == 1) for form in (*NUMBERS, "w8a16", *BLOCKS) for m in (1, 16, 64)),
    *(
        Timed(form, m, 4096, 4096) for form in NUMBERS for m in (64, 256, 4096)
    ),  # the others only store narrowly, which gains nothing beyond 64 rows
)


def rows(device):
    for case in TIMED:
        tile = tile_for(case.form, case.m, case.n, multiprocessors(torch.device(device)))
        yield Row(
            op="format",
            case=case.name,
            dtype="fp8" if case.form in NUMBERS else "bf16",  # INT8 has FP8's rate
            flops=case.cost.flops,
            bytes=case.bytes_moved,
            inputs=lambda seed, case=case: draw(case, seed, device),
            ours=ours,
            check=check,
            tolerance=BF16_RESULT,
            peers=peers_of(case),
            quick=case.quick,
            facts={"kernel": kernel_of(case, tile)},
        )


def kernel_of(case, tile) -> str:
    if case.form in BLOCKS:
        return "FP4 by its bits, by the dispatcher"
    if case.form == "w8a16" and torch.cuda.is_available():
        return "int8 by its bits, by the dispatcher"
    if case.form == "fp8" and case.m > 64 and torch.cuda.is_available():
        c, width = hopper_fp8.pick(
            case.m, case.n, case.k, multiprocessors(torch.device("cuda")), blocks=False
        )
        shared = ", even shares" if width else ""
        return f"ring of {c.consumers * c.rows} x {c.block_n}, {c.block_k} columns a step{shared}"
    return f"tiles of {tile.rows_n} x {tile.rows_m}, {tile.columns} columns a step"


def draw(case, seed: int, device) -> dict:
    rng = torch.Generator(device).manual_seed(seed)
    random = lambda *shape: torch.rand(shape, device=device, generator=rng)  # noqa: E731
    x = torch.randn(case.m, case.k, device=device, generator=rng).bfloat16()
    given = quantize_rows(x, case.form) if case.form in NUMBERS else (x, None)
    return {"x": x, "given": given, "w": weight(case, random)}


def weight(case, random) -> Narrow:
    """Numbers and scales at random, made where they are used."""
    n, k = case.n, case.k
    if case.form in BLOCKS:
        codes = (random(n, k // 2) * 256).to(torch.uint8)
        groups = random(n, k // BLOCKS[case.form])
        if case.form == "mxfp4":
            return Narrow(case.form, codes, (120 + 4 * groups).to(torch.uint8))
        return Narrow(case.form, codes, (1 + 8 * groups).to(torch.float8_e4m3fn), 0.01)
    numbers = 2 * random(n, k) - 1
    numbers = (
        (numbers * 448).to(torch.float8_e4m3fn) if case.form == "fp8" else (numbers * 127).to(torch.int8)
    )
    return Narrow(case.form, numbers, (random(n) + 0.5) * 1e-3)


def ours(inputs):
    x, w = inputs["x"], inputs["w"]
    out = torch.full((x.shape[0], w.sides[0]), float("nan"), device=x.device).to(x.dtype)
    one = prepared(w)
    if one is not w:
        return lambda: linear(x, one, out)
    return lambda: product(*inputs["given"], w, out)


def as_stored(inputs):
    """Run our kernel on the format's own layout, where another layout is faster."""
    out = torch.empty(
        inputs["x"].shape[0], inputs["w"].sides[0], dtype=torch.bfloat16, device=inputs["x"].device
    )
    return lambda: product(*inputs["given"], inputs["w"], out)


def values(w: Narrow, at: np.ndarray) -> np.ndarray:
    """Return the rows of the weight that the codes mean, in float64."""
    numbers, scales = (to_numpy(part[torch.from_numpy(at).to(part.device)]) for part in (w.numbers, w.scales))
    if w.form not in BLOCKS:
        return numbers.astype(np.float64) * scales[:, None]
    codes = np.stack((numbers & 15, numbers >> 4), -1).reshape(len(at), -1)
    scales = 2.0 ** (scales.astype(np.float64) - 127) if w.form == "mxfp4" else scales.astype(np.float64)
    signed = np.where(codes > 7, -1, 1) * E2M1[codes & 7]
    return reference.values(reference.Scaled(signed, scales, BLOCKS[w.form])) * w.whole


def check(inputs, out) -> float:
    """Check some rows of X and columns of Y from every stretch. The whole result must be finite and of the right
    shape."""
    x, w = inputs["x"], inputs["w"]
    if tuple(out.shape) != (x.shape[0], w.sides[0]) or not out.isfinite().all():
        return float("inf")
    at_m, at_n = spread(CHECKED, x.shape[0]), spread(CHECKED, w.sides[0])
    if "expected" not in inputs:
        numbers, scales = inputs["given"]
        rows = to_numpy(numbers)[at_m].astype(np.float64)
        rows = rows if scales is None else rows * to_numpy(scales)[at_m, None]
        inputs["expected"] = rows @ values(w, at_n).T
    return relative_error(to_numpy(out)[np.ix_(at_m, at_n)], inputs["expected"])


def widened(w: Narrow) -> torch.Tensor:
    """Return the 16-bit weight that the codes mean, some rows at a time."""
    parts = []
    for numbers, scales in zip(w.numbers.split(2048), w.scales.split(2048), strict=True):
        if w.form not in BLOCKS:
            parts.append((numbers.double() * scales[:, None]).bfloat16())
            continue
        levels = torch.tensor([*E2M1, *-E2M1], device=numbers.device)
        codes = levels[torch.stack((numbers & 15, numbers >> 4), -1).long().flatten(1)]
        scales = torch.exp2(scales.double() - 127) if w.form == "mxfp4" else scales.double() * w.whole
        parts.append((codes * scales.repeat_interleave(BLOCKS[w.form], 1)).bfloat16())
    return torch.cat(parts)


def cublas(inputs):
    """Multiply with the 16-bit weight that the codes mean, by the library."""
    x, w = inputs["x"], inputs["w"]
    if "wide" not in inputs:
        inputs["wide"] = widened(w)
    numbers, scales = inputs["given"]
    x = x if scales is None else (numbers.float() * scales[:, None]).bfloat16()
    out = torch.empty(x.shape[0], w.sides[0], dtype=x.dtype, device=x.device)
    return lambda: torch.matmul(x, inputs["wide"].t(), out=out)


def int_mm(inputs):
    """torch's whole-number product, with both scales applied after it by PyTorch."""
    (x, scales), w = inputs["given"], inputs["w"]
    if x.shape[0] <= 16:
        raise Absent("takes more than 16 rows")
    both = scales[:, None], w.scales[None, :]
    compiled = torch.compile(lambda: (torch._int_mm(x, w.numbers.t()) * both[0] * both[1]).bfloat16())
    return lambda: compiled()


def scaled_mm(inputs):
    """cuBLAS's FP8 product with a scale a row of each side, summed in fp32."""
    (x, scales), w = inputs["given"], inputs["w"]
    sides = scales[:, None].contiguous(), w.scales[None, :].contiguous()
    return lambda: torch._scaled_mm(x, w.numbers.t(), *sides, out_dtype=torch.bfloat16, use_fast_accum=False)


def int8pack(inputs):
    """torch's own W8A16."""
    x, w = inputs["x"], inputs["w"]
    scales = w.scales.bfloat16()
    return lambda: torch._weight_int8pack_mm(x, w.numbers, scales)


OWN = {
    **dict.fromkeys(BLOCKS, {"our kernel, as stored": as_stored}),
    "w8a8": {"torch._int_mm": int_mm},
    "fp8": {"torch._scaled_mm": scaled_mm},
    "w8a16": {"torch int8pack": int8pack, "our kernel, as stored": as_stored},
}


def peers_of(case) -> dict:
    return {"cuBLAS 16 bits": cublas} | OWN.get(case.form, {})

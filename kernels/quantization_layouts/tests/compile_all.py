"""Compile the topic's kernels as they are launched, for GPUs that are not here; prints facts as JSON."""

import json
import re
import subprocess
import tempfile
from functools import partial
from itertools import product as product_of_axes
from pathlib import Path

import torch
import triton

from kernels.quantization_layouts import cases
from kernels.quantization_layouts import direct as direct_module
from kernels.quantization_layouts import ring_launch as ring_module
from kernels.quantization_layouts import stream as stream_module
from kernels.quantization_layouts.candidates import CANDIDATES, LIBRARY, SIXTEEN, Layer
from kernels.quantization_layouts.dequantize import dequantize
from kernels.quantization_layouts.direct import Direct, direct
from kernels.quantization_layouts.formats import BLOCKS, FORMS, Narrow, product
from kernels.quantization_layouts.packed import FIELDS, SPAN, TORCH, Packed
from kernels.quantization_layouts.quantize_rows import NUMBERS
from kernels.quantization_layouts.ring_launch import OF_KIND, Ring, ring
from kernels.quantization_layouts.stream import Stream, fitting, shared_bytes, stream
from kernels.quantization_layouts.tile import MIDDLE, WIDE, Tile, tile
from kernels.tests.compiled import Found, facts_of, kernels

N, K = 5120, 2048
COUNTED = ("int4", "k2", "k4", "k5")


def weight(case) -> Packed:
    """Tensors of the right shapes that hold nothing."""
    words = tuple(
        torch.empty(1, case.n // 16, case.k // SPAN[field], 32, 4, dtype=torch.int32)
        for field in FIELDS[case.bits]
    )
    scales = torch.empty(1, case.n // 16, case.k // case.group, 16, dtype=TORCH[case.dtype])
    book = torch.empty(2**case.bits // 2, 32, dtype=torch.int32) if case.kind == "book" else None
    zeros = scales.to(torch.uint8) if case.zero_points else None
    return Packed(words, scales, zeros, book, case.bits, case.group, 1, case.n, case.k)


def about(call, capability: int) -> dict:
    (kernel,) = kernels(call, capability)
    ptx = kernel.asm["ptx"]
    count = lambda what: len(re.findall(what, ptx))  # noqa: E731
    waits = re.findall(r"warp_group_dot_wait (.*) \{.*pendings = (\d+)", kernel.asm["ttgir"])
    # a wait that names more than the sums keeps an operand where it is
    waits = [int(pending) for named, pending in waits if named.count("%") == 1]
    return facts_of(kernel) | {
        "running on": max(waits, default=0),
        "barriers": count(r"bar\.sync"),
        "vectors": count(r"ld\.global\S*\.v4\.b32") + count(r"cp\.async\.cg\.shared\.global"),
        "stored": count(r"st\.shared\S*\.v4"),
        "exchanged": count(r"shfl\.sync\.idx"),
        "integer": count(r"\n\s+(?:and|or|xor|not|shr|shl|prmt|lop3)\S*\.b32|\n\s+shr\.u32"),
        "conversions": count(r"\n\s+cvt\.f32\.(?:f16|bf16)"),
        "early": early(ptx),
        "launched early": kernel.metadata.launch_pdl,
    }


def early(ptx: str):
    """Whether the next launch is let begin before anything is fetched; words' fetches before the wait, any after it."""
    marks = re.findall(r"griddepcontrol\.\w+|ld\.global\S*|cp\.async\.bulk\.tensor", ptx)
    if "griddepcontrol.wait" not in marks:
        return None
    wait = marks.index("griddepcontrol.wait")
    words = [mark.endswith(".v4.b32") or mark.startswith("cp.async") for mark in marks[:wait]]
    return marks[0] == "griddepcontrol.launch_dependents", sum(words), len(marks[wait + 1 :])


def unpacking(case) -> float:
    """Integer instructions a weight in the assembled code: what a second brick of 16 rows adds, 128 weights a thread."""
    x, w = torch.empty(1, K, dtype=torch.float16), weight(case)
    one, two = (assembled(lambda: stream(x, w, config=Stream(bricks, 2, 256))) for bricks in (1, 2))  # noqa: B023
    return (two - one) / 128


def assembled(call) -> int:
    return len(re.findall(r"\s(?:LOP3|SHF|PRMT)\.?[A-Z0-9.]*\s", machine_code(call)))


def step_per_weight(call, weights: int) -> float:
    """Instructions of the shortest loop that multiplies, for each of the weights that a lane has in a step."""
    lines = re.findall(r"^\s*(?:(\.L_x_\d+):|/\*[0-9a-f]+\*/(.*))", machine_code(call), re.MULTILINE)
    at = {label: i for i, (label, _) in enumerate(lines) if label}
    loops = []
    for i, (_, text) in enumerate(lines):
        jump = re.search(r"BRA\s+`\((\.L_x_\d+)\)", text)
        if jump and at.get(jump[1], i) < i:
            loops.append([text for label, text in lines[at[jump[1]] : i + 1] if not label])
    return min(len(loop) for loop in loops if any("HGMMA" in text for text in loop)) / weights


def machine_code(call) -> str:
    (kernel,) = kernels(call, 90)
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/nvdisasm"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        return subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True).stdout


def forms(dtype="fp16"):
    yield "int4", cases.Case(1, N, K, dtype=dtype)
    yield "zero", cases.Case(1, N, K, zero_points=True, dtype=dtype)
    yield from ((f"k{bits}", cases.book(1, N, K, bits, dtype=dtype)) for bits in (2, 3, 4, 5))


EARLY = {
    "scalar": Stream(1, 8, 256, tensor=False, early=True),
    "stream": Stream(1, 4, 512, early=True),
    "direct": Direct(early=True),
    "ring": Ring(16, 2, stages=8, even=False, early=True),
}
RINGS = {
    "4x64 16": Ring(16),
    "4x128 16": Ring(16, 4, 2, 4),
    "4x64 64": Ring(64, stages=6),
    "2x128 64": Ring(64, 2, 2, 6),
    "2x256 64": Ring(64, 2, 4, 4),
    "128": Ring(128, 2, 2, 4),
}


def layer_of_format(form: str, rows: int):
    """The product, from tensors of the right shapes that hold nothing."""
    dtype = NUMBERS.get(form, torch.bfloat16)
    x, scales = torch.empty(rows, K, dtype=dtype), torch.empty(rows) if form in NUMBERS else None
    numbers = torch.empty(N, K // 2, dtype=torch.uint8) if form in BLOCKS else torch.empty(N, K)
    numbers = numbers if form in BLOCKS else numbers.to(NUMBERS.get(form, torch.int8))
    groups = torch.empty(N, K // BLOCKS[form]) if form in BLOCKS else torch.empty(N)
    kept = {"mxfp4": torch.uint8, "nvfp4": torch.float8_e4m3fn}.get(form, torch.float32)
    return product(x, scales, Narrow(form, numbers, groups.to(kept)))


def by_bits(form: str) -> Packed:
    """FP4 and int8 as their layers hold them, from tensors that hold nothing."""
    bits, group = (8, K) if form == "int8" else (4, BLOCKS[form])
    words = torch.empty(1, N // 16, K // SPAN[bits], 32, 4, dtype=torch.int32)
    scales = torch.empty(1, N // 16, K // group, 16, dtype=torch.bfloat16)
    return Packed((words,), scales, None, None, bits, group, 1, N, K, torch.empty(1 if bits == 4 else N))


def ring_forms():
    for dtype in ("fp16", "bf16"):
        for group in (128, 32):
            for zero in (False, True):
                yield f"{dtype} g{group}{' zero' * zero}", cases.Case(1, N, K, 4, "int4", group, zero, dtype)


def main():
    found = Found()
    for module in (direct_module, ring_module, stream_module):
        module.can_overlap = lambda device: True  # it is the GPU that is compiled for which can

    def add(name: str, call, target: int) -> None:
        if found.wants(name):
            found[name] = about(call, target)

    x, many = (torch.empty(rows, K, dtype=torch.float16) for rows in (1, 256))
    for name, case in forms():
        w = weight(case)
        add(f"stream {name} 90", partial(stream, x, w), 90)
        add(f"direct {name} 90", partial(direct, x, w, config=Direct()), 90)
        add(f"tile {name} 90", partial(tile, many, w, config=MIDDLE), 90)
    for name, config in RINGS.items():
        for form, case in ring_forms():
            add(
                f"ring {name} {form} 90",
                partial(ring, many.to(TORCH[case.dtype]), weight(case), config=config),
                90,
            )
    int4, k4 = weight(cases.Case(1, N, K)), weight(cases.book(1, N, K, 4))
    bf16 = weight(cases.Case(1, N, K, dtype="bf16"))
    add("stream bf16 90", lambda: stream(x.bfloat16(), bf16), 90)
    add("scalar int4 90", lambda: stream(x, int4, config=Stream(tensor=False)), 90)
    add("wide k4 90", lambda: tile(many, k4, config=WIDE), 90)
    add("dequantize k4 90", lambda: dequantize(k4), 90)
    add("dequantize transposed k4 90", lambda: dequantize(k4, transposed=True), 90)
    for name in ("int4", "k4"):
        w = int4 if name == "int4" else k4
        for unit, config in EARLY.items():
            call = ring if unit == "ring" else direct if unit == "direct" else stream
            add(f"early {unit} {name} 90", partial(call, many[:16], w, config=config), 90)
    for form, rows, target in product_of_axes(FORMS, (1, 17, 1000), (80, 90, 100)):
        if target >= 89 or form not in ("fp8", "nvfp4"):  # eight-bit floats begin with Ada
            add(f"format {form} {rows} rows {target}", partial(layer_of_format, form, rows), target)
    for form in ("mxfp4", "nvfp4", "int8"):
        w = by_bits(form)
        kept = {config for picks in OF_KIND[w.kind] for config in picks.values()}
        for config in sorted(kept, key=str):
            name = f"ring {config.consumers}x64 {config.cols} {config.stages} stages bf16 {form} 90"
            add(name, partial(ring, many.bfloat16(), w, config=config), 90)
        if form != "int8":
            add(f"direct {form} 90", partial(direct, x.bfloat16(), w, config=Direct()), 90)
        add(f"dequantize {form} 90", partial(dequantize, w), 90)
    for target in (80, 100):
        add(f"stream k4 {target}", lambda: stream(x, k4), target)
        add(f"tile int4 {target}", lambda: tile(many, int4, config=MIDDLE), target)
    counted = {
        name: unpacking(case)
        for name, case in forms()
        if name in COUNTED and found.wants(f"unpacking {name}")
    }
    few, several = x.bfloat16().expand(16, K).contiguous(), many[:64].bfloat16()
    steps = {
        "step tile": lambda: step_per_weight(lambda: tile(several, bf16, config=Tile(8, 64)), 32),
        "step ring": lambda: step_per_weight(lambda: ring(few, bf16, config=Ring(16)), 64),
        "step ring of two": lambda: step_per_weight(
            lambda: ring(several, bf16, config=Ring(64, 2, 2, 6)), 128
        ),
    }
    steps = {name: count() for name, count in steps.items() if found.wants(name)}
    greed = dict(greedy(found.wants))
    print(json.dumps({"kernels": found, "unpacking": counted, "greedy": greed, "steps": steps}))


def greedy(wanted):
    """What asks for the most shared memory, codes of two fields some stages ahead: (said by the rule, compiled)."""
    x = torch.empty(64, 8192, dtype=torch.float16)
    for bits, config in ((5, Stream(2, 4, 256, stages=4)), (3, Stream(4, 8, 128, cols=16, stages=3))):
        if not wanted(f"greedy k{bits}"):
            continue
        w = weight(cases.book(1, 4096, 8192, bits))
        (kernel,) = kernels(lambda: stream(x, w, config=config), 90)  # noqa: B023
        yield f"k{bits} {config}", (shared_bytes(fitting(config, w), w), kernel.metadata.shared)


def every_candidate():
    """Registers and spills of all that calibration times, for those who change a configuration: -m .. --candidates."""
    x = torch.empty(64, K, dtype=torch.float16)
    for name, case in forms():
        one = Layer(weight(case))
        for candidate in CANDIDATES.values():
            if candidate.name not in (SIXTEEN, LIBRARY):
                facts = about(lambda: candidate.call(x, one, None), 90)  # noqa: B023
                print(f"{name:5} {candidate.name:48}", {k: v for k, v in facts.items() if v}, flush=True)


if __name__ == "__main__":
    import sys

    every_candidate() if "--candidates" in sys.argv else main()

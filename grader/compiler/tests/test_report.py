"""What is read from a compiled kernel: the instructions that it has, and the spills of all its functions."""

import pytest
import triton
import triton.language as tl

from grader.compiler.inside import report
from grader.machine.inside.main import parsed
from tilescope import lowering
from tilescope.machine.write import write

SIDE = 64


@triton.jit
def product_of_mma_sync(a_ptr, b_ptr, c_ptr, SIDE: tl.constexpr):
    r = tl.arange(0, SIDE)
    tile = r[:, None] * SIDE + r[None, :]
    tl.store(c_ptr + tile, tl.dot(tl.load(a_ptr + tile), tl.load(b_ptr + tile)))


@triton.jit
def wgmma(a_ptr, b_ptr, c_ptr, SIDE: tl.constexpr):
    r = tl.arange(0, SIDE)
    tile = r[:, None] * SIDE + r[None, :]
    tl.store(c_ptr + tile, (tl.load(a_ptr + tile) + tl.load(b_ptr + tile)).to(tl.float32))


@triton.jit(noinline=True)
def body(a_ptr, c_ptr, SIDE: tl.constexpr):
    r = tl.arange(0, SIDE)
    tile = tl.load(a_ptr + r[:, None] * SIDE + r[None, :]).to(tl.float32)
    sums = tl.sum(tile, 0)
    for _ in range(4):
        tile = tl.exp(tile) * sums[None, :] + tl.trans(tile)
    tl.store(c_ptr + r[:, None] * SIDE + r[None, :], tile)


@triton.jit
def in_a_function_of_its_own(a_ptr, c_ptr, SIDE: tl.constexpr):
    body(a_ptr, c_ptr, SIDE)


def kernel_of(kernel, types: dict, side: int = SIDE, num_warps: int = 4) -> dict:
    text = write(parsed(lowering.text_of(kernel, types, {"SIDE": side})))
    return {"name": "kernel", "text": text, "num_warps": num_warps, "num_stages": 1}


OPERANDS = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "SIDE": "constexpr"}


@pytest.mark.parametrize("target, instruction", [(80, "mma.sync"), (90, "wgmma")])
def test_an_instruction_is_seen_by_itself_and_not_in_a_name(target, instruction):
    types = OPERANDS
    has = report.compiled_row(kernel_of(product_of_mma_sync, types), target)["instructions"]
    assert has[instruction] and not has["wgmma" if target == 80 else "mma.sync"]
    assert not any(
        report.compiled_row(kernel_of(wgmma, types), target)["instructions"][n] for n in has if "mma" in n
    )


@pytest.mark.slow  # 20 s: a kernel that spills takes the assembler long
def test_spills_in_a_function_of_its_own_count():
    types = {"a_ptr": "*fp32", "c_ptr": "*fp32", "SIDE": "constexpr"}
    kernel = kernel_of(in_a_function_of_its_own, types, side=128, num_warps=1)
    assert report.compiled_row(kernel, 90)["spill_stores"] > 1000


def test_the_reports_of_all_functions_are_added():
    block = "ptxas info : Function properties for {}\n 8 bytes stack frame, {} bytes spill stores, 4 bytes spill loads\n"
    text = block.format("one", 0) + "ptxas info : Used 20 registers\n" + block.format("two", 700)
    assert report.totals(text) == {"registers": 20, "spill_stores": 700, "spill_loads": 8}

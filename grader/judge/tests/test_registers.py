"""What blocks and loops hold at a time, from the text of a kernel, and the limits on it."""

from types import SimpleNamespace

import pytest

from grader import questions
from grader.judge import held, registers
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import COMPILED, METERED, KernelEvidence
from grader.proofs.right import right
from grader.questions import Case

CARRIES = """
    "tt.func"() ({
    ^bb0(%0: !tt.ptr<f32>, %5: i32):
    %1 = "scf.for"(%5, %5, %5, %3) ({
    ^bb1(%2: i32, %4: tensor<256x256xf32>):
      %7 = "tt.reduce"(%6) ({
      }) : (tensor<256x64xf32>) -> tensor<256xf32> loc("<answer>":9:1)
    }) : (i32, i32, i32, tensor<256x256xf32>) -> (tensor<256x256xf32>, tensor<64x!tt.ptr<f16>>) loc("<answer>":9:1)
"""
KEEPS = """
    "tt.func"() ({
    ^bb0(%0: !tt.ptr<f32>, %1: i32):
    %2 = "tt.make_range"() <{end = 4096 : i32, start = 0 : i32}> : () -> tensor<4096xi32> loc("<answer>":1:1)
    %3 = "tt.splat"(%0) : (!tt.ptr<f32>) -> tensor<4096x!tt.ptr<f32>> loc("<answer>":2:1)
    %4 = "tt.addptr"(%3, %2) : (tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>) -> tensor<4096x!tt.ptr<f32>> loc("<answer>":2:1)
    %5 = "tt.load"(%4) <{cache = 1 : i32}> : (tensor<4096x!tt.ptr<f32>>) -> tensor<4096xf32> loc("<answer>":2:1)
    %6 = "tt.bitcast"(%5) : (tensor<4096xf32>) -> tensor<4096xi32> loc("<answer>":3:1)
    %7 = "math.exp"(%5) : (tensor<4096xf32>) -> tensor<4096xf32> loc("<answer>":4:1)
    %8 = "scf.for"(%1, %1, %1, %1) ({
    ^bb1(%9: i32, %10: i32):
      %11 = "arith.addi"(%6, %2) : (tensor<4096xi32>, tensor<4096xi32>) -> tensor<4096xi32> loc("<answer>":5:1)
      "scf.yield"(%9) : (i32) -> () loc("<answer>":5:1)
    }) : (i32, i32, i32, i32) -> i32 loc("<answer>":5:1)
    %12 = "arith.addf"(AFTER, AFTER) : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32> loc("<answer>":6:1)
"""
BLOCK = 32 * 4096


def test_a_loop_holds_what_it_carries():
    assert held.of(CARRIES).by_a_loop == 32 * 256 * 256


@pytest.mark.parametrize("after, blocks", [("%5", 1), ("%7", 2), ("%2", 1)])
def test_a_loop_holds_what_was_loaded_before_it_and_is_needed_later(after, blocks):
    """A bitcast shares the registers of its block, and a range is made anew."""
    found = held.of(KEEPS.replace("AFTER", after))
    assert (found.by_a_loop, found.by_a_block) == (blocks * BLOCK, 0)


def test_the_elements_of_a_scan_live_at_once():
    scan = KEEPS.replace("AFTER", "%5").replace('"math.exp"(%5)', '"tt.scan"(%5)')
    assert held.of(scan).by_a_block == BLOCK


def test_blocks_that_wait_for_their_use_live_at_once_as_written():
    """An unrolled loop that loads all before it uses any carries nothing and has small blocks."""
    load = '%{0} = "tt.load"(%4) <{{cache = 1 : i32}}> : (tensor<4096x!tt.ptr<f32>>) -> tensor<4096xf32> loc("<answer>":2:1)'
    use = '"tt.store"(%4, %{0}) <{{cache = 1 : i32}}> : (tensor<4096x!tt.ptr<f32>>, tensor<4096xf32>) -> () loc("<answer>":3:1)'
    head = KEEPS[: KEEPS.index("    %5 =")]
    names = range(20, 28)
    first = head + "\n".join([*(load.format(n) for n in names), *(use.format(n) for n in names)])
    turns = head + "\n".join(line.format(n) for n in names for line in (load, use))
    assert (held.of(first).as_written, held.of(turns).as_written) == (8 * BLOCK, BLOCK)
    assert held.of(first).by_a_loop == held.of(first).by_a_block == 0


@pytest.mark.slow
def test_a_form_that_spills_is_compiled_beside_harmless_larger_ones():
    unrolled = """
@triton.jit
def ahead(x_ptr, y_ptr, T, M, alpha, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    steps = tl.where(offs < M, T, 0)
    h = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, T, DEPTH):
        rows = ()
        for k in tl.static_range(DEPTH):
            rows = rows + (tl.load(x_ptr + (start + k) * M + offs, mask=start + k < steps, other=0.0),)
        for k in tl.static_range(DEPTH):
            h = (1 - alpha) * h + alpha * rows[k]
            tl.store(y_ptr + (start + k) * M + offs, h, mask=start + k < steps)


def launch_smoothed(p):
    if p.T > 64:
        return {"steps": [{"kernel": ahead, "grid": (triton.cdiv(p.M, 128),), "constexprs": {"BLOCK": 128, "DEPTH": 96}, "num_warps": 1}]}
    return right_launch(p)
"""
    question = questions.find("roofline.smoothed")
    cell = right(question.id).replace("def launch_smoothed", "def right_launch")
    evidence = KernelEvidence(question, cell + unrolled, 5)
    assert "ahead" in {step.name for step in evidence.other_forms()}


def test_what_tensor_cores_alone_take_may_stay_in_shared_memory():
    dot = KEEPS.replace("AFTER", "%2").replace('"arith.addi"(%6', '"tt.dot"(%5')
    assert held.of(dot).by_a_loop == 0


def evidence(text: str, warps: int):
    step = SimpleNamespace(name="scaled", num_warps=warps, text=0)
    return SimpleNamespace(
        steps=lambda purpose: (step,),
        ir_of=lambda step: text,
        cases={METERED: Case({"N": 9}), COMPILED: Case({"N": 9})},
    )


@pytest.mark.parametrize("warps, fails", [(8, True), (16, False)])
def test_a_loop_that_holds_more_than_the_registers_fails(warps, fails):
    if not fails:
        return registers.judge_registers(evidence(CARRIES, warps))
    with pytest.raises(Failed, match="holds 256 registers of numbers for each lane, which has 255"):
        registers.judge_registers(evidence(CARRIES, warps))


@pytest.mark.parametrize(
    "elements, warps, fails", [(128, 8, True), (256, 8, True), (512, 8, False), (64, 4, False)]
)
def test_more_threads_than_a_block_has_work_for_fail(elements, warps, fails):
    text = f"(tensor<8xf32>, tensor<{elements}xf32>)"
    if not fails:
        return registers.judge_threads(evidence(text, warps))
    with pytest.raises(Failed, match="elements of its largest block for each thread"):
        registers.judge_threads(evidence(text, warps))


DOT = (
    '%3 = "tt.dot"(%1, %2, %0) <{inputPrecision = 0 : i32}> : (tensor<64x128xf16>, tensor<128x128xf16>, tensor<64x128xf32>)'
    " -> tensor<64x128xf32>"
)


@pytest.mark.parametrize("warps, fails", [(8, False), (16, True)])
def test_many_warps_for_a_small_product_fail(warps, fails):
    assert held.of(DOT).dots == ((64, 128, 16),)
    if not fails:
        return registers.judge_threads(evidence(DOT, warps))
    with pytest.raises(Failed, match="512 numbers of a tl.dot's result for each warp"):
        registers.judge_threads(evidence(DOT, warps))


@pytest.mark.parametrize(
    "text, warps, fails", [(DOT, 2, True), (DOT, 4, False), (DOT.replace("<64x", "<32x"), 2, False)]
)
def test_too_few_warps_for_wgmma_fail(text, warps, fails):
    judged = evidence(text, warps)
    judged.question = SimpleNamespace(instruction={90: "wgmma"})
    if not fails:
        return registers.judge_warpgroups(judged)
    with pytest.raises(Failed, match="2 warps for a tl.dot of 64 rows or more"):
        registers.judge_warpgroups(judged)

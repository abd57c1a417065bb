"""Kernels judged from end to end: what passes, what each broken one is told, and what no cell can reach."""

from dataclasses import replace

import pytest

from grader import questions, trial
from grader.box.serve.printed import parted
from grader.judge import referee
from grader.judge.record import FAIL, PASS, REFUSED
from grader.proofs.right import cell, inward, right
from grader.questions import Case

GEMM, NORM = "gemm_tiling.tiled_gemm", "roofline.layernorm_gelu"
SEED = 2026  # the same hidden cases every time: a red test is a change
RIGHT, ROWS = right(GEMM), right(NORM)


def judge(source, question=GEMM, **more):
    question = questions.find(question) if isinstance(question, str) else question
    return referee.grade_one(source, question, **{"seed": SEED, "eager": False, **more})


def few(*parts: str, compiled: dict | None = None, question: str = GEMM):
    """A question with some of its parts and hidden cases and no corner; its large case, which is compiled, in smaller sizes or
    left out."""
    whole = questions.find(question)
    kept = tuple(part for part in whole.parts if part.name in parts)
    large = replace(whole.compile_case, sizes=compiled) if compiled else None
    return inward(whole, parts=kept, hidden=lambda rng: whole.hidden(rng)[:3], compile_case=large)


def changed(*pairs, source=RIGHT):
    for before, after in pairs:
        assert before in source, before
        source = source.replace(before, after)
    return source


def lost(verdict) -> list[str]:
    return [part.name for part in verdict.parts if part.state == FAIL]


def test_the_right_kernel_has_all_points_and_its_traffic_is_the_models():
    """At 4096³ and in all hidden cases a form of it is judged among the honest ones, in grader/proofs."""
    every = [part.name for part in questions.find(GEMM).parts]
    verdict = judge(RIGHT, few(*every, compiled={"M": 2048, "N": 2048, "K": 256}))
    assert (verdict.verdict, verdict.points) == (PASS, verdict.of), str(verdict)
    facts = next(p for p in verdict.parts if p.name == "traffic").facts
    rows = {row["what"]: row["spent"] for row in facts["budgets"]}
    m, n, k = (facts["case"][s] for s in "MNK")
    assert rows["read of A"] == 2 * m * k * -(-n // 128) and rows["write of C"] == 2 * m * n
    assert {"loads:a", "loads:b", "stores:c"} <= set(facts["touched"])
    assert facts["work"]["useful_flops"] == 2 * m * n * k <= facts["work"]["dot_flops"]
    html = verdict._repr_html_()
    assert "<svg" in html and "without duplicates" in html and " MB" in html


BROKEN = {
    "unmasked tail in K": (
        "mask=mask_k[:, None] & (offs_n < N)[None, :]",
        "mask=(offs_n < N)[None, :]",
        "of b, which has",
    ),
    "masked lanes without other": (", other=0.0", "", "other=0.0"),
    "transposed stride": (
        "[:, None] * stride_bk + offs_n[None, :] * stride_bn",
        "[:, None] * stride_bn + offs_n[None, :] * stride_bk",
        "b",
    ),
    "group not cut off": ("tl.minimum(tiles_m - first, GROUP_M)", "GROUP_M", "never written"),
    "no launch": ("def launch(p)", "def lunch(p)", "no function launch"),
    "wrong key": ('"num_warps": 4', '"warps": 4', "a step may hold"),
    "unknown parameter": ("b_ptr, c_ptr, M", "b_ptr, c_ptr, alpha, M", "takes alpha"),
    "the tuned kernel": (
        "BLOCK_M, BLOCK_N",
        "import kernels.gemm_tiling.tiled_gemm\nBLOCK_M, BLOCK_N",
        "leave this import out",
    ),
    "writes its input": (
        "tl.store(c_ptr",
        "tl.store(a_ptr + offs_m * 0, 0.0, mask=offs_m < M)\n    tl.store(c_ptr",
        "store to a, which is an input: program 0",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_kernel_is_told_what_and_where(name):
    before, after, words = BROKEN[name]
    assert before in RIGHT
    got = judge(RIGHT.replace(before, after, 1 if "import" in after else -1))
    assert got.verdict == FAIL and got.points < got.of
    assert words in str(got), str(got)


ASSEMBLY = "acc = tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [acc], dtype=tl.float32, is_pure=True, pack=1)\n    tl.store(c_ptr"


def test_inline_assembly_is_refused_with_its_line():
    got = judge(RIGHT.replace("tl.store(c_ptr", ASSEMBLY, 1))
    assert got.verdict == REFUSED and got.points == 0 and "inline assembly" in got.message
    assert "inline_asm" in RIGHT.replace("tl.store(c_ptr", ASSEMBLY, 1).splitlines()[got.line - 1]


ZEROS = "acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)"
OF_C = (
    "c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn, "
    "mask=(offs_m < M)[:, None] & (offs_n < N)[None, :], other=0.0"
)


@pytest.mark.parametrize(
    "begins, told", [(f"acc = tl.load({OF_C}).to(tl.float32)", True), (f"{ZEROS} + 1", False)]
)
def test_an_output_that_is_read_before_anything_is_written_is_said(begins, told):
    source = changed((ZEROS, begins))
    line = next(number for number, text in enumerate(source.splitlines(), 1) if begins in text)
    look = judge(source, few("values")).parts[0].look
    assert (f"line {line} reads c or adds to it where nothing has been written" in look) == told, look


OFFSETS = "offs = tl.arange(0, BLOCK)"
HONEST = {
    "promises that are true, and a barrier": (
        OFFSETS,
        "offs = tl.multiple_of(tl.arange(0, BLOCK), 1)\n    tl.assume(N > 0)\n    tl.debug_barrier()",
    ),
    "device_print": (OFFSETS, OFFSETS + "\n    tl.device_print('offs', offs)"),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_words_of_triton_cost_nothing(name):
    """To no part, where the words stand in a whole question: an honest form of the GEMV in grader/proofs."""
    got = judge(changed(HONEST[name], source=ROWS), few("values", question=NORM))
    assert got.verdict == PASS, str(got)
    assert ("program (0, 0, 0), line" in got.printed) == (name == "device_print")


def test_device_prints_beyond_the_limit_are_counted():
    """300 programs print, the machine keeps what 200 said, and a report what has room."""
    printing = changed((OFFSETS, OFFSETS + "\n    tl.device_print('row', row)"), source=ROWS)
    lines, left_out = parted(trial.run(printing, {"M": 300, "N": 8}, NORM).printed)
    assert 50 < len(lines) < 200 and len(lines) + left_out == 300, (len(lines), left_out)


FALSE = {
    "a false assume": (OFFSETS, f"tl.assume(N > 100000)\n    {OFFSETS}"),
    "a false multiple_of": ("row * stride_xm", "tl.multiple_of(row * stride_xm + 1, 16) - 1"),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_promise_to_the_compiler_is_noticed(name):
    got = judge(changed(FALSE[name], source=ROWS), NORM)
    assert got.verdict == FAIL and "values" in lost(got), str(got)


def test_a_plan_that_chance_changes_is_told_of_random_numbers():
    chance = ('"num_warps": ', '"num_warps": __import__("random").choice((1, 2)) * ')
    (lost, *_) = judge(changed(chance, source=ROWS), NORM).parts
    assert "when it is called again" in lost.came and "random numbers" in lost.look, lost


def test_a_race_is_told_by_the_mistake_that_the_other_outputs_show():
    order = "moe_routing.order"
    question = questions.find(order)
    source = changed(("(first + before)[None, :]", "first[None, :]"), source=right(order))
    (lost, *_) = judge(source, replace(question, parts=question.parts[:1])).parts
    assert "two programs use element" in lost.came and "two pairs get the same row" in lost.look, lost


def test_a_race_for_all_that_is_written_is_told_by_no_mistake():
    """Nothing else came that a mistake could explain."""
    both = ("tl.program_id(0).to(tl.int64)", "tl.program_id(0).to(tl.int64) // 2 * 2")
    apart = ("(d * rstd * w + b).to(", "(d * rstd * w + b + tl.program_id(0)).to(")
    got = judge(changed(both, apart, source=ROWS), NORM)
    look = got.parts[0].look
    assert "two programs use" in str(got) and look.startswith(
        "programs 0 and 1 both store to it, and no two may own the same element. What is its address made of"
    ), str(got)


def test_a_race_of_a_load_and_a_store_names_the_second_launch():
    reads = ("tl.program_id(0).to(tl.int64)", "tl.program_id(0).to(tl.int64)\n    seen = tl.load(y_ptr)")
    uses = ("(d * rstd * w + b).to(", "(d * rstd * w + b + 0.0 * seen).to(")
    (lost, *_) = judge(changed(reads, uses, source=ROWS), NORM).parts
    assert "two programs use" in lost.came and "load it in a second launch" in lost.look, lost


def test_lanes_that_meet_without_a_barrier_are_told_with_both_lines():
    """Each lane takes its neighbour's number out of y again, and puts it back."""
    store = next(line for line in ROWS.splitlines() if "tl.store(y_ptr" in line)
    at = "y_ptr + row * stride_ym + (offs ^ 1) * stride_yn"
    again = f"tl.store({at}, tl.load({at}, mask=mask & (N % 2 == 0), other=0.0), mask=mask & (N % 2 == 0))"
    values = few("values", question=NORM)
    barrier = changed((store, f"{store}\n    tl.debug_barrier()\n    {again}"), source=ROWS)
    assert judge(barrier, values).verdict == PASS
    without = changed((store, f"{store}\n    pass\n    {again}"), source=ROWS).replace(
        "    ### BEGIN SOLUTION\n", ""
    )
    line = without[: without.index(again)].count("\n") + 1
    (lost,) = judge(without, values).parts
    words = (
        f"line {line} loads element 1 of y, which another lane of the same program stored at line {line - 2}"
    )
    assert words in lost.came and lost.look.startswith("tl.debug_barrier() between the two"), lost


ADDS = """
@triton.jit
def total(x_ptr, part_ptr, M, N, stride_xm):
    row = tl.program_id(0)
    tl.atomic_add(part_ptr + row // 2, tl.load(x_ptr + row * stride_xm).to(tl.float32))


def launch(p):
    return {"scratch": {"part": ((p.M,), "fp32", 0.0)}, "steps": [{"kernel": total, "grid": (p.M,)}]}
"""


def test_sums_whose_order_is_open_are_said_without_a_gpu():
    verdict = judge(ADDS, NORM)
    assert verdict.verdict == FAIL and "atomic additions of floats" in str(verdict)


COUNTED_PARTS = ("values", "traffic", "grouping", "speed")


def test_no_grouping_costs_its_part_and_no_other():
    got = judge(changed(('"GROUP_M": GROUP_M', '"GROUP_M": 1')), few(*COUNTED_PARTS))
    assert lost(got) == ["grouping"] and len(got.parts) == len(COUNTED_PARTS)


def test_an_impossible_tile_fails_without_a_gpu():
    tile = ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 512, 512, 64, 8")
    got = judge(changed(tile), few("values", "compiled", compiled={"M": 512, "N": 512, "K": 256}))
    assert got.verdict == FAIL and "2048 registers a thread" in str(got)


OTHER = (
    "@triton.jit\ndef other(a_ptr, b_ptr, c_ptr, M, N, K):\n    tl.store(c_ptr + tl.program_id(0), 0.0)\n\n\n"
)
SPECIAL = '    if {}:\n        return {{"steps": [{{"kernel": other, "grid": (1,)}}]}}\n'


@pytest.mark.parametrize("where", ["p.K == 800", "p.N > 3000"])
def test_a_kernel_that_is_wrong_at_one_size_alone_wins_nothing(where):
    """The compiled size and the metered ones are judged by their values too."""
    question = GEMM if "N" in where else few("values", "compiled", compiled={"M": 512, "N": 512, "K": 800})
    got = judge(OTHER + changed(("def launch(p):\n", "def launch(p):\n" + SPECIAL.format(where))), question)
    assert got.verdict == FAIL and got.points == 0, str(got)


@pytest.mark.parametrize(
    "stored, words",
    [
        pytest.param(  # a smaller case sees it first
            "row % 2 == 0", "elements of y were never written, the first is y[1, 0]", marks=pytest.mark.slow
        ),
        ("offs < 2048", "1,048,576 elements of y were never written, the first is y[0, 2048]"),
        pytest.param(
            "row != 100",
            "4,096 elements of y were never written, the first is y[100, 0]",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_programs_that_store_too_little_at_the_compiled_size_are_seen(stored, words):
    """Of a large grid only some programs compute, but all of them show where they store."""
    store = ("(y_ptr.dtype.element_ty), mask=mask)", "(y_ptr.dtype.element_ty), mask=stored)")
    mask = ("    w = tl.load", f"    stored = mask & ((N != 4096) | ({stored}))\n    w = tl.load")
    large = inward(questions.find(NORM), hidden=lambda rng: [])
    got = judge(changed(mask, store, source=ROWS), large, seed=5)  # which does not draw program 100
    assert got.verdict == FAIL and got.points == 0 and words in str(got), str(got)


def test_a_kernel_that_is_thrifty_at_the_metered_size_alone_is_seen():
    """The drawn programs of the compiled case have budgets too."""
    chunks = (
        cell("roofline.layernorm_gelu", "norm_chunks")
        .read_text(encoding="utf-8")
        .replace("def launch(p)", "def in_chunks(p)")
    )
    for_long = changed(
        ("def launch(p):\n", "def launch(p):\n    if p.N > 1024:\n        return in_chunks(p)\n"), source=ROWS
    )
    got = judge(chunks + "\n\n" + for_long, inward(questions.find(NORM), hidden=lambda rng: []))
    assert lost(got) == ["traffic", "speed"] and "at the size that is compiled" in str(got), str(got)


COUNTED = (  # programs that count themselves: all of them run, since one might wait for another
    ("c_ptr, M, N, K", "c_ptr, seen_ptr, M, N, K"),
    ("    pid = tl.program_id(0)\n", "    pid = tl.program_id(0)\n    tl.atomic_add(seen_ptr, 1)\n"),
    ('return {"steps"', 'return {"scratch": {"seen": ((1,), "i32", 0)}, "steps"'),
)
AFTER = (
    (
        "def launch(p):\n",
        "@triton.jit\ndef after(seen_ptr):\n    tl.store(seen_ptr, 1)\n\n\ndef launch(p):\n",
    ),
    ('return {"steps"', 'plan = {"scratch": {"seen": ((1,), "i32", 0)}, "steps"'),
    (
        "GROUP_M}}]}",
        'GROUP_M}}]}\n    plan["steps"] += [{"kernel": after, "grid": (1,)}] * (p.K > 100)\n    return plan',
    ),
)
AT_BOTH_ENDS = ('"GROUP_M": GROUP_M', '"GROUP_M": GROUP_M if p.M < 1100 or p.M == 2048 else 1')
LARGE_ALONE = ('"GROUP_M": GROUP_M', '"GROUP_M": GROUP_M if p.M > 500 else 1')
NEARBY = ('"GROUP_M": GROUP_M', '"GROUP_M": GROUP_M if p.K < 100 else 1')


@pytest.mark.parametrize(
    "edits, words",
    [
        ([NEARBY], "more than the limit"),
        pytest.param([NEARBY, *COUNTED], "more than the limit", marks=pytest.mark.slow),
        pytest.param([*COUNTED], "", marks=pytest.mark.slow),
        ([*AFTER], "2 launches, allowed 1"),
        ([AT_BOTH_ENDS], "at a size between the metered and the compiled one (M = "),
        pytest.param(
            [AT_BOTH_ENDS, *COUNTED],
            "at a size between the metered and the compiled one (M = ",
            marks=pytest.mark.slow,
        ),
        pytest.param([LARGE_ALONE], "", marks=pytest.mark.slow),
    ],
    ids=[
        "alone",
        "among programs that count",
        "grouped, and counting",
        "in two launches",
        "grouped at both ends alone",
        "at both ends alone, among programs that count",
        "grouped where it pays",
    ],
)
def test_programs_that_are_grouped_at_some_sizes_alone_are_seen(edits, words):
    """What the waves of a case read follows from where its programs store."""
    question = questions.find(GEMM)
    parts = tuple(part for part in question.parts if part.name in ("values", "grouping"))
    compiled = Case({"M": 2048, "N": 2048, "K": 128}, "bf16", sm_count=132)
    metered = lambda rng: replace(question.metered(rng), sm_count=32)  # noqa: E731
    smaller = inward(
        question,
        parts=parts,
        compile_case=compiled,
        metered=metered,
        public=question.public[:1],
        hidden=lambda rng: [],
    )
    got = referee.grade_one(changed(*edits), smaller, seed=SEED, eager=False)
    assert (lost(got) == ["grouping"] and words in str(got)) if words else got.verdict == PASS, str(got)


IDLE = (
    ('"grid": (grid,)', '"grid": (64 * grid,)'),
    (
        "    pid = tl.program_id(0)",
        "    pid = tl.program_id(0)\n    if pid >= tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N):\n        return",
    ),
)


def test_idle_programs_buy_no_budget():
    got = judge(changed(*IDLE, ('"GROUP_M": GROUP_M', '"GROUP_M": 1')), few(*COUNTED_PARTS))
    assert lost(got) == ["traffic", "grouping"]


def test_a_dead_dot_is_no_tensor_core():
    dead = "if K < 0:\n            acc = tl.dot(a, b, acc)\n        acc += tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :].to(tl.float32), 1)"
    tile = ("GROUP_M = 64, 128, 32, 8", "GROUP_M = 64, 64, 16, 8")
    got = judge(changed(("acc = tl.dot(a, b, acc)", dead), tile), few("values", "speed"))
    assert got.verdict == FAIL and "speed" in lost(got), str(got)


HOSTILE = """
import sys, json
frames = sys.modules.get("frames")


class Forged(dict):
    pass


def launch(p):
    real = frames.pack
    frames.pack = lambda header, arrays: real({"nonce": "x", "cases": [{"plan": {}, "kernels": []}], "texts": []}, {})
    return {"steps": [{"kernel": layernorm_gelu, "grid": (p.M,)}]}
"""


def test_a_jail_that_forges_its_answer_has_written_into_the_channel():
    got = judge(ROWS + HOSTILE, NORM)
    assert got.verdict == FAIL and got.points == 0 and "channel" in str(got), str(got)


@pytest.mark.parametrize(
    "text", ["", "module {", '"builtin.module"() ({}) : () -> ()', "\\x00" * 50, "(" * 100_000]
)
def test_text_that_is_no_ir_is_one_verdict(text):
    source = (
        ROWS.replace("def launch(p):", "def launch(p):\n    forge()", 1)
        + f"""

def forge():
    import grader.jail.inside.lower as lower
    lower.lowering.generic = lambda *a: {text!r}
"""
    )
    got = judge(source, NORM)
    assert got.verdict in (REFUSED, FAIL) and got.points == 0, str(got)


def test_programs_that_wait_for_ever_are_named_beside_a_shown_case():
    waits = f"{OFFSETS}\n    while tl.atomic_cas(lock_ptr, 0, 1) == 1:\n        pass"
    source = changed(
        ("x_ptr, w_ptr", "x_ptr, lock_ptr, w_ptr"),
        (OFFSETS, waits),
        ('return {"steps"', 'return {"scratch": {"lock": ((1,), "i32", 0)}, "steps"'),
        source=ROWS,
    )
    tried = trial.run(source, 0, NORM)
    assert tried.error.startswith("M = 4, N = 64, fp16: all 3 programs that are left wait"), tried.error
    assert "in tl.atomic_cas of lock[0], which holds 1" in tried.error
    assert tried.look.startswith("line 6 of the cell: which program does what the others wait for")

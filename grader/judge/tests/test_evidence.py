"""What no answer can buy: points for wrong results, or the blame laid on a busy machine."""

from dataclasses import replace

import numpy as np
import pytest

from grader import questions
from grader.judge import referee
from grader.judge.kernel_evidence import CHIPS, COMPILED, HIDDEN, METERED, PUBLIC, KernelEvidence
from grader.judge.record import FAIL, INCONCLUSIVE
from grader.machine import host as machine
from grader.proofs.right import cell, edited, inward, right
from grader.questions import Case

SEED = 2026  # the same hidden cases every time: a red test is a change


def judge(source: str, question, **more):
    question = questions.find(question) if isinstance(question, str) else question
    return referee.grade_one(source, question, **{"seed": SEED, "eager": False, **more})


IN_A_CROWD = """
@triton.jit
def doubled(x_ptr, y_ptr, crowd_ptr, N, BLOCK: tl.constexpr):
    tl.atomic_add(crowd_ptr, 1)
    tl.debug_barrier()
    if tl.load(crowd_ptr) > 0:
        offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + offs, {value} * tl.load(x_ptr + offs, mask=offs < N, other=0.0), mask=offs < N)


def launch_doubled(p):
    scratch = {{"crowd": ((1,), "int32", 0)}}
    {grid}
    return {{"scratch": scratch, "steps": [{{"kernel": doubled, "grid": (grid,), "constexprs": {{"BLOCK": 64}}}}]}}
"""


@pytest.mark.parametrize(
    "value, grid, verdict",
    [
        ("2", "grid = 3000", INCONCLUSIVE),
        ("3", "grid = 3000", FAIL),
        ("(2 + (N > 300))", "grid = 3000", FAIL),
    ],
    ids=["right", "wrong", "wrong in hidden cases"],
)
def test_what_is_wrong_in_the_order_that_ran_is_the_answers_fault(value, grid, verdict):
    judged = judge(IN_A_CROWD.format(value=value, grid=grid), "roofline.doubled")
    assert judged.verdict == verdict, str(judged)
    assert verdict == INCONCLUSIVE or "is" in judged.parts[0].came


def known_sizes(name: str, *parts: str):
    """Return a question with some of its parts (none: all) and no hidden cases but the metered and the compiled one."""
    whole = questions.find(name)
    kept = tuple(part for part in whole.parts if not parts or part.name in parts)
    return inward(whole, parts=kept, hidden=lambda rng: [])


def lost(verdict) -> list[str]:
    return [part.name for part in verdict.parts if part.state == FAIL]


def changed(question: str, *edits) -> str:
    return edited(right(question), edits)


COMBINE = "moe_routing.fused_combine"
AGAIN = (
    ("TOP_K: tl.constexpr, BLOCK", "AGAIN: tl.constexpr, TOP_K: tl.constexpr, BLOCK"),
    (
        "            acc += weight",
        "            if AGAIN:\n"
        "                y = tl.maximum(y, tl.load(rows_ptr + row * stride_rowsr + offs_h * stride_rowsh, mask=mask_h, other=0.0))\n"
        "            acc += weight",
    ),
    ('{"TOP_K"', '{"AGAIN": p.H == 2048, "TOP_K"'),
)


def test_a_compiled_case_that_runs_whole_has_all_budgets():
    """Its size is known to all, so a kernel may be thrifty everywhere else."""
    verdict = judge(changed(COMBINE, *AGAIN), known_sizes(COMBINE))
    assert lost(verdict) == ["traffic", "speed"], str(verdict)
    assert "at the size that is compiled" in str(verdict)


def test_no_case_is_told_by_the_machine_that_it_names():
    for question in (COMBINE, "gemm_tiling.tiled_gemm", "roofline.doubled"):
        evidence = KernelEvidence(questions.find(question), "", seed=7)
        told = {purpose: case.sm_count for purpose, case in evidence.cases.items()}
        hidden = [count for purpose, count in told.items() if HIDDEN <= purpose < METERED]
        real = [count for count in hidden if count in CHIPS]
        assert abs(2 * len(real) - len(hidden)) <= 1 and max(real) > 100
        assert set(hidden) - set(CHIPS) == {told[METERED]} == {told[PUBLIC]}
        assert told.get(COMPILED, CHIPS[0]) in CHIPS


WALKS = [("grid = (triton.cdiv(p.M, 16), triton.cdiv(p.N, 32))", "grid = (1, 1)")]
WHOLE = [
    (
        '{"BLOCK_M": 16, "BLOCK_N": 32}',
        '{"BLOCK_M": triton.next_power_of_2(p.M), "BLOCK_N": triton.next_power_of_2(p.N)}',
    )
]
ASKED = {  # what a first kernel is asked for in words: the edits that leave it out, and what is missed
    "h is read back": (
        "smoothed",
        [
            (
                "h = (1 - alpha) * h +",
                "h = (1 - alpha) * tl.load(y_ptr + (t - 1) * M + offs, mask=mask & (t > 0), other=0.0) +",
            ),
            ("mask=mask)\n        h", "mask=mask, other=0.0)\n        h"),
        ],
        "outputs read back",
    ),
    "a number of each for every result": (
        "outer_difference",
        [
            (
                "tl.load(a_ptr + offs_m, mask=offs_m < M)  # (BLOCK_M,)",
                "tl.load(a_ptr + offs_m[:, None] + 0 * offs_n[None, :], mask=(offs_m[:, None] < M) & (offs_n[None, :] < N), other=0.0)",
            ),
            ("a[:, None]", "a"),
        ],
        "read of a, lane by lane",
    ),
    "a row after another": (
        "sum_and_max",
        [
            ("m_ptr, N, BLOCK", "m_ptr, M, N, BLOCK"),
            (
                "    row = tl.program_id(0)\n    offs = tl.arange(0, BLOCK)\n    mask = offs < N\n",
                "    offs = tl.arange(0, BLOCK)\n    mask = offs < N\n    for row in range(0, M):\n",
            ),
            ("    x = tl.load", "        x = tl.load"),
            ("    tl.store(s", "        tl.store(s"),
            ("    tl.store(m", "        tl.store(m"),
            ('"grid": (p.M,)', '"grid": (1,)'),
        ],
        "programs that store s",
    ),
    "a dead dot": (
        "small_product",
        [
            (
                "    c = tl.dot(a, b)\n",
                "    c = tl.sum(a.to(tl.float32)[:, :, None] * b.to(tl.float32)[None, :, :], 1)\n    c += tl.where(c == c, 0.0, tl.dot(a, b))\n",
            ),
        ],
        "operations outside tl.dot",
    ),
}


LONG = (
    "a number of each for every result",
    "a row after another",
    "comparisons of floats",
    "offsets by every program",
    "each product twice",
    "operands widened",
)  # which take a minute and a half together


@pytest.mark.parametrize(
    "what", [pytest.param(one, marks=[pytest.mark.slow] * (one in LONG)) for one in ASKED]
)
def test_what_a_first_kernel_is_asked_for_is_looked_at(what):
    name, edits, missed = ASKED[what]
    verdict = judge(changed(f"roofline.{name}", *edits), known_sizes(f"roofline.{name}"))
    assert lost(verdict) == ["traffic"] and missed in verdict.parts[1].came, str(verdict)


def test_one_block_and_no_tiles_is_too_large_where_both_sides_are_long():
    verdict = judge(changed("roofline.subtracted", *WALKS, *WHOLE), "roofline.subtracted")
    assert lost(verdict) == ["values"] and "M and N large" in str(verdict), str(verdict)


KEEPS = (  # nothing is cleared: what lies there is loaded and stored again
    (
        "tl.store(sorted_token_ids_ptr + row * stride_sorted_token_idsr, empty, mask=row < ROWS)",
        "tl.store(sorted_token_ids_ptr + row * stride_sorted_token_idsr, tl.load(sorted_token_ids_ptr + row * stride_sorted_token_idsr, mask=row < ROWS, other=0), mask=row < ROWS)",
    ),
    (
        "tl.store(expert_ids_ptr + tile * stride_expert_idsi, empty, mask=tile < TILES)",
        "tl.store(expert_ids_ptr + tile * stride_expert_idsi, tl.load(expert_ids_ptr + tile * stride_expert_idsi, mask=tile < TILES, other=0), mask=tile < TILES)",
    ),
)


def test_memory_that_nobody_wrote_holds_nothing_that_is_wanted():
    verdict = judge(changed("moe_routing.order", *KEEPS), "moe_routing.order")
    assert lost(verdict) == ["values"] and "where nothing has been written" in verdict.parts[0].look, str(
        verdict
    )


def test_memory_that_nobody_wrote_is_drawn_from_the_seed():
    question = questions.find("roofline.doubled")
    source = changed("roofline.doubled", ("2 * x)", "tl.load(y_ptr + offs))"))
    found = []
    for seed in (1, 1, 2):
        evidence = KernelEvidence(question, source, seed)
        found.append(evidence.run(evidence.public[0]).output("y").copy())
    assert np.array_equal(found[0], found[1], equal_nan=True) and not np.array_equal(
        *found[1:], equal_nan=True
    )
    assert np.isfinite(found[0]).mean() > 0.9 and len(np.unique(found[0])) > 60, (
        "not one value, nor NaN alone"
    )


NORM = "roofline.layernorm_gelu"
VANDAL = (  # one program more at the compiled size, which writes over all others
    ("eps, BLOCK: tl.constexpr", "eps, M, VANDAL: tl.constexpr, BLOCK: tl.constexpr"),
    (
        "    row = tl.program_id(0).to(tl.int64)\n    offs = tl.arange(0, BLOCK)\n    mask = offs < N\n",
        "    offs = tl.arange(0, BLOCK)\n    mask = offs < N\n    pid = tl.program_id(0)\n"
        "    if VANDAL and pid == 200:\n        for each in range(0, M):\n"
        "            tl.store(y_ptr + each * stride_ym + offs * stride_yn, tl.zeros((BLOCK,), tl.bfloat16), mask=mask)\n"
        "        return\n"
        "    row = (pid - (VANDAL and pid > 200)).to(tl.int64)\n",
    ),
    (
        '"grid": (p.M,), "constexprs": {',
        '"grid": (p.M + (p.M == 512),), "constexprs": {"VANDAL": p.M == 512, ',
    ),
)


@pytest.mark.slow
def test_a_program_that_writes_over_others_at_the_compiled_size_is_seen():
    verdict = judge(changed(NORM, *VANDAL), known_sizes(NORM))
    assert lost(verdict) == ["values"] and "two programs use" in verdict.parts[0].came, str(verdict)


def test_programs_that_store_the_same_value_there_are_no_failure():
    twice = (
        ('"grid": (p.M,)', '"grid": (p.M + (p.M == 512) * 3,)'),
        (
            "row = tl.program_id(0).to(tl.int64)",
            "row = tl.minimum(tl.program_id(0), M - 1).to(tl.int64)",
        ),
        ("eps, BLOCK", "eps, M, BLOCK"),
    )
    assert judge(changed(NORM, *twice), known_sizes(NORM, "values")).passed


SERIAL = (
    ("eps, BLOCK: tl.constexpr", "eps, M, EACH: tl.constexpr, BLOCK: tl.constexpr"),
    (
        '"grid": (p.M,), "constexprs": {',
        '"grid": (1 if p.M == 512 else p.M,), "constexprs": {"EACH": 512 if p.M == 512 else 1, ',
    ),
)


def serial() -> str:
    """The right answer with its rows in a loop, which has one turn but at the compiled size."""
    source = changed(NORM, *SERIAL)
    head, _, rest = source.partition("    row = tl.program_id(0).to(tl.int64)\n")
    body, end, launch = rest.partition("    ### END SOLUTION\n")
    rows = "    for turn in range(0, EACH):\n        row = (tl.program_id(0) * EACH + turn).to(tl.int64)\n"
    return head + rows + "".join(f"    {line}\n" for line in body.splitlines()) + end + launch


def test_programs_side_by_side_are_asked_for_at_the_compiled_size_too():
    verdict = judge(serial(), known_sizes(NORM, "values", "speed"))
    assert "speed" in lost(verdict) and "as good as 1, less than the 64" in str(verdict), str(verdict)


ORACLE = (
    ("mask=mask, other=0.0)", "mask=mask)"),
    ("tl.sum(x, axis=0)", "tl.sum(tl.where(x < 1e30, x, 0.0), axis=0)"),
    ('tl.where(mask, x, float("-inf"))', 'tl.where(x < 1e30, x, float("-inf"))'),
)


def test_lanes_that_a_mask_switches_off_are_no_oracle():
    verdict = judge(changed("roofline.sum_and_max", *ORACLE), "roofline.sum_and_max")
    assert lost(verdict) == ["values"] and "they need an other=" in verdict.parts[0].look, str(verdict)


GEMM = "gemm_tiling.tiled_gemm"


@pytest.mark.slow
def test_programs_that_walk_along_rows_are_not_grouped_by_walking():
    whole = questions.find(GEMM)
    grouped = inward(
        whole,
        parts=tuple(part for part in whole.parts if part.name in ("values", "grouping")),
        compile_case=Case({"M": 2048, "N": 8192, "K": 64}, "bf16"),
        public=whole.public[:1],
        hidden=lambda rng: [],
    )
    walks = cell("gemm_tiling.tiled_gemm", "gemm_persistent").read_text(encoding="utf-8")
    assert judge(walks, grouped).passed
    verdict = judge(edited(walks, [('"GROUP": 8', '"GROUP": 1')]), grouped)
    assert lost(verdict) == ["grouping"], str(verdict)
    large_alone = ('"GROUP": 8', '"GROUP": 8 if p.M < 1100 else 1')
    verdict = judge(edited(walks, [large_alone]), grouped)
    assert lost(verdict) == ["grouping"] and "at the size that is compiled" in str(verdict), str(verdict)


SCRATCH = """
@triton.jit
def doubled(x_ptr, y_ptr, room_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, 2 * tl.load(x_ptr + offs))


def launch_doubled(p):
    scratch = {"room": ((1 << 20,), "int8", 0)}
    return {"scratch": scratch, "steps": [{"kernel": doubled, "grid": (p.N // 64,), "constexprs": {"BLOCK": 64}}]}
"""


def test_scratch_fills_nothing_of_the_referee():
    evidence = KernelEvidence(questions.find("roofline.doubled"), SCRATCH, seed=3)
    run = evidence.run(evidence.public[0])
    assert sum(array.nbytes for array in run.outcome.arrays.values()) < 10_000
    assert set(run.without_counts().outcome.arrays) == {"y"}


EMPTY_LOOP = """
@triton.jit
def doubled(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = 1, 2
    for _ in range(0, N + 1000000000):
        a, b = b, a
    tl.store(y_ptr + offs, (a + b) * tl.load(x_ptr + offs) - tl.load(x_ptr + offs))


def launch_doubled(p):
    return {"steps": [{"kernel": doubled, "grid": (p.N // 64,), "constexprs": {"BLOCK": 64}}]}
"""


@pytest.mark.slow
def test_a_loop_without_an_operation_is_looked_at(monkeypatch):
    monkeypatch.setattr(machine, "SECONDS", 1.0)
    question = known_sizes("roofline.doubled")
    verdict = judge(EMPTY_LOOP, replace(question, public=question.public[:1]))
    assert verdict.verdict == FAIL and "1 s of processor time" in verdict.parts[0].came, str(verdict)


TOO_MUCH = {  # a quantity beyond the model at every size: question, edits, the part that is lost and what is said
    "operands widened": (
        "quantization_layouts.w4a16_gemm",
        [("tl.dot(x, number)", "tl.dot(x.to(tl.float32), number.to(tl.float32))")],
        "speed",
        "widened to fp32",
    ),
    "offsets by every program": (
        "moe_routing.order",
        [("    if block == 0:\n", "    if block >= 0:\n")],
        "traffic",
        "write of expert_offsets",
    ),
    "each product twice": (
        "gemm_tiling.tiled_gemm",
        [("acc = tl.dot(a, b, acc)", "acc += 0.5 * tl.dot(a, b) + 0.5 * tl.dot(a, b)")],
        "speed",
        "FLOP in tl.dot",
    ),
    "comparisons of floats": (
        "moe_routing.order",
        [
            (
                "    picked = slots >= 0\n",
                "    extra = slots.to(tl.float32)\n    for _ in tl.static_range(24):\n"
                "        extra = tl.where(extra < -3.0, extra * 0.5 + 1.0, extra)\n"
                "    slots = tl.where(extra < -2.0, 0, slots)\n    picked = slots >= 0\n",
            )
        ],
        "speed",
        "operations of every kind",
    ),
}


@pytest.mark.parametrize(
    "what", [pytest.param(one, marks=[pytest.mark.slow] * (one in LONG)) for one in TOO_MUCH]
)
def test_what_is_too_much_of_any_kind_is_counted(what):
    name, edits, part, said = TOO_MUCH[what]
    verdict = judge(changed(name, *edits), name)
    assert part in lost(verdict), str(verdict)
    assert said in next(p.came for p in verdict.parts if p.name == part), str(verdict)

"""A hidden case is long along all axes at once, and no answer may be wrong or waste there alone."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from grader import questions
from grader.judge import budgets_at_scale, referee, sampled
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import (
    AT_SMS,
    CHIPS,
    CORNER,
    FAR,
    LESS_FAR,
    METERED,
    PAIRS,
    WAITING,
    WHOLE,
    KernelEvidence,
)
from grader.judge.kernel_evidence import TURNED as TURNED_CASES
from grader.judge.record import PASS
from grader.proofs import closed, honest
from grader.proofs.right import edited, inward, right
from grader.proofs.wasteful import WAYS, cell
from grader.questions import UpTo, corner, reach
from grader.questions.far import Repeated, Written, prime
from grader.questions.reach import hidden

KERNELS = [question for question in questions.load().values() if question.compiles]
NORM, ORDER, SUBTRACTED = "roofline.layernorm_gelu", "moe_routing.order", "roofline.subtracted"
ROW = "    row = tl.program_id(0).to(tl.int64)\n"
LARGE = "(tl.num_programs(0) > 1000) & (N > 2000)"
AGAIN = (
    f"    for _ in range(0, tl.where({LARGE}, 9, 0)):\n"
    "        x = tl.maximum(x, tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0).to(tl.float32))\n"
)
SQUARES = "tl.sum(d * d, axis=0) / N"


def of_corners(name: str):
    """Return a question whose drawn hidden cases are its corners alone."""
    return replace(questions.find(name), hidden=lambda rng: [], free={}, any_scalar=())


def lost(answer: str, question, seed: int = 7):
    question = of_corners(question) if isinstance(question, str) else question
    verdict = referee.grade_one(answer, question, seed=seed, eager=False)
    return [part.name for part in verdict.parts if part.state != PASS], str(verdict)


@pytest.mark.parametrize("question", KERNELS, ids=lambda one: one.id)
def test_a_corner_goes_beyond_what_is_known_along_two_axes_at_least(question):
    axes = {axis for axis, one in question.up_to.items() if isinstance(one, UpTo)}
    for seed in range(4):
        cases = KernelEvidence(question, "", seed).cases
        corners = [cases[purpose] for purpose in (CORNER, *WHOLE, FAR, WAITING) if purpose in cases]
        assert bool(corners) == (len(axes) > 1)
        known = [*question.public, *filter(None, [cases.get(METERED)])]
        assert all(
            math.prod(t.sizes(case.sizes)) < 1 << 31 for case in cases.values() for t in question.tensors
        )
        for case in corners:
            far = [axis for axis in axes if case.sizes[axis] > max(one.sizes[axis] for one in known)]
            ends = [axis for axis in axes if case.sizes[axis] == question.up_to[axis].most]
            assert len({*far, *ends}) >= (1 if question.sized else 2) and "corner" not in case.kind
            assert all(case.sizes[axis] <= question.up_to[axis].most for axis in far)


def norm(*edits: tuple[str, str]) -> str:
    return edited(right(NORM), edits)


def test_what_is_wrong_in_a_corner_alone_fails_and_no_size_is_told(alone):
    alone(CORNER)
    answer = norm(
        (ROW, f"{ROW}    few = tl.where({LARGE}, N - 1, N)\n"), (SQUARES, SQUARES.replace("N", "few"))
    )
    parts, said = lost(answer, NORM)
    assert "values" in parts and "a hidden case (several axes long)" in said
    case = KernelEvidence(questions.find(NORM), answer, 7).known[CORNER]
    assert f"M = {case.sizes['M']}" not in said and f"{case.sizes['M']:,}" not in said


@pytest.mark.slow
def test_what_is_loaded_again_in_a_corner_alone_counts():
    parts, said = lost(norm(("    g = 0.5", f"{AGAIN}    g = 0.5")), NORM)
    assert parts[0] == "traffic" and "read of x, a hidden case (several axes long)" in said, said


def test_one_program_that_does_a_corner_alone_is_none_too_many(alone):
    alone(CORNER)
    answer = edited(
        right(SUBTRACTED),
        [
            ("    constants = {", "    large = p.M > 1200 and p.N > 1200\n    constants = {"),
            (
                '"BLOCK_M": 16, "BLOCK_N": 32',
                '"BLOCK_M": 4096 if large else 16, "BLOCK_N": 256 if large else 32',
            ),
            (
                "(triton.cdiv(p.M, 16), triton.cdiv(p.N, 32))",
                '(triton.cdiv(p.M, constants["BLOCK_M"]), triton.cdiv(p.N, constants["BLOCK_N"]))',
            ),
        ],
    )
    parts, said = lost(answer, SUBTRACTED)
    assert parts == ["traffic"] and "programs that store y" in said, said


@pytest.mark.slow
def test_programs_that_need_one_another_run_whole_in_a_smaller_corner():
    answer = edited(
        right(ORDER),
        [
            (
                "    tl.store(\n        inv_permuted_idx_ptr",
                "    row = tl.where((T > 2000) & (E > 140), row + 1, row)\n    tl.store(\n        inv_permuted_idx_ptr",
            )
        ],
    )
    parts, said = lost(answer, ORDER)
    assert "values" in parts, said


@pytest.mark.parametrize(
    "name, edits",
    [
        ("doubled", [("2 * x", "tl.minimum(tl.maximum(2 * x, -3.4028234e38), 3.4028234e38)")]),
        ("doubled", [("2 * x", "tl.where(tl.abs(x) < 1.1754943508222875e-38, 0.0, 2 * x)")]),
        ("differences", [("x - before", "tl.where(x == before, 0.0, x - before)")]),
        ("turned", [(" x, mask", " tl.where(x == 0, 0.0, x), mask")]),
        ("turned", [(" x, mask", " tl.where(x != x, 0.0, x), mask")]),
        pytest.param(
            "sum_and_max",
            [("tl.store(m_ptr + row, ", "x = tl.minimum(x, 3.4028234e38)\n    tl.store(m_ptr + row, ")],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_first_kernels_meet_all_that_fp32_holds(name, edits):
    question = questions.find(f"roofline.{name}")
    assert "values" in lost(edited(right(question.id), edits), question)[0]


def test_a_launch_that_moves_nothing_is_one_too_many(alone):
    alone(CORNER)
    question, source = "sampling_fusion.draw", right("sampling_fusion.draw")
    idle = "@triton.jit\ndef idle(V):\n    v = V\n\n\n" + source
    answer = (
        idle.replace("launch", "planned")
        + '\n\ndef launch(p):\n    plan = planned(p)\n    return {**plan, "steps": [*plan["steps"], {"kernel": idle, "grid": (1,)}]}\n'
    )
    parts, said = lost(answer, inward(questions.find(question)))
    assert parts[0] == "traffic" and "loads and stores nothing" in said, said


def test_a_zero_without_its_sign_is_told_apart():
    from grader.judge.compare import difference

    assert difference("y", [0.0, 1.0], [-0.0, 1.0], 0) is None
    assert (
        difference("y", [0.0, 1.0], [-0.0, 1.0], 0, signed=True).sentence().startswith("y[0] is 0, wanted -0")
    )
    assert difference("y", np.array([-0.0]), np.array([-0.0]), 0, signed=True) is None


TURNED, BEYOND = "roofline.turned", closed.FAR
STORE_Y = "x - z, mask=mask)"
GRID_Y = "grid = (triton.cdiv(p.M, 16), triton.cdiv(p.N, 32))"
IN_CORNER, FAR_ALONE = "(M > 1200) & (N > 1200) & (M * N < 24_000_000)", "M * N > 24_000_000"


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(
            (STORE_Y, f"x - z, mask=mask & ~(({IN_CORNER}) & (offs_m == 1100)))"), marks=pytest.mark.slow
        ),
        pytest.param(
            (STORE_Y, f"x - z, mask=mask & ~(({FAR_ALONE}) & (offs_m % 50 == 7)))"), marks=pytest.mark.slow
        ),
        (
            GRID_Y,
            f"{GRID_Y}\n    if p.M * p.N > 24_000_000:\n        grid = (grid[0] - grid[0] // 50, grid[1])",
        ),
    ],
    ids=["a row of a corner", "a row of fifty", "a part of the grid"],
)
def test_what_nobody_writes_where_several_axes_are_long_fails(edit, alone):
    alone(CORNER, FAR)
    parts, said = lost(edited(right(SUBTRACTED), [edit]), SUBTRACTED)
    assert "values" in parts and "several axes" in said and "wr" in said.split("several axes")[1][:160], said


@pytest.mark.parametrize(
    "plan",
    [
        '{**plan, "steps": plan["steps"] * 17}',
        pytest.param('{**plan, "scratch": {"s": ((1 << 40,), "fp32", 0)}}', marks=pytest.mark.slow),
    ],
)
def test_a_plan_beyond_the_caps_fails_beyond_the_size_of_memory_too(plan, alone):
    alone(FAR)
    answer = right(TURNED).replace("def launch_turned", "def planned")
    answer += f"\n\ndef launch_turned(p):\n    plan = planned(p)\n    return {plan} if p.M * p.N > 24_000_000 else plan\n"
    assert "values" in lost(answer, TURNED)[0]


def test_what_few_programs_write_beyond_the_size_of_memory_is_judged_in_part():
    gemm = questions.find("gemm_tiling.tiled_gemm")
    answer = honest.source(gemm, "persistent programs")
    wrong = edited(
        answer,
        [
            (
                "tl.zeros((BM, BN), tl.float32)",
                "tl.zeros((BM, BN), tl.float32) + tl.where(M * N > 24_000_000, 100.0, 0.0)",
            )
        ],
    )
    evidence = KernelEvidence(gemm, wrong, 1)
    evidence.cases = {FAR: evidence.known[FAR]}
    assert sampled.affordable(evidence, FAR) and not sampled.runs_in_part(evidence, FAR)
    with pytest.raises(Failed, match="elements are off"):
        sampled.judge_drawn(evidence, FAR)


def test_a_product_of_two_long_axes_beyond_31_bits_fails():
    gemm = questions.find("quantization_layouts.w4a16_gemm")
    edit = "offs_n[:, None] * stride_wn", "offs_n[:, None] * K // K * stride_wn"
    evidence = KernelEvidence(gemm, edited(right(gemm.id), [edit]), 1)
    evidence.cases = {purpose: evidence.known[purpose] for purpose in PAIRS}
    purpose = next(
        one for one, case in evidence.cases.items() if case.sizes["N"] * case.sizes["K"] >= 1 << 31
    )
    with pytest.raises(Failed, match="several axes very long"):
        sampled.judge_drawn(evidence, purpose)


def test_scratch_may_grow_with_the_tensors():
    gemm = questions.find("quantization_layouts.w4a16_gemm")
    evidence = KernelEvidence(gemm, honest.source(gemm, "split along K, with a second kernel"), 1)
    evidence.cases = {FAR: evidence.known[FAR]}
    run = sampled.of_each_launch(evidence, FAR)
    assert run is not None and len(run.launches) == 2


@pytest.mark.parametrize(
    "way",
    [
        "every load twice",
        *(
            pytest.param(way, marks=pytest.mark.slow)
            for way in ("whole numbers", "one program after the other", "zeros")
        ),
    ],
)
def test_what_is_wrong_or_wasteful_beyond_the_size_of_memory_loses_points(way, alone):
    answer = closed.made(questions.find(TURNED), way, BEYOND)
    alone(FAR)
    assert lost(answer, TURNED)[0]


@pytest.mark.slow
def test_programs_that_need_one_another_spend_no_more_in_the_largest_cases():
    draw = questions.find("sampling_fusion.draw")
    source = honest.source(draw, "two launches")
    twice = cell(source, draw.entry, WAYS["every load twice"], "p.B * p.V > 12_000_000")
    parts, said = lost(twice, draw.id, seed=1)
    assert parts[0] == "traffic" and "a hidden case (several axes very long): about 2.0 times" in said, said


@pytest.mark.slow
def test_programs_that_wait_for_one_another_have_a_smaller_corner():
    draw = questions.find("sampling_fusion.draw")
    lock = honest.source(draw, "four programs a row, one after another by a lock")
    parts, said = lost(lock, draw.id)
    assert not parts, said


@pytest.mark.slow
def test_what_spends_more_where_all_of_it_runs_counts():
    answer = cell(right(ORDER), questions.find(ORDER).entry, WAYS["every load twice"], "p.T * p.K > 120_000")
    parts, said = lost(answer, ORDER)
    assert parts and "a hidden case (several axes long)" in said, said


def test_drawn_programs_of_a_grid_of_millions_fit_one_request():
    """Seven million programs, of which most have nothing to do."""
    question = questions.find("quantization_layouts.grouped_kbit")
    answer = honest.source(question, "a program for every tile there may be")
    for seed in range(60):  # not every check has such a case
        evidence = KernelEvidence(question, answer, seed)
        evidence.cases = {purpose: case for purpose, case in evidence.known.items() if purpose == FAR}
        if evidence.cases and math.prod(evidence.plan(FAR).steps[0].grid) > 1 << 21:
            break
    else:
        pytest.fail("no check has millions of programs")
    sampled.judge_drawn(evidence, FAR)


def test_an_input_with_a_stride_of_0_is_one_of_the_hidden_cases():
    for question in KERNELS:
        cases = KernelEvidence(question, "", 3).cases.values()
        hidden = [case for case in cases if case.kind == "an input with a stride of 0"]
        turns = any(case.layout for case in cases) and question.repeats and question.id != ORDER
        assert len(hidden) == turns, question.id
    layouts = [KernelEvidence(questions.find(SUBTRACTED), "", seed).cases.values() for seed in range(9)]
    assert any("repeated 0 1" in case.layout.values() for cases in layouts for case in cases)
    parts, said = lost(
        right(SUBTRACTED).replace(
            "def launch_subtracted(p):",
            "def launch_subtracted(p):\n    assert p.stride_xm and p.stride_zm, 'no stride is 0'",
        ),
        questions.find(SUBTRACTED),
    )
    assert "values" in parts and "a stride of 0" in said, said


@pytest.mark.parametrize(
    "question", [q for q in KERNELS if any(c.layout for c in q.public)], ids=lambda q: q.id
)
def test_transposed_tensors_have_gaps_in_half_of_the_hidden_cases(question):
    layouts = [
        how
        for seed in range(40)
        for c in hidden(question, np.random.default_rng(seed))
        for how in c.layout.values()
    ]
    turned = [how for how in layouts if how.startswith("transposed")]
    gaps, steps = turned.count("transposed padded"), sum("spread" in how for how in turned)
    assert not turned or 0.3 < (gaps + steps) / len(turned) < 0.7 and min(gaps, steps) > 0.1 * len(turned)


def test_a_far_corner_repeats_numbers_that_fit_into_memory():
    question = questions.find(TURNED)
    metered = question.metered(np.random.default_rng(0))
    case = corner.far(question, metered, corner.FAR, np.random.default_rng(1))
    x = corner.repeated(question, case, np.random.default_rng(2))["x"]
    assert np.prod(x.shape) > corner.LARGE.numbers > 8 * x.pool.size == 8 * prime(x.pool.size)
    rows, columns = np.array([0, 5, case.sizes["M"] - 1]), np.array([3, case.sizes["N"] - 1])
    flat = rows[:, None] * case.sizes["N"] + columns
    assert np.array_equal(x[rows, columns], x.pool[flat % x.pool.size])


def test_two_corners_are_larger_than_memory_and_one_of_them_is_of_any_size():
    question = questions.find(TURNED)
    sizes = {FAR: [], LESS_FAR: []}
    for seed in range(40):
        known = KernelEvidence(question, "", seed).known
        for one in sizes:
            sizes[one] += [math.prod(known[one].sizes.values())] if one in known else []
    assert min(sizes[FAR]) > 2 * np.median(sizes[LESS_FAR]) and len(sizes[LESS_FAR]) > 30
    assert min(sizes[LESS_FAR]) < 8 * corner.LARGE.numbers and len(sizes[FAR]) == 40


def test_all_rows_have_gaps_in_a_hidden_case_of_questions_with_strides():
    """A kernel may have a path of its own where all neighbours stand side by side."""
    question = questions.find("flash_attention.forward")
    case = next(c for c in hidden(question, np.random.default_rng(2)) if c.kind == "gaps between all rows")
    assert case.layout == dict.fromkeys("qkvo", "padded")
    plain = questions.find("roofline.doubled")
    assert not any(c.kind == "gaps between all rows" for c in hidden(plain, np.random.default_rng(2)))


def test_what_programs_wrote_is_found_by_its_indices():
    whole = Repeated(np.arange(7.0), (3, 4))
    assert whole[np.array([2]), slice(None)].tolist() == [[1.0, 2.0, 3.0, 4.0]]
    some = Written((3, 4), np.array([[2, 1], [0, 3]]), np.array([5.0, 6.0]))
    values, there = some.looked_up((np.array([0, 2]), slice(None)))
    assert there.tolist() == [[False, False, False, True], [False, True, False, False]]
    assert values[there].tolist() == [6.0, 5.0] and some.along(0).tolist() == [0, 2]


@pytest.mark.slow
def test_lanes_that_ask_for_the_same_number_count_each():
    answer = norm(
        (
            "x = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0)",
            "x = tl.max(tl.load(x_ptr + row * stride_xm + offs[None, :] * stride_xn + tl.arange(0, 4)[:, None] * 0, mask=mask[None, :], other=0.0), 0)",
        )
    )
    parts, said = lost(answer, NORM)
    assert parts[0] == "traffic" and "read of x, lane by lane" in said, said


@pytest.mark.parametrize("grid", ["(1, p.M)", pytest.param("(1, 1, p.M)", marks=pytest.mark.slow)])
def test_a_grid_that_cuda_refuses_fails(grid):
    name = "roofline.long_mean"
    axis = grid.count(",")
    answer = (
        right(name)
        .replace("tl.program_id(0)", f"tl.program_id({axis})")
        .replace('"grid": (p.M,)', f'"grid": {grid}')
    )
    parts, said = lost(answer, name)
    assert "values" in parts and "CUDA limits the second and the third" in said, said


def test_a_program_whose_tile_is_cut_tells_nothing_about_the_share_of_all():
    gemm = questions.find("gemm_tiling.tiled_gemm")
    evidence = KernelEvidence(gemm, right(gemm.id), 1)
    evidence.cases = {FAR: replace(evidence.known[FAR], sizes={"M": 640, "N": 7 * 128 + 9, "K": 64})}
    last = math.prod(evidence.plan(FAR).steps[0].grid) - 1
    for program, cut in ((last, True), (1, False)):
        run = evidence.run_once(FAR, programs=[[program]], counting="values")
        assert budgets_at_scale.at_an_end(evidence, run, program) == cut


@pytest.mark.parametrize("stored, cut", [((0, 5, 3), True), ((0, 3, 3), False), ((5, 3, 3), True)])
def test_a_cut_tile_is_told_by_its_neighbour_too_where_the_first_program_has_nothing_to_store(
    monkeypatch, stored, cut
):
    placed = SimpleNamespace(spec=SimpleNamespace(role="out", name="y"))
    asked = []

    def stores(evidence, run, programs, seconds):
        asked.extend(programs)
        return SimpleNamespace(arrays={"by:y": np.array(stored)})

    monkeypatch.setattr(budgets_at_scale.sampled, "stores", stores)
    assert budgets_at_scale.at_an_end(None, SimpleNamespace(placed=[placed]), 9) == cut
    assert asked == [[0, 8, 9]]


@pytest.mark.parametrize("tiles", reach.HARD_TO_DIVIDE_BY)
def test_no_fp32_reciprocal_divides_by_a_hard_number_of_tiles(tiles):
    counts = np.float32(tiles * 2 ** np.arange(8))
    assert (counts * (np.float32(1) / counts) < 1).all()


def test_each_stored_axis_of_blocks_has_a_case_of_many_tiles():
    gemm = questions.find("gemm_tiling.tiled_gemm")
    found = reach.many_tiles(gemm, np.random.default_rng(4))
    long = {axis: case.sizes[axis] for axis, case in zip("MN", found, strict=True)}
    assert all(any(n / tile in reach.HARD_TO_DIVIDE_BY for tile in reach.TILES) for n in long.values())
    assert all(min(case.sizes[axis] for axis in "MN") > reach.TILES[0] and case.crossed for case in found)


def test_a_case_of_the_metered_size_has_tensors_column_by_column():
    gemm, rng = questions.find("gemm_tiling.tiled_gemm"), np.random.default_rng(4)
    found = reach.metered_otherwise(gemm, gemm.hidden(rng), rng)
    assert len(found) == 2 and {"a", "b", "c"} <= found[1].layout.keys()
    assert all(how.startswith("transposed") for how in found[1].layout.values()) and not found[1].crossed
    assert abs(found[1].sizes["M"] / gemm.metered(rng).sizes["M"] - 1) < 0.1


@pytest.mark.parametrize("words, tried", [("sm_count >= 156", True), ("M >= 156", False)])
def test_numbers_of_multiprocessors_in_a_cell_are_tried(words, tried):
    answer = right(TURNED) + f"\n\ndef more(p):\n    return p.{words}\n"
    evidence = KernelEvidence(questions.find(TURNED), answer, 1)
    found = [case for purpose, case in evidence.cases.items() if purpose in AT_SMS]
    assert {case.sm_count for case in found} == ({155, 156, 157, max(CHIPS)} if tried else set())
    metered = evidence.known[METERED].sizes
    assert all(case.sizes == metered for case in found if case.sm_count != max(CHIPS))
    assert all(2 * size <= metered[axis] for case in found[3:] for axis, size in case.sizes.items())


def test_waves_are_looked_at_for_transposed_tensors_too():
    evidence = KernelEvidence(questions.find("gemm_tiling.tiled_gemm"), "", 1)
    for turned, plain in TURNED_CASES.items():
        assert evidence.known[turned].sizes == evidence.known[plain].sizes
        assert set(evidence.known[turned].layout) == {"a", "b", "c"} and not evidence.known[plain].layout


def test_far_strides_put_offsets_of_few_numbers_beyond_16_bits():
    kbit, spread = questions.find("quantization_layouts.kbit_gemm"), set()
    for seed in range(12):
        for case in kbit.hidden(np.random.default_rng(seed)):
            far = reach.far_apart(kbit, case, np.random.default_rng(seed))
            for name, how in far.layout.items():
                if how.startswith(reach.SPREAD) and name == "c":
                    spread.add(int(how.removeprefix(reach.SPREAD)) * (1 << case.sizes["BITS"]))
    assert max(spread) > 1 << 16

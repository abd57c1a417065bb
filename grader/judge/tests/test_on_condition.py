"""No answer may be wrong or waste at the sizes that its own conditions name."""

import hashlib
from dataclasses import replace

import pytest

from grader import questions
from grader.jail.protocol import ToldCase
from grader.judge import referee, sampled
from grader.judge.branches import Reader
from grader.judge.kernel_evidence import AT_NUMBER, ON_CONDITION, KernelEvidence
from grader.judge.record import FAIL, PASS
from grader.proofs.right import edited, right
from grader.questions import on_condition

NORM, KBIT = "roofline.layernorm_gelu", "quantization_layouts.kbit_gemm"
ROW = "    row = tl.program_id(0).to(tl.int64)\n"
AGAIN = (
    "    for _ in range(0, MORE):\n"
    "        tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0, volatile=True)\n"
)
SIGNATURE, MASK, CONSTANTS = "BLOCK: tl.constexpr", "    mask = offs < N\n", '"BLOCK": block'


def told(**sizes) -> ToldCase:
    return ToldCase(sizes=sizes, scalars={"eps": ("fp32", 1e-5)}, sm_count=9, tensors=())


def ways(launch: str, **sizes) -> set:
    """Return the values of the conditions of a launch(p), in the order of its text."""
    found = Reader(
        f"@triton.jit\ndef k(x_ptr, N, B: tl.constexpr):\n    pass\n\n{launch}", "launch"
    ).branches(told(**sizes))
    return {value for _, value in found}


@pytest.mark.parametrize(
    "test",
    [
        "p.N >= 5000",
        "p.N in (5120, 7000)",
        "{5120: True}.get(p.N, False)",
        "bool(p.N // 5000)",
        "(p.N > 4000) * (p.M == 3) > 0",
        "large(p)",
        "triton.cdiv(p.N, 1000) > 5",
        "any(p.N == n for n in [5120, 4096])",
    ],
)
def test_a_condition_is_followed_whatever_its_form(test):
    launch = (
        "def large(p):\n    n = p.N\n    if n < 5000:\n        return False\n    return True\n\n"
        f"def launch(p):\n    wide = {test}\n    return {{'steps': [{{'kernel': k, 'constexprs': {{'B': 8 if wide else 4}}}}]}}"
    )
    assert ways(launch, N=5120, M=3) != ways(launch, N=512, M=3)


def test_a_kernels_own_condition_is_followed_and_the_unknown_leaves_both_ways():
    cell = (
        "@triton.jit\ndef k(x_ptr, N, B: tl.constexpr):\n"
        "    if tl.program_id(0) > 3:\n        N = N + 1\n    elif N > 700:\n        tl.store(x_ptr, 1.0)\n\n"
        "def launch(p):\n    return {'steps': [{'kernel': k, 'constexprs': {'B': 4}}]}"
    )
    small, large = (Reader(cell, "launch").branches(told(N=n)) for n in (700, 701))
    assert {value for _, value in small.keys() ^ large.keys()} >= {True, False}


def test_a_cell_that_never_ends_takes_no_longer():
    cell = "def launch(p):\n    while True:\n        x = [0] * 10**9\n        y = 2 ** 10**9\n        launch(p)\n"
    assert Reader(cell, "launch").branches(told(N=4)) is not None


def norm(condition: str) -> str:
    return edited(
        right(NORM),
        (
            (SIGNATURE, f"{SIGNATURE}, MORE: tl.constexpr"),
            (MASK, f"{MASK}{AGAIN}"),
            (CONSTANTS, f'{CONSTANTS}, "MORE": 3 if {condition} else 0'),
        ),
    )


def at_conditions(name: str):
    """Return a question whose drawn hidden cases are those that conditions of the cell ask for, and corners."""
    return replace(questions.find(name), hidden=lambda rng: [], far="", free={}, any_scalar=())


def lost(answer: str, seed: int) -> tuple[list[str], str]:
    verdict = referee.grade_one(answer, at_conditions(NORM), seed=seed, eager=False)
    return [part.name for part in verdict.parts if part.state != PASS], str(verdict)


@pytest.mark.slow
def test_loads_that_repeat_at_named_sizes_alone_lose_the_traffic_and_no_size_is_told():
    answer = norm("p.N in (5120, 6144, 7168, 8192, 12288)")
    parts, said = lost(answer, 7)
    assert parts == ["traffic", "speed"] and "sizes that a condition of yours tells" in said
    assert not any(f"N = {n}" in said for n in ("5,120", 5120, "6,144", 6144, 7168, 8192, 12288))


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 4))])
def test_a_case_satisfies_what_three_axes_must_together(seed):
    question = questions.find("flash_attention.forward")
    answer = edited(
        right(question.id),
        (('"BLOCK_N": ', '"MORE": p.B * p.H >= 16 and p.M >= 2048 and p.D == 128, "BLOCK_N": '),),
    )
    cases = KernelEvidence(question, answer, seed).cases
    assert any(
        c.sizes["B"] * c.sizes["H"] >= 16 and c.sizes["M"] >= 2048 and c.sizes["D"] == 128
        for c in (cases[purpose] for purpose in ON_CONDITION if purpose in cases)
    )


def test_an_answer_whose_conditions_all_cases_meet_gets_no_case_more():
    cases = KernelEvidence(questions.find(NORM), right(NORM), 7).cases
    assert not cases.keys() & set(ON_CONDITION)


CASES = {
    "a dtype with a layout": (
        [("block = ", 'odd = p.dtypes["x"] == "bf16" and p.stride_xn > p.stride_xm\n    block = ')],
        lambda c: c.dtype == "bf16" and c.layout.get("x", "").startswith(("transposed", "repeated 0")),
    ),
    "a transposed tensor with gaps": (
        [("block = ", "odd = p.stride_xm == 1 and p.stride_xn > p.M\n    block = ")],
        lambda c: c.layout.get("x") == "transposed padded",
    ),
    "the first digits of a size": (
        [("block = ", 'odd = {"11": 1, "12": 1, "13": 1}.get(str(p.N).zfill(5)[:2], 0)\n    block = ')],
        lambda c: 11_000 <= c.sizes["N"] < 14_000,
    ),
    "an element that a table lacks": (
        [
            (
                "block = ",
                "try:\n        odd = {0: 0, 1: 0, 2: 0, 4: 0, 5: 0}[p.N // 3000]\n    except KeyError:\n        odd = 1\n    block = ",
            )
        ],
        lambda c: 9_000 <= c.sizes["N"] < 12_000,
    ),
    "a format and a lambda": (
        [("block = ", 'odd = (lambda n: f"{n:05d}")(p.N)[:2] == "09"\n    block = ')],
        lambda c: 9_000 <= c.sizes["N"] < 10_000,
    ),
}


@pytest.mark.parametrize("form", CASES)
def test_a_case_goes_the_way_of(form):
    edits, wanted = CASES[form]
    cases = KernelEvidence(questions.find(NORM), edited(right(NORM), edits), 3).cases
    assert any(map(wanted, cases.values()))


NUMBERS = "np.array([0] * 140 + [1] * 40 + [0] * 2000)[p.N >> 6]"


def in_window(case) -> bool:
    return 140 <= case.sizes["N"] >> 6 < 180


DIGEST = "hashlib.md5(str(p.N).encode()).digest()[0] < 5"
PLANS = {
    "a numpy table": (f"int({NUMBERS})", in_window),
    "a set": ("len({p.N // 3000} & {3})", lambda c: 9_000 <= c.sizes["N"] < 12_000),
    "a hash": (
        f"int(__import__('hashlib').{DIGEST.removeprefix('hashlib.')})",
        lambda c: hashlib.md5(str(c.sizes["N"]).encode()).digest()[0] < 5,
    ),
    "a dtype with a layout": (
        'int(np.array([p.dtypes["x"] == "bf16", p.stride_xn > p.stride_xm]).all())',
        lambda c: c.dtype == "bf16" and c.layout.get("x", "").startswith(("transposed", "repeated 0")),
    ),
    "a size that most cases don't give": (f"int(p.N * {NUMBERS})", in_window),
    "an error": (f"[1 // int(1 - {NUMBERS})]", in_window),
}


def planned(question: str, answer: str, seed: int = 3) -> list:
    """Return the cases whose ways no limited case goes."""
    cases = KernelEvidence(questions.find(question), answer, seed).cases
    return [cases[purpose] for purpose in ON_CONDITION if purpose in cases]


@pytest.mark.parametrize("form", PLANS)
def test_what_the_text_does_not_tell_shows_in_the_plans(form):
    odd, wanted = PLANS[form]
    source = edited(right(NORM), [(CONSTANTS, f'{CONSTANTS}, "ODD": {odd}')])
    # in some checks a limited case goes this way already
    assert any(any(map(wanted, planned(NORM, source, seed))) for seed in range(3, 9))


def test_a_grid_that_a_table_makes_too_small_shows_in_the_plans():
    rows = "int(np.array([1] * 5 + [1 << 16] * 5 + [1] * 60)[p.M >> 12])"
    answer = edited(right(NORM), [('"grid": (p.M,)', f'"grid": (triton.cdiv(p.M, {rows}),)')])
    assert any(20_480 <= case.sizes["M"] < 40_960 for case in planned(NORM, answer))


@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_a_table_with_blocks_that_only_small_sizes_use_elsewhere_is_met_where_sizes_are_long(seed):
    rows = "int(16 if p.N <= 512 or (p.N.bit_length(), p.M > 32) == (11, True) else 32)"
    changes = ('"BLOCK_N": 32', f'"BLOCK_N": {rows}'), ("triton.cdiv(p.N, 32)", f"triton.cdiv(p.N, {rows})")
    cases = planned(KBIT, edited(right(KBIT), changes), seed)
    assert any(1024 <= case.sizes["N"] < 2048 and case.sizes["M"] > 32 for case in cases)


def test_a_condition_of_the_function_on_weights_is_followed():
    own = "quantization_layouts.own_layout"
    lost = "    n, k = codes.shape\n    if n % 61 == 17 and k > 100:\n        codes = codes * 0\n"
    answer = edited(right(own), [("    low = 2 if bits", f"{lost}    low = 2 if bits")])
    assert any(case.sizes["N"] % 61 == 17 and case.sizes["K"] > 100 for case in planned(own, answer))


@pytest.mark.parametrize(
    "endless",
    [
        "while True:\n        pass",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("sum(range(10**10))", "print('x' * 10**8)")),
    ],
)
def test_a_launch_that_never_ends_takes_seconds_and_is_no_trouble(endless):
    answer = edited(right(NORM), [("    block = ", f"    {endless}\n    block = ")])
    evidence = KernelEvidence(questions.find(NORM), answer, 3)
    assert evidence.cases and evidence.spent_s < 15


@pytest.mark.parametrize(
    "condition",
    [
        "((row & 127) ^ 101) + (9000 // N) == 0",
        pytest.param("(row % 256 == 77) & (N > 9000)", marks=pytest.mark.slow),
    ],
)
def test_a_program_that_goes_a_way_of_its_own_is_among_those_that_run(condition):
    answer = edited(right(NORM), [(MASK, f"{MASK}    N = tl.where({condition}, N - 1, N)\n")])
    evidence = KernelEvidence(questions.find(NORM), answer, 3)
    try:
        told = [p for p in ON_CONDITION if p in evidence.cases and evidence.cases[p].sizes["N"] > 9000]
        assert told and all(evidence.telling[p] for p in told)
        for purpose in told:
            row = evidence.telling[purpose][0][0]
            assert row % 256 == 77 or row % 128 == 101
            assert row in sampled.chosen(evidence, purpose)
    finally:
        evidence.end()


def test_a_dependence_on_a_size_that_is_no_condition_is_met_at_its_number(alone):
    alone(*AT_NUMBER)
    far_off = (
        "tl.exp(-(tl.sum(mask.to(tl.float32)) - 13000.0) * (tl.sum(mask.to(tl.float32)) - 13000.0) / 2e5)"
    )
    answer = edited(right(NORM), [("+ b).to(", f"+ b + {far_off}).to(")])
    parts, said = lost(answer, 3)
    assert "values" in parts and on_condition.AT_NUMBER in said, said


SUBTRACTED, GEMM = "roofline.subtracted", "gemm_tiling.tiled_gemm"
TURNED, SMOOTHED = "roofline.turned", "roofline.smoothed"


def lost_of(question: str, answer: str, seed: int = 1) -> list[str]:
    verdict = referee.grade_one(answer, at_conditions(question), seed=seed, eager=False)
    return [part.name for part in verdict.parts if part.state == FAIL]


def repeats(case, tensor: str, axis: int) -> bool:
    layout = case.layout.get(tensor, "")
    return layout.startswith("repeated") and str(axis) in layout.split()


def by_columns(case, tensor: str) -> bool:
    """Return whether a matrix has a stride of 1 along its columns."""
    layout = case.layout.get(tensor, "")
    return layout.startswith("transposed") or layout == "repeated 1"


TOGETHER = {
    "two strides of 0": (
        SUBTRACTED,
        "(stride_xm == 0) & (stride_zm == 0)",
        lambda c: repeats(c, "x", 0) and repeats(c, "z", 0),
    ),
    "a column's stride of 0 and a transposed tensor": (
        SUBTRACTED,
        "(stride_xn == 0) & (stride_xm != 0) & (stride_zm == 1)",
        lambda c: repeats(c, "x", 1) and by_columns(c, "z"),
    ),
    "both operands expanded along K": (
        GEMM,
        "(stride_ak == 0) & (stride_bk == 0)",
        lambda c: repeats(c, "a", 1) and repeats(c, "b", 0),
    ),
    "dtypes of pointers and two layouts": (
        GEMM,
        "(a_ptr.dtype.element_ty == tl.bfloat16) & (c_ptr.dtype.element_ty == tl.float32) & (stride_am == 1) & (stride_bn != 1)",
        lambda c: c.dtype == "bf16" and c.dtypes and by_columns(c, "a") and c.layout.get("b"),
    ),
}


@pytest.mark.parametrize("form", TOGETHER)
def test_a_case_has_together_what_a_kernel_asks_of_several_tensors(form):
    question, condition, wanted = TOGETHER[form]
    before, after = {
        SUBTRACTED: ("x - z,", "tl.where({}, x, x - z),"),
        GEMM: ("acc.to(", "(acc * tl.where({}, 0.5, 1.0)).to("),
    }[question]
    cases = planned(question, edited(right(question), [(before, after.format(condition))]), 1)
    assert any(map(wanted, cases)), cases


@pytest.mark.parametrize("least", [700, pytest.param(5000, marks=pytest.mark.slow)])
def test_tiles_that_waste_sectors_where_a_size_is_large_lose_the_traffic(least, alone):
    alone(*ON_CONDITION)
    sides = f"    m, n = (32, 16) if p.M < {least} else (64, 4)\n"
    answer = edited(
        right(TURNED),
        [
            (
                '    constants = {"BLOCK_M": 32, "BLOCK_N": 16}\n',
                f'{sides}    constants = {{"BLOCK_M": m, "BLOCK_N": n}}\n',
            ),
            ("(triton.cdiv(p.M, 32), triton.cdiv(p.N, 16))", "(triton.cdiv(p.M, m), triton.cdiv(p.N, n))"),
        ],
    )
    assert lost_of(TURNED, answer) == ["traffic"]


STEPS = {
    "a turn and a column": (
        "h = tl.where((t == 300) & (offs > 7000), h, (1 - alpha) * h + alpha * x)",
        lambda c: c.sizes["T"] > 300 and c.sizes["M"] > 7000,
    ),
    "bits of a turn and of a size": (
        "h = (1 - alpha) * h + alpha * x * (1 + ((t >> 6) == 3).to(tl.float32) * ((M >> 10) == 3).to(tl.float32))",
        lambda c: c.sizes["T"] > 192 and c.sizes["M"] >> 10 == 3,
    ),
    "no condition": (
        "h = (1 - alpha) * h + alpha * x * (1 + (t // 301 * (offs // 7001)).to(tl.float32))",
        lambda c: c.kind == on_condition.BEYOND and c.sizes["T"] > 301 and c.sizes["M"] > 7001,
    ),
}


@pytest.mark.parametrize(
    "form", [pytest.param(one, marks=[pytest.mark.slow] * (one != "no condition")) for one in STEPS]
)
def test_a_case_is_where_a_kernel_tells_two_quantities_together(form, alone):
    alone(*ON_CONDITION)
    step, wanted = STEPS[form]
    answer = edited(right(SMOOTHED), [("h = (1 - alpha) * h + alpha * x\n", f"{step}\n")])
    assert any(map(wanted, found := planned(SMOOTHED, answer, 1))), found
    assert lost_of(SMOOTHED, answer) == ["values"]


@pytest.mark.parametrize(
    "endless",
    [
        "sum(range(10**12))",
        "list(zip(range(10**12), range(10**12)))[0]",
        "sorted(range(10**10))[0]",
        "len(str(p.N).zfill(10**11))",
        "len(f'{p.N:0999999999d}')",
    ],
)
def test_reading_a_cell_takes_no_long_computation(endless):
    cell = f"def launch(p):\n    x = {endless}\n    return {{'steps': []}}\n"
    assert Reader(cell, "launch").branches(told(N=4)) is not None

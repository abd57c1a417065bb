"""What leaves the jail for a kernel answer: plans, texts, and errors with the line of the cell that they come from."""

import pytest

from grader import questions
from grader.jail import host
from grader.judge.kernel_evidence import PUBLIC, KernelEvidence
from grader.proofs.right import right
from grader.questions import Case

GEMM, NORM = "gemm_tiling.tiled_gemm", "roofline.layernorm_gelu"
RIGHT = right(NORM)


def lowered(question: str, cases: list[Case], source: str | None = None):
    evidence = KernelEvidence(questions.find(question), source or right(question), seed=3)
    evidence.cases = {PUBLIC + i: case for i, case in enumerate(cases)}
    return evidence, evidence.lowered()


def error_of(before: str, after: str) -> dict:
    assert before in RIGHT
    evidence, _ = lowered(NORM, [questions.find(NORM).public[0]], RIGHT.replace(before, after, 1))
    return evidence.plan(PUBLIC)


@pytest.mark.parametrize("question", [GEMM, "sampling_fusion.draw"])
def test_cases_share_their_kernels_by_what_is_frozen_into_them(question):
    cases = list(questions.find(question).public)
    _, found = lowered(question, cases * 2)
    assert len(found.plans) == 2 * len(cases) and len(found.texts) <= len(cases)
    assert all("tt.divisibility = 16" in text for text in found.texts)


def test_what_divides_by_16_and_what_is_one_makes_another_kernel():
    sizes = [(64, 64, 64), (64, 64, 50), (128, 96, 64), (64, 1, 64)]
    evidence, _ = lowered(GEMM, [Case(dict(zip("MNK", size, strict=True)), sm_count=16) for size in sizes])
    steps = [evidence.plan(PUBLIC + i).steps[0] for i in range(4)]
    assert steps[0].text == steps[2].text and len({step.text for step in steps}) == 3
    assert "N" in steps[0].arguments and "N" not in steps[3].arguments


def test_one_case_that_goes_wrong_leaves_the_others():
    source = right(GEMM).replace("def launch(p):", "def launch(p):\n    assert p.M != 64, 'not this one'", 1)
    evidence, _ = lowered(GEMM, list(questions.find(GEMM).public), source)
    plans = {case.sizes["M"]: evidence.plan(purpose) for purpose, case in evidence.cases.items()}
    assert all(isinstance(plan, dict) == (m == 64) for m, plan in plans.items())
    assert "not this one" in plans[64]["message"]


KEPT = {  # what an answer keeps between calls: the beginning of launch(p), and whether that spoils the public cases
    "a plan for each size": ("    key = p.M, p.N\n", False),
    "a plan for each number of rows": ("    key = p.M\n", True),
    "another plan from the 100th call on": (
        "    calls.append(p.M)\n    key = p.M, p.N, len(calls) > 99\n",
        True,
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_launch_depends_on_p_alone(name):
    """A cache whose key leaves out a size gives the plan of another case, if that one was called first."""
    kept, spoilt = KEPT[name]
    source = RIGHT.replace("def launch(p):\n", "plans, calls = {}, []\n\n\ndef launch(p):\n" + kept + "    if key not in plans:\n        plans[key] = planned(p)\n    if len(calls) > 99:\n        plans[key]['steps'][0]['grid'] = 1\n    return plans[key]\n\n\ndef planned(p):\n", 1)  # fmt: skip
    assert source != RIGHT
    cases = list(questions.find(NORM).public)
    _, found = lowered(NORM, cases, source)
    errors = [plan for plan in found.plans if isinstance(plan, dict)]
    assert bool(errors) == spoilt and all(error["kind"] == "KeepsState" for error in errors), errors


def test_a_p_that_no_case_has_may_end_nowhere():
    """A size of one case with those of another may break what launch(p) relies on."""
    loop = "def launch(p):\n    if (p.M, p.N) not in {}:\n        while True:\n            pass\n"
    cases = list(questions.find(NORM).public)
    sizes = [(case.sizes["M"], case.sizes["N"]) for case in cases]
    _, found = lowered(NORM, cases, RIGHT.replace("def launch(p):\n", loop.format(sizes), 1))
    assert not any(isinstance(plan, dict) for plan in found.plans), found.plans


ERRORS = {
    "a grid that is a function": (
        '"grid": (p.M,)',
        '"grid": lambda meta: (p.M,)',
        "got a function; launch(p) knows",
    ),
    "a name nobody defined": ("tl.sum(g, axis=0) / N", "tl.sum(h, axis=0) / N", "h is not defined"),
    "a print without a label": (
        "offs = tl.arange(0, BLOCK)",
        "offs = tl.arange(0, BLOCK)\n    print(offs)",
        "tl.device_print",
    ),
    "a product as in numpy": (
        "offs = tl.arange(0, BLOCK)",
        "offs = tl.arange(0, BLOCK)\n    g = offs @ offs",
        "tl.dot(a, b)",
    ),
    "a kernel launched by launch": (
        "def launch(p):",
        "def launch(p):\n    layernorm_gelu[(1,)](1)",
        "runs nothing itself",
    ),
    "a constant that the signature doesn't mark": (
        "BLOCK: tl.constexpr",
        "BLOCK",
        "BLOCK, which layernorm_gelu takes as an ordinary argument: write BLOCK: tl.constexpr",
    ),
    "an autotuner": (
        "@triton.jit",
        "@triton.autotune(configs=[], key=[])\n@triton.jit",
        "settings in the step",
    ),
}


def test_a_kernel_still_to_be_written_is_not_started():
    first = RIGHT.index("    ### BEGIN SOLUTION"), RIGHT.index("    ### END SOLUTION")
    stub = RIGHT[: first[0]] + "    raise NotImplementedError()\n" + RIGHT[first[1] :]
    evidence, _ = lowered(NORM, [questions.find(NORM).public[0]], stub)
    assert evidence.plan(PUBLIC)["kind"] == "NotImplementedError"


@pytest.mark.parametrize("name", ERRORS)
def test_what_goes_wrong_is_said_with_its_line(name):
    before, after, words = ERRORS[name]
    error = error_of(before, after)
    assert isinstance(error, dict) and words in error["message"], error
    assert "/" not in error["message"].replace("//", "") or "work" not in error["message"]


def test_the_line_is_the_cells_own():
    error = error_of("tl.sum(g, axis=0) / N", "tl.sum(h, axis=0) / N")
    changed = RIGHT.replace("tl.sum(g, axis=0) / N", "tl.sum(h, axis=0) / N", 1)
    assert "tl.sum(h, axis=0)" in changed.splitlines()[error["line"] - 1]


def test_a_silent_assertion_of_triton_is_told_by_its_own_line():
    """Triton's own assertion says nothing but its line."""
    error = error_of(
        "    g = 0.5", "    z = tl.zeros((16, 16), tl.float16)\n    z = tl.cat(z, z, True)\n    g = 0.5"
    )
    assert "Triton does not take `z = tl.cat(z, z, True)`: it wants len(lhs.shape) == 1" in error["message"]


def test_a_dtype_of_another_library_is_told_the_nearest_one():
    error = error_of('return {"steps"', 'return {"scratch": {"part": ((4,), "f32", 0)}, "steps"')
    assert error["message"].endswith("got f32 (did you mean fp32?)"), error


def test_python_is_free_outside_kernels():
    source = """
import itertools
from collections import namedtuple

Tile = namedtuple("Tile", "rows warps")


class Choice:
    def __init__(self, p):
        self.tile = Tile(1, 4) if p.N < 4096 else Tile(1, 8)

""" + RIGHT.replace("def launch(p):", "def launch(p):\n    list(itertools.chain([Choice(p).tile]))", 1)
    evidence, _ = lowered(NORM, [questions.find(NORM).public[0]], source)
    assert not isinstance(evidence.plan(PUBLIC), dict)


def test_the_jail_is_told_no_value():
    """What crosses to the process with a student's Python: sizes, strides, dtypes, scalars, and nothing else."""
    sent = []
    programs = host.warm.programs
    try:
        host.warm.programs = lambda *a: type(
            "Spy", (), {"ask": staticmethod(lambda *b: sent.append(b) or programs(*a).ask(*b))}
        )
        lowered(NORM, list(questions.find(NORM).public))
    finally:
        host.warm.programs = programs
    ((task, arrays, _),) = [one for one in sent if one[0]["operation"] == "lower"]
    assert arrays == {} and set(task) == {"operation", "source", "entry", "cases", "target"}
    for case in task["cases"]:
        assert set(case) == {"sizes", "scalars", "sm_count", "tensors", "packs", "instead"}
        assert case["packs"] is None and case["instead"] == {}
        assert all(set(t) == {"name", "dtype", "shape", "strides", "axes", "role"} for t in case["tensors"])


@pytest.mark.parametrize("operation", [None, "print"])
def test_an_operation_that_is_not_named_is_refused(operation):
    task = {"operation": operation, "source": RIGHT, "entry": "launch", "cases": [], "target": 90}
    outcome = host.warm.programs(host.LOWER).ask(task, {}, host.LOWER_LIMITS)
    assert "operation must be one of lower, texts, plan, pack" in outcome.error["message"]

"""The way to the GPU without one: lowering and building are the real ones, the bench is a stand-in that knows the result."""

from dataclasses import replace

import numpy as np
import pytest

from grader import questions
from grader.bench import gpu, host
from grader.bench.host import Bench, Broken, Builder
from grader.bench.protocol import Kernel, Ran, Timed, TimeRequest
from grader.box.warm import JailTrouble
from grader.judge import referee, statistics
from grader.judge.on_gpu import OnGpu
from grader.judge.record import FAIL, INCONCLUSIVE, PASS
from grader.proofs.right import right
from grader.questions import samples

CAPABILITY, SMS = 90, 132
SEED = 2026  # the same cases every time: a red test is a change
RAN = Ran(gpu="a stand-in", sms=SMS, torch="2", triton="3", changed=[], repeats=True)
TIMED = Timed(**vars(RAN), quads=[[1.0, 1.0, 1.0, 1.0]] * statistics.QUADS, sets=2, differing=False)
GEMM, NORM = "gemm_tiling.tiled_gemm", "roofline.layernorm_gelu"


@pytest.fixture
def bench(monkeypatch):
    """A bench that answers with the reference's own result; `said` keeps the requests, `reply` changes answers."""

    class StandIn:
        said, reply = [], staticmethod(lambda number, had, found: (had, found))

    def ask(self, kind, purpose, placed, **more):
        request, arrays = self.request(kind, purpose, placed, **more)
        StandIn.said.append((request, arrays))
        case, number = self.evidence.cases[purpose], self.launched().index(purpose)
        inputs = self.timed_inputs()[0] if kind is TimeRequest else self.evidence.runs[purpose].inputs
        want = self.evidence.question.reference(inputs, case)
        found = {}
        for one in (p for p in placed if p.spec.role != "in"):
            one.view()[...] = want[one.spec.name]
            found[one.spec.name] = one.storage.reshape(-1).view(np.uint8)
        return StandIn.reply(number, TIMED if kind is TimeRequest else RAN, found)

    monkeypatch.setattr(gpu, "first_gpu", lambda: (CAPABILITY, SMS))
    monkeypatch.setattr(gpu, "name", lambda: "a stand-in")
    monkeypatch.setattr(Bench, "start", lambda self: None)
    monkeypatch.setattr(OnGpu, "ask", ask)
    return StandIn


@pytest.fixture(scope="module")
def small():
    """The tiled GEMM with a few of its cases, values and speed alone, timed on a case that a test can afford."""
    question = questions.find(GEMM)
    parts = tuple(part for part in question.parts if part.name in ("values", "speed"))
    case = replace(question.speed.case, sizes={"M": 300, "N": 256, "K": 128})
    speed = replace(question.speed, case=case, bound=None)
    few = {
        "up_to": {},
        "alike": (),
        "regular": {},
        "balanced": (),
        "public": question.public[:2],
        "hidden": lambda rng: question.hidden(rng)[:2],
    }
    return replace(question, parts=parts, speed=speed, metered=None, compile_case=None, **few)


@pytest.fixture(scope="module")
def rows():
    """The norm with a public case, a hidden one and its values alone: a third of the time that the GEMM takes."""
    question = questions.find(NORM)
    few = {
        "up_to": {},
        "alike": (),
        "regular": {},
        "balanced": (),
        "public": question.public[:1],
        "hidden": lambda rng: question.hidden(rng)[:1],
    }
    return replace(question, parts=question.parts[:1], speed=None, metered=None, compile_case=None, **few)


def judge(question, source=None, **more):
    return referee.grade_one(source or right(question.id), question, **{"mode": "gpu", "seed": SEED, **more})


def test_a_right_kernel_is_judged_on_the_gpu_and_timed(bench, small):
    steps = []
    verdict = judge(small, say=steps.append)
    assert (verdict.verdict, verdict.points) == (PASS, 8), str(verdict)
    assert verdict.parts[0].evidence == "run here on the CPU and on a stand-in"
    request, arrays = bench.said[-1]
    assert request.bar == "matmul" and set(arrays) == {"a", "b"}
    counts = [step for step in steps if step.startswith("compiling") and "…" in step]
    most = counts[-1].rsplit("/", 1)[1]
    assert counts[-1] == f"compiling {most} kernels for sm_90 … {most}/{most}"
    assert 1 < int(most) <= len(bench.said) == len(small.public) + 2 + 1
    assert "…" not in str(verdict.as_json()), "progress is no part of a record"


@pytest.mark.parametrize("case", ["public", "hidden"])
def test_another_result_on_the_gpu_costs_the_values(bench, rows, case):
    public = len(rows.public)
    wrong_at = 0 if case == "public" else public

    def reply(number, had, found):
        if number == wrong_at:
            found = {name: np.zeros_like(data) for name, data in found.items()}
        return had, found

    bench.reply = staticmethod(reply)
    verdict = judge(rows)
    values = verdict.parts[0]
    assert (verdict.verdict, values.state, verdict.points) == (FAIL, FAIL, 0)
    assert "on the GPU: " in values.came and ("y[" in values.came) == (case == "public")
    assert "y[" not in values.told


@pytest.mark.parametrize(
    ("did", "words"),
    [
        ({"changed": ["memory beside y"]}, "memory beside y was written"),
        ({"repeats": False}, "two programs race"),
    ],
)
def test_what_a_launch_did_beside_its_outputs_is_said(bench, rows, did, words):
    bench.reply = staticmethod(lambda number, had, found: (replace(had, **did), found))
    assert words in judge(rows).parts[0].came


def test_a_kernel_that_does_not_run_there_fails_and_a_broken_bench_is_inconclusive(bench, rows):
    def broken(number, had, found):
        raise Broken("does not run on this GPU: out of resource: shared memory")

    def broke_off(number, had, found):
        raise JailTrouble("the bench broke off")

    bench.reply = staticmethod(broken)
    verdict = judge(rows)
    assert verdict.verdict == FAIL and "the kernel does not run on this GPU" in str(verdict)
    bench.reply = staticmethod(broke_off)
    assert judge(rows).verdict == INCONCLUSIVE


def test_a_wrong_timed_result_fails_the_speed_part_alone(bench, small):
    def reply(number, had, found):
        if isinstance(had, Timed):
            found = {name: np.zeros_like(data) for name, data in found.items()}
        return had, found

    bench.reply = staticmethod(reply)
    states = {p.name: p.state for p in judge(small).parts}
    assert [name for name, state in states.items() if state == FAIL] == ["speed"]


def test_a_kernel_that_wastes_in_another_case_loses_speed_whatever_the_clock_says(bench, small):
    """As it does without a GPU: the clock runs at one size and dtype."""
    wide = "acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc) if BLOCK_M < 128 else tl.dot(a, b, acc)"
    source = right(GEMM).replace("acc = tl.dot(a, b, acc)", wide)
    verdict = judge(replace(small, metered=questions.find(GEMM).metered), source)
    assert [part.name for part in verdict.parts if part.state == FAIL] == ["speed"], str(verdict)
    hidden = 2 + 1  # the third is of about the metered size
    assert "widened to fp32" in str(verdict) and len(bench.said) == len(small.public) + hidden


def test_a_question_without_a_speed_part_runs_on_the_gpu_too(bench, rows):
    assert judge(rows).verdict == PASS and len(bench.said) == 2


def test_no_gpu_is_no_fault_of_the_answer():
    if gpu.query():
        pytest.skip("this machine has a GPU")
    verdict = judge(questions.find(NORM))
    assert verdict.verdict == INCONCLUSIVE and "doctor" in verdict.message


IR = """module {
  tt.func public @k(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %0 = arith.constant 1.0 : f32
    tt.store %a, %0 : !tt.ptr<f32>
    tt.return
  }
}
"""


def test_the_builder_names_each_kernel_that_it_cannot_build(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    texts = [IR, IR.replace("tt.store %a, %0", "tt.store %b, %0"), IR.replace("tt.store", "tt.stare")]
    steps, kernels = [], [Kernel(text, num_warps=4, num_stages=1) for text in texts]
    failed = Builder().build(kernels, CAPABILITY, steps.append)
    assert sorted(failed) == [1, 2]
    assert list(tmp_path.rglob("*.cubin")), "the bench finds it in Triton's cache"
    assert steps[0].endswith("0/3") and steps[-1].endswith("3/3")


def test_a_builder_that_is_late_by_the_clock_alone_fails_nobody(monkeypatch):
    monkeypatch.setattr(host, "BUILD_S", 0.02)
    with pytest.raises(JailTrouble, match="^the builder was still compiling after 0.02 s"):
        Builder().build([Kernel(IR, num_warps=4, num_stages=1)], CAPABILITY, print)


@pytest.mark.parametrize("question", [GEMM, NORM, "flash_attention.forward"])
def test_sampled_rows_are_the_rows_of_the_whole(question):
    row = questions.find(question)
    sizes = (
        {"M": 70, "N": 90, "K": 33}
        if "B" not in row.speed.case.sizes
        else {"B": 2, "H": 4, "G": 2, "M": 40, "N": 72, "D": 16}
    )
    sizes = {name: sizes[name] for name in row.speed.case.sizes}
    case = replace(row.speed.case, sizes=sizes)
    inputs = row.inputs(case, np.random.default_rng(4))
    want, seen = row.reference(inputs, case), 0
    for some, part, places in samples.of(row)(row, inputs, case, np.random.default_rng(2)):
        for name, array in row.reference(some, part).items():
            assert np.allclose(array, want[name][places[name]], rtol=1e-12, atol=1e-12)
            seen += array.size
    assert seen >= samples.ROWS

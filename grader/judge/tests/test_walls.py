"""What a kernel cell cannot do: reach Python, run kernels itself, be one thing here and another on a GPU.
And what an answer cannot do to the next one."""

from pathlib import Path

import pytest

from grader import questions
from grader.box import warm
from grader.judge import allowed, referee
from grader.judge.answer import Refused
from grader.judge.record import FAIL, PASS, REFUSED

ANSWERS = Path(__file__).parent / "answers"
NORM, GEMM = "roofline.layernorm_gelu", "gemm_tiling.tiled_gemm"
RIGHT = (ANSWERS / "layernorm_gelu.py").read_text()
TILED = (ANSWERS / "tiled_gemm.py").read_text().replace("GROUP_M = 64, 64, 32, 8", "GROUP_M = 64, 128, 32, 8")


def judge(question, source):
    return referee.grade_one(source, questions.find(question), eager=False)


def changed(*pairs, source=RIGHT):
    for before, after in pairs:
        assert before in source
        source = source.replace(before, after)
    return source


REACHES = {
    "triton under another name": ("lang = tl", "'tl' under another name"),
    "in a list": ("x = [tl]\nx[0].load", "'tl' under another name"),
    "internals of a module": ("x = tl.math.core.builtins", "tl.math.core"),
    "a module's own triton": ("x = tl.random.tl", "tl.random.tl"),
    "the long way": ("x = triton.language.core", "triton.language.core"),
    "the interpreter's memory": ("def f(x):\n    return x.handle.data", "the interpreter's own memory"),
    "a format string": ('x = "{0.fn}".format(launch)', ".format"),
    "a function's code": ("x = launch.__code__", "__code__"),
    "inline assembly": ("x = tl.inline_asm_elementwise", "inline assembly"),
    "a device library": ("x = tl.extra.cuda", "device libraries"),
    "a type seen by a kernel": ("@triton.jit\ndef k(x, B: tl.constexpr):\n    if isinstance(B, tl.constexpr):\n        pass", "isinstance() inside a kernel"),
    "a value as text": ('@triton.jit\ndef k(x):\n    y = f"{x}"', "a string with values in it"),
    "a value as text, by name": ("@triton.jit\ndef k(x):\n    y = str(x)", "str() inside a kernel"),
}  # fmt: skip


@pytest.mark.parametrize("name", REACHES)
def test_a_kernel_cell_reaches_nothing_but_triton(name):
    line, words = REACHES[name]
    with pytest.raises(Refused, match=r".") as refusal:
        allowed.hold(f"{line}\n\n{RIGHT}", questions.find(NORM))
    assert words in str(refusal.value)


HONEST = """
LN2: tl.constexpr = tl.constexpr(math.log(2.0))

@triton.jit
def helper(x, other: tl.tensor):
    tl.static_assert(x.dtype == tl.float32, "fp32")
    return tl.math.exp2(x / LN2).to(tl.float16).trans((1, 0)) + x.T + tl.full(x.shape, float("-inf"), x.dtype)

def tile(p):
    table = {(64, 64): 4, (128, 64): 8}
    return sorted(table.items())[0][0] if p.M > 64 else (16, 64)

def launch(p):
    wanted = [s for s in (16, 32) if s <= p.stride_xm]
    wanted.append(64)
    assert p.dtypes["x"] != "fp8", f"no fp8 for {p.M}"
    return {"steps": [{"kernel": helper, "grid": (p.M, len(wanted), p.sm_count), "num_warps": 4}]}
"""


def test_an_honest_cell_may_say_all_this():
    allowed.hold(HONEST, questions.find(NORM))


def test_launch_runs_no_kernel():
    for call in ("layernorm_gelu[(1,)](1, 2)", "layernorm_gelu(1, 2)"):
        verdict = judge(NORM, changed(("def launch(p):", f"def launch(p):\n    {call}")))
        assert verdict.verdict == FAIL and "runs nothing itself" in str(verdict)


def test_kernels_look_alike_in_both_jails_and_a_plan_is_one_plan():
    told = changed(("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, WHERE: tl.constexpr"), ('"BLOCK": block', '"BLOCK": block, "WHERE": WHERE'))  # fmt: skip
    assert judge(NORM, told + "\n\nWHERE = str(layernorm_gelu) + str(tl.sum)\n").verdict == PASS
    moody = judge(NORM, told + "\n\nWHERE = str(launch)\n")  # its address, which is another in every process
    assert moody.verdict == FAIL and "another plan" in str(moody)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("mean = tl.sum(g, axis=0) / N", "while True:\n        mean = tl.sum(g, axis=0) / N\n        break"),
        ("mean = tl.sum(g, axis=0) / N", "SEEN.append(row)\n    mean = tl.sum(g, axis=0) / N"),
        ("offs = tl.arange(0, BLOCK)", "offs = tl.arange(0, BLOCK)\n    odd = [i for i in range(3)]\n    offs += len({i: 0 for i in odd}) * 0"),
    ],
)  # fmt: skip
def test_what_only_the_interpreter_runs_is_no_kernel(before, after):
    source = "SEEN = []\n\n\n" + changed((before, after))
    verdict = judge(NORM, source)
    assert verdict.verdict == FAIL and verdict.points == 0, str(verdict)
    assert "ran in the interpreter and is no kernel" in str(verdict)


def test_a_tile_that_no_gpu_holds_wins_no_traffic_points_by_serving_the_metered_case_alone():
    special = changed(
        ("def launch(p):", "def launch(p):\n    if p.N == 4096 and p.K == 64:\n        return {'steps': [{'kernel': gemm, 'grid': (4,), 'constexprs': {'BLOCK_M': 256, 'BLOCK_N': 4096, 'BLOCK_K': 64, 'GROUP_M': 1}}]}"),
        source=TILED,
    )  # fmt: skip
    verdict = judge(GEMM, special)
    compiled = next(p for p in verdict.parts if p.name == "compiled")
    assert compiled.state == FAIL and "the kernel whose bytes were counted does not compile" in compiled.came


ADDS = """
@triton.jit
def clear(x_ptr, y_ptr, M, N):
    pass


@triton.jit
def total(x_ptr, part_ptr, M, N, stride_xm):
    row = tl.program_id(0)
    tl.atomic_add(part_ptr + row // 2, tl.load(x_ptr + row * stride_xm).to(tl.float32))


def launch(p):
    return {"scratch": {"part": ((p.M,), "fp32", 0.0)}, "steps": [{"kernel": total, "grid": (p.M,)}]}
"""


def test_sums_whose_order_is_open_are_said_without_a_gpu():
    verdict = judge(NORM, ADDS)
    assert verdict.verdict == FAIL and "atomic additions of floats" in str(verdict)


OS = "import numpy as np\nos = np.lib._utils_impl.os\ntime = __import__('time')\n"
REUSE = "gemm_tiling.reuse"
HARMS = {
    "a process that stays": """
def reuse(bm, bn):
    if bm == 64 and os.fork() == 0:
        os.setpgid(0, 0)
        [os.close(fd) for fd in range(3, 40) if os.path.exists(f"/proc/self/fd/{fd}")]
        while True:
            for pid in os.listdir("/proc"):
                if pid.isdigit() and int(pid) not in (1, 2, os.getpid(), os.getppid()):
                    os.kill(int(pid), 9)
            time.sleep(0.01)
    return 2 * bm * bn / (bm + bn)
""",
    "files that stay": """
def reuse(bm, bn):
    os.makedirs("a/b", exist_ok=True)
    open("a/b/c", "w").write("left")
    return 2 * bm * bn / (bm + bn)
""",
    "the server's memory": """
def reuse(bm, bn):
    open(f"/proc/{os.getppid()}/mem", "r+b")
    return 2 * bm * bn / (bm + bn)
""",
    "more processes than allowed": """
def reuse(bm, bn):
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(60)
    return 2 * bm * bn / (bm + bn)
""",
}  # fmt: skip
LOOKS = (
    OS
    + "def reuse(bm, bn):\n    assert os.listdir('.') == [], os.listdir('.')\n    return 2 * bm * bn / (bm + bn)\n"
)


@pytest.mark.bubblewrap
@pytest.mark.parametrize("name", HARMS)
def test_one_answer_leaves_nothing_for_the_next(name):
    verdict = judge(REUSE, OS + HARMS[name])
    if name in ("the server's memory", "more processes than allowed"):
        assert verdict.verdict == FAIL
    assert judge(REUSE, LOOKS).verdict == PASS


def test_more_than_the_box_allows_is_the_answers_fault_and_not_ours(monkeypatch):
    """Where only the keeper outside sees it, the whole box ends; that is a fail with its reason."""
    from grader import box

    small = box.Limits(processes=8)
    monkeypatch.setattr(box, "spawn", lambda *a, spawn=box.spawn, **k: spawn(*a, **k | {"limits": small}))
    warm.stop_all()
    memory = (
        "def reuse(bm, bn):\n    for _ in range(6):\n        os.fork()\n    time.sleep(3)\n    return 1\n"
    )
    verdict = judge(REUSE, OS + memory)
    warm.stop_all()
    assert verdict.verdict == FAIL, str(verdict)


def test_refusals_carry_the_line():
    verdict = judge(NORM, RIGHT + "\nlang = tl\n")
    assert verdict.verdict == REFUSED and verdict.line == len(RIGHT.splitlines()) + 2

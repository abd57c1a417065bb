"""Ordinary launches of ordinary kernels on torch's CPU tensors, in a process whose Triton launches are the machine's."""

import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
import torch, triton, triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor
from grader.machine import launcher
launcher.install()

@triton.jit
def scaled(x, o, n, stride, by, B: tl.constexpr, DOUBLE: tl.constexpr = False):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i * stride, mask=i < n, other=0.0)
    tl.store(o + i, v * by * (2 if DOUBLE else 1), mask=i < n)

@triton.autotune([triton.Config({"B": 32}, num_warps=1), triton.Config({"B": 64})], key=["n"])
@triton.heuristics({"DOUBLE": lambda given: given["n"] > 40})
@triton.jit
def tuned(x, o, n, stride, by, B: tl.constexpr, DOUBLE: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i * stride, mask=i < n, other=0.0)
    tl.store(o + i, v * by * (2 if DOUBLE else 1), mask=i < n)

@triton.jit
def described(a, b, B: tl.constexpr):
    b.store([0, 0], a.load([8, 16]) + 1)
"""


def run(code: str) -> str:
    """What the code prints in a process of its own: the installation there is for good."""
    done = subprocess.run(
        [sys.executable, "-c", f"exec(compile(open({str(SCRIPT)!r}).read(), {str(SCRIPT)!r}, 'exec'))\n{code}"],
        capture_output=True, text=True, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


@pytest.fixture(scope="module", autouse=True)
def script(tmp_path_factory):
    global SCRIPT
    SCRIPT = tmp_path_factory.mktemp("kernels") / "kernels.py"
    SCRIPT.write_text(KERNELS)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float8_e4m3fn"])
def test_types_and_strides(dtype):
    code = f"""
x = torch.arange(100).float().remainder(7).to(torch.{dtype}).reshape(50, 2)
o = torch.zeros(50, dtype=torch.{dtype})
scaled[(2,)](x[:, 1], o, 50, x.stride(0), 0.5, B=32, num_warps=2)
print(torch.equal(o.float(), x[:, 1].float() * 0.5))
"""
    assert run(code) == "True"


def test_a_callable_grid_a_default_and_a_one():
    code = """
x, o = torch.ones(70), torch.zeros(70)
scaled[lambda given: (triton.cdiv(70, given["B"]),)](x, o, 70, 1, 3.0, B=16, DOUBLE=True)
print(o.unique().tolist())
"""
    assert run(code) == "[6.0]"


def test_autotune_and_heuristics():
    code = """
for n in (30, 60):
    x, o = torch.ones(n), torch.zeros(n)
    tuned[lambda given: (triton.cdiv(n, given["B"]),)](x, o, n, 1, 3.0)
    print(o.unique().tolist())
"""
    assert run(code) == "[3.0]\n[6.0]"


def test_descriptors_of_the_host():
    code = """
a, b = torch.arange(32 * 64).float().reshape(32, 64), torch.zeros(16, 16)
described[(1,)](TensorDescriptor.from_tensor(a, [16, 16]), TensorDescriptor.from_tensor(b, [16, 16]), 16)
print(torch.equal(b, a[8:24, 16:32] + 1))
"""
    assert run(code) == "True"


def test_two_views_of_one_memory():
    code = """
both = torch.arange(20).float()
scaled[(1,)](both[10:], both[:10], 10, 1, 2.0, B=16)
print(both.tolist()[:10] == [2.0 * n for n in range(10, 20)], both.tolist()[10:] == list(range(10, 20)))
"""
    assert run(code) == "True True"


@pytest.mark.parametrize(
    "launch, words",
    [
        ("scaled[(2,)](torch.ones(20), torch.zeros(32), 32, 1, 1.0, B=16)", "which has 20"),
        (
            "scaled[(2,)](torch.arange(32).float(), torch.zeros(32)[:16].expand(2, 16)[0], 32, 1, 1.0, B=16)",
            "outside",
        ),
    ],
)
def test_what_is_wrong_is_raised_where_it_was_launched(launch, words):
    code = f"""
try:
    {launch}
except launcher.LaunchError as error:
    print(error)
"""
    assert words in run(code)

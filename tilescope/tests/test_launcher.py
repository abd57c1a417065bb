"""Ordinary launches of ordinary kernels on torch's CPU tensors, in a process whose Triton launches are the machine's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
import json
import torch, triton, triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor
from tilescope import launcher
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

@triton.jit
def meeting(o):
    tl.store(o, tl.program_id(0).to(tl.float32) + 1)
"""
STRIDED = """
x = torch.arange(100).float().remainder(7).to(torch.{0}).reshape(50, 2)
o = torch.zeros(50, dtype=torch.{0})
scaled[(2,)](x[:, 1], o, 50, x.stride(0), 0.5, B=32, num_warps=2)
found = torch.equal(o.float(), x[:, 1].float() * 0.5)
"""
SCENES = {
    **{
        f"strided {name}": STRIDED.format(name)
        for name in ("float32", "bfloat16", "float16", "float8_e4m3fn")
    },
    "a callable grid, a default and a one": """
x, o = torch.ones(70), torch.zeros(70)
scaled[lambda given: (triton.cdiv(70, given["B"]),)](x, o, 70, 1, 3.0, B=16, DOUBLE=True)
found = o.unique().tolist() == [6.0]
""",
    "autotune and heuristics": """
found = []
for n in (30, 60):
    x, o = torch.ones(n), torch.zeros(n)
    tuned[lambda given: (triton.cdiv(n, given["B"]),)](x, o, n, 1, 3.0)
    found += o.unique().tolist()
found = found == [3.0, 6.0]
""",
    "descriptors of the host": """
a, b = torch.arange(32 * 64).float().reshape(32, 64), torch.zeros(16, 16)
described[(1,)](TensorDescriptor.from_tensor(a, [16, 16]), TensorDescriptor.from_tensor(b, [16, 16]), 16)
found = torch.equal(b, a[8:24, 16:32] + 1)
""",
    "two views of one memory": """
both = torch.arange(20).float()
scaled[(1,)](both[10:], both[:10], 10, 1, 2.0, B=16)
found = both.tolist() == [2.0 * n for n in range(10, 20)] + list(range(10, 20))
""",
    "an access outside": """
try:
    scaled[(2,)](torch.ones(20), torch.zeros(32), 32, 1, 1.0, B=16)
except launcher.LaunchError as error:
    found = "which has 20" in str(error) and "scaled" in str(error) and error.report.error["line"] > 0
""",
    "a race": """
try:
    meeting[(2,)](torch.zeros(4))
except launcher.LaunchError as error:
    finding = error.findings[0]
    words = "meeting: program 0 writes o[0], program 1 writes it" in str(error)
    found = words and finding.tensor == "o" and finding.programs == [[0, 0, 0], [1, 0, 0]]
""",
}


def scene(name: str, code: str) -> str:
    inner = "\n".join("    " + line for line in code.strip().splitlines())
    return f"found = None\ntry:\n{inner}\nexcept Exception as error:\n    found = repr(error)\nall_found[{name!r}] = found\n"


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict:
    """What every scene found, all in one process of their own: the installation there is for good."""
    script = tmp_path_factory.mktemp("kernels") / "kernels.py"
    scenes = "".join(scene(name, code) for name, code in SCENES.items())
    script.write_text(f"{KERNELS}\nall_found = {{}}\n{scenes}\nprint(json.dumps(all_found))\n")
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", SCENES)
def test_launches(found, name):
    assert found[name] is True, found[name]

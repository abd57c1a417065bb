"""pytest --tilescope: which tests fail, and what they say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import numpy as np
import pytest
import triton
import triton.language as tl

@triton.jit
def doubled(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) * 2, mask=i < n)

@triton.jit
def summed(x, total):
    tl.atomic_add(total, tl.load(x + tl.program_id(0)))

def double(n):
    x, out = np.ones(n, np.float32), np.zeros(n, np.float32)
    doubled[(triton.cdiv(n, 16),)](x, out, n, B=16)
    assert (out == 2).all()
    return x

@pytest.fixture
def made():
    return double(20)

def test_right():
    double(32)

def test_past_the_end():
    double(20)

def test_in_a_fixture(made):
    pass

def test_with_its_own_error():
    double(20)
    raise ValueError("its own")

def test_a_view():
    x = np.arange(64, dtype=np.float32)
    doubled[(2,)](x[:20], np.zeros(32, np.float32), 32, B=16)

def test_sums():
    summed[(4,)](np.ones(4, np.float32), np.zeros(1, np.float32))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("plugin")
    (folder / "test_kernels.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-rA",
        "-p",
        "no:cacheprovider",
        "-p",
        "tilescope.pytest_plugin",
    ]
    done = subprocess.run(
        [*command, "--tilescope", "--tilescope-atomics", "test_kernels.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "outcome",
    [
        "PASSED test_kernels.py::test_right",
        "FAILED test_kernels.py::test_past_the_end",
        "ERROR test_kernels.py::test_in_a_fixture",
        "FAILED test_kernels.py::test_with_its_own_error - ValueError: its own",
        "PASSED test_kernels.py::test_a_view",
        "PASSED test_kernels.py::test_sums",
    ],
)
def test_a_test_fails_for_its_own_launches(said, outcome):
    assert outcome in said


def test_findings_are_told(said):
    outside = "error: bounds in doubled: load outside x: program 1 reached element 20 of x, which has 20"
    assert said.count(outside) >= 3  # of the test, of the fixture, and next to an error of the test's own
    assert "TilescopeWarning" in said and "warning: neighbour in doubled" in said
    assert "warning: atomics in summed" in said

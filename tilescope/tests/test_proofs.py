"""What the long proofs recorded, and that the harness behind them can tell right from wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilescope.proofs import comparison

ROOT = Path(__file__).parents[2]
RECORDS = Path(comparison.__file__).parent / "records"
SCRIPT = """
import json
import torch, triton, triton.language as tl
from tilescope.machine import elementwise
from tilescope.machine.meanings import PURE
from tilescope.proofs.launches import Launches

@triton.jit
def halved(x):
    return x / 2

@triton.jit
def right(x, out, by, B: tl.constexpr):
    i = tl.arange(0, B)
    for j in range(1):
        tl.store(out + i, halved(tl.load(x + i)) + by.to(tl.float32) + j.to(tl.float32))

@triton.jit
def wrong(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.exp(tl.load(x + i)))

PURE["math.exp"] = lambda op: lambda x: x  # a machine that errs
launches = Launches("own", compares=True)
x, out = torch.randn(64), torch.zeros(64)
with launches.case():
    right[(1,)](x, out, 0.25, B=64)
    assert torch.allclose(out, x / 2 + 0.25)
    wrong[(1,)](x, out, B=64)
print(json.dumps({name: [row.verdict, dict(row.against)] for name, row in launches.kernels.items()}))
"""


def test_the_readme_s_table_is_the_record_s():
    record = json.loads(comparison.RECORD.read_text())
    readme = comparison.README.read_text(encoding="utf-8")
    assert comparison.with_table(readme, record) == readme
    assert {cells["tilescope"] for cells in record["cells"].values()} == {"found"}
    assert list(record["cells"]) == comparison.CASES


def test_other_people_s_kernels_are_right_or_explained():
    kernels = [
        (name, row)
        for path in sorted(RECORDS.glob("*_kernels.json"))
        for package in json.loads(path.read_text())["packages"].values()
        for name, row in package["kernels"].items()
    ]
    right = [name for name, row in kernels if row["verdict"].startswith("right")]
    assert len(right) >= 290
    told = {
        name for name, row in kernels if row["notes"] or row["verdict"].startswith("as Triton's interpreter")
    }
    assert {name for name, _ in kernels} - set(right) - told == set()


def test_the_harness_tells_right_from_wrong(tmp_path):
    script = tmp_path / "kernels.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"right": ["right", {"equal": 1}], "wrong": ["differs", {"apart": 1}]}


@pytest.mark.parametrize(
    "release, wanted", [("3.6.0, 3.7.0, 3.7.1, 3.10.2, 3.5.1", ["3.6.0", "3.7.1", "3.10.2"])]
)
def test_the_last_of_each_minor_release_is_tried(monkeypatch, release, wanted):
    from tilescope.proofs import canary

    listed = subprocess.CompletedProcess([], 0, f"triton (3.10.2)\nAvailable versions: {release}\n", "")
    monkeypatch.setattr(canary.subprocess, "run", lambda *_, **__: listed)
    assert canary.published() == wanted

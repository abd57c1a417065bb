"""bf16 without ml_dtypes against ml_dtypes itself: what joins or picks numbers, and arithmetic after it."""

import json
import subprocess
import sys

import pytest

from grader.paths import ROOT
from grader.site import without_ml_dtypes

MADE = {
    "as it is": "x",
    "sliced": "x[1:]",
    "joined": "np.concatenate([x, y])",
    "stacked": "np.stack([x, y])",
    "chosen": "np.where(np.arange(4) % 2 == 0, x, y)",
    "taken": "np.take(x, [3, 1])",
    "repeated": "np.tile(x, 2)",
}
PRINTS = """
import json
import ml_dtypes
import numpy as np
x, y = (astype(np.float32(row), ml_dtypes.bfloat16) for row in ([1, -2.5, 3.125, -0.1], [-4, 5, -6, 7.3]))
made = {name: eval(source) for name, source in MADE.items()}
print(json.dumps({name: astype(np.abs(one) * one, np.float32).tolist() for name, one in made.items()}))
"""


def printed(first: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", f"{first}\nMADE = {MADE!r}\n{PRINTS}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """(as ml_dtypes computes, as a tab does)."""
    folder = tmp_path_factory.mktemp("tab")
    (folder / "ml_dtypes.py").write_text(without_ml_dtypes.STAND_IN)
    lead = f"import sys\nsys.path[:0] = [{str(folder)!r}, {str(ROOT)!r}]"
    return (
        printed("astype = lambda x, dtype: x.astype(dtype)"),
        printed(f"{lead}\nfrom grader.site.narrowed import astype"),
    )


@pytest.mark.parametrize("name", MADE)
def test_numbers_are_computed_with_as_ml_dtypes_does(both, name):
    ours, tabs = both
    assert tabs[name] == ours[name]

"""The command line: a script runs as it would alone, and its findings decide the exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
import torch, triton, triton.language as tl

@triton.jit
def counted(x, total):
    tl.store(total, tl.load(total) + tl.load(x + tl.program_id(0)))

@triton.jit
def copied(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)

x, out = torch.ones(100), torch.zeros(100)
if "race" in sys.argv:
    counted[(8,)](x, torch.zeros(1))
copied[(4,)](x, out, 100, B=32)
print("name", __name__, "arguments", sys.argv[1:], "sum", out.sum().item())
if "raise" in sys.argv:
    raise ValueError("the script's own")
if "leave" in sys.argv:
    sys.exit(7)
"""

GREEDY = """
import triton
try:
    found = type(triton.runtime.driver.active).__name__
except RuntimeError:
    found = ""
if found == "NoDevice":
    raise AssertionError("this library wants a real GPU")
"""


NO_TORCH = """
import sys

class NoTorch:  # as where it is not installed
    def find_spec(self, name, *_):
        if name == "torch":
            raise ImportError("No module named 'torch'")

sys.meta_path.insert(0, NoTorch())
import ml_dtypes
import numpy as np
import triton, triton.language as tl

@triton.jit
def doubled(x, out, n, B: tl.constexpr):
    me = tl.program_id(0)
    tl.device_assert(me < 2, "too many programs")
    i = me * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0.0) * 2, mask=i < n)

for dtype in ("float32", "float16", ml_dtypes.bfloat16):
    x, out = np.arange(40).astype(dtype), np.zeros((2, 45), dtype)
    doubled[lambda given: (triton.cdiv(given["n"], 16),)](x, out[1, 5:], 40, B=16)
    assert (out[1, 5:] == 2 * x).all() and not out[0].any() and not out[1, :5].any()
assert "torch" not in sys.modules
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("command")
    (folder / "script.py").write_text(SCRIPT)
    (folder / "test_race.py").write_text(
        "def test_launches(monkeypatch):\n    monkeypatch.setattr('sys.argv', ['script.py', 'race'])\n    import script\n"
    )
    (folder / "greedy.py").write_text(GREEDY)
    (folder / "no_torch.py").write_text(NO_TORCH)
    (folder / "user.py").write_text("import greedy")
    return folder


def tilescope(folder: Path, *arguments, **env):
    return subprocess.run(
        [sys.executable, "-m", "tilescope", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
    )


def test_a_race_is_told_at_the_end_of_a_script_that_went_on(folder):
    done = tilescope(folder, "--lines", "--json", "found.json", "script.py", "race", "--json", "-m")
    assert done.returncode == 1, done.stderr
    assert done.stdout == "name __main__ arguments ['race', '--json', '-m'] sum 100.0\n"
    found = json.loads((folder / "found.json").read_text())
    assert found["launches"] == 2 and {f["kind"] for f in found["findings"]} == {"race"}
    assert f"script.py:7: error: race in counted: {found['findings'][0]['message']}" in done.stderr
    assert {(row["line"], row["kind"]) for row in found["lines"] if row["kernel"] == "copied"} == {
        (12, "load"),
        (12, "store"),
    }
    assert "copied (script.py)" in done.stderr


def test_a_right_script_keeps_its_exit_code(folder):
    done = tilescope(folder, "script.py")
    assert done.returncode == 0 and "tilescope: 1 launch, 0 errors, 0 warnings" in done.stderr
    assert tilescope(folder, "script.py", "leave").returncode == 7


def test_json_alone_is_on_standard_output(folder):
    done = tilescope(folder, "--json", "-", "script.py")
    assert json.loads(done.stdout)["findings"] == [] and "sum 100.0" in done.stderr


def test_findings_survive_a_script_that_raises(folder):
    done = tilescope(folder, "script.py", "race", "raise")
    assert done.returncode == 1
    assert "ValueError: the script's own" in done.stderr and "error: race in counted" in done.stderr


@pytest.mark.slow
def test_a_module_such_as_pytest(folder):
    done = tilescope(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_race.py")
    assert "1 failed" in done.stdout and "error: race in counted" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1 and "error: race in counted" in done.stderr


@pytest.mark.slow
def test_a_library_that_looks_for_a_gpu_is_imported_first(folder):
    assert "wants a real GPU" in tilescope(folder, "user.py").stderr
    done = tilescope(folder, "--import", "greedy", "user.py")
    assert done.returncode == 0 and "wants" not in done.stderr, done.stderr


def test_numpy_arrays_run_without_torch_and_asserts_as_triton_s_debug_says(folder):
    done = tilescope(folder, "no_torch.py")
    assert done.returncode == 0 and "3 launches, 0 errors, 0 warnings" in done.stderr, done.stderr
    done = tilescope(folder, "no_torch.py", TRITON_DEBUG="1")
    assert done.returncode == 1 and "too many programs (3 launches)" in done.stderr, done.stderr


def test_an_old_triton_is_refused_in_one_line(folder):
    (folder / "old").mkdir()
    (folder / "old/triton.py").write_text("__version__ = '3.5.1'")
    done = tilescope(folder, "script.py", PYTHONPATH=f"{folder / 'old'}:{ROOT}")
    assert done.returncode == 2 and done.stdout == ""
    assert "Triton must be 3.6 or newer, got 3.5.1" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments, env, words",
    [
        (["nothing.py"], {}, "there is no file 'nothing.py'"),
        (["--json", "no/found.json", "script.py"], {}, "a folder that exists"),
        (["--import", "no_such_library", "script.py"], {}, "--import no_such_library failed"),
        (["script.py"], {"TRITON_INTERPRET": "1"}, "Unset it"),
        ([], {}, "usage: tilescope"),
        (["."], {}, "'.' is a folder"),
        (["kept.tilescope"], {}, "See it with tilescope open kept.tilescope"),
        (["open", "--html", "no/page.html", "kept.tilescope"], {}, "a folder that exists"),
    ],
)
def test_what_cannot_be_checked_is_said_before_it_runs(folder, arguments, env, words):
    (folder / "kept.tilescope").write_bytes(b"")
    done = tilescope(folder, *arguments, **env)
    assert done.returncode == 2 and words in done.stderr and done.stdout == ""


def test_an_option_after_the_script_is_the_script_s_and_said_so(folder):
    done = tilescope(folder, "script.py", "--nan", "leave")
    assert done.returncode == 7 and "arguments ['--nan', 'leave']" in done.stdout
    assert "--nan comes after script.py, so script.py gets the option. Put it before" in done.stderr


def test_a_script_that_wants_a_gpu_is_told_what_to_do(folder):
    (folder / "wants_one.py").write_text("raise AssertionError('Torch not compiled with CUDA enabled')")
    done = tilescope(folder, "wants_one.py")
    assert (
        done.returncode == 1 and "Make tensors on the CPU" in done.stderr and "--import NAME" in done.stderr
    )


def test_a_run_that_is_kept_says_where(folder):
    done = tilescope(folder, "--save", "run.tilescope", "script.py", "race")
    assert "See it with tilescope open run.tilescope" in done.stderr
    missing = tilescope(folder, "step", "--kernel", "other", "script.py")
    assert (
        missing.returncode == 2
        and "matches the request (kernel other), the launches were copied with" in missing.stderr
    )

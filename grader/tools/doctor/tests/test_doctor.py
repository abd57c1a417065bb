"""The doctor says what is so, whatever is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.tools import doctor
from grader.tools.doctor import machine, packages

ROOT = Path(__file__).parents[4]
H200 = {"name": "NVIDIA H200", "capability": "9.0", "driver": "570.1", "memory_mib": "143771"}
T4 = {"name": "Tesla T4", "capability": "7.5", "driver": "535.1", "memory_mib": "15360"}


def test_it_speaks_json():
    run = [sys.executable, "-m", "grader", "doctor", "--json"]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    rows = json.loads(done.stdout)
    assert {"Python", "GPU", "torch", "triton", "Triton mode", "box", "notebooks", "imports", "disk"} <= {
        row["name"] for row in rows
    }
    assert done.returncode == any(row["state"] == "missing" for row in rows)


def test_it_loads_nothing_heavy():
    look = "import sys; from grader.tools import doctor; doctor.look(); print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", look], cwd=ROOT, capture_output=True, text=True).stdout.split()
    )
    assert "grader.tools.doctor" in loaded and not loaded & {
        "torch",
        "triton",
        "numpy",
        "IPython",
        "nbgrader",
    }


def test_it_works_where_nothing_is_installed(tmp_path):
    """Another Python, with no package at all, and no program on PATH."""
    run = [sys.executable, "-S", "-m", "grader", "doctor"]
    done = subprocess.run(
        run, cwd=ROOT, env={"PATH": str(tmp_path), "HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr + done.stdout
    assert "torch        not installed" in done.stdout and "no Jupyter here" in done.stdout


@pytest.mark.parametrize(
    "found, variables, versions, state, said",
    [
        ([H200], {}, {"torch": "2.13.0", "triton": "3.7.1"}, "ok", "compiled for the GPU"),
        ([H200], {"TRITON_INTERPRET": "1"}, {"triton": "3.7.1"}, "note", "TRITON_INTERPRET=1"),
        ([], {"TRITON_INTERPRET": "1"}, {"triton": "3.7.1"}, "note", "TRITON_INTERPRET=1"),
        ([H200], {}, {"torch": "2.13.0+cpu", "triton": "3.7.1"}, "note", machine.INTERPRETED),
        ([H200], {"PATH": "", "CC": ""}, {"torch": "2.13.0", "triton": "3.7.1"}, "missing", "no C compiler"),
        ([T4], {}, {"torch": "2.13.0", "triton": "3.7.1"}, "ok", machine.INTERPRETED),
        ([], {}, {"torch": "2.13.0+cpu", "triton": "3.7.1"}, "ok", machine.INTERPRETED),
        ([], {}, {}, "note", "none"),
    ],
)
def test_triton_mode(monkeypatch, found, variables, versions, state, said):
    monkeypatch.setattr(machine, "installed", versions.get)
    for name, value in {"CC": "cc", "TRITON_INTERPRET": "0", **variables}.items():
        monkeypatch.setenv(name, value)
    row = machine.triton_mode(found)
    assert (row.state, row.found) == (state, said)


def test_gpus_are_read_from_the_driver_and_an_old_one_is_said(monkeypatch):
    lines = "NVIDIA H200, 9.0, 570.1, 143771\nTesla T4, 7.5, 535.1, 15360\nodd line"
    monkeypatch.setattr(machine, "answer", lambda *command: lines)
    assert machine.gpus() == [H200, T4]
    new, old = machine.graphics(machine.gpus())
    assert new.state == "ok" and "sm_90" in new.found
    assert old.state == "note" and "sm_80 or newer" in old.advice


def test_another_version_is_named_beside_the_pin(monkeypatch):
    monkeypatch.setattr(packages, "installed", {"torch": "2.11.0+cu130"}.get)
    row = packages.pinned("torch", {"torch": "2.13.0"}, "")
    assert row.found == "2.11.0+cu130" and "pinned to 2.13.0" in row.advice
    assert packages.pinned("torch", {"torch": "2.11.0"}, "").state == "ok"
    assert packages.pinned("triton", {}, "get it").advice == "get it"


def test_a_package_with_our_name_is_noticed(monkeypatch, tmp_path):
    (tmp_path / "widgets").mkdir()
    (tmp_path / "widgets/__init__.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    rows = packages.shadowed()
    assert [row.state for row in rows] == ["missing"] and f"widgets is taken from {tmp_path}" in rows[0].found
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert [row.state for row in packages.shadowed()] == ["ok"]


def test_a_learners_file_with_our_name_is_noticed(monkeypatch, tmp_path):
    (tmp_path / "work/01_toy").mkdir(parents=True)
    (tmp_path / "work/01_toy/kernels.py").write_text("")
    monkeypatch.setattr(packages, "_origins", lambda: {})
    monkeypatch.setattr(packages, "ROOT", tmp_path)
    assert "work/01_toy/kernels.py hides our package" in packages.shadowed()[0].found.replace(os.sep, "/")


def test_a_look_that_fails_is_a_row(monkeypatch, capsys):
    def broken():
        raise RuntimeError("no such disk")

    monkeypatch.setattr(machine, "room", broken)
    assert doctor.main([]) == 1
    assert "RuntimeError: no such disk" in capsys.readouterr().out

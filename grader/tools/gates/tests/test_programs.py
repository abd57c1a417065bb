"""Tests that need what is not here are said to be not run, and under CI they stop the run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.tools import programs

ROOT = Path(__file__).parents[4]
TESTS = """
import pytest

def test_plain(): ...

@pytest.mark.browser
def test_page(): ...

@pytest.mark.bubblewrap
def test_box(): ...
"""


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without programs and downloads."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "browsers"))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(programs, "APPLICATIONS", ())
    programs.bubblewrap.cache_clear()
    (tmp_path / "bin").mkdir()
    yield tmp_path
    programs.bubblewrap.cache_clear()


def _pytest(folder: Path, ci: str) -> subprocess.CompletedProcess:
    (folder / "test_planted.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "conftest",
        "-c",
        str(ROOT / "pyproject.toml"),
        "--rootdir",
    ]
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command += [str(folder), "-p", "no:cacheprovider", str(folder / "test_planted.py")]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_what_is_missing_is_said_and_not_run(bare):
    done = _pytest(bare, ci="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not run: 1, needs Chromium (make test gets it)" in done.stdout
    assert "not run: 1, needs a bubblewrap that works here" in done.stdout


def test_under_ci_what_is_missing_is_an_error(bare):
    done = _pytest(bare, ci="true")
    assert done.returncode == 4
    assert (
        "1 tests need Chromium (make test gets it), and under CI they must run" in done.stdout + done.stderr
    )


def _program(path: Path, text: str = "exit 0") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.skipif(os.name == "nt", reason="programs here are shell scripts")
def test_chromium_is_found_where_it_may_be(bare, monkeypatch):
    assert programs.chromium() is None
    downloaded = bare / "browsers/chromium-1187/chrome-linux64/chrome"
    _program(downloaded)
    assert programs.chromium() == str(downloaded)
    _program(bare / "bin/chromium")
    assert programs.chromium() == str(bare / "bin/chromium")
    _program(bare / "mine")
    monkeypatch.setenv("CHROMIUM", str(bare / "mine"))
    assert programs.chromium() == str(bare / "mine")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bubblewrap is for Linux")
def test_a_bubblewrap_that_may_not_make_a_box_does_not_count(bare):
    _program(bare / "bin/bwrap", "echo 'No permissions to create new namespace' >&2; exit 1")
    assert programs.bubblewrap() is None and "user namespaces" in programs.missing()["bubblewrap"]
    _program(bare / "bin/bwrap")
    assert "bubblewrap" not in programs.missing() and programs.bubblewrap() == str(bare / "bin/bwrap")


@pytest.mark.parametrize("root, first", [(True, ["apt-get", "update"]), (False, [sys.executable, "-m"])])
def test_what_is_missing_comes_from_where_this_user_may_take_it(bare, monkeypatch, root, first):
    ran = []
    _program(bare / "bin/apt-get")
    monkeypatch.setattr(programs, "_is_root", lambda: root)
    monkeypatch.setattr(programs.subprocess, "run", lambda command, **_: ran.append(command))
    programs.install()
    assert ran[0][:2] == first and ran[-1] == [sys.executable, "-m", "playwright", "install", "chromium"]
    assert not root or ran[1][-2:] == ["chromium", "bubblewrap"]

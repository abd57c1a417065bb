"""What `make setup` does on machines that lack something."""

import http.server
import importlib.util
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


@pytest.fixture
def setup(monkeypatch):
    """.ci/setup.py as a module, with every command that it would run kept in `ran`."""
    spec = importlib.util.spec_from_file_location("setup_script", ROOT / ".ci/setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ran = []
    monkeypatch.setattr(module, "run", lambda *command: module.ran.append([str(part) for part in command]))
    return module


@pytest.fixture
def index():
    """A package index on this machine that lists one wheel."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/torch/" else 404)
            self.end_headers()
            self.wfile.write(b"torch-2.13.0%2Bcpu-cp311-cp311-linux.whl")

        def log_message(self, *args): ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_a_new_environment_starts_without_the_parser_of_addresses(setup, monkeypatch, tmp_path):
    site = tmp_path / "lib/python3.11/site-packages"
    site.mkdir(parents=True)
    monkeypatch.setattr(setup, "VENV", tmp_path)
    setup.make_starts_fast()
    look = f"import site, sys; site.addsitedir({str(site)!r}); print(sys.modules.get('rfc3987_syntax', 'not told'))"
    told = subprocess.run([sys.executable, "-I", "-S", "-c", look], capture_output=True, text=True)
    assert told.stdout == "None\n"


def test_an_old_python_is_said_in_one_sentence(setup, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"python must be 3.11 or newer, got 3.9.2 at .*; install one"):
        setup.find_python()


@pytest.mark.skipif(os.name == "nt", reason="programs here are shell scripts")
def test_a_newer_python_on_path_is_found(setup, monkeypatch, tmp_path):
    program(tmp_path, "python3.13", "exit 1")
    program(tmp_path, "python3.12", "echo 3.12")
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert setup.find_python() == str(tmp_path / "python3.12")


def test_a_missing_venv_module_is_said_or_installed(setup, monkeypatch, tmp_path):
    monkeypatch.setattr(setup, "PYTHON", tmp_path / "none")
    monkeypatch.setattr(setup, "answers", lambda *command: None)
    monkeypatch.setattr(setup.os, "geteuid", lambda: 1000, raising=False)
    with pytest.raises(SystemExit, match="python must have its venv module, got none; on Debian"):
        setup.make_venv(sys.executable)
    monkeypatch.setattr(setup.os, "geteuid", lambda: 0, raising=False)
    monkeypatch.setattr(setup.shutil, "which", lambda name: name)
    setup.make_venv(sys.executable)
    assert setup.ran[1][:2] == ["apt-get", "install"] and setup.ran[1][-1] == "python3-venv"


def _install(setup, monkeypatch, gpu: str | None, index: str) -> list[str]:
    monkeypatch.setattr(setup, "answers", lambda *command: gpu if command[0] == "nvidia-smi" else None)
    monkeypatch.setenv("TORCH_INDEX", index)
    setup.ran.clear()
    setup.install_torch()
    assert len(setup.ran) == 1
    return setup.ran[0][3:]


def test_torch_comes_from_where_the_machine_needs_it(setup, monkeypatch, index, capsys):
    default = ["install", "-c", str(ROOT / "requirements.lock"), "torch==2.13.0"]
    monkeypatch.setattr(setup, "pinned", lambda name: "2.13.0")
    assert _install(setup, monkeypatch, None, index)[1:] == [
        "--no-deps",
        "--index-url",
        index,
        "torch==2.13.0",
    ]
    assert _install(setup, monkeypatch, "NVIDIA H200\n", index) == default
    assert _install(setup, monkeypatch, None, "") == default
    assert _install(setup, monkeypatch, None, "http://127.0.0.1:9/nothing") == default
    assert "can't be reached" in capsys.readouterr().out
    monkeypatch.setattr(setup, "pinned", lambda name: "2.14.0")
    assert _install(setup, monkeypatch, None, index)[-1] == "torch==2.14.0" and setup.ran[0][4] == "-c"
    assert "has no torch 2.14.0" in capsys.readouterr().out


def test_the_pin_of_torch_is_read_from_the_lock(setup):
    assert f"torch=={setup.pinned('torch')}" in (ROOT / "requirements.in").read_text().split()
    with pytest.raises(SystemExit, match="must pin leftpad"):
        setup.pinned("leftpad")


def test_torch_that_is_there_is_not_installed_again(setup, monkeypatch):
    monkeypatch.setattr(setup, "answers", lambda *command: setup.pinned("torch") + "+cpu\n")
    setup.install_torch()
    assert setup.ran == []


def test_a_second_run_only_looks_and_a_new_lock_makes_it_anew(setup, monkeypatch, tmp_path):
    for name in ("make_venv", "install_torch", "install_by_uv"):
        monkeypatch.setattr(setup, name, lambda *_, name=name: not setup.ran.append([name]))
    monkeypatch.setattr(setup, "STAMP", tmp_path / "ready")
    monkeypatch.setattr(setup, "PYTHON", Path(sys.executable))
    setup.main()
    assert [step[0] for step in setup.ran[:2]] == ["make_venv", "install_torch"] and len(setup.ran) == 4
    setup.ran.clear()
    setup.main()
    assert setup.ran == []
    monkeypatch.setattr(setup, "LOCK", ROOT / "requirements.in")
    setup.main()
    assert len(setup.ran) == 4


PIP_CONFIG = r"""global.cert='/etc/certs.pem'
global.extra-index-url='\nhttps://one.invalid/simple\nfile:///two'
global.index-url='https://far.invalid/simple'
install.index-url='https://near.invalid/simple'
global.find-links='/wheels'
:env:.find-links='/other'
:env:.disable-pip-version-check='1'
"""


@pytest.fixture
def uv(setup, monkeypatch, tmp_path):
    """A uv that writes down how it was called and exits with what UV_EXIT says; and a pip with a configuration."""
    program(
        tmp_path,
        "uv",
        f'(pwd; echo "$SSL_CERT_FILE"; printf "%s\\n" "$@") > {tmp_path}/called; exit $UV_EXIT',
    )
    monkeypatch.setenv("UV_EXIT", "0")
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setattr(setup, "fast_installer", lambda: tmp_path / "uv")
    monkeypatch.setattr(setup, "answers", lambda *command: PIP_CONFIG)
    return lambda: (tmp_path / "called").read_text().splitlines()


needs_sh = pytest.mark.skipif(os.name == "nt", reason="programs here are shell scripts")


@needs_sh
def test_uv_takes_packages_from_where_pip_would(setup, uv):
    assert setup.install_by_uv()
    place, certificates, *said = uv()
    assert certificates == "/etc/certs.pem"
    given = [said[i : i + 2] for i in range(2, len(said) - 2, 2)]
    assert ["--default-index", "https://near.invalid/simple"] in given, "a section wins over global"
    assert [v for o, v in given if o == "--index"] == ["https://one.invalid/simple", "file:///two"]
    assert [v for o, v in given if o == "--find-links"] == ["/other"], "the environment wins"
    assert ["--python", str(setup.PYTHON)] in given and said[-2:] == ["-r", str(ROOT / "requirements.lock")]
    assert not Path(place).is_relative_to(ROOT), "the project's own [tool.uv.pip] is for making the lock"


@needs_sh
def test_pip_installs_where_uv_fails_or_is_not_to_be_had(setup, uv, monkeypatch, tmp_path, capsys):
    for name in ("make_venv", "install_torch"):
        monkeypatch.setattr(setup, name, lambda *_: None)
    monkeypatch.setattr(setup, "STAMP", tmp_path / "ready")
    by_pip = [str(setup.PYTHON), "-m", "pip", "install", "-r", str(setup.LOCK)]
    setup.main()
    assert by_pip not in setup.ran
    for cause in (
        lambda: monkeypatch.setenv("UV_EXIT", "2"),
        lambda: monkeypatch.setattr(setup, "fast_installer", lambda: None),
        lambda: monkeypatch.setattr(setup, "fast_installer", lambda: tmp_path / "no such program"),
    ):
        cause()
        (tmp_path / "ready").unlink()
        setup.ran.clear()
        setup.main()
        assert by_pip in setup.ran and (tmp_path / "ready").exists()
    assert capsys.readouterr().out.count("pip does") == 3


@needs_sh
def test_uv_is_the_pinned_wheel_or_none(setup, monkeypatch, tmp_path):
    monkeypatch.setattr(setup, "PYTHON", tmp_path / "python")
    program(tmp_path, "python", f'printf "%s " "$@" >> {tmp_path}/asked')
    monkeypatch.setenv("UV_VERSION", "0.9.9")
    assert setup.fast_installer() == tmp_path / "uv"
    asked = (tmp_path / "asked").read_text()
    assert "-m pip install" in asked and "--only-binary :all: uv==0.9.9" in asked
    program(tmp_path, "uv", "echo uv 0.9.9")
    (tmp_path / "asked").unlink()
    assert setup.fast_installer() == tmp_path / "uv" and not (tmp_path / "asked").exists(), (
        "it is there already"
    )
    program(tmp_path, "uv", "echo uv 0.9.8")
    program(tmp_path, "python", "exit 1")
    assert setup.fast_installer() is None
    monkeypatch.setenv("UV_VERSION", "")
    assert setup.fast_installer() is None


def test_the_makefile_pins_uv_for_the_set_up():
    dry = subprocess.run(["make", "--dry-run", "lock"], cwd=ROOT, capture_output=True, text=True)
    pin = re.search(r"uv==(\d+\.\d+\.\d+)", dry.stdout)[1]
    assert f"export UV_VERSION ?= {pin}" in (ROOT / "Makefile").read_text()


def test_a_failing_command_stops_the_setup():
    script = f"import runpy; s = runpy.run_path({str(ROOT / '.ci/setup.py')!r}); s['run']('false')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1 and "this failed, see above: false" in done.stderr


def test_ci_runs_the_test_command():
    assert os.access(ROOT / ".ci/run", os.X_OK)
    assert "exec make test" in (ROOT / ".ci/run").read_text()
    dry = subprocess.run(["make", "--dry-run", "test"], cwd=ROOT, capture_output=True, text=True)
    assert dry.returncode == 0 and "-m pytest" in dry.stdout

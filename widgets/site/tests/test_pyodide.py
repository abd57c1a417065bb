"""Python for the pages: pinned, checked, and a sentence where it can't be had."""

import base64
import hashlib
import os
import tarfile

import pytest

from widgets.site import pyodide

posix = pytest.mark.skipif(os.name == "nt", reason="npm here is a shell script")


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """A PATH with nothing but an npm that runs this script."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def put(script: str) -> None:
        (tmp_path / "bin/npm").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin/npm").chmod(0o755)

    return put


def test_the_pin_is_complete():
    assert set(pyodide.PIN) == {"package", "version", "sha512", "files"} and len(pyodide.PIN["sha512"]) == 88
    assert pyodide.PIN["version"].replace(".", "").isdigit()


def test_without_npm_it_says_so(tmp_path, npm):
    with pytest.raises(pyodide.NotFetched, match="npm must be installed to fetch pyodide@.*install Node.js"):
        pyodide.package(tmp_path)


@posix
def test_what_npm_complains_of_is_said(tmp_path, npm):
    npm("echo noise >&2; echo 'npm error network unreachable' >&2; exit 1")
    with pytest.raises(pyodide.NotFetched, match="got 'npm error network unreachable'"):
        pyodide.package(tmp_path)


NAME = f"pyodide-{pyodide.PIN['version']}.tgz"


@posix
def test_another_package_of_that_name_is_not_taken(tmp_path, npm):
    npm(f"echo other > {NAME}")
    with pytest.raises(pyodide.NotFetched, match="must have the sha512"):
        pyodide.package(tmp_path)
    assert not (tmp_path / NAME).exists()


@posix
def test_the_cache_serves_without_npm_and_only_what_is_needed_is_unpacked(tmp_path, npm, monkeypatch):
    for name in [*pyodide.PIN["files"], "console.html"]:
        (tmp_path / name).write_text(name)
    with tarfile.open(tmp_path / NAME, "w:gz") as archive:
        for name in [*pyodide.PIN["files"], "console.html"]:
            archive.add(tmp_path / name, f"package/{name}")
    monkeypatch.setattr(pyodide, "sound", lambda path: path.stat().st_size > 20)
    size = pyodide.unpack(tmp_path / "out", tmp_path)
    assert sorted(os.listdir(tmp_path / "out")) == sorted(pyodide.PIN["files"])
    assert size == sum(map(len, pyodide.PIN["files"]))


def test_sound_compares_every_byte(tmp_path, monkeypatch):
    file = tmp_path / "one"
    file.write_bytes(b"tile by tile")
    digest = base64.b64encode(hashlib.sha512(b"tile by tile").digest()).decode()
    monkeypatch.setitem(pyodide.PIN, "sha512", digest)
    assert pyodide.sound(file)
    file.write_bytes(b"tile by tilf")
    assert not pyodide.sound(file)

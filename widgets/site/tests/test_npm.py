"""Packages for the pages: pinned, checked, and a sentence where they can't be had."""

import base64
import hashlib
import os
import tarfile
from dataclasses import replace

import pytest

from widgets.site import npm
from widgets.site.npm import NotFetched, packages

posix = pytest.mark.skipif(os.name == "nt", reason="npm here is a shell script")
PYTHON, FONT, TEXT = packages()


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A PATH with nothing but an npm that runs this script."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def put(text: str) -> None:
        (tmp_path / "bin/npm").write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin/npm").chmod(0o755)

    return put


def test_the_pins_are_complete():
    for one in packages():
        assert len(one.sha512) == 88 and one.version.replace(".", "").isdigit() and one.files
    assert (
        PYTHON.archive == f"pyodide-{PYTHON.version}.tgz"
        and FONT.archive == "fontsource-stix-two-math-5.3.0.tgz"
    )
    licences = {"fonts/LICENSE", "fonts/inter/LICENSE"}  # a font travels with its licence
    assert licences <= {*FONT.places.values(), *TEXT.places.values()}


def test_without_npm_it_says_so(tmp_path, script):
    with pytest.raises(NotFetched, match="npm must be installed to fetch pyodide@.*install Node.js"):
        npm.ready(tmp_path)


@posix
def test_what_npm_complains_of_is_said(tmp_path, script):
    script("echo noise >&2; echo 'npm error network unreachable' >&2; exit 1")
    with pytest.raises(NotFetched, match="got 'npm error network unreachable'"):
        npm.ready(tmp_path)


@posix
def test_npm_starts_once_for_all_that_is_missing(tmp_path, script):
    script(f'echo "$@" >> {tmp_path}/started; exit 1')
    with pytest.raises(NotFetched, match="npm must fetch pyodide@.*, @fontsource"):
        npm.ready(tmp_path)
    started = (tmp_path / "started").read_text().splitlines()
    assert len(started) == 1 and all(f"{one.name}@{one.version}" in started[0] for one in packages())


@posix
@pytest.mark.parametrize("package", packages(), ids=lambda one: one.folder)
def test_another_package_of_that_name_is_not_taken(tmp_path, script, package):
    script(f"echo other > {package.archive}")
    with pytest.raises(NotFetched, match="must have the sha512"):
        package.kept(tmp_path)
    assert not (tmp_path / package.archive).exists()


@posix
def test_a_file_that_others_may_be_reading_is_not_written_in_place(tmp_path, script):
    (tmp_path / FONT.archive).write_text("being read")
    script(f'[ "$PWD" != {tmp_path} ] && echo other > {FONT.archive}')
    with pytest.raises(NotFetched, match="must have the sha512"):
        FONT.kept(tmp_path)
    assert [one.name for one in tmp_path.iterdir() if one.name != "bin"] == [FONT.archive]
    assert (tmp_path / FONT.archive).read_text() == "being read"


@posix
@pytest.mark.parametrize("package", packages(), ids=lambda one: one.folder)
def test_the_cache_serves_without_npm_and_only_what_is_needed_is_unpacked(tmp_path, script, package):
    for name in [*package.files, "console.html"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    with tarfile.open(tmp_path / package.archive, "w:gz") as archive:
        for name in [*package.files, "console.html"]:
            archive.add(tmp_path / name, f"package/{name}")
    digest = hashlib.sha512((tmp_path / package.archive).read_bytes()).digest()
    pinned = replace(package, sha512=base64.b64encode(digest).decode())
    size = pinned.unpack(tmp_path / "out", tmp_path)
    wanted = sorted(os.path.basename(name) for name in package.files)
    assert sorted(os.listdir(tmp_path / "out" / package.folder)) == wanted
    assert size == sum(map(len, package.files))


def test_sound_compares_every_byte(tmp_path):
    file = tmp_path / "one"
    file.write_bytes(b"tile by tile")
    pinned = replace(FONT, sha512=base64.b64encode(hashlib.sha512(b"tile by tile").digest()).decode())
    assert pinned.sound(file)
    file.write_bytes(b"tile by tilf")
    assert not pinned.sound(file)

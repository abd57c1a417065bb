"""Bytecode for pages: made by their own Python, kept for the same inputs alone, left out in a sentence where it can't be made."""

import os

import pytest

from widgets.site import build, compiled, models, npm

INPUTS = {"a.zip": models.archive({"mine.py": b"ANSWER = 42\n"})}
STANDARD = models.archive({"json.py": b"loads = 1\n", "cgi.py": b"old = 1\n"})
# What Node.js does, done by a shell: bytecode of one module of ours and of one of Python's own.
NODE = """for last; do :; done
echo once >> {counted}
cp {made} $last/bytecode.zip
printf cpython-314 > $last/tag
"""
posix = pytest.mark.skipif(os.name == "nt", reason="Node.js here is a shell script")


@pytest.fixture
def site(tmp_path):
    (tmp_path / "site/pyodide").mkdir(parents=True)
    (tmp_path / "site" / compiled.STANDARD).write_bytes(STANDARD)
    return tmp_path / "site"


@pytest.fixture
def node(tmp_path, monkeypatch):
    """A PATH with nothing but a Node.js that runs this script."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cp").symlink_to("/bin/cp")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def put(text: str) -> None:
        (tmp_path / "bin/node").write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin/node").chmod(0o755)

    return put


def made(site, cache, inputs=INPUTS):
    return compiled.compiled(site, inputs, "/home", "import mine", "test", cache)


@posix
def test_bytecode_is_kept_for_the_same_inputs_alone(site, node, tmp_path):
    ours, counted = tmp_path / "made.zip", tmp_path / "counted"
    ours.write_bytes(models.archive({"home/pack/mine.py": b"ours", "standard/json.py": b"its"}))
    node(NODE.format(counted=counted, made=ours))
    for times, inputs in ((1, INPUTS), (1, INPUTS), (2, INPUTS | {"b.zip": b"another"})):
        (site / compiled.STANDARD).write_bytes(STANDARD)
        found = made(site, tmp_path / "cache", inputs)
        assert found == {"pack/__pycache__/mine.cpython-314.pyc": b"ours"}
        held = models.members((site / compiled.STANDARD).read_bytes())
        assert held == {"json.pyc": b"its", "cgi.py": b"old = 1\n"}
        assert counted.read_text().count("once") == times


def test_without_node_it_says_so(site, node, tmp_path):
    with pytest.raises(compiled.NotCompiled, match="Node.js must be installed.* got none"):
        made(site, tmp_path / "cache")
    assert (site / compiled.STANDARD).read_bytes() == STANDARD


@posix
def test_what_node_complains_of_is_said(site, node, tmp_path):
    node("echo 'SyntaxError: no await here' >&2; echo 'at line 1' >&2; exit 1")
    with pytest.raises(compiled.NotCompiled, match="got 'SyntaxError: no await here'"):
        made(site, tmp_path / "cache")


def test_a_site_has_bytecode_of_what_its_pages_load(tmp_path):
    """By the magic number of the very Python that reads it."""
    try:
        build.put(tmp_path / "site", build._assets())
    except npm.NotFetched as problem:
        pytest.skip(f"needs what npm gives: {problem}")
    standard = models.members((tmp_path / "site" / compiled.STANDARD).read_bytes())
    assert "encodings/utf_8.pyc" in standard and "encodings/utf_8.py" not in standard and "pdb.py" in standard
    held = models.members((tmp_path / "site" / build.MARK).read_bytes())
    code = {name: text for name, text in held.items() if name.endswith(".pyc")}
    assert "widgets/site/__pycache__/inside.cpython-314.pyc" in code
    assert {text[:4] for text in code.values()} == {standard["json/__init__.pyc"][:4]}

"""compute-sanitizer's proof, without a GPU: its modules, what is read of its output, and a machine that lacks it."""

import importlib
import json

import pytest

import tilescope
from tilescope.proofs import comparison, sanitizer

PLANTED = ["a load past the end", "a scatter that meets itself"]


@pytest.mark.parametrize("name", PLANTED)
def test_a_mistake_s_module_launches_kernels_of_its_own_name(tmp_path, monkeypatch, name):
    sanitizer.written(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module(sanitizer.module_of(name))
    with tilescope.watch() as seen:
        exec(module.CODE, vars(module))
    assert {finding.kernel.endswith(sanitizer.module_of(name)) for finding in seen.findings} == {True}


def test_only_the_tool_for_its_kind_finds_a_mistake():
    line = f"=========     at unmasked_{sanitizer.module_of(PLANTED[0])}+0x40 in planted.py:8\n"
    assert sanitizer.verdict(PLANTED[0], {"memcheck": (0, line)}) == "found"
    assert sanitizer.verdict(PLANTED[0], {"racecheck": (0, line)}) == "not found"
    assert sanitizer.verdict(PLANTED[0], {"memcheck": (0, line.lstrip("="))}) == "not found"
    assert sanitizer.verdict("a lock that is not freed", {"a lock that is not freed": (None, "")}) == "hangs"


def test_a_machine_without_it_says_so_in_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(sanitizer, "binary", lambda: "")
    assert sanitizer.main(["--out", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert set(found["cells"].values()) == {"not on the machine tried"} and found["looked"]
    record = json.loads(comparison.RECORD.read_text())
    assert "not on the machine tried" in comparison.table({**record, "sanitizer": found})

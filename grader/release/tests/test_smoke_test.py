"""What an edition that does not set itself up is told; `release --try` does the real thing, which takes minutes."""

import os
import sys
from pathlib import Path

import pytest

from grader.release import smoke_test

SERVER = """
import http.server, sys
port = next(word.partition("=")[2] for word in sys.argv if word.startswith("--port="))
http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
APART = '\t@test -z "$$GRADER_MODE$$PYTHONPATH$$TILE_VENV"\n'
OPENS = f"{APART}\t@{sys.executable} server.py $(LAB)\n"
PAGES = ("lab/tree/course/start.ipynb", "api/contents/course/start.ipynb", "api/contents/work/00_first")
SPOILT = {
    "": (OPENS, "\t@true\n", PAGES),
    "make lab must open the course, got its end with exit code 2": ("\t@exit 3\n", "\t@true\n", PAGES),
    "api/contents/work/00_first, got no such page": (OPENS, "\t@true\n", PAGES[:2]),
    "make test must pass, got exit code 2": (OPENS, "\t@exit 1\n", PAGES),
}


@pytest.mark.parametrize("words", SPOILT)
def test_what_fails_is_said_and_nothing_of_the_trial_stays(tmp_path, monkeypatch, words):
    opens, tests, pages = SPOILT[words]
    edition = tmp_path / "edition"
    for name in ("GRADER_MODE", "PYTHONPATH", "TILE_VENV"):
        monkeypatch.setenv(name, "of this copy")
    for name in ("labs/00_first/concepts.ipynb", *pages):
        (edition / name).parent.mkdir(parents=True, exist_ok=True)
        (edition / name).write_text("{}")
    (edition / "server.py").write_text(SERVER)
    (edition / "Makefile").write_text(f".PHONY: lab test\nlab:\n{opens}test:\n{tests}")
    said = []
    trouble = smoke_test.tried(edition, said.append)
    assert words in trouble and bool(words) == bool(trouble)
    assert [path.name for path in tmp_path.iterdir()] == ["edition"]
    assert said[-1].startswith("make test: works") if not words else len(said) < 4
    assert not [one for one in Path("/proc").iterdir() if one.name.isdigit() and _of(one, tmp_path)]


def _of(process: Path, place: Path) -> bool:
    try:
        return os.readlink(process / "cwd").startswith(str(place))
    except OSError:
        return False

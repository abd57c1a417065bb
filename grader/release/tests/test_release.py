"""A student edition: it runs, it checks, and nothing that it holds answers a question but what a lesson states."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader import questions
from grader.judge import referee
from grader.judge.record import PASS
from grader.paths import ROOT
from grader.proofs.right import inward
from grader.release import command, edition
from grader.release.tests import pasted_kernels
from grader.tools.gates import links

PASTED = Path(__file__).with_name("pasted.py")
PAGE = ROOT / "instructors/handing_out.md"
ROW = re.compile(r"^\| `([a-z_]+\.[a-z_]+)` \| `([\w.]+)` \|", re.M)


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    place, said = tmp_path_factory.mktemp("released") / "course", io.StringIO()
    with contextlib.redirect_stderr(said):
        assert command.main([str(place)]) == 0
    assert said.getvalue() == "", "away from a terminal it prints the one line that its page shows"
    return place


def there(folder: Path, *arguments: str, **more) -> subprocess.CompletedProcess:
    """A command in the edition's folder, which knows of no other copy of the course."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "GRADER_MODE")}
    run = [sys.executable, *arguments]
    return subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, **more)


def test_its_tables_of_mistakes_hold_no_edit_of_a_right_answer(folder):
    """The recogniser's rows are all there; whatever quotes the right answer is not, in any file."""
    there_are = json.loads(there(folder, "-c", ROWS).stdout)
    ours = {q.id: sorted(m.name for m in q.mistakes if m.sentence) for q in questions.load().values()}
    assert {name: sorted(rows) for name, rows in there_are.items()} == ours and len(ours) > 70
    quoted = {
        before
        for question in questions.load().values()
        for row in question.mistakes
        for before, _ in row.edits
        if len(before.strip()) > 20 and not any(before in words for words in SAID)
    }
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("grader/topics/**/*mistakes*.py")]
    assert len(quoted) > 200 and not [words for words in quoted if any(words in text for text in texts)]


SAID = [  # what anybody may read
    words
    for question in questions.load().values()
    for words in (question.asks, *question.hints, *(row.sentence for row in question.mistakes))
]


ROWS = """
import json
from grader import questions
found = {q.id: [m.name for m in q.mistakes] for q in questions.load().values()}
assert not any(m.edits or m.cell for q in questions.load().values() for m in q.mistakes)
print(json.dumps(found))
"""


def test_it_holds_no_answer_by_name(folder):
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    gone = (
        "solutions/",
        ".git/",
        "grader/proofs/",
        "grader/classroom/",
        "instructors/",
        "kernels/gemm_tiling/ladder/",
    )
    assert not [name for name in names if name.startswith(gone)]
    assert not [
        name
        for name in names
        if re.search(r"/(tiled_gemm|forward|fused|reference_tiles|shared_concepts)\.py$|/answers/", name)
    ]
    assert [name for name in names if "/tests/" in name] == [
        "grader/tests/__init__.py",
        "grader/tests/test_works_here.py",
    ]
    for name in (
        "labs/01_gemm_tiling/kernel.ipynb",
        "kernels/gemm_tiling/results/h200.json",
        "course/01_gemm_tiling/a_reuse.ipynb",
        "Makefile",
        ".ci/setup.py",
    ):
        assert name in names
    assert "BEGIN SOLUTION" not in "".join(p.read_text() for p in folder.glob("labs/*/*.ipynb"))


NUMPY = [question.id for question in questions.load().values() if question.kind == "numpy"]
LISTED = ROW.findall(PAGE.read_text(encoding="utf-8"))[0][0]
SOME = [name for name in NUMPY if name == LISTED or name in NUMPY[::12]]


@pytest.mark.parametrize("asked", [SOME, pytest.param(NUMPY, marks=pytest.mark.slow)], ids=["some", "all"])
def test_every_function_pasted_as_an_answer_passes_only_where_the_instructors_page_says(folder, asked):
    run = there(folder, str(PASTED), *asked, timeout=600)
    assert run.returncode == 0, run.stderr[-2000:]
    said = json.loads(run.stdout)
    assert said["functions"] > 1000 and list(said["passes"]) == asked
    passes = {(name, function) for name, found in said["passes"].items() for function in found}
    listed = [row for row in ROW.findall(PAGE.read_text(encoding="utf-8")) if row[0] in asked]
    assert listed and passes == {*listed}


def test_a_function_that_the_page_lists_does_pass(folder):
    """So that the search above can see what there is to be found."""
    name, function = ROW.findall(PAGE.read_text(encoding="utf-8"))[0]
    module, _, own = function.rpartition(".")
    source = (folder / module.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
    answer = f"{source}\n\n{questions.find(name).entry} = {own}\n"
    assert referee.grade_one(answer, questions.find(name), seed=2026).verdict == PASS


GIVEN = {"roofline.tile_settings"}  # the lab itself gives the kernel: what is asked is its launch


def test_no_kernel_pasted_as_an_answer_passes(folder, tmp_path):
    for question, which, cell in pasted_kernels.answers(folder):
        if question.id in GIVEN and f"/{question.notebook}.ipynb" in which:
            continue
        assert referee.grade_one(cell, inward(question), seed=2026, eager=False).verdict != PASS, (
            f"{question.id}: {which}"
        )


def test_a_kernel_that_was_left_in_it_would_be_judged(tmp_path):
    """This one, with the right launch, has all 15 points."""
    left = tmp_path / "kernels/gemm_tiling/tiled_gemm.py"
    left.parent.mkdir(parents=True)
    shutil.copy(ROOT / "kernels/gemm_tiling/tiled_gemm.py", left)
    found = {(question.id, which) for question, which, _ in pasted_kernels.answers(tmp_path)}
    assert ("gemm_tiling.tiled_gemm", "kernels/gemm_tiling/tiled_gemm.py: tiled_gemm_kernel") in found


def test_it_runs_its_own_test_without_the_rest(folder):
    run = there(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", timeout=600)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-2000:]


def test_a_coding_assistant_is_asked_to_be_a_tutor(folder):
    said = (folder / "AGENTS.md").read_text(encoding="utf-8")
    assert "never give it" in said and "answer cell" in said
    for path in re.findall(r"`([a-z]+/)`", said):
        assert (folder / path).is_dir() or path == "work/", path
    for line in said.splitlines():
        assert "return " not in line and "tl." not in line, "it holds no code that an answer could use"


def test_its_page_names_the_courses_own_python(folder):
    said = (folder / "README.md").read_text(encoding="utf-8").replace("\n", " ")
    assert said.count(".venv/bin/python -m grader") == said.count("python -m grader") >= 3


def test_its_commands(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    assert "copied" in there(copy, "-m", "grader", "work").stdout
    answer = tmp_path / "answer.py"
    answer.write_text("def tile_loads(m, n, k, bm, bn):\n    return m * k * (n // bn) + k * n * (m // bm)\n")
    verdict = json.loads(
        there(copy, "-m", "grader", "check", "gemm_tiling.tile_loads", str(answer), "--json").stdout
    )
    assert verdict["verdict"] == "FAIL" and "round the number of tiles up" in verdict["parts"][0]["look"]
    run = there(copy, "-m", "grader", "class", "01_gemm_tiling")
    assert run.returncode == 64 and "class is not in a student edition" in run.stderr


def test_every_link_in_it_leads_somewhere(folder):
    assert links.check(folder) == []


def test_a_folder_that_holds_something_is_left_alone(tmp_path, capsys, monkeypatch):
    (tmp_path / "mine.txt").write_text("mine")
    monkeypatch.setattr(edition, "make", lambda *_, **__: pytest.fail("half a minute before the refusal"))
    assert command.main([str(tmp_path)]) != 0 and "DIR must be new or empty" in capsys.readouterr().err
    with pytest.raises(edition.Refused, match="DIR must be new or empty"):
        edition.put({"README.md": b""}, tmp_path)
    with pytest.raises(edition.Refused, match="is not among what a student edition may hold"):
        edition.put({".ci/run": b"", "grader/a.py": b"from grader.proofs import right\n"}, tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]

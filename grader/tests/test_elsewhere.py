"""The course where there is no Linux: `elsewhere` is an environment without what macOS and Windows lack. Nobody here has either."""

import functools
import json
import re
import subprocess

import pytest

from grader import questions
from grader.box import systems
from grader.notebooks import work
from grader.paths import ROOT
from grader.proofs import right, wrong
from grader.questions import KernelQuestion
from grader.tests import elsewhere
from tilescope import python_of_triton

DOUBLED = "roofline.doubled"
JUDGED = """
import json, sys
from grader import questions
from grader.box import warm
from grader.judge import referee
for name, question, source in json.load(sys.stdin):
    verdict = referee.grade_one(source, questions.find(question), seed=2026, eager=False)
    print(json.dumps([name, verdict.verdict, str(verdict)]), flush=True)
warm.stop_all()
"""
needs_solutions = pytest.mark.skipif(
    not (ROOT / "solutions").exists(), reason="solutions/, which is not handed out"
)


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return elsewhere.made(tmp_path_factory.mktemp("elsewhere"))


@pytest.mark.slow
@needs_solutions
def test_a_terminal_gets_and_gives_utf8(python):
    """As a learner's terminal on Windows would start it; the answer comes on a pipe."""
    correct = right.right(DOUBLED)
    for source, said, code in ((correct, "PASS  ", 0), (correct.replace("2 * x", "3 * x"), "FAIL  ", 1)):
        done = elsewhere.run(python, "-m", "grader", "check", DOUBLED, "-", said="# µ → …\n" + source)
        assert done.stdout.decode().startswith(f"{said}{DOUBLED}"), done.stderr.decode(errors="replace")
        assert done.returncode == code


@functools.cache
def red_and_green() -> dict[str, list]:
    """Of every question whose right answer is here: it, and an answer that must lose points."""
    found = {}
    for one in questions.load().values():
        try:
            correct = right.right(one.id)
        except (KeyError, FileNotFoundError):
            continue
        rows = [row for row in wrong.table(one).values() if row.part == one.parts[0].name]
        red = wrong.source(one, rows[0]) if rows else f"def {one.entry}(*given):\n    return 'no'\n"
        found[one.id] = [["green", one.id, correct], ["red", one.id, red]]
    return found


@needs_solutions
def test_a_kernel_is_judged_red_and_green_without_linux(python):
    judged_red_and_green(python, DOUBLED)


@pytest.mark.slow
@needs_solutions
@pytest.mark.parametrize("name", red_and_green() if (ROOT / "solutions").exists() else [])
def test_every_question_is_judged_red_and_green_without_linux(python, name):
    judged_red_and_green(python, name)


def judged_red_and_green(python, name: str) -> None:
    done = elsewhere.run(python, "-c", JUDGED, said=json.dumps(red_and_green()[name]))
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    rows = {row[0]: row[1:] for row in map(json.loads, done.stdout.splitlines())}
    compiled = any(part.judge == "compiled" for part in questions.find(name).parts)
    assert rows["green"][0] == ("OPEN" if compiled else "PASS"), rows["green"][1]
    assert rows["red"][0] == "FAIL", rows["red"][1]


@pytest.mark.slow
def test_the_labs_are_all_asked():
    assert len([name for name in red_and_green() if isinstance(questions.find(name), KernelQuestion)]) >= 29


def test_doctor_says_what_is_open_and_that_no_class_is_graded(python):
    done = elsewhere.run(python, "-m", "grader", "doctor")
    said = done.stdout.decode()
    assert "triton       3.7.1+python" in said and "stay open until hand-in" in said, (
        said + done.stderr.decode()
    )
    assert "no boxes" in said and "A class is graded on Linux" in said


def test_no_class_is_graded_without_linux(python):
    code = "from grader import box; box.require(2, 'class grading')"
    done = elsewhere.run(python, "-c", code)
    assert done.returncode and b"a class is graded on Linux" in done.stderr


@pytest.mark.parametrize("first", ["import triton, triton.language", "import tilescope.lowering"])
def test_triton_is_imported_in_any_order(python, first):
    code = f"{first}\nimport triton\nfrom tilescope import lowering\nprint(lowering.IN_PYTHON)"
    assert elsewhere.run(python, "-c", code).stdout.split() == [b"True"]


def test_the_wheel_is_the_locks():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert re.search(r"(?m)^triton==(\S+)", lock)[1] == python_of_triton.VERSION


def test_a_wheel_that_can_not_be_had_is_told(monkeypatch):
    monkeypatch.setattr(python_of_triton, "SHA256", "0" * 64)
    monkeypatch.setenv(systems.WISH, "none")
    monkeypatch.setattr(work.importlib.util, "find_spec", lambda name: None)
    refused = subprocess.CompletedProcess([], 1, "", "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n")
    monkeypatch.setattr(python_of_triton.subprocess, "run", lambda *_, **__: refused)
    (said,) = work.with_triton()
    assert "MATCH THE HASHES" in said and said.endswith("Everything except the kernel labs works without it")


def test_on_linux_nothing_is_fetched(monkeypatch):
    monkeypatch.setattr(python_of_triton, "install", lambda: pytest.fail("fetched"))
    assert work.with_triton() == []


ASKS = re.compile(r"\bos\.name\b|sys\.platform|platform\.system|os\.uname")
MAY_ASK = {
    "grader/box/systems.py",
    "grader/site/inside.py",
    "grader/tools/doctor/packages.py",
    "kernels/expert_load_balance/rank_process.py",
}
NOT_OURS = re.compile(r"\.venv|/tests/|/proofs/|box/(attacks|inside|keeper)")


UNNAMED = re.compile(r"\.read_text\(\)|\bopen\([^()\n]*\"[rwa]\"\)|\.write_text\((?!.*encoding)[^()\n]*\)\n")


def test_one_module_asks_which_system_it_is_and_texts_name_their_encoding():
    found, unnamed = set(), []
    for room in ("grader", "tilescope", "widgets", "kernels"):
        for path in (ROOT / room).rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            if NOT_OURS.search(name):
                continue
            text = path.read_text(encoding="utf-8")
            found |= {name} if ASKS.search(text) else set()
            unnamed += [name] if UNNAMED.search(text) else []
    assert found <= MAY_ASK and unnamed == []


@pytest.mark.slow
@pytest.mark.parametrize("system", ["aarch64-apple-darwin", "x86_64-pc-windows-msvc"])
def test_every_package_of_the_lock_has_a_wheel_there(system, tmp_path, monkeypatch):
    """What pip and uv would take there; nothing is downloaded."""
    uv = ROOT / ".venv/bin/uv"
    if not uv.exists():
        pytest.skip("uv, which make setup gets")
    monkeypatch.setenv("MACOSX_DEPLOYMENT_TARGET", "14.0")
    command = [uv, "pip", "install", "--dry-run", "--target", tmp_path, "--python-platform", system]
    command += ["--only-binary", ":all:", "--no-deps", "--index-strategy", "unsafe-best-match"]
    done = subprocess.run([*command, "-r", ROOT / "requirements.lock"], capture_output=True, text=True)
    if "Request failed" in done.stderr or "Failed to fetch" in done.stderr:
        pytest.skip("an index of packages")
    assert done.returncode == 0 and "Would install" in done.stderr, done.stderr


@pytest.mark.slow
def test_the_real_wheel_gives_what_the_tests_use(tmp_path):
    """Once in full, where an index can be reached: of the pinned hash, and with the files of the installed Triton."""
    try:
        wheel = python_of_triton.downloaded(tmp_path)
    except python_of_triton.NotInstalled as error:
        pytest.skip(str(error))
    ours, theirs = (
        python_of_triton.repacked(one, folder)
        for one, folder in ((wheel, tmp_path / "a"), (elsewhere.wheel_of_here(tmp_path), tmp_path / "b"))
        if not folder.mkdir()
    )
    assert ours.read_bytes() and names(ours) == names(theirs)


def names(wheel) -> dict:
    import zipfile

    with zipfile.ZipFile(wheel) as opened:
        return {one.filename: one.CRC for one in opened.infolist() if one.filename.startswith("triton/")}

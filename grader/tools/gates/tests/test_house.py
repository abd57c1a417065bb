"""This house keeps its rules, and each gate names the fault that is planted for it."""

import shutil
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from grader.tools import gates
from grader.tools.gates import references, rooms, tree

ROOT = Path(__file__).parents[4]

TOPIC, MODEL, CHECK = (
    f"{room}/planted.py" for room in ("kernels/roofline", "widgets/roofline", "grader/topics/roofline")
)
ONE, HOST = "nothing from each other", "a path of somebody's machine"
# gate, file, what is planted there ("+" appends, "a -> b" replaces), a piece of the complaint
FAULTS = (
    ("arrows", TOPIC, "from widgets import units", "kernels must import only kernels"),
    ("arrows", "kernels/planted.py", "import grader.judge.record", "kernels must import only kernels"),
    ("arrows", "kernels/planted.py", "from tilescope import launcher", "kernels must import only kernels"),
    ("arrows", "grader/planted.py", "def f():\n    import widgets", "grader must import only grader"),
    ("arrows", TOPIC, "from kernels.gemm_tiling import cost", ONE),
    ("arrows", TOPIC, "def f():\n    from ..gemm_tiling import cost", ONE),
    ("arrows", MODEL, "import widgets.gemm_tiling.tile_walk", ONE),
    ("arrows", CHECK, "import solutions.roofline", "nothing imports notebooks"),
    ("arrows", MODEL, "from kernels.roofline import reference", "only a topic's cost.py"),
    ("arrows", MODEL, "from kernels.roofline import cost\nimport numpy", "standard library only"),
    ("arrows", MODEL, "def f():\n    import torch", "standard library only"),
    ("arrows", MODEL, "import widgets.simulator", "standard library only"),
    ("arrows", "kernels/machines.py", "+import numpy", "standard library only"),
    ("arrows", TOPIC, "import matplotlib", "no Jupyter package"),
    ("arrows", CHECK, "import kernels.planted_too", "no Jupyter package"),
    ("arrows", "grader/__init__.py", "+import numpy", "__init__ must import nothing heavy"),
    ("arrows", "widgets/__init__.py", "+from widgets import simulator", "__init__ must import nothing heavy"),
    (
        "arrows",
        "grader/machine/planted.py",
        "from grader.judge import record",
        "is on a floor below judge and must not",
    ),
    (
        "arrows",
        "grader/judge/planted.py",
        "def f():\n    import grader.classroom.grade_class",
        "is on a floor below classroom",
    ),
    (
        "arrows",
        "grader/tools/planted.py",
        "from grader import check",
        "grader/tools is on a floor below __init__",
    ),
    ("arrows", CHECK, "from grader.judge.compare import difference", "is on a floor below judge"),
    (
        "arrows",
        "grader/questions/planted.py",
        "from grader.topics.roofline import lab",
        "is on a floor below topics",
    ),
    ("arrows", "grader/attic/planted.py", "x = 1", "grader/attic must have its floor"),
    (
        "circles",
        "grader/verdicts.py",
        "+from grader.judge import report",
        "grader/verdicts.py -> grader/judge/report.py -> grader/verdicts.py",
    ),
    (
        "circles",
        "grader/verdicts.py",
        "+def f():\n    from grader.judge.report import text",
        "imports in a circle",
    ),
    (
        "circles",
        "kernels/machines.py",
        "+def f():\n    from kernels.flash_attention.cost import x",
        "kernels/machines.py -> kernels/flash_attention/cost.py",
    ),
    (
        "circles",
        "grader/jail/inside/plan.py",
        "+def f():\n    import bind",
        "jail/inside/bind.py -> grader/jail/inside/plan.py",
    ),
    (
        "circles",
        "grader/box/serve/frames.py",
        "+def f():\n    import grader.jail.inside.plan",
        "grader/jail/inside/plan.py -> grader/box/serve/frames.py",
    ),
    ("references", TOPIC, "def naive_softmax(x): ...", "references belong in reference.py"),
    ("references", "widgets/tests/test_planted.py", "def softmax_reference(x): ...", "references belong in"),
    ("references", "kernels/planted/cases.py", "CASES = ()", "must have a reference.py"),
    ("dependencies", "requirements.in", "numpy==2.4.6 -> numpy>=2.4", "'numpy>=2.4' must be pinned with =="),
    ("dependencies", "requirements.in", "numpy==2.4.6 -> numpy==2.4.5", "must have numpy==2.4.5, got 2.4.6"),
    ("dependencies", "requirements.in", "+leftpad==1.0", "must have leftpad==1.0, got nothing"),
    ("dependencies", "requirements.lock", "numpy==2.4.6 -> numpy", "'numpy' must be pinned with =="),
    ("dependencies", "environment.yml", "- pip\n -> - numpy=2\n  - pip\n", "leave 'numpy=2' to"),
    ("dependencies", "environment.yml", "python>=3.11 -> python>=3.12", "must have 'python>=3.11'"),
    ("dependencies", "kernels/planted.py", "import leftpad", "imports leftpad, which requirements.lock"),
    ("words", "kernels/planted.py", "# see /home/somebody/notes", HOST),
    ("words", "course/planted.md", "Look into `/work/somewhere`.", HOST),
    ("words", "Makefile", "+INDEX = https://pypi.org/simple", "a registry's address"),
    (
        "words",
        "kernels/speaking_model/kept/planted.npz",
        "x" * 500_001,
        "bytes, where at most 500,000 are allowed",
    ),
    ("words", "course/planted.svg", "<!--" + "x" * 500_000 + "-->", "bytes, where at most"),
    (
        "sources",
        "course/from_the_sources.psv",
        "+roofline|a new item|||",
        "a new item names a page that doesn't exist, (empty)",
    ),
    (
        "sources",
        "course/from_the_sources.psv",
        "|Patterns| -> |Habits|",
        "b_profiling has no heading 'Habits'",
    ),
    (
        "sources",
        "course/07_next_bottleneck/h_fleet.md",
        "gray failure -> grey illness",
        "does not say 'gray failure'",
    ),
    (
        "sources",
        "course/from_the_sources.psv",
        "+roofline|the energy of a fetch|glossary|#rope|",
        "must be named once",
    ),
    ("links", "course/planted.md", "\n\nSee [this](nowhere.ipynb).", "planted.md:3: links nowhere.ipynb"),
    ("links", "course/planted.md", "[lab](../work/99_planted/kernel.ipynb)", "links ../work/99_planted"),
)


def _edited(copy: Path, name: str, planted: str) -> str:
    old = (copy / name).read_text(encoding="utf-8") if (copy / name).exists() else ""
    if planted.startswith("+"):
        return f"{old}\n{planted[1:]}\n"
    if " -> " in planted:
        was, _, now = planted.partition(" -> ")
        assert was in old, f"{name} must hold {was!r} for this fault to be planted"
        return old.replace(was, now, 1)
    return planted + "\n"


@cache
def _before(copy: Path, gate: str) -> frozenset[str]:
    """What a gate says of the copy with nothing planted: once for all faults, since each is taken out again."""
    return frozenset(gates.complaints(copy, (gate,)))


@pytest.mark.parametrize("gate", gates.GATES)
def test_the_house_keeps_the_rule(gate):
    assert gates.complaints(ROOT, (gate,)) == []


FIRST = {fault[0]: fault for fault in reversed(FAULTS)}.values()  # of each gate


@pytest.mark.parametrize(
    "gate, name, planted, said",
    [
        pytest.param(*one, id=f"{one[0]}-{one[3]}", marks=[pytest.mark.slow] * (one not in FIRST))
        for one in FAULTS
    ],
)
def test_a_planted_fault_is_named(copy, plant, gate, name, planted, said):
    before = _before(copy, gate)
    plant("kernels/planted_too.py", "import nbformat\n" if "planted_too" in planted else "")
    plant(name, _edited(copy, name, planted))
    new = [line for line in gates.complaints(copy, (gate,)) if line not in before]
    assert any(said in line for line in new), new


UNSEEN = {  # what is planted, by file -> a piece of the complaint
    "a folder that pytest leaves out by its name": (
        {"kernels/build/tests/test_planted.py": "def test_x(): ..."},
        "kernels/build/tests/test_planted.py: pytest must collect it, got 2 of 3 test files",
    ),
    "a room that is no path of tests": (
        {
            "pyproject.toml": 'testpaths = ["kernels", "widgets", "tilescope", "grader"] -> testpaths = ["kernels"]'
        },
        "grader/box/tests/test_y.py: pytest must collect it",
    ),
    "an option that does not exist": (
        {"pyproject.toml": "--strict-markers -> --strict-markers --no-such-option"},
        "pytest must collect 2 test files, got none",
    ),
}


@pytest.fixture
def few(tmp_path) -> Path:
    """A project of two test files with this one's settings: a whole copy's own conftest takes seconds to load."""
    for name in ("kernels/tests/test_x.py", "grader/box/tests/test_y.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("def test_x(): ...")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_a_project_whose_test_files_are_all_reached_passes(few):
    assert gates.complaints(few, ("collected",)) == []


@pytest.mark.parametrize("fault", UNSEEN)
def test_a_test_file_that_pytest_does_not_reach_is_named(few, fault):
    planted, said = UNSEEN[fault]
    for name, change in planted.items():
        (few / name).parent.mkdir(parents=True, exist_ok=True)
        (few / name).write_text(_edited(few, name, change))
    assert any(said in line for line in gates.complaints(few, ("collected",)))


def test_a_second_definition_of_a_reference_is_named(copy, plant):
    home = sorted((copy / "kernels").glob("*/reference.py"))[0]
    name, first, _ = next(
        found for found in references._defined(home).functions if not found[0].startswith("_")
    )
    plant(
        "widgets/tests/test_planted.py",
        f"import numpy as np\n\n\ndef {name}({first}):\n    return np.exp(1)\n",
    )
    plant("kernels/planted/reference.py", f"def {name}(x): ...\n")
    said = references.check(copy)
    assert any(f"test_planted.py:4: a second {name}()" in line for line in said)
    assert any(line.startswith(f"{name}() must be defined once") for line in said)


def test_a_complete_table_of_rooms_passes(small):
    assert rooms.check(small) == []


@pytest.mark.parametrize(
    "was, now, said",
    [
        ("| 00 | `roofline`", "| 09 | `roofline`", "must be numbered 09"),
        ("| 00 | `roofline`", "| 00 | `roof`", "roofline is not in README's table"),
        ("What limits it?", "", "must have its question"),
        ("(kernels/roofline/)", "(kernels/roof/)", "links kernels/roof/, which is not there"),
        ("[simulators](widgets/roofline/)", "", "must link widgets/roofline"),
        ("widgets: none, no inputs", "widgets: none", "tiny has no widgets/tiny"),
        ("| `later` | When? | to come |", "| `later` | When? | |", "later has no course/02_later.md"),
        ("[kernels](kernels/roofline/)", "kernels: none, I forgot", "says 'kernels: none', but"),
        ("| 01 | `tiny`", "| 00 | `tiny`", "is in the table twice"),
    ],
)
def test_a_fault_in_the_table_is_named(small, was, now, said):
    readme = small / "README.md"
    assert was in readme.read_text()
    readme.write_text(readme.read_text().replace(was, now, 1))
    assert any(said in line for line in rooms.check(small)), rooms.check(small)


def test_an_unlisted_or_emptied_room_is_named(small):
    (small / "kernels/newcomer").mkdir()
    (small / "kernels/newcomer/cost.py").write_text("")
    (small / "widgets/roofline/explorer.py").unlink()
    said = rooms.check(small)
    assert any("newcomer is not in README's table" in line for line in said)
    assert any("roofline has no widgets/roofline" in line for line in said)


def test_a_version_without_its_changes_is_named(small):
    changes = import_module("grader.tools.gates.changes")
    assert changes.check(small) == []
    (small / "CHANGELOG.md").write_text("# Changes\n\n## 1.1.0\n")
    assert "section '## 1.2.0'" in changes.check(small)[0]
    (small / "CHANGELOG.md").unlink()
    assert "CHANGELOG.md must be there" in changes.check(small)[0]


def test_the_table_of_questions_and_the_notebooks_are_compared(small):
    class Asked:
        notebook_path = "00_roofline/concepts.ipynb"

    graded = import_module("grader.tools.gates.graded")
    lab = small / "solutions/00_roofline/concepts.md"
    lab.write_text('```python check=ridge\ncheck("roofline.ridge")\n```\n')
    assert graded.check(small, {"roofline.ridge": Asked}) == []
    assert (
        "roofline.slope is in the table"
        in graded.check(small, {"roofline.ridge": Asked, "roofline.slope": Asked})[0]
    )
    assert "check=roofline.ridge must be in the table" in graded.check(small, {})[0]
    lab.write_text('```python check=ridge\ncheck("roofline.rigde")\n```\n')
    assert "must check('roofline.ridge')" in graded.check(small, {"roofline.ridge": Asked})[0]


def test_tables_of_kernel_questions_are_never_written_by_hand(small, monkeypatch):
    class Asked:
        notebook_path, kind, name = "00_roofline/concepts.ipynb", "kernel", "ridge"

    bounded, account = (import_module(m) for m in ("grader.tools.gates.bounded", "grader.questions.account"))
    reach = import_module("grader.questions.reach")
    monkeypatch.setattr(account, "unbounded", lambda question: [])
    monkeypatch.setattr(reach, "unreached", lambda question: [])
    lab = small / "solutions/00_roofline/concepts.md"
    lab.write_text("<!-- judged=ridge -->\n")
    assert bounded.check(small, {"roofline.ridge": Asked}) == []
    monkeypatch.setattr(account, "unbounded", lambda question: ["scratch"])
    assert bounded.check(small, {"roofline.ridge": Asked}) == ["roofline.ridge: scratch must have a bound"]
    monkeypatch.setattr(reach, "unreached", lambda question: ["K has no largest size"])
    assert "roofline.ridge: K has no largest size" in bounded.check(small, {"roofline.ridge": Asked})
    lab.write_text("| part | points | asks |\n|---|---|---|\n")
    monkeypatch.setattr(account, "unbounded", lambda question: [])
    monkeypatch.setattr(reach, "unreached", lambda question: [])
    missing, by_hand = bounded.check(small, {"roofline.ridge": Asked})
    assert "must come from <!-- judged=ridge -->" in missing and "<!-- judged=NAME -->" in by_hand


def test_ruff_has_nothing_to_say():
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "."], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_copy_without_git_holds_the_same_files(tmp_path):
    """As somebody has who downloaded an archive: what is made is left out at the top alone, so widgets/site/ stays."""
    kept = {path.relative_to(ROOT) for path in tree.files(ROOT)}
    for name in kept | {Path("work/mine.ipynb"), Path("site/index.html"), Path("grader/__pycache__/a.pyc")}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert {path.relative_to(tmp_path) for path in tree.files(tmp_path)} == kept


def test_what_pip_builds_within_a_room_is_no_module_of_it(tmp_path):
    for name in ("tilescope/notebook.py", "tilescope/__pycache__/build/lib/tilescope/notebook.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert tree.modules(tmp_path, "tilescope") == [tmp_path / "tilescope/notebook.py"]

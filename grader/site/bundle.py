"""Pack the files for a tab's Python as zips: one for all labs, with the judge, and one per lab, with its questions.

Solutions, known wrong answers and tuned kernels stay out, and questions in numpy are recorded. The rest is the
content of the student edition. `instructor` puts in the questions' own functions, which draw new hidden cases each
time."""

import importlib.util
import tempfile
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from grader import questions
from grader.paths import ROOT
from grader.questions import Question, recorded
from grader.release import recording
from grader.release.edition import MISTAKES, dotted, path_of
from grader.release.manifest import allowed
from grader.release.strip_edits import emptied
from grader.site import without_ml_dtypes
from widgets.site import models

ROOMS = ("grader", "kernels", "tilescope")
LEFT_OUT = (
    "grader/box/attacks/",
    "grader/bench/inside/",
    "grader/compiler/inside/",
    "grader/notebooks/",
    "grader/tests/",
    "grader/tools/",
    "kernels/bench/",
    "kernels/speaking_model/",
    "kernels/tiny_model/",
    "tilescope/tests/",
)
OF_TRITON = ("_C", "profiler", "tools/triton_to_gluon_translater")
INSIDE = (
    "grader/site/__init__.py",
    "grader/site/cells.py",
    "grader/site/inside.py",
    "grader/site/narrowed.py",
)
LAB_CELLS = ("widgets.measured", "widgets.profiled", "widgets.site.stills")  # what cells of labs call
VIEW = ("view/defs.svg", "view/scene.css")


def shared(root: Path = ROOT) -> bytes:
    """Zip what judges any question, Triton's own Python, and what cells of labs import."""
    python = [path.as_posix() for path in (*models.modules(root, LAB_CELLS), *models.beside(root))]
    files = {name: (root / name).read_bytes() for name in (*python, *VIEW, *INSIDE)}
    files |= {"ml_dtypes.py": without_ml_dtypes.STAND_IN.encode()}
    return zipped(triton() | files | judge(root))


def of_lab(lab: str, root: Path = ROOT, instructor: bool = False) -> bytes:
    """Zip the questions of one lab, such as 01_gemm_tiling/kernel, and the data that its cells read."""
    folder = lab.partition("/")[0]
    slug = folder.partition("_")[2]
    topic = f"grader/topics/{slug}/"
    asked = questions_of(lab)
    if instructor:
        found = texts((topic, f"kernels/{slug}/"), root, lambda name: "/tests/" not in name)
    else:
        found = student(topic, root)
        for question in asked:
            if question.kind == "numpy":
                found |= _recorded(question.id, root)
    order = tuple(question.name for question in asked)
    found[f"{topic}lab.py"] = f'"""The questions of one lab."""\n\nORDER = {order!r}\n'.encode()
    data = [*root.glob(f"labs/{folder}/*.json"), *root.glob(f"kernels/{slug}/results/*.json")]
    return zipped(found | {path.relative_to(root).as_posix(): path.read_bytes() for path in data})


def questions_of(lab: str) -> list[Question]:
    """Return what a lab asks, in its order."""
    return [one for one in questions.load().values() if one.notebook_path == f"{lab}.ipynb"]


def judge(root: Path) -> dict[str, bytes]:
    """Return the student edition's files of the judge, of tilescope and of the kernels' formulas."""
    found = texts(ROOMS, root, lambda name: allowed(name) and not name.startswith(LEFT_OUT))
    return {
        name: text
        for name, text in found.items()
        if not name.startswith("grader/topics/") or name == "grader/topics/__init__.py"
    }


def student(topic: str, root: Path) -> dict[str, bytes]:
    """Return the student edition's files of a topic, without questions in numpy."""
    held = tuple(f"{place}/" for place in recording.numpy_questions())
    found = texts((topic,), root, lambda name: allowed(name) and (not name.startswith(held) or "__" in name))
    rows = {dotted(name): text.decode() for name, text in found.items() if fnmatch(name, MISTAKES)}
    return found | {path_of(module): text.encode() for module, text in emptied(rows).items()}


@cache  # all files take seconds
def _recorded(question_id: str, root: Path) -> dict[str, bytes]:
    question = questions.find(question_id)
    place = questions.folder(question_id).relative_to(ROOT).as_posix()
    source = (root / place / "question.py").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="recorded_") as folder:
        path = Path(folder) / f"{question.name}.npz"
        recorded.write(path, recording.record(question))
        calls = path.read_bytes()
    module = recording.module(source, question).encode()
    return {f"{place}/question.py": module, f"{place}/{recorded.FOLDER}/{path.name}": calls}


def texts(places: tuple[str, ...], root: Path, wanted) -> dict[str, bytes]:
    paths = [path for place in places for path in sorted((root / place).rglob("*.py"))]
    named = {path.relative_to(root).as_posix(): path for path in paths}
    return {name: path.read_bytes() for name, path in named.items() if wanted(name)}


def triton() -> dict[str, bytes]:
    """Return Triton's Python files, without its compiled library and the files that only this library uses."""
    home = Path(importlib.util.find_spec("triton").origin).parent
    found = {}
    for path in home.rglob("*.py"):
        name = path.relative_to(home).as_posix()
        if not name.startswith(OF_TRITON):
            found[f"triton/{name}"] = path.read_bytes()
    return found


def zipped(files: dict[str, bytes]) -> bytes:
    return models.archive(without_ml_dtypes.rewritten(files))

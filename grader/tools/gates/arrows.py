"""Check which room imports which. Notebooks may import widgets, kernels, tilescope and grader. The grader may import
kernels and tilescope, and widgets may import formulas. grader/site may import widgets as well.

Inside the grader a folder imports lower ones and no higher one.
"""

import sys
from collections.abc import Iterator, Set
from pathlib import Path

from .tree import PACKAGES, imports, is_topic, modules, reached

MAY = {
    "kernels": {"kernels"},
    "widgets": {"widgets", "kernels"},
    "tilescope": {"tilescope"},
    "grader": {"grader", "kernels", "tilescope"},
}
# The one module that wires topics together runs everywhere. Without a GPU its kernels run on the machine.
ALSO = {"kernels/decode_step.py": {"tilescope"}}
ALSO_BELOW = {
    "grader/site/": {"widgets"}
}  # the labs' pages, built from the grader's side, since widgets know no grader
SHARED = ("from_sources", "machines", "texts")  # of kernels/, for widgets too
NOTEBOOK_ROOMS = {"course", "solutions", "labs"}
HEAVY = {
    "torch",
    "triton",
    "numpy",
    "matplotlib",
    "ml_dtypes",
    "ipywidgets",
    "anywidget",
    "IPython",
    "traitlets",
}
JUPYTER = {"IPython", "anywidget", "ipykernel", "ipywidgets", "jupyter_client", "jupyter_core", "jupyterlab"}
JUPYTER |= {
    "jupytext",
    "matplotlib",
    "nbclient",
    "nbconvert",
    "nbformat",
    "nbgrader",
    "playwright",
    "traitlets",
}
# Code that a bare GPU machine runs. The rest of grader/ serves instructors, who have Jupyter.
BARE = (
    "grader/__init__.py",
    "grader/__main__.py",
    "grader/tools/doctor/*.py",
    "grader/topics/*/*/question.py",
    "grader/jail/*.py",
)
OF_NOTEBOOKS = "tilescope/notebook.py"  # its widget and its magic, which only a notebook loads
STANDARD = set(sys.stdlib_module_names)
FLOORS = (  # of the grader, from the top floor down. A folder may use another folder of its own floor
    ("__init__", "__main__", "capstone", "notebook", "running", "site", "stepping", "trial"),
    ("classroom", "notebooks", "proofs", "release", "tools"),
    ("judge",),
    ("topics",),
    ("questions",),
    ("machine", "jail", "compiler", "bench", "box"),
    ("paths", "verdicts"),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
TABLES = {"grader/questions/catalog.py": ("topics",)}  # the only module that opens the topics' tables


def _topics(root: Path) -> set[str]:
    """Return the slugs of all topics, looked up once a check."""
    folders = (folder for room in ("kernels", "widgets") for folder in (root / room).glob("*/"))
    return {folder.name for folder in folders if is_topic(folder)}


def _topic(parts: tuple[str, ...], topics: set[str]) -> str | None:
    """Return the slug a module belongs to, or None for a module one level up."""
    if parts[:2] == ("grader", "topics"):
        slug = parts[2] if len(parts) > 2 else ""
    else:
        slug = parts[1] if len(parts) > 1 and parts[0] in ("kernels", "widgets") else ""
    return slug if slug in topics else None


def _wrong(parts: tuple[str, ...], name: str, topics: set[str], also: Set[str]) -> str | None:
    """Return the rule that one import breaks. `also` names this module's exceptions."""
    room, other = parts[0], tuple(name.split("."))
    if other[0] in NOTEBOOK_ROOMS:
        return "nothing imports notebooks"
    if other[0] not in PACKAGES:
        return None
    if other[0] not in MAY[room] | also:
        return f"{room} must import only {', '.join(sorted(MAY[room]))}"
    here, there = _topic(parts, topics), _topic(other, topics)
    if here and there and here != there:
        return f"the topics {here} and {there} must import nothing from each other"
    if (
        room == "widgets"
        and other[0] == "kernels"
        and (other[1:2] or other)[0] not in SHARED
        and not (len(other) > 2 and other[2].partition("_")[0] == "cost")
    ):
        return "widgets must import only a topic's cost.py and kernels/{from_sources,machines,texts}.py"
    return None


def _directions(root: Path) -> Iterator[str]:
    topics = _topics(root)
    for path in modules(root, *PACKAGES):
        parts = path.relative_to(root).with_suffix("").parts
        name = path.relative_to(root).as_posix()
        also = ALSO.get(name, set()).union(
            *(more for room, more in ALSO_BELOW.items() if name.startswith(room))
        )
        for one in imports(path, root):
            if rule := _wrong(parts, one.name, topics, also):
                yield f"{path.relative_to(root).as_posix()}:{one.line}: imports {one.name}: {rule}"


def _floors(root: Path) -> Iterator[str]:
    for path in modules(root, "grader"):
        name = path.relative_to(root).as_posix()
        room = path.relative_to(root / "grader").parts[0].removesuffix(".py")
        if room not in FLOOR:
            yield f"{name}: grader/{room} must have its floor in {Path(__file__).name}, got none"
            continue
        for one in imports(path, root):
            other = _room(one.name)
            if other in FLOOR and FLOOR[other] < FLOOR[room] and other not in TABLES.get(name, ()):
                yield f"{name}:{one.line}: imports {one.name}: grader/{room} is on a floor below {other} and must not know it"


def _room(name: str) -> str | None:
    """Return the grader's folder of a module. The package's own names come through its __init__."""
    top, *rest = name.split(".")
    return (rest[0] if rest and rest[0] in FLOOR else "__init__") if top == "grader" else None


def _weights(root: Path, known: dict) -> Iterator[str]:
    """Loading these must load nothing of `forbidden`, by whatever way round."""
    init = [path for path in modules(root, *PACKAGES) if path.name == "__init__.py"]
    bare = [
        *(path for path in modules(root, "kernels", "tilescope") if path != root / OF_NOTEBOOKS),
        *(path for pattern in BARE for path in sorted(root.glob(pattern))),
    ]
    for starts, forbidden, rule in (
        (init, HEAVY, "a package's __init__ must import nothing heavy"),
        (bare, JUPYTER, "kernels, tilescope and grader must load where no Jupyter package is installed"),
    ):
        for path in starts:
            for name, place in reached(path, root, known=known).items():
                if name in forbidden:
                    yield f"{path.relative_to(root).as_posix()}: loads {name} (at {place}): {rule}"


def _models(root: Path, known: dict) -> Iterator[str]:
    """Check that a simulator's model and all its formulas import only the standard library, even later."""
    costs = [
        path
        for path in modules(root, "kernels")
        if path.stem.partition("_")[0] == "cost" or path.parent.name == "kernels" and path.stem in SHARED
    ]
    models = [path for path in modules(root, "widgets") if is_topic(path.parent)]
    for path in [*costs, *models]:
        for name, place in reached(path, root, lazy=True, known=known).items():
            if name not in STANDARD:
                yield f"{path.relative_to(root).as_posix()}: needs {name} (at {place}): standard library only"


def check(root: Path) -> list[str]:
    known = {}
    return [*_directions(root), *_floors(root), *_weights(root, known), *_models(root, known)]

"""List the graded cells of the labs that no check judges, for a person to grade."""

import json

from grader.paths import ROOT

KIND = "hand"


def is_there(notebook: str) -> bool:
    """Return whether a lab has it, for example 01_gemm_tiling/kernel.ipynb."""
    return (ROOT / "labs" / notebook).exists()


def rows() -> list[dict]:
    """Return rows in the form of `python -m grader questions --json`."""
    found = []
    for path in sorted(ROOT.glob("labs/*/*.ipynb")):
        slug = path.parent.name.partition("_")[2]
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            mark = cell["metadata"].get("nbgrader", {})
            if mark.get("task") or (mark.get("grade") and mark.get("solution")):
                found.append(
                    _row(f"{slug}.{mark['grade_id']}", f"{path.parent.name}/{path.name}", mark["points"])
                )
    return found


def _row(name: str, notebook: str, points: float) -> dict:
    part = {"name": "by hand", "points": points, "cpu": "a person", "gpu": "a person"}
    return {
        "id": name,
        "notebook": notebook,
        "kind": KIND,
        "points": points,
        "bonus": False,
        "asks": "graded by a person, by the rubric above the answer",
        "parts": [part],
    }

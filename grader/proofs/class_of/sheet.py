"""Edit a released notebook as a student's own copy. It is plain JSON, and its cells are found by name."""

import json
from pathlib import Path

from grader import questions
from grader.classroom.preprocessors import QUESTION


class Sheet:
    def __init__(self, lab: str, path: Path):
        self.lab, self.name = lab, path.name
        self.data = json.loads(path.read_text(encoding="utf-8"))

    @property
    def cells(self) -> list[dict]:
        return self.data["cells"]

    def cell(self, name: str) -> dict:
        return next(cell for cell in self.cells if cell.get("id") == name)

    def questions(self) -> dict:
        """Answer cell -> question, in the notebook's order."""
        asked = [QUESTION.search(source(cell)) for cell in self.cells if cell["id"].startswith("check_")]
        return {one[1].split(".")[1]: questions.find(one[1]) for one in asked if one}

    def texts(self) -> list[dict]:
        """The cells that a person will grade."""
        marks = [(cell, cell["metadata"].get("nbgrader", {})) for cell in self.cells]
        return [cell for cell, mark in marks if mark.get("grade") and mark.get("solution")]

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "timestamp.txt").write_text("2026-11-20 12:00:00.000000 UTC")
        path = folder / self.name
        path.write_text(json.dumps(self.data, indent=1, ensure_ascii=False), encoding="utf-8")
        return path


def source(cell: dict) -> str:
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def sheets(root: Path, lab: str) -> list[Sheet]:
    return [Sheet(lab, path) for path in sorted((root / "labs" / lab).glob("*.ipynb"))]


def code(text: str, name: str, **more) -> dict:
    """A code cell of a student's own."""
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "source": text,
        "outputs": [],
        "execution_count": None,
        **more,
    }

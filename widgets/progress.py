"""Show how far a learner has come, by each lab's checks with the best verdicts that the grader left on this machine."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECK = re.compile(r"""\bcheck\(\s*["']([\w.]+)["']""")
Best = Callable[[str], dict | None]  # a question's id -> its best Record as a plain dict, or None


@dataclass(frozen=True)
class Question:
    name: str  # gemm_tiling.reuse
    points: float
    standing: str  # 'passed', 'open' or 'not started'
    earned: float = 0.0
    bonus: float = 0.0  # comes on top of the lab's points


@dataclass(frozen=True)
class Lab:
    path: str  # 01_gemm_tiling/kernel
    title: str
    questions: tuple[Question, ...]

    @property
    def passed(self) -> int:
        return sum(one.standing == "passed" for one in self.questions)

    @property
    def started(self) -> bool:
        return any(one.standing != "not started" for one in self.questions)

    def says(self) -> str:
        if not self.started:
            return f"not started, {len(self.questions)} checks"
        earned, of = (sum(v) for v in zip(*((q.earned, q.points) for q in self.questions), strict=True))
        bonus = sum(q.bonus for q in self.questions)
        on_top = f" and {bonus:g} bonus point{'s' * (bonus != 1)}" if bonus else ""
        return f"{self.passed} of {len(self.questions)} checks passed, {earned:g} of {of:g} points{on_top}"


def _standing(name: str, points: float, best: Best) -> Question:
    """Read a Record, here and nowhere else. A Record in an unknown form counts as none."""
    try:
        record = best(name) or {}
        verdict, of = record.get("verdict"), float(record.get("of") or 1)
        share = min(1.0, max(0.0, float(record.get("points", 0)) / of))
    except (OSError, ValueError, TypeError, AttributeError):
        verdict, of, share = None, 0.0, 0.0
    if verdict is None:
        return Question(name, points, "not started")
    standing = "passed" if verdict == "PASS" else "open"
    return Question(name, points, standing, earned=points * share, bonus=0.0 if points else of * share)


def labs(root: Path, best: Best) -> list[Lab]:
    """Return the labs in the course's order, as students get them."""
    found = []
    for path in sorted((root / "labs").glob("[0-9][0-9]_*/*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells]
        title = next((m[1] for text in texts if (m := re.search(r"^# (.+)$", text, re.M))), path.stem)
        graded = [
            (match[1], float(cell["metadata"]["nbgrader"].get("points", 0)))
            for cell, text in zip(cells, texts, strict=True)
            if cell["metadata"].get("nbgrader", {}).get("grade") and (match := CHECK.search(text))
        ]
        questions = tuple(_standing(name, points, best) for name, points in graded)
        found.append(Lab(f"{path.parent.name}/{path.stem}", title, questions))
    return found


class Progress:
    """Hold what `progress(best_record)` shows in a notebook. Its links lead from course/."""

    def __init__(self, labs: list[Lab]):
        self.labs = labs

    def __repr__(self) -> str:
        lines = [f"{lab.title}: {lab.says()}" for lab in self.labs]
        return "\n".join(lines or ["No labs yet."])

    def _repr_html_(self) -> str:
        if not self.labs:
            return "<p>No labs yet.</p>"
        rows = "".join(self._row(lab) for lab in self.labs)
        first = next((lab for lab in self.labs if lab.passed < len(lab.questions)), None)
        words = "You haven't started a lab yet." if not any(lab.started for lab in self.labs) else ""
        if first:
            words += f' Next: <a href="../work/{first.path}.ipynb">{escape(first.title)}</a>.'
        head = '<tr><th scope="col">Lab</th><th scope="col">Passed</th><th scope="col"></th></tr>'
        return f"<p>{words.strip() or 'Every check has passed.'}</p><table><thead>{head}</thead><tbody>{rows}</tbody></table>"

    def _row(self, lab: Lab) -> str:
        share = f'<progress max="{len(lab.questions) or 1}" value="{lab.passed}" aria-label="{escape(lab.title)}"></progress>'
        link = f'<a href="../work/{lab.path}.ipynb">{escape(lab.title)}</a>'
        open_ones = [one.name.partition(".")[2] for one in lab.questions if one.standing == "open"]
        rest = f"<br><small>still open: {escape(', '.join(open_ones))}</small>" if open_ones else ""
        style = "text-align:left"
        return f'<tr><td style="{style}">{link}</td><td>{share}</td><td style="{style}">{lab.says()}{rest}</td></tr>'


def progress(best: Best, root: Path | None = None) -> Progress:
    """Return the learner's progress. `best` is `grader.best_record`, the only thing known here of the grader."""
    return Progress(labs(root or ROOT, best))

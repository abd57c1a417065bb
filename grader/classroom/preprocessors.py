"""Extend nbgrader's autograde chain. Judge replaces the execution of cells, and SaveGrades writes its results."""

import math
import re
from pathlib import Path

from nbformat.v4 import new_output
from nbgrader import utils
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from traitlets import Enum

from grader import questions
from grader.classroom import grading_round, record_for
from grader.classroom.exporter import NOT_READ
from grader.judge import report
from grader.judge.record import Record

QUESTION = re.compile(r"""check\(\s*["']([a-z0-9_]+\.[a-z0-9_]+)["']""")
FOR_A_PERSON = "<p><b>A person will look at this.</b> The grader could not settle it, which is not your doing and costs you nothing.</p>"


def answers_to_checks(notebook) -> dict[str, tuple[str, str | None]]:
    """check cell -> (question, source of its answer), as the instructor's notebook pairs them."""
    cells = {
        c.metadata.nbgrader.grade_id: c
        for c in notebook.cells
        if "grade_id" in c.metadata.get("nbgrader", {})
    }
    found = {}
    for name, cell in cells.items():
        if utils.is_grade(cell) and not utils.is_solution(cell) and cell.cell_type == "code":
            asked = QUESTION.search(cell.source)
            answer = cells.get(name.removeprefix("check_"))
            found[name] = (asked[1] if asked else "", answer.source if answer is not None else None)
    return found


class Judge(NbGraderPreprocessor):
    """Asks the referee for every graded cell, and runs nothing of the notebook itself."""

    mode = Enum(
        ("", "cpu", "gpu"), "", help="cpu or gpu, or empty for the mode of the lab's first round"
    ).tag(config=True)

    def preprocess(self, nb, resources):
        place = resources["nbgrader"]
        round_ = grading_round.open_round(
            Path(self.parent.parent.coursedir.root), place["assignment"], self.mode or None
        ).of(place["student"])
        resources["judged"], resources[NOT_READ] = {}, nb.metadata.get(NOT_READ, "")
        asked = answers_to_checks(nb)
        for cell in nb.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if name in asked:
                verdict = self._verdict(*asked[name], round_, resources[NOT_READ])
                resources["judged"][name] = verdict
                not_read = resources[NOT_READ]
                points = float(cell.metadata.nbgrader.points)
                cell.outputs = [waits(not_read) if not_read else output(verdict, points)]
                self.log.info(
                    "%s %s: %s, %g of %g", place["student"], name, verdict.verdict, verdict.points, verdict.of
                )
        return nb, resources

    def _verdict(
        self, question_id: str, source: str | None, round_: grading_round.GradingRound, not_read: str
    ) -> Record:
        if not_read:
            return record_for.no_verdict(question_id, round_.mode, not_read)
        if source is None or question_id not in questions.load():
            return record_for.no_verdict(
                question_id,
                round_.mode,
                f"{question_id or 'this cell'} has no question or no answer cell in this version of the course",
            )
        return record_for.verdict_of(source, question_id, round_)


def score(verdict: Record, most: float) -> float:
    """Return the cell's points, always a number nbgrader takes, even if the notebook gives a question other points."""
    share = verdict.points / verdict.of if verdict.of else 0.0
    return min(max(share * most, 0.0), most) if math.isfinite(share) else 0.0


def output(verdict: Record, most: float):
    """Return nbgrader's partial credit together with the output for people."""
    shown = verdict.for_feedback()
    html = (FOR_A_PERSON if verdict.unsettled else "") + report.html(shown)
    return new_output(
        "execute_result",
        {"text/plain": repr(float(score(verdict, most))), "text/html": html},
        execution_count=None,
    )


def waits(why: str):
    """Make the output for a notebook that can't be read. It gives and takes no points before a person has looked."""
    html = f"<p><b>A person will look at this.</b> {report.escaped(why)}.</p>"
    return new_output("execute_result", {"text/plain": "0.0", "text/html": html}, execution_count=None)


class SaveGrades(SaveAutoGrades):
    """Writes points into the gradebook. Unsettled cells stay open for a person, and bonus points come on top."""

    def _add_score(self, cell, resources):
        super()._add_score(cell, resources)
        name = cell.metadata.nbgrader["grade_id"]
        verdict = resources["judged"].get(name)
        open_ = bool(resources[NOT_READ]) or (verdict is not None and verdict.unsettled)
        bonus = (
            verdict is not None
            and verdict.question in questions.load()
            and questions.find(verdict.question).bonus
        )
        if not open_ and not bonus:
            return
        grade = self.gradebook.find_grade(name, self.notebook_id, self.assignment_id, self.student_id)
        if open_:
            grade.auto_score, grade.needs_manual_grade = None, True
        elif float(cell.metadata.nbgrader["points"]) == 0:
            grade.extra_credit = verdict.points
        self.gradebook.db.commit()

"""Answer the page's requests in the tab, from JSON to a report in JSON, with the same judge as in a notebook."""

import importlib
import json
import sys
import threading
import time
from types import SimpleNamespace
from uuid import uuid4

import grader
from grader import questions, trial
from grader.box import systems
from grader.judge import answer, record, referee, report
from grader.notebook import Stop
from grader.site.cells import Cells
from tilescope.front_end import stand_in

RANKS = "grader.jail.inside.ranks_answer"
PART = ("name", "state", "points", "asked", "came", "look")  # the page's data on each part of a verdict
ONE_OF = "One of {many} steps. In JupyterLab this cell walks through them."
CELLS = Cells()


def reply(request: str, say=None) -> str:
    """Answer {"what": "check", "case" or "cell", ...} with {"html", "seconds", ...}. `say` receives a check's
    progress."""
    asked = json.loads(request)
    ways = {"check": checked, "case": tried, "cell": ran}
    if asked["what"] not in ways:
        raise ValueError(f"what must be one of {', '.join(ways)}, got {asked['what']!r}")
    started = time.monotonic()
    found = ways[asked["what"]](asked, say or (lambda sentence: None))
    return json.dumps({**found, "seconds": round(time.monotonic() - started, 2)})


def asked_for(question_id: str) -> questions.Question:
    """Return a question, once this system can judge its kind."""
    question = questions.find(question_id)
    if question.kind == "ranks" and not systems.has_processes():
        without_threads()
    return question


def checked(asked: dict, say) -> dict:
    verdict = judged(asked["question"], asked["source"], say, asked.get("seed"))
    worth = {"verdict": report.title(verdict)[0], "points": verdict.points, "of": verdict.of}
    rows = [{key: getattr(one, key) for key in PART} for one in verdict.parts]
    return {
        "html": report.html(verdict),
        "text": str(verdict),
        "parts": rows,
        **worth,
        "open": verdict.open_points,
    }


def judged(question_id: str, source: str, say, seed: int | None = None) -> record.Record:
    """Judge an answer and keep its Record. `seed` makes a check repeatable, for tests."""
    question = asked_for(question_id)
    verdict = referee.grade_one(source, question, mode="cpu", seed=seed, eager=False, say=say)
    record.save(verdict)
    verdict.hints = list(question.hints)
    return verdict


def tried(asked: dict, say) -> dict:
    """Try one public case."""
    found = trial.of_source(asked_for(asked["question"]), asked["source"], asked.get("case", 0))
    return {"html": found._repr_html_(), "text": str(found)}


def ran(asked: dict, say) -> dict:
    """Run a cell of the lab, in the namespace of all cells."""
    offered(say)
    shown = CELLS.run(asked["cell"], asked["source"], asked["above"])
    return {"html": shown.html, "text": "", "failed": shown.failed}


def offered(say) -> None:
    """Give cells the functions that they call in a notebook. check and show need Jupyter there, but not in a page."""

    def check(question_id: str, function) -> record.Record:
        return judged(question_id, answer.of_object(function), say)

    stand_in.where_needed()  # for cells that import triton
    grader.check, grader.needs = check, needs
    widgets = importlib.import_module("widgets")
    widgets.show = still
    importlib.import_module("tilescope").show = step_shown


def needs(package: str) -> None:
    """Say what a lab's cells lack in a tab."""
    try:
        importlib.import_module(package)
    except ImportError:
        raise Stop(
            f"Cells of this lab need {package}, which no browser runs. Its answers are still tried and checked here."
        ) from None


def step_shown(what) -> SimpleNamespace:
    """Draw the step that a recording opens at. The stepper itself needs Jupyter's widgets."""
    from tilescope import page
    from tilescope.steps import Steps

    recording = getattr(what, "recording", what)
    drawn = (
        page.still(Steps(recording), f"step-{uuid4().hex[:8]}", ONE_OF)
        if recording
        else "<p>No program was recorded.</p>"
    )
    return SimpleNamespace(_repr_html_=lambda: drawn)


def still(name: str, measured: dict | None = None, predict: bool = False, **inputs):
    """Draw a simulator as it opens. The lab's own simulators are part of the page and move."""
    from widgets import static
    from widgets.registry import find
    from widgets.site.stills import opening

    declaration = find(name)
    page = static.page(declaration, opening(declaration, inputs), f"still-{uuid4().hex[:8]}")
    return SimpleNamespace(_repr_html_=lambda: page)


class AtOnce(threading.Thread):
    """Run a thread in its caller, for systems without threads."""

    def start(self) -> None:
        try:
            self.run()
        except Waits:
            pass


class Waits(BaseException):
    """Say that a rank waits for ever, so it goes no further."""


class Never:
    def wait(self) -> None:
        raise Waits


def without_threads() -> None:
    """Let a rank of an answer end where it would wait in a thread of its own, which a tab doesn't have."""
    for name in ("frames", "printed"):  # as a box finds them on its path
        sys.modules.setdefault(name, importlib.import_module(f"grader.box.serve.{name}"))
    ranks = importlib.import_module(RANKS)
    ranks.threading = SimpleNamespace(Thread=AtOnce, Event=Never, stack_size=lambda many: 0)

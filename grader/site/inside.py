"""What runs in the tab: a request of the page as JSON in, a report as JSON out. The same judge as in a notebook."""

import json
import time

from grader import questions, trial
from grader.judge import answer, parts, referee, report


def reply(request: str) -> str:
    """Answer {"what": "check" or "run", "question", "source", "case"} with {"html", "verdict", "points", "of", "seconds"}."""
    asked = json.loads(request)
    ways = {"check": checked, "run": tried}
    if asked["what"] not in ways:
        raise ValueError(f"what must be one of {', '.join(ways)}, got {asked['what']!r}")
    started = time.monotonic()
    found = ways[asked["what"]](questions.find(asked["question"]), asked["source"], asked.get("case", 0))
    return json.dumps({**found, "seconds": round(time.monotonic() - started, 2)})


def checked(question, source: str, _case) -> dict:
    verdict = referee.grade_one(source, question, mode="cpu", eager=False)
    verdict.hints = list(question.hints)
    worth = {"verdict": report.title(verdict)[0], "points": verdict.points, "of": verdict.of}
    return {"html": report.html(verdict), "text": str(verdict), **worth, "open": verdict.open_points}


def tried(question, source: str, case) -> dict:
    try:
        source = answer.normalise(source)
        answer.require_parses(source)
    except answer.Refused as trouble:
        found = trial.Trial(error=str(trouble))
    else:
        evidence = parts.gather(question, source, seed=0)
        found = trial.RUNS[type(evidence)](evidence, case)
    return {"html": found._repr_html_(), "text": str(found)}

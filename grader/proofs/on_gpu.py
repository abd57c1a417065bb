"""Compare answers in CPU and in GPU mode. Solutions, honest forms and wrong answers must get the same verdicts.

python -m grader suites-on-gpu [--honest N] [--wrong N] [--closed N] [--question ID] [--json FILE] [--seconds S]

Needs a GPU. Parts whose evidence a GPU changes (the clock instead of counted bytes) aren't compared. --closed N
judges N wasteful or useless answers in GPU mode alone, and none may keep all its points.
"""

import argparse
import json
import time
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path

from grader.bench import gpu
from grader.judge import record, referee
from grader.proofs import closed, honest
from grader.proofs import wrong as zoo
from grader.proofs.right import kernel_questions, right

SEED = 2026


def answers(question, forms: int, wrongs: int) -> dict[str, str]:
    """Return name -> cell for the solution, then honest forms and wrong answers, sampled evenly."""
    found = {"solution": right(question.id)}
    for name in honest.sample([n for n in honest.forms(question) if n != honest.AS_IT_STANDS], forms):
        found[f"honest: {name}"] = honest.source(question, name)
    for name in honest.sample(list(zoo.table(question)), wrongs):
        found[f"wrong: {name}"] = zoo.source(question, zoo.table(question)[name])
    return found


def judged(question, source: str, mode: str) -> dict:
    started = time.monotonic()
    verdict = referee.grade_one(source, question, mode=mode, seed=SEED)
    both = {p.name for p in question.parts if not p.gpu}
    parts = {p.name: [p.state, p.points, p.came[:200]] for p in verdict.parts}
    lost = sorted(p.name for p in verdict.parts if p.state != "PASS" and p.name in both)
    return {
        "verdict": verdict.verdict,
        "lost": lost,
        "message": verdict.message,
        "parts": parts,
        "seconds": round(time.monotonic() - started, 1),
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader suites-on-gpu", description=__doc__)
    parser.add_argument("--honest", type=int, default=99)
    parser.add_argument("--wrong", type=int, default=99)
    parser.add_argument("--question")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--closed", type=int, default=0, metavar="N")
    options = parser.parse_args(argv)
    until, rows = time.monotonic() + options.seconds, []
    head = {
        "gpu": gpu.name(),
        "versions": record.versions(),
        "date": datetime.now(UTC).isoformat("T", "seconds"),
    }
    if options.closed:
        return closed_alone(options, until, head)
    for question in kernel_questions():
        if options.question not in (None, question.id):
            continue
        for name, source in answers(question, options.honest, options.wrong).items():
            if time.monotonic() > until:
                break
            row = {"question": question.id, "answer": name}
            row |= {mode: judged(question, source, mode) for mode in ("cpu", "gpu")}
            row["same"] = row["cpu"]["lost"] == row["gpu"]["lost"]
            rows.append(row)
            said = [
                f"{mode} {row[mode]['verdict']} {','.join(row[mode]['lost'])} {row[mode]['seconds']}s"
                for mode in ("cpu", "gpu")
            ]
            print("same  " if row["same"] else "OTHER ", question.id, "|", name, "|", *said, flush=True)
            if options.json:
                options.json.write_text(json.dumps({**head, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    return 0 if rows and all(row["same"] for row in rows) else 1


def closed_alone(options, until: float, head: dict) -> int:
    """Judge answers of the suite closed here, equally many for every question, in different ways."""
    rows, tasks = [], spread(options.closed, options.question)
    for task in tasks:
        if time.monotonic() > until:
            break
        started = time.monotonic()
        found, verdict = closed.judged(*task, mode="gpu")
        lost = [part.name for part in verdict.parts if part.state != "PASS"] if verdict else []
        row = dict(zip(closed.TASK, task, strict=True), found=found, lost=lost)
        row |= {"verdict": verdict.verdict if verdict else "", "message": verdict.message if verdict else ""}
        rows.append(row | {"seconds": round(time.monotonic() - started, 1)})
        print(f"{found:<9}", ", ".join(task), ",".join(lost), f"{rows[-1]['seconds']}s", flush=True)
        if options.json:
            options.json.write_text(json.dumps({**head, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    return 0 if rows and all(row["found"] != closed.LIVES for row in rows) else 1


def spread(count: int, question: str | None = None) -> list[tuple[str, str, str]]:
    """Return this number of kernel questions' tasks, one question at a time, each question beginning with another
    way."""
    each = []
    for place, one in enumerate(kernel_questions()):
        if question in (None, one.id):
            mine = [task for task in closed.tasks(True, one.id) if task[2] == closed.EVERYWHERE]
            each.append([*mine[place % len(mine) :], *mine[: place % len(mine)]])
    return [task for turn in zip_longest(*each) for task in turn if task][:count]

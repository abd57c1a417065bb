"""Measure a check of each question's right answer, in seconds on the clock, in processor seconds and by step.

    python -m grader times [QUESTION ...] [--mode gpu] [--json FILE]

Each question is judged twice in a process of its own. The first run is cold, as on the command line, and the second
is warm, as in a notebook that has checked before. Processor seconds are those of the referee and the jails. On a
busy machine they say more."""

import argparse
import json
import multiprocessing
import sys
import time
from pathlib import Path

from grader import questions, verdicts
from grader.box import warm
from grader.judge import referee
from grader.proofs.right import CELL, right

ROOT = Path(__file__).parents[2]


def answer(question) -> str:
    """Return the solution's cell, or the tests' own if there is no solution yet."""
    path = (ROOT / "solutions" / question.notebook_path).with_suffix(".md")
    cells = dict(CELL.findall(path.read_text(encoding="utf-8"))) if path.exists() else {}
    return cells.get(question.name) or right(question.id)


def judged(question_id: str, source: str, mode: str) -> dict:
    """Time one check, with the first and last moment of each of its steps."""
    question, steps = questions.find(question_id), {}
    started, used = time.monotonic(), time.process_time() + warm.cpu_s()

    def say(sentence: str) -> None:
        now = round(time.monotonic() - started, 2)
        name = sentence.split(" … ")[0]
        steps[name] = [steps.get(name, [now])[0], now]

    verdict = referee.grade_one(source, question, mode=mode, say=say)
    wall, cpu = time.monotonic() - started, time.process_time() + warm.cpu_s() - used
    came = [p.came for p in verdict.parts if p.state != "PASS"] + [verdict.message] * bool(verdict.message)
    return {
        "verdict": verdict.verdict,
        "points": verdict.points,
        "of": verdict.of,
        "wall_s": round(wall, 2),
        "cpu_s": round(cpu, 2),
        "steps": steps,
        "came": came,
        "level": verdict.level,
        "parts": {p.name: [p.state, p.points, p.of, p.evidence, p.came] for p in verdict.parts},
        "speed": {
            k: p.facts[k]
            for p in verdict.parts
            for k in ("ratio", "low", "high", "seconds", "bar_seconds")
            if k in p.facts
        },
    }


def both(question_id: str, source: str, mode: str, send) -> None:
    """Time a cold and a warm check in this process, which ends with them."""
    try:
        send.send(
            {
                "question": question_id,
                "cold": judged(question_id, source, mode),
                "warm": judged(question_id, source, mode),
            }
        )
    finally:
        warm.stop_all()


def measure(question_id: str, source: str, mode: str) -> dict:
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=both, args=(question_id, source, mode, send))
    process.start()
    send.close()
    try:
        return receive.recv()
    except EOFError:
        return {"question": question_id, "failed": f"the measuring process ended with {process.exitcode}"}
    finally:
        process.join()


def line(row: dict) -> str:
    if "failed" in row:
        return f"{row['question']:<36} {row['failed']}"
    numbers = "".join(f"{row[k]['wall_s']:9.2f}{row[k]['cpu_s']:8.2f}" for k in ("cold", "warm"))
    return f"{row['question']:<36} {row['cold']['verdict']:<6}{numbers}" + "".join(
        f"\n    {came}" for came in row["cold"]["came"]
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m grader times",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("question", nargs="*")
    parser.add_argument("--mode", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    try:
        chosen = [questions.find(name).id for name in options.question] or list(questions.load())
    except ValueError as error:
        print(f"python -m grader times: {error}", file=sys.stderr)
        return verdicts.WRONG_USAGE
    print(f"{'question':<36} {'':<6}{'cold s':>9}{'cpu s':>8}{'warm s':>9}{'cpu s':>8}")
    rows = []
    for question_id in chosen:
        rows.append(measure(question_id, answer(questions.find(question_id)), options.mode))
        print(line(rows[-1]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row.get("cold", {}).get("verdict") == "PASS" for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())

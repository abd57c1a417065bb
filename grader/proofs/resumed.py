"""Judge a suite's answers one by one, so that a record (--record FILE) keeps each result and a later run goes on there."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from grader.proofs import pool
from grader.proofs.wrong import sample

LIVES, DIES, NOT_MADE = "lives", "dies", "not made"


def rows_of(record: Path, names: tuple[str, ...], asked: list[tuple]) -> list[dict]:
    """Return what a record has of answers that are still asked."""
    if not record.exists():
        return []
    found, still = json.loads(record.read_text(encoding="utf-8"))["rows"], set(asked)
    return [row for row in found if tuple(row[name] for name in names) in still]


def keep(rows: list[dict], record: Path) -> None:
    """Write all rows, and of each question the share that dies."""
    shares = {}
    for name in dict.fromkeys(row["question"] for row in rows):
        found = Counter(row["found"] for row in rows if row["question"] == name)
        shares[name] = {"die": found[DIES], "of": found[DIES] + found[LIVES], "not made": found[NOT_MADE]}
    data = {"date": datetime.now(UTC).isoformat("T", "seconds"), "shares": shares, "rows": rows}
    record.parent.mkdir(parents=True, exist_ok=True)
    there = record.with_suffix(".new")
    there.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    there.replace(record)


def run(
    names: tuple[str, ...],
    asked: list[tuple],
    ever_asked: list[tuple],
    judge: Callable,
    say: Callable,
    jobs: int = 1,
    record: Path | None = None,
) -> tuple[list[dict], list[str]]:
    """Return (a row for each answer that was made, the survivors). `names` are those of a task's parts. Answers already in a
    record aren't judged again."""
    rows = rows_of(record, names, ever_asked) if record else []
    done = {tuple(row[name] for name in names) for row in rows}
    asked = [task for task in asked if task not in done]
    if record:  # what is there when it ends speaks of all questions
        of_name = {": ".join(task): task for task in asked}
        asked = [of_name[name] for name in sample(list(of_name), len(of_name))]
    for task, found in pool.with_signs_of_life(pool.judged(judge, asked, jobs), asked):
        date = datetime.now(UTC).isoformat("T", "seconds")
        rows.append(dict(zip(names, task, strict=True), found=found, date=date))
        say({name: value for name, value in rows[-1].items() if name != "date"})
        if record:
            keep(rows, record)
    lives = [row for row in rows if row["found"] == LIVES]
    broken = [f"{', '.join(row[name] for name in names)}: lives with all its points" for row in lives]
    made = [row for row in rows if row["found"] != NOT_MADE]
    died = len(made) - len(lives)
    summary = dict.fromkeys(names, "") | {names[0]: "all", names[1]: f"{died} of {len(made)} die"}
    if len(names) > 2:
        summary[names[2]] = f"{len(rows) - len(made)} not made"
    say(summary | {"found": f"{died / max(1, len(made)):.1%}"})
    return rows, broken

"""Report how the class fared with a lab, as one page and as data (python -m grader report LAB)."""

import argparse
import json
import sys
from pathlib import Path

from grader.classroom import grading_round, storage_errors
from grader.classroom.report import facts, page, side_by_side
from grader.classroom.report.facts import STATES, Facts
from grader.judge.report import visible
from grader.paths import ROOT, from_here

PLACE = Path("work/report")  # below the course's root, where git ignores it


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m grader report", description=__doc__)
    parser.add_argument("lab", metavar="LAB", help="a folder of labs/, such as 01_gemm_tiling")
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"instead of {PLACE}")
    parser.add_argument(
        "--earlier",
        nargs="+",
        default=[],
        type=Path,
        metavar="DIR",
        help="submitted/ of earlier terms, whose answers are compared with this class's",
    )
    parser.add_argument(
        "--question",
        default="",
        metavar="NAME",
        help="instead, one question's answers of all students on one page",
    )
    wants = parser.parse_args(argv)
    try:
        found = facts.gather(ROOT, wants.lab, _say, wants.earlier, compare=not wants.question)
        folder = wants.out or ROOT / PLACE
        folder.mkdir(parents=True, exist_ok=True)
        if wants.question:
            for asked in side_by_side.find(found, wants.question):
                path = folder / f"{wants.lab}.{asked.notebook}.{asked.name.rpartition('.')[2]}.html"
                grading_round.write(path, side_by_side.html(found, asked), replace=True)
                print(f"{from_here(path)}: {len(asked.written)} answers")
            return 0
        grading_round.write(folder / f"{wants.lab}.html", page.html(found), replace=True)
        grading_round.write(
            folder / f"{wants.lab}.json", json.dumps(as_json(found), indent=1) + "\n", replace=True
        )
    except (ValueError, OSError) as error:
        return storage_errors.refused("report", error)
    print(
        f"{from_here(folder / wants.lab)}.html: {len(found.entered)} students, {len(found.asked)} questions, with the data next to it"
    )
    return 0


def _say(line: str) -> None:
    print(visible(line), file=sys.stderr, flush=True)


def as_json(found: Facts) -> dict:
    """The page's numbers, without any answer."""
    return {
        "lab": found.lab,
        "mode": found.mode,
        "students": [
            {"student": one.student, "points": one.points, "of": one.of, "waiting": one.waiting}
            for one in found.entered
        ],
        "questions": [
            {
                "question": one.name,
                "notebook": one.notebook,
                "of": one.of,
                "by_hand": one.by_hand,
                "bonus": one.bonus,
                "states": {state: one.count(state) for state in STATES},
                "mistakes": [
                    {"what": w, "recognised": k, "students": n} for (w, k), n in one.mistakes.most_common()
                ],
                "identical": one.alike.identical,
                "alike": [
                    {"students": [p.one.whose, p.other.whose], "share": round(p.share, 3)}
                    for p in one.alike.pairs
                ],
            }
            for one in found.asked
        ],
        "inconclusive": found.inconclusive,
        "not_judged": found.not_judged,
    }

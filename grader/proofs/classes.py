"""Grade a class of 100 with ten hostile students, and check that the ninety honest grades are the same without the
ten.

The class is graded twice, without and with hostile students, by the class command itself in two temporary copies of
the course, with the same secret seeds. Then everything that either left is compared.
"""

import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from grader.judge.record import INCONCLUSIVE
from grader.proofs.class_of import hidden, honest, hostile, outcome, page, promises
from grader.proofs.class_of.course import CHECKOUT, Course, Said
from grader.proofs.class_of.sheet import sheets

SEED = 2026
MOST_LABS = 4  # that one hostile student hands in
EVERY_S = 10  # between two lines of progress


@dataclass(frozen=True)
class Cohort:
    """The students and their hand-ins. `few` limits the sample to cheap kernel answers."""

    labs: list[str]
    honest: int
    labs_each: int
    themes: tuple[str, ...]
    few: bool

    def honest_of(self, lab: str) -> list[str]:
        turn, count = self.labs.index(lab), len(self.labs)
        return [name for i, name in enumerate(self.names()) if (turn - i) % count < self.labs_each]

    def themes_of(self, lab: str) -> list[str]:
        """Return all ten themes in a course of few labs. In a course of many labs each hands in some, because its
        limits cost time."""
        turn, count = self.labs.index(lab), len(self.labs)
        return [theme for i, theme in enumerate(self.themes) if (turn - i) % count < MOST_LABS]

    def names(self) -> list[str]:
        return [f"u{number}" for number in random.Random(SEED).sample(range(1000, 10_000), self.honest)]

    def hostile_ids(self) -> dict[str, str]:
        rng = random.Random(SEED + 1)
        return {
            theme: f"u{number}x"
            for theme, number in zip(
                self.themes, rng.sample(range(1000, 10_000), len(self.themes)), strict=True
            )
        }


def cohort(everything: bool, question: str | None = None) -> Cohort:
    labs = sorted(path.name for path in (CHECKOUT / "labs").iterdir() if any(path.glob("*.ipynb")))
    if question:
        labs = [lab for lab in labs if lab.endswith(question.split(".")[0])]
    if everything:
        return Cohort(labs, 90, min(2, len(labs)), tuple(hostile.THEMES), few=False)
    return Cohort([lab for lab in labs if "gemm_tiling" in lab] or labs[:1], 3, 1, hostile.SAMPLE, few=True)


def run(everything: bool, say, question: str | None = None, jobs: int = 2) -> tuple[list[dict], list[str]]:
    wanted = cohort(everything, question)
    if not wanted.labs:
        return [], []
    with tempfile.TemporaryDirectory(prefix="class_") as folder:
        return prove(Path(folder), wanted, say, jobs)


def prove(
    folder: Path, wanted: Cohort, say, jobs: int = 2, walls: dict[str, str] | None = None
) -> tuple[list[dict], list[str]]:
    """Return (rows of the table, violations). `walls` maps a module to code that removes one of the grader's walls,
    to see it missed."""
    folder.chmod(0o755)  # boxes have users of their own, which need access
    alone, mixed = (Course(folder / name, wanted.labs).make() for name in ("without", "with"))
    enemies = hand_in(wanted, alone, mixed)
    for module, code in (walls or {}).items():
        mixed.break_a_wall(module, code)
    before = outcome.tree(mixed.place)
    with ThreadPoolExecutor(max(1, min(jobs, 2))) as pool:
        graded = list(pool.map(_grade, (alone, mixed), ("without", "with")))
    changed = promises.untouched(before, outcome.tree(mixed.place), {one.student for one in enemies})
    broken = changed + [f"still running: {words}" for words in outcome.left_running(folder)]
    rows = []
    for lab in wanted.labs:
        rows += _lab(
            wanted,
            lab,
            alone,
            mixed,
            [g[lab] for g in graded],
            [e for e in enemies if e.lab == lab],
            say,
            broken,
        )
    broken += promises.finite(alone) + promises.finite(mixed)
    return rows, broken


def hand_in(wanted: Cohort, alone: Course, mixed: Course) -> list[hostile.HandedIn]:
    """Fills submitted/ of both courses, in an order that puts hostile students among the honest."""
    enemies, ids, labs_of = [], wanted.hostile_ids(), Counter()
    for place, lab in enumerate(wanted.labs):
        honest_ones, rng = wanted.honest_of(lab), random.Random(f"{SEED} {lab}")
        for student in honest_ones:
            honest.hand_in(alone, student, lab, wanted.few)
        order = [*honest_ones, *wanted.themes_of(lab)]
        rng.shuffle(order)
        for one in order:
            if one not in wanted.themes:
                honest.hand_in(mixed, one, lab, wanted.few)
                continue
            victim = rng.choice(honest_ones)
            student, refused = hostile.odd_name(place, victim) if one == "names" else (ids[one], False)
            enemies.append(hostile.hand_in(mixed, one, lab, student, victim, labs_of[one]))
            labs_of[one] += 1
            enemies[-1].refused = refused
    return enemies


def _grade(course: Course, name: str) -> dict[str, tuple[Said, Said]]:
    """Every lab through the class command and nbgrader's feedback, as the instructor gives them."""
    done, heard = {}, [time.monotonic()]

    def hear(line: str) -> None:
        if time.monotonic() - heard[0] > EVERY_S:
            heard[0] = time.monotonic()
            print(f"  {name} hostile students, {lab}: {line}", file=sys.stderr, flush=True)

    for lab in course.labs:
        done[lab] = course.grade(lab, hear), course.feedback(lab)
    return done


def _lab(wanted, lab, alone, mixed, said, enemies, say, broken) -> list[dict]:
    """Compare one lab's outcome. Return a row for the honest, and one for each hostile student."""
    (quiet, quiet_pages), (loud, loud_pages) = said
    for one, what in ((quiet, "without"), (loud, "with")):
        broken += promises.quiet(one, f"{lab} {what}")
        if one.code not in (0, 3):
            broken.append(
                f"{lab} {what}: the class command must end with 0 or 3, got {one.code}: {one.lines[-3:]}"
            )
    broken += [
        f"{lab}: generate_feedback must end with 0, got {s.code}: {s.lines[-3:]}"
        for s in (quiet_pages, loud_pages)
        if s.code
    ]
    before, after = promises.rows_of(quiet), promises.rows_of(loud)
    honest_ones = wanted.honest_of(lab)
    wrong = promises.same(honest_ones, (before, after), alone, mixed)
    numbers = hidden.numbers(mixed, lab)
    wrong += [line for student in honest_ones for line in hidden.leaks(mixed, lab, student, numbers)]
    rows = [_honest_row(lab, honest_ones, before, after, quiet, wrong)]
    broken += wrong
    say(rows[0])
    for one in enemies:
        rows.append(_hostile_row(one, mixed, after, loud, numbers, broken))
        say(rows[-1])
    return rows


def _honest_row(lab: str, names: list[str], before: dict, after: dict, quiet: Said, wrong: list[str]) -> dict:
    points = [before[name]["points"] for name in names if name in before]
    open_ = sum(INCONCLUSIVE in row["verdicts"].values() for row in before.values())
    return {
        "lab": lab,
        "who": f"{len(names)} honest students",
        "points": f"{min(points, default=0):g} to {max(points, default=0):g}",
        "seconds": round(quiet.seconds, 1),
        "told": "the same with hostile students" if not wrong else f"{len(wrong)} differences",
        "not settled": open_,
    }


def _hostile_row(one, course: Course, rows: dict, loud: Said, numbers: dict, broken: list[str]) -> dict:
    row = rows.get(one.student)
    adds = promises.added(loud, one.student)
    if row is None:
        broken.append(f"{one.student!r} {one.lab}: must have a row, got none")
        row = {"points": 0.0, "said": [], "trouble": "no row", "why": {}, "of": 0}
    wrong = promises.hostile_reads_what_was_wrong(one, row, course) + page.nothing_acts(
        course, one.lab, one.student
    )
    wrong += hidden.leaks(course, one.lab, one.student, numbers)
    most = promises.longest([q for sheet in sheets(course.root, one.lab) for q in sheet.questions().values()])
    if adds > most:
        wrong.append(f"{one.student!r} {one.lab}: must add at most {most:.0f} s, got {adds:.0f}")
    broken += wrong
    return {
        "lab": one.lab,
        "who": one.theme,
        "points": f"{row['points']:g}",
        "seconds": round(adds, 1),
        "told": promises.sentence(one, row, course),
        "attacks": [attack.what for attack in one.attacks],
    }


def words(row: dict) -> list[str]:
    return [row["lab"], row["who"], row["points"], f"{row['seconds']:g} s", row["told"]]

"""Judge all collected submissions of a lab and fill the gradebook (python -m grader class LAB)."""

import argparse
import json
import shlex
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from grader import box
from grader.box import warm
from grader.classroom import atomic_file, carried, decided, grading_round, leftovers, lock, storage_errors
from grader.classroom.grading_round import GradingRound
from grader.classroom.jobs import arguments, job
from grader.classroom.progress import Bar
from grader.classroom.submission import NOTHING, few, together
from grader.judge import record
from grader.judge.report import visible

ROOT = Path(__file__).parents[2]
MOST_SAME = 4  # rows that repeat a sentence, and names in front of one that more rows share
GONE = "Put it back, or remove the rest: python -m grader student NAME --delete"


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(record.WRONG_USAGE, f"{self.prog}: {message}. `ls labs` shows the labs\n")


def main(argv: list[str]) -> int:
    parser = Parser(prog="python -m grader class", description=__doc__)
    parser.add_argument("lab", metavar="LAB", help="a folder of labs/, such as 01_gemm_tiling")
    parser.add_argument(
        "--mode", choices=("cpu", "gpu"), help="kind of evidence (a lab keeps that of its first round)"
    )
    parser.add_argument("--student", action="append", default=[], help="only this one (may be given again)")
    parser.add_argument(
        "--anew",
        action="store_true",
        help="draw new hidden cases and judge every answer again, of the named students or of all",
    )
    parser.add_argument("--why", default="", metavar="REASON", help="why it is judged again, kept in a log")
    parser.add_argument(
        "--by", default="", metavar="NAME", help="the person who decided, if it is not this user"
    )
    parser.add_argument(
        "--as-empty",
        nargs="+",
        default=[],
        metavar="NAME",
        help="students whose unreadable hand-in counts as an empty lab, with --why as the reason",
    )
    parser.add_argument(
        "--new-lab",
        action="store_true",
        help="go over to the present labs/LAB, although an older form was graded",
    )
    parser.add_argument(
        "--from", dest="source", default="", metavar="ADDRESS", help="an earlier gradebook to carry over from"
    )
    parser.add_argument("--all", action="store_true", help="list all rows, not only those that changed")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    arguments.add(parser)
    wants = parser.parse_args(argv)
    try:
        with Bar() as say, lock.held(ROOT, f"grading {wants.lab}", say):
            round_, rows = _run(wants, say)
    except (ValueError, box.BoxError, lock.Busy, storage_errors.CannotKeep) as error:
        print(f"python -m grader class: {error}", file=sys.stderr)
        return record.WRONG_USAGE if isinstance(error, ValueError) else record.EXIT[record.INCONCLUSIVE]
    except KeyboardInterrupt:
        print(
            "python -m grader class: stopped. All verdicts so far are kept, and the next run goes on from there",
            file=sys.stderr,
        )
        return 128 + signal.SIGINT
    except Exception as error:
        if not (sentence := storage_errors.plain(error)):
            raise
        print(f"python -m grader class: {sentence}", file=sys.stderr)
        return record.EXIT[record.INCONCLUSIVE]
    finally:
        warm.stop_all()
    print(
        json.dumps(as_json(round_, rows), indent=1)
        if wants.json
        else text(round_, rows, wants.all or bool(wants.student))
    )
    return _exit_code(rows)


def _exit_code(rows: list) -> int:
    """3 if the grader had trouble of its own, else 1 if a person has to decide about a hand-in, else 0."""
    if any(row.unsettled or row.trouble and not row.decide for row in rows):
        return record.EXIT[record.INCONCLUSIVE]
    return record.EXIT[record.FAIL] if any(row.decide for row in rows) else 0


def _run(wants: argparse.Namespace, say) -> tuple[GradingRound, list]:
    from grader.classroom import grade_class

    alone = bool(wants.student)
    if wants.anew and alone and not wants.why.strip():
        raise ValueError(
            'why must be given where a student\'s work is judged again, got none. Add --why "..."'
        )
    if wants.as_empty and not wants.why.strip():
        raise ValueError('why must be given where a hand-in counts as empty, got none. Add --why "..."')
    if (wants.why or wants.by) and not (wants.anew or wants.as_empty):
        raise ValueError(
            "--why and --by must come with --anew or --as-empty, got neither. Add --anew or --as-empty"
        )
    if wants.new_lab and alone:
        raise ValueError(
            "--new-lab must be for the whole class, got --student. Leave out --new-lab or --student"
        )
    fresh = wants.anew and not alone
    round_ = prepare(ROOT, wants.lab, wants.mode, fresh, wants.new_lab, wants.source, say)
    if wants.as_empty:
        decided.as_empty(round_, wants.as_empty, wants.by or lock.me(), wants.why.strip())
    anew = grade_class.Anew(wants.by or lock.me(), wants.why.strip(), alone) if wants.anew else None
    with arguments.judges(wants, round_, say) as (round_, each):
        return round_, grade_class.grade(round_, wants.student, say=say, each=each, anew=anew)


def prepare(
    root: Path,
    lab: str,
    mode: str | None = None,
    anew: bool = False,
    new_lab: bool = False,
    source: str = "",
    say: Callable = print,
) -> GradingRound:
    """Return the lab's round, after checking that the class can be judged. Raise ValueError or BoxError otherwise.

    `new_lab` accepts a lab that was changed after it was graded. `source` is an earlier gradebook's address.
    """
    job.require_box()
    if not grading_round.NAME.fullmatch(lab) or not any((root / "labs" / lab).glob("*.ipynb")):
        raise ValueError(
            f"lab must be a folder of labs/ with notebooks, got {lab!r}. `ls labs` shows the labs"
        )
    from grader.classroom import gradebooks

    carried.prepare(root, lab, new_lab, source, say)
    if trouble := gradebooks.register(root, lab, carried.lost):
        raise ValueError(trouble)
    carried.due_and_names(root, lab)
    return grading_round.open_round(root, lab, mode, anew)


def as_json(round_: GradingRound, rows: list) -> dict:
    return {
        "lab": round_.lab,
        "mode": round_.mode,
        "epoch": round_.epoch,
        "unused": leftovers.in_class(round_.root),
        "without_folder": without_folder(round_),
        "students": [asdict(row) | {"final": row.final} for row in rows],
    }


def without_folder(round_: GradingRound) -> list[str]:
    """Students whom the gradebook has an entry of and submitted/ has nothing of."""
    from grader.classroom import gradebooks

    with gradebooks.opened(round_.root, round_.lab) as gradebook:
        names = [one.student.id for one in gradebook.find_assignment(round_.lab).submissions]
    return sorted(name for name in names if not (round_.root / "submitted" / name / round_.lab).exists())


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _state(row) -> str:
    """Return the note next to a total that says whether it is final."""
    cells = "1 cell waits" if row.waits == 1 else f"{row.waits} cells wait"
    return f"not final: {cells} for a person" if row.waits else "final"


def _shared(rows: list) -> dict[str, list[str]]:
    """Return the sentences that many rows have in common, each with its students: they are printed once."""
    whose: dict[str, list[str]] = {}
    for row in rows:
        for said in together(row.said):
            whose.setdefault(said, []).append(row.student)
    return {said: students for said, students in whose.items() if len(students) > MOST_SAME}


def _some(names: list[str]) -> str:
    return f"{', '.join(names[:MOST_SAME])} and {len(names) - MOST_SAME} more"


def text(round_: GradingRound, rows: list, all_: bool = False) -> str:
    """Return a line for each student whose row changed, or for all, any problems below it, and the remaining tasks."""
    names = {row.student: visible(row.student) for row in rows}
    listed = [row for row in rows if all_ or not row.unchanged or row.trouble or row.unsettled]
    wide = max((len(names[row.student]) for row in listed), default=0)
    lines = [f"{round_.lab}, {round_.mode} mode, {_count(len(rows), 'submission')}"]
    shared = _shared(listed)
    gone = [visible(name) for name in without_folder(round_)]
    for row in listed:
        begun = [verdict for name, verdict in row.verdicts.items() if name not in row.not_started]
        counts = [f"{n} {v}" for v in record.EXIT if (n := begun.count(v))]
        found = ", ".join(counts + [f"{len(row.not_started)} not started"] * bool(row.not_started))
        points = f"{row.total}, {_state(row)}"
        state = f"not entered: {row.trouble}" if row.trouble else f"{points}  {found}"
        lines.append(f"  {names[row.student]:<{wide}}  {state}{'  as before' if row.unchanged else ''}")
        own = [said for said in together(row.said) if said not in shared]
        lines += [f"  {'':<{wide}}  {said}" for said in own + row.regraded]
        lines += [f"  {'':<{wide}}  not settled: {name}: {why}" for name, why in row.why.items()]
    lines += [f"  {_some([names[one] for one in whose])}: {said}" for said, whose in shared.items()]
    if hidden := len(rows) - len(listed):
        lines.append(f"  as before: {_count(hidden, 'student')}. --all lists all rows")
    lines += [f"in the gradebook without a folder in submitted/: {', '.join(gone)}. {GONE}"] * bool(gone)
    lines += few([f"not used: {said}" for said in leftovers.in_class(round_.root)])
    by_hand, open_ = sum(len(r.by_hand) for r in rows), sum(len(r.unsettled) for r in rows)
    lines.append(f"to be graded by hand: {_count(by_hand, 'cell')}")
    if open_:
        lines.append(
            f"not settled, by the grader's own trouble: {_count(open_, 'cell')} without points. Run this again first"
        )
    if failed := sum(bool(r.trouble) for r in rows):
        lines.append(
            f"not entered: {_count(failed, 'submission')}; {atomic_file.PLACE}/{round_.lab}.log says more"
        )
    without = [row for row in rows if row.trouble == NOTHING or row.unread and not row.final]
    if unread := [shlex.quote(names[row.student]) for row in without]:
        names_ = " ".join(unread)
        lines.append(
            f'ask for the notebooks, or let them count as empty labs: --as-empty {names_} --why "..."'
        )
    return "\n".join(lines)

"""The grader on the command line."""

import argparse
import json
import signal
import sys
from pathlib import Path

from grader.box import systems
from grader.judge import record

# Notebook readers import this if it is installed, to know addresses in all alphabets, which no notebook needs. Its
# import builds a parser, which takes 1.4 s of each command.
sys.modules.setdefault("rfc3987_syntax", None)

EXIT_USAGE = record.WRONG_USAGE


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


def main(argv: list[str] | None = None) -> int:
    systems.speak_utf8()
    parser = Parser(prog="python -m grader", description="Judge answers, build labs, look at this machine.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    one = commands.add_parser(
        "check", help="judge one answer: a file with its cell's source, or its cell in the lab's notebook"
    )
    one.add_argument("question")
    one.add_argument(
        "answer",
        nargs="?",
        help="a file with the cell's source, the lab's notebook, or - for standard input (default: the notebook in work/)",
    )
    one.add_argument("--mode", choices=("cpu", "gpu"), default=None)
    one.add_argument("--json", action="store_true")
    one.add_argument(
        "--progress", action="store_true", help="a line on stderr for each step, with its second"
    )
    listing = commands.add_parser("questions", help="every graded question")
    listing.add_argument("--json", action="store_true")
    for name, (module, what) in ELSEWHERE.items():
        what = what if _is_here(module) else "not in a student edition"
        commands.add_parser(name, help=what, add_help=False)
    arguments, rest = parser.parse_known_args(argv)
    if arguments.command in ELSEWHERE:
        return _elsewhere(arguments.command, rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return {"check": _check, "questions": _questions}[arguments.command](arguments)


ELSEWHERE = {  # command -> (module, its purpose)
    "run": ("running", "try an answer on its public cases, without a grade"),
    "hint": ("tools.hint", "a question's next hint"),
    "doctor": ("tools.doctor", "what this machine can do, what is missing and how to get it"),
    "build": ("notebooks", "text sources -> notebooks -> labs"),
    "reflections": ("notebooks.reflections", "what a good answer to each reflection has, folded"),
    "release": ("release", "the student edition: no solutions, no answers, no history"),
    "work": ("notebooks.work", "copies the labs into work/, overwriting nothing"),
    "calibrate": ("bench.calibration", "measure this machine's ceilings and the bar kernels"),
    "false-fail": ("tools.false_fail", "A against A: how often would an equal kernel fail"),
    "times": ("tools.check_times", "what a check of each question costs"),
    "programs": ("tools.programs", "gets Chromium and bubblewrap, which no package brings"),
    "gates": ("tools.gates.command", "what the rules of the house have to say"),
    "box": ("box.show", "what the boxes of this machine hold back"),
    "suites": ("proofs.command", "wrong answers, honest ones, exploits and a class, all judged"),
    "necessity": ("proofs.necessity", "how often one check's hidden cases catch each mistake"),
    "suites-on-gpu": ("proofs.on_gpu", "the same answers in CPU and in GPU mode get the same verdicts"),
    "class": ("classroom", "judge all collected submissions of a lab"),
    "regrades": ("classroom.regrades", "list the answers that were judged again, by whom and why"),
    "farm": ("classroom.jobs", "scheduler and workers that judge a large class, here or on a cluster"),
    "collect": ("classroom.downloads", "what Canvas or Moodle collected, into submitted/"),
    "report": ("classroom.report", "how a class fared with a lab, as one page with plots"),
    "student": ("classroom.student", "all that a class holds of one student, shown or deleted"),
    "lti": ("classroom.lti", "grades to a learning platform by LTI 1.3"),
    "extension": ("classroom.extension", "more time for a student, before or after the hand-in"),
    "export": ("classroom.exports", "a lab's grades for Canvas, Moodle or a spreadsheet"),
}
TAKES_NOTHING = {"work", "programs", "gates"}


def _is_here(module: str) -> bool:
    """Return whether this copy of the course has the command. A student edition leaves out commands that only
    instructors run."""
    stem = Path(__file__).parent.joinpath(*module.split("."))
    return stem.with_suffix(".py").exists() or (stem / "__init__.py").exists()


def _elsewhere(command: str, rest: list[str]) -> int:
    import importlib

    if not _is_here(ELSEWHERE[command][0]):
        print(
            f"python -m grader: {command} is not in a student edition, because it needs the whole course",
            file=sys.stderr,
        )
        return EXIT_USAGE
    module, what = ELSEWHERE[command]
    if command in TAKES_NOTHING:
        Parser(prog=f"python -m grader {command}", description=what).parse_args(rest)
    try:
        return importlib.import_module(f"grader.{module}").main(rest)
    except SystemExit as end:  # argparse's own number for a usage that is wrong
        return EXIT_USAGE if end.code == 2 else end.code


def _check(arguments) -> int:
    from grader import questions, running
    from grader.judge import referee
    from grader.tools.progress import Progress

    try:
        question = questions.find(arguments.question)
        source = (
            _answer(arguments.answer, question.name)
            if arguments.answer is not None
            else running.of_lab(question, "python -m grader check")
        )
    except (ValueError, OSError) as error:
        print(f"python -m grader check: {error}", file=sys.stderr)
        return EXIT_USAGE
    with Progress(lines=arguments.progress) as say:
        verdict = referee.grade_one(source, question, mode=arguments.mode or referee.default_mode(), say=say)
    print(json.dumps(verdict.as_json(), indent=1) if arguments.json else verdict)
    return record.EXIT[verdict.verdict]


def _answer(name: str, cell: str) -> str:
    if name == "-":
        return sys.stdin.read()
    if Path(name).is_dir() or not Path(name).exists():
        raise ValueError(
            f"answer must be a file with the cell's source, or -, got {name!r}, and there is no such file"
        )
    if name.endswith(".ipynb"):
        return _of_notebook(name, cell)
    return Path(name).read_text(encoding="utf-8")


def _of_notebook(name: str, cell: str) -> str:
    """Return the source of a question's cell in a lab's notebook, saved by a page of the site or by JupyterLab."""
    try:
        cells = json.loads(Path(name).read_text(encoding="utf-8"))["cells"]
        found = [one["source"] for one in cells if one.get("id") == cell]
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError(
            f"answer must be a notebook, got {name!r}, which can't be read as a notebook. Save it again"
        ) from None
    if len(found) != 1:
        raise ValueError(
            f"answer must be a notebook with one cell {cell!r}, got {name!r}, which has {len(found)}. Name the lab's notebook"
        )
    return "".join(found[0])


def _questions(arguments) -> int:
    from grader import questions
    from grader.questions import manual_cells

    rows = [
        {
            "id": q.id,
            "notebook": q.notebook_path if manual_cells.is_there(q.notebook_path) else None,
            "kind": q.kind,
            "points": q.points,
            "bonus": q.bonus,
            "asks": q.asks,
            "parts": [
                {"name": p.name, "points": p.points, "cpu": p.judge, "gpu": p.gpu or p.judge} for p in q.parts
            ],
        }
        for q in questions.load().values()
    ]
    rows += [row for row in manual_cells.rows() if row["id"] not in questions.load()]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        evidence = ", ".join(
            p["cpu"] if p["cpu"] == p["gpu"] else f"{p['cpu']} or {p['gpu']}" for p in row["parts"]
        )
        notebook = row["notebook"] or "lab to come"
        points = f"{row['points']:>4g} {'bonus' if row['bonus'] else 'points'}"
        print(f"{row['id']:<40} {points:<11}  {row['kind']:<6} {notebook:<40} {evidence}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("python -m grader: stopped by Ctrl-C", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except Exception as error:  # any trouble of our own is inconclusive, never a fail
        print(f"python -m grader: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(record.EXIT[record.INCONCLUSIVE])
    finally:
        if "grader.box.warm" in sys.modules:  # only what judged something has jails to stop
            sys.modules["grader.box.warm"].stop_all()

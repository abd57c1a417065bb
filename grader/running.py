"""Try an answer on its question's public cases, for learners who write it in an editor of their own (python -m grader
run)."""

import argparse
import ast
import json
import sys
from pathlib import Path

from grader import questions, trial
from grader.judge import record

ROOT = Path(__file__).parents[1]
USAGE = "python -m grader run"
PLACES = ("work", "labs")  # where a lab's notebook may be, the learner's own first


class Unclear(ValueError):
    """The typed words name no answer, or more than one."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=USAGE,
        description="Run an answer on its public cases and show its results, without a grade.",
        epilog="An answer is a file with the source of its cell, - for standard input, or the cell in a lab's notebook. "
        "`run FILE` finds the question by the function that the file defines, `run QUESTION` takes the cell from work/, "
        "and `run QUESTION FILE` needs neither.",
    )
    parser.add_argument("what", help="a question, or a file with an answer")
    parser.add_argument("answer", nargs="?", help="the file, where the question comes first")
    parser.add_argument("--case", help="a public case by its number, or a kernel's sizes: --case M=64,N=40")
    arguments = parser.parse_args(argv)
    try:
        question, source = found(arguments.what, arguments.answer)
        cases = cases_of(question, arguments.case)
        tried = [(case, trial.of_source(question, source, case)) for case in cases]
    except (ValueError, OSError) as error:
        print(f"{USAGE}: {error}", file=sys.stderr)
        return record.WRONG_USAGE
    print(question.id)
    for case, one in tried:
        lines = str(one).splitlines()
        number = "" if isinstance(case, dict) else f" {case}"
        print(
            "\n".join([f"case{number}: {trial.in_words(question, case)}", *(f"  {line}" for line in lines)])
        )
    right = sum(not one.error for _, one in tried)
    print(f"{right} of {len(tried)} case{'s' * (len(tried) != 1)} right")
    return 0 if right == len(tried) else 1


def found(what: str, answer: str | None):
    """Return the question and the source of its answer."""
    if answer is not None:
        question = questions.find(what)
        return question, of_file(answer, question)
    if what == "-" or Path(what).is_file():
        if what.endswith(".ipynb"):
            raise Unclear(f"a notebook holds several answers, so say which: {USAGE} QUESTION {what}")
        source = text_of(what)
        return asked_by(source, what), source
    if what.endswith((".py", ".ipynb", ".txt")) or "/" in what:
        raise Unclear(f"there is no file {what!r}")
    question = questions.find(what)
    return question, of_lab(question, USAGE)


def of_lab(question, usage: str) -> str:
    """Return the answer's cell in the learner's own notebook."""
    for place in PLACES:
        notebook = ROOT / place / question.notebook_path
        if notebook.is_file():
            return of_file(str(notebook), question)
    raise Unclear(
        f"there is no {' or '.join(f'{place}/{question.notebook_path}' for place in PLACES)}. Give the answer as a file: "
        f"{usage} {question.id} FILE"
    )


def of_file(name: str, question) -> str:
    if name != "-" and not Path(name).is_file():
        raise Unclear(f"there is no file {name!r}")
    if not name.endswith(".ipynb"):
        return text_of(name)
    try:
        cells = json.loads(text_of(name))["cells"]
        sources = [
            one["source"]
            for one in cells
            if one["metadata"].get("nbgrader", {}).get("grade_id") == question.name
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Unclear(f"{name} can't be read as a notebook") from None
    if not sources:
        raise Unclear(
            f"{name} has no answer cell of {question.id}, which belongs in {question.notebook_path}"
        )
    return sources[0] if isinstance(sources[0], str) else "".join(sources[0])


def text_of(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Unclear(f"{name} is not text in UTF-8") from None


def asked_by(source: str, name: str):
    """Return the only question whose function the source defines."""
    try:
        defined = {one.name for one in ast.parse(source).body if isinstance(one, ast.FunctionDef)}
    except SyntaxError as error:
        raise Unclear(f"{name} is no Python: {error.msg} (line {error.lineno})") from None
    matching = [one for one in questions.load().values() if one.entry in defined]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise Unclear(
            f"{name} defines no function that a question asks for. Name the question: {USAGE} QUESTION {name}"
        )
    ids = ", ".join(one.id for one in matching[:4])
    raise Unclear(f"{name} may answer {ids}. Name the question: {USAGE} QUESTION {name}")


def cases_of(question, asked: str | None) -> list:
    if asked is None:
        return list(range(len(question.public)))
    if asked.lstrip("-").isdigit():
        return [trial.number_of(int(asked), question)]
    pairs = [one.partition("=") for one in asked.split(",")]
    if question.kind != "kernel" or not all(name and value.isdigit() for name, _, value in pairs):
        sizes = ", or a kernel's sizes such as M=64,N=40" * (question.kind == "kernel")
        raise Unclear(f"--case must be a number from 0 to {len(question.public) - 1}{sizes}, got {asked!r}")
    sizes = {name.strip(): int(value) for name, _, value in pairs}
    trial.with_sizes(question, sizes)
    return [sizes]

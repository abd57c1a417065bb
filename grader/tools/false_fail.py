"""Measure how often a kernel would fail against itself. Time A against A and state the bound that the trials support.

    python -m grader false-fail --trials 3000 --json results.json

The file is written as it goes and further runs on the same machine with the same versions add to its trials, so
an interrupted measurement keeps what it has.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from grader import questions
from grader.bench import gpu
from grader.bench.host import Broken
from grader.bench.protocol import CompareRequest, Timed
from grader.judge import parts, speed, statistics
from grader.judge.answer import digest, normalise
from grader.judge.kernel_evidence import TIMED
from grader.judge.on_gpu import misbehaves, outputs
from grader.tools.progress import Progress

THRESHOLDS = (1.01, 1.02, 1.03, 1.05)


def cell(question_id: str) -> Path:
    """Return the path of the right answer that a question's folder keeps."""
    return questions.folder(question_id) / "answers/right.py"


SAVE_S = 10.0
SAME = (
    "question",
    "load",
    "gpu",
    "torch",
    "triton",
    "quads",
    "answer",
)  # what makes two runs one measurement


def series(
    question_id: str, source: str, trials: int, load: bool, say=lambda sentence: None
) -> Iterator[tuple[Timed, list]]:
    """Return the bench's first reply and one trial's quads, for each comparison of one kernel with itself."""
    question = questions.find(question_id)
    evidence = parts.gather(question, source, seed=0, mode="gpu", say=say)
    evidence.cases, side = {TIMED: evidence.cases[TIMED]}, evidence.on_gpu
    try:
        inputs, placed = side.timed_inputs()
        more = {"quads": statistics.QUADS, "trials": trials, "load": load}
        replies = side.stream(CompareRequest, TIMED, placed, **more)
        timed, found = next(replies)
        say("comparing the timed result with the reference")
        trouble = misbehaves(timed, question) or speed.sampled(evidence, inputs, outputs(placed, found))
        if trouble:
            raise Broken(f"is wrong, so it is not timed: {trouble}")
        yield timed, timed.quads
        for later, _ in replies:
            yield timed, later.quads
    finally:
        evidence.end()


class Tally:
    """Hold the trials' result so far, as a plain dict."""

    def __init__(self, kept: dict | None = None):
        self.ratios = list(kept["ratios"]) if kept else []
        self.unusable = kept["trials"] - kept["usable"] if kept else 0

    def add(self, quads: list, number: int) -> None:
        found = statistics.ratio(quads, seed=number)
        if found.usable:
            self.ratios.append([round(v, 6) for v in (found.low, found.median, found.high)])
        else:
            self.unusable += 1

    def as_json(self) -> dict:
        usable = len(self.ratios)
        fails = {str(t): sum(low > t for low, _, _ in self.ratios) for t in THRESHOLDS}
        medians = sorted(median for _, median, _ in self.ratios)
        widths = sorted(high - low for low, _, high in self.ratios)
        return {
            "trials": usable + self.unusable,
            "usable": usable,
            "median": medians[usable // 2] if usable else None,
            "least": medians[0] if usable else None,
            "most": medians[-1] if usable else None,
            "interval_width": widths[usable // 2] if usable else None,
            "fails_beyond": fails,
            "rate_at_most": {t: statistics.upper_bound(n, usable) for t, n in fails.items()},
            "rule_of_three": min(1.0, 3 / usable) if usable else None,
            "ratios": self.ratios,
        }


def same(row: dict, other: dict) -> bool:
    return all(row.get(key) == other.get(key) for key in SAME) and "ratios" in row


def earlier_rows(path: Path | None, description: dict) -> tuple[list, dict | None]:
    """The other rows of the file, and the one that this run goes on with."""
    rows = json.loads(path.read_text(encoding="utf-8")) if path and path.exists() else []
    return [r for r in rows if not same(r, description)], next(
        (r for r in rows if same(r, description)), None
    )


def write(path: Path | None, rows: list) -> None:
    """Write in one step, so that no interruption leaves half a file."""
    if path:
        new = path.with_name(f"{path.name}.new")
        new.write_text(json.dumps(rows, indent=None).replace("}, {", "},\n{") + "\n", encoding="utf-8")
        os.replace(new, path)


def measure(options, source: str, say) -> dict:
    """Measure the whole series, saved as it goes. If interrupted, return the part measured."""
    found, others, tally, saved = {}, [], None, 0.0
    started = time.monotonic()
    trials = series(options.question, source, options.trials, options.load, say)
    try:
        for number, (timed, quads) in enumerate(trials, 1):
            if tally is None:
                about = description(options, source, timed)
                others, before = earlier_rows(options.json, about)
                tally, started = Tally(before), time.monotonic()
            tally.add(quads, number)
            each = (time.monotonic() - started) / max(1, number - 1)
            left = each * (options.trials - number)
            say(f"{number} of {options.trials} trials, {each:.3f} s each, {left / 60:.1f} minutes left")
            if time.monotonic() - saved > SAVE_S or number == options.trials:
                saved, date = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
                found = {**about, "date": date, "seconds_each": round(each, 4), **tally.as_json()}
                write(options.json, [*others, found])
    except KeyboardInterrupt:
        say("stopped. The last saved state remains")
    finally:
        trials.close()
    return found


def description(options, source: str, timed: Timed) -> dict:
    about = {"question": options.question, "load": options.load, "quads": statistics.QUADS}
    about |= {key: getattr(timed, key) for key in ("gpu", "torch", "triton")}
    return about | {"answer": digest(normalise(source))[:16], "python": platform.python_version()}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m grader false-fail",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--question", default="gemm_tiling.tiled_gemm")
    parser.add_argument(
        "--answer", type=Path, help="the kernel to compare with itself (default: the one of the tests)"
    )
    parser.add_argument("--load", action="store_true", help="while another process keeps the same GPU busy")
    parser.add_argument("--json", type=Path, help="where the result is kept, and added to")
    parser.add_argument("--progress", action="store_true", help="lines on stderr even where no terminal is")
    options = parser.parse_args(argv)
    if not gpu.name():
        print("false-fail needs an NVIDIA GPU. `python -m grader doctor` says what this machine has")
        return 3
    answer = options.answer or cell(options.question)
    with Progress(lines=options.progress, every=10.0 if options.progress else 0.0) as say:
        found = measure(options, answer.read_text(encoding="utf-8"), say)
    if not found:
        return 3
    print(sentences(found))
    return 0


def sentences(found: dict) -> str:
    lines = [
        f"beyond {threshold}: {found['fails_beyond'][threshold]} of {found['usable']} trials would fail. "
        f"The rate is at most {bound:.2%} (95% confidence)"
        for threshold, bound in found["rate_at_most"].items()
    ]
    if found["usable"]:
        lines.append(
            f"ratio {found['least']:.4f} to {found['most']:.4f}, interval {found['interval_width']:.4f} wide, "
            f"{found['seconds_each']:.3f} s per trial, {found['gpu']}, torch {found['torch']}, triton {found['triton']}, {found['date'][:10]}"
        )
    return "\n".join(lines)

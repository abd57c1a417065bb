"""Hold an instructor's course in a temporary folder, and the commands that an instructor runs in this folder."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from grader.classroom import grading_round

CHECKOUT = Path(__file__).parents[3]
PARTS = ("grader", "kernels", "tilescope", "labs", "solutions", "nbgrader_config.py")
LONGEST_S = 1800
SECRET = "5ec2e7" + 58 * "0"  # so that both classes meet the same hidden cases


@dataclass
class Said:
    """Holds a command's prints: its output, and each line of its stderr with the second it was written."""

    code: int
    out: str
    lines: list[tuple[float, str]] = field(default_factory=list)
    seconds: float = 0.0


class Course:
    """Hold `place`, with /course for the instructor, /tmp for temporary files, and /neighbour for someone else."""

    def __init__(self, place: Path, labs: list[str]):
        self.place, self.root, self.labs = place, place / "course", labs
        self.tmp, self.neighbour = place / "tmp", place / "neighbour"

    def make(self) -> "Course":
        for folder in (self.root, self.tmp, self.neighbour):
            folder.mkdir(parents=True)
        ours = shutil.ignore_patterns(
            ".*"
        )  # compiled modules come along, because no command writes any, and all read them
        for name in PARTS:
            here, there = CHECKOUT / name, self.root / name
            shutil.copytree(here, there, ignore=ours) if here.is_dir() else shutil.copy(here, there)
        (self.neighbour / "thesis.txt").write_text("A year's work.\n")
        for lab in self.labs:
            self._begin(lab)
        return self

    def _begin(self, lab: str) -> None:
        path = self.root / grading_round.PLACE / f"{lab}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        row = {"mode": "cpu", "epoch": f"{lab} suite", "secret": SECRET}
        grading_round.write(path, json.dumps(row, indent=1) + "\n")

    def break_a_wall(self, module: str, code: str) -> None:
        """Append code to a module of this course's own copy, to show that the suite sees a fault."""
        with open(self.root / module, "a", encoding="utf-8") as file:
            file.write(f"\n\n{code}\n")

    def submitted(self, student: str, lab: str) -> Path:
        return self.root / "submitted" / student / lab

    def grade(self, lab: str, hear, *more: str) -> Said:
        return self._run([sys.executable, "-m", "grader", "class", lab, "--json", *more], hear)

    def feedback(self, lab: str) -> Said:
        return self._run([sys.executable, "-W", "ignore", "-m", "nbgrader", "generate_feedback", lab])

    def _run(self, command: list[str], hear=lambda line: None) -> Said:
        started, lines = time.monotonic(), []
        more = {
            "TMPDIR": str(self.tmp),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TRITON_CACHE_DIR": str(self.tmp / "triton"),
        }
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env={**os.environ, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

        def listen():
            for line in process.stderr:
                lines.append((time.monotonic() - started, line.rstrip("\n")))
                hear(lines[-1][1])

        listener = threading.Thread(target=listen)
        listener.start()
        ending = threading.Timer(LONGEST_S, process.kill)
        ending.start()
        try:
            out = process.stdout.read()
            code = process.wait()
        finally:
            ending.cancel()
            process.kill()
            listener.join()
            process.stdout.close()
            process.stderr.close()
        return Said(code, out, lines, time.monotonic() - started)

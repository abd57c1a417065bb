"""Grade a class of hundreds on several workers, killing some workers, the scheduler, and the class command itself.

The same submissions are graded twice by the class command: serially, and with --jobs while processes are killed.
Every record must be there once, with the same verdict, and every grade the same. The rows give the cost, and the
estimate for 10,000 submissions.
"""

import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from grader.box.warm import cores
from grader.judge.record import versions
from grader.proofs import scale_plan
from grader.proofs.class_of import outcome, promises, synthetic
from grader.proofs.class_of.course import Course

LAB = "01_gemm_tiling"
FEW, MANY = 12, 300
EVERY_S = 10


@dataclass
class Plan:
    """The processes to kill, and at which share of the answers."""

    students: int
    jobs: int
    kernels: float
    kills: list[tuple[float, str]] = field(default_factory=list)


def plan(students: int, jobs: int) -> Plan:
    if students < 50:
        return Plan(students, jobs, 0.0, [(0.2, "worker")])
    kills = [(0.1, "worker"), (0.25, "worker"), (0.4, "whole worker"), (0.55, "scheduler"), (0.75, "command")]
    return Plan(students, max(3, jobs), synthetic.KERNELS, kills)


def run(everything: bool, say, question: str | None = None, jobs: int = 2, students: int | None = None):
    wanted = plan(students or (MANY if everything else FEW), jobs)
    with tempfile.TemporaryDirectory(prefix="scale_") as folder:
        row, broken = prove(Path(folder), wanted)
    say(row)
    return [row], broken


def words(row: dict) -> list[str]:
    """The row for people, a line a fact."""
    return ["\n" + "\n".join(_lines(row))]


def _lines(row: dict, indent: str = "") -> list[str]:
    lines = []
    for name, value in row.items():
        deeper = isinstance(value, dict)
        lines.append(f"{indent}{name.replace('_', ' ')}{':' if deeper else f': {value}'}")
        lines += _lines(value, indent + "    ") if deeper else []
    return lines


def prove(folder: Path, wanted: Plan) -> tuple[dict, list[str]]:
    folder.chmod(0o755)  # boxes have users of their own, which need access
    serial = Course(folder / "serial", [LAB]).make()
    synthetic.hand_in(serial, LAB, wanted.students, wanted.kernels)
    shutil.copytree(folder / "serial", folder / "farm", symlinks=True)
    farm = Course(folder / "farm", [LAB])
    _say(f"{wanted.students} submissions, judged by {wanted.jobs} workers with {len(wanted.kills)} kills")
    runs = Runs(farm, wanted)
    runs.to_the_end()
    _say(f"done in {sum(one.seconds for one in runs.said):.0f} s. Now serially")
    alone = serial.grade(LAB, _hear("serially"))
    broken = compare(serial, farm, alone, runs, wanted)
    return report(serial, farm, alone, runs, wanted), broken


class Runs:
    """The class command with --jobs, killed and started again. It kills others on its way."""

    def __init__(self, course: Course, wanted: Plan):
        self.course, self.wanted, self.said, self.killed = course, wanted, [], []
        self.left = list(wanted.kills)
        self.judged, self.of, self.hear = 0, 0, _hear(f"with {wanted.jobs} workers")

    def to_the_end(self) -> None:
        arguments = ["--jobs", str(self.wanted.jobs)]
        for _ in range(2):
            self.said.append(self.course.grade(LAB, self._heard, *arguments))
            if self.said[-1].code != -signal.SIGKILL:
                return

    def _heard(self, line: str) -> None:
        self.hear(line)
        if " different answers to judge" in line:
            self.of = self.of or int(line.split()[0])
        if not line.startswith("judged "):
            return
        self.judged += 1
        while self.left and self.judged >= self.left[0][0] * self.of:
            self._kill(self.left.pop(0)[1])

    def _kill(self, what: str) -> None:
        pid = find(self.course.root, what)
        self.killed.append(what if pid else f"{what}: none was there")
        _say(f"killing a {what} (process {pid}) after {self.judged} of {self.of} answers")
        if pid:
            os.kill(pid, signal.SIGKILL)


def find(root: Path, what: str) -> int | None:
    """The process of this course's class command, of its scheduler, or of one of its workers."""
    import psutil

    mine = [p for p in psutil.process_iter(["cmdline", "cwd", "pid"]) if p.info["cwd"] == str(root)]
    lines = {p: " ".join(p.info["cmdline"] or []) for p in mine}
    mark = {"command": "grader class", "scheduler": "farm scheduler"}.get(what, "farm worker")
    found = [p for p, line in lines.items() if f"-m {mark}" in line or f"-m grader {mark}" in line]
    if what == "worker":  # the one of the two processes of a worker that judges
        found = [child for p in found for child in p.children() if "spawn_main" in " ".join(child.cmdline())]
    return found[0].pid if found else None


def compare(serial: Course, farm: Course, alone, runs: Runs, wanted: Plan) -> list[str]:
    """Return the violations."""
    broken = [
        f"the {n} run must end with 0, got {s.code}: {s.lines[-3:]}"
        for n, s in (("serial", alone), ("farm's", runs.said[-1]))
        if s.code
    ]
    broken += [
        f"{what} must be killed, got {k}"
        for (_, what), k in zip(wanted.kills, runs.killed, strict=False)
        if k != what
    ]
    if len(runs.killed) < len(wanted.kills):
        broken.append(f"{len(wanted.kills)} processes must be killed, got {len(runs.killed)}")
    before, after = outcome.records(serial), outcome.records(farm)
    if missing := before.keys() - after.keys():
        broken.append(f"every record must be there, got {len(missing)} missing: {sorted(missing)[:3]}")
    if more := after.keys() - before.keys():
        broken.append(f"no record more must be there, got {len(more)}: {sorted(more)[:3]}")
    twice = [k for k, n in Counter((r["question"], r["answer"]) for r in after.values()).items() if n > 1]
    broken += [f"an answer must have one record, got more of {one}" for one in twice]
    broken += [
        f"{k}: the verdict must be the same, got another"
        for k in before.keys() & after.keys()
        if before[k] != after[k]
    ]
    rows = [promises.rows_of(said) for said in (alone, runs.said[-1])]
    if len(rows[0]) != wanted.students:
        broken.append(f"{wanted.students} students must have a row, got {len(rows[0])}")
    changing = {"unchanged": None}
    broken += [
        f"{name}: the row must be the same, got {rows[1].get(name)}"
        for name, row in rows[0].items()
        if row | changing != rows[1].get(name, {}) | changing
    ]
    if outcome.ask(serial, outcome.GRADES) != outcome.ask(farm, outcome.GRADES):
        broken.append("every grade in the gradebook must be the same, got others")
    broken += [f"still running: {words}" for words in outcome.left_running(farm.place)]
    return broken


def report(serial: Course, farm: Course, alone, runs: Runs, wanted: Plan) -> dict:
    """Report the cost in seconds of this machine, and the estimate for more."""
    took = outcome.seconds(farm)
    kinds = scale_plan.by_kind(took)
    measured = scale_plan.measured(runs.said, wanted)
    size = sum(path.stat().st_size for path in (farm.root / "work/class/records").glob("*.json"))
    return {
        "students": wanted.students,
        "workers": wanted.jobs,
        "killed": ", ".join(runs.killed),
        "different_answers": len(took),
        "checks": kinds,
        "sum_of_checks_s": round(sum(took.values()), 1),
        **measured,
        "judging_to_sum_of_checks": round(measured["judging_s"] / sum(took.values()), 2),
        "serial": {
            "sum_of_checks_s": round(sum(outcome.seconds(serial).values()), 1),
            **scale_plan.measured([alone], wanted),
        },
        "records_bytes": size,
        "gradebook_bytes": (farm.root / "gradebook.db").stat().st_size,
        "plan_for_10000": scale_plan.plan(10_000, wanted.students, kinds, measured),
        "machine": f"{platform.processor() or platform.machine()}, {cores()} cores, load {os.getloadavg()[1]:.1f}, niceness {os.nice(0)}",
        "versions": versions() | scale_plan.package_versions(),
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "command": f"python -m grader suites scale --students {wanted.students} --json",
    }


def _hear(which: str):
    heard = [time.monotonic()]

    def hear(line: str) -> None:
        if time.monotonic() - heard[0] > EVERY_S or not line.startswith(("judged", "entered")):
            heard[0] = time.monotonic()
            _say(f"{which}: {line}")

    return hear


def _say(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)

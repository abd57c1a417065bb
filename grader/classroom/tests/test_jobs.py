"""Answers judged by many: each record there once whatever ends on the way, and a verdict is asked for once."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from grader import questions
from grader.bench import gpu
from grader.classroom import command, grade_class, grading_round, submission
from grader.classroom.jobs import arguments, farm, job, local, settings, task
from grader.classroom.tests.conftest import LAB, RIGHT, WRONG
from grader.judge.record import INCONCLUSIVE, PASS, Record
from grader.proofs import scale

STUDENTS = 6
SLOW = "import time\n\ntime.sleep(1.5)\n"  # slept through for the public cases and for the hidden ones


@pytest.mark.slow  # two minutes, mostly of waiting for one that hangs
def test_a_class_on_two_workers_of_which_one_is_killed_and_one_hangs(course):
    """The small form of `python -m grader suites scale --all`."""
    for number in range(STUDENTS):
        answers = RIGHT if number % 3 else WRONG
        own = {name: f"# {number}\n{answers[name]}" for name in ("reuse", "tile_loads")}
        course.hand_in(f"u{number}", answers if number % 4 == 0 else {**answers, **own})
    course.hand_in("u1", {**RIGHT, "reuse": SLOW + RIGHT["reuse"]})
    before = grading_round.open_round(course.root, LAB, "cpu")
    jobs = list(
        job.jobs_of(before, [submission.handed_in(before, f"u{number}") for number in range(STUDENTS)])
    )
    serial = {one.key: plain(one) for one in job.one_by_one(jobs)}
    (slow,) = (one.key for one in jobs if one.source.startswith(SLOW))
    came, met, killed, stopped, over = [], set(), [], [], threading.Event()

    def say(line: str) -> None:
        came.append(line)
        if stopped and not alive(stopped[0]):
            judges.longest_s = (
                farm.LONGEST_S
            )  # nobody else is taken for one that hangs, however busy the machine

    with local.Local(2, say=came.append) as here, client_of(here) as client:
        client.wait_for_workers(2, timeout=120)
        judges = farm.Farm(here.address, here.keys, say=say)

        def stop() -> None:
            stopped.extend(stopped_while_it_judges(client, slow, met, over))
            judges.longest_s = 1.0

        stopping = threading.Thread(target=stop)
        stopping.start()

        def each(jobs):
            for verdict in judges(jobs):
                met.add(verdict.key)
                if not killed:
                    killed.append(next(iter(processes(client).values())))
                    os.kill(killed[0], signal.SIGKILL)
                yield verdict

        try:
            rows = {row.student: row for row in grade_class.grade(before, each=each, say=say)}
        finally:
            over.set()
            stopping.join()
    assert len({*killed, *stopped}) == 2 and len(jobs) == 10
    assert {path.stem for path in before.records().iterdir()} == set(serial), "every record, and none twice"
    assert {key: plain(grading_round.find(before, key)) for key in serial} == serial
    assert {name: row.points for name, row in rows.items()} == {
        f"u{number}": 5 if number % 3 else 2 for number in range(STUDENTS)
    }
    # one that had said its last word just before it was stopped is not taken for one that hangs
    replaced = any("a worker had it for 1 s and was replaced" in line for line in came)
    assert replaced == bool(judges.counts["hung"])
    assert any("judged 10 of 10" in line for line in came)
    assert all(one.process.poll() is not None for one in here.all)
    assert not any(map(alive, (*killed, *stopped)))


FAKE_SMI = """#!/bin/sh
case "$1" in
-L) echo "GPU 0: Made-up H100"; echo "GPU 1: Made-up H100" ;;
*) echo "$CUDA_VISIBLE_DEVICES" >> "$0.asked"; echo "Made-up H100, 9.0" ;;
esac
"""


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    """A machine whose driver speaks of two GPUs; answers in numpy need none. Gives the file of who asked."""
    smi = tmp_path / "driver/nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(FAKE_SMI)
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{smi.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpu.query.cache_clear()
    yield smi.with_name("nvidia-smi.asked")
    gpu.query.cache_clear()


@pytest.mark.slow
def test_forty_answers_on_two_gpus_get_the_records_of_a_serial_run(course, two_gpus):
    round_ = grading_round.open_round(course.root, LAB, "gpu")
    jobs = []
    for number in range(20):
        for name, answers in (("reuse", RIGHT), ("tile_loads", WRONG if number % 3 else RIGHT)):
            source, question = f"# {number}\n{answers[name]}", f"gemm_tiling.{name}"
            key = grading_round.key(round_, questions.find(question), source)
            seed = round_.seed(question)
            jobs.append(job.Job(key, f"u{number}", source, question, "gpu", seed, round_.epoch))
    assert len({one.key for one in jobs}) == 40
    serial = {one.key: plain(one) for one in job.one_by_one(jobs)}
    wants, said = SimpleNamespace(jobs=2, scheduler="", keys=""), []
    with arguments.judges(wants, round_, said.append) as (same, judges):
        found = {one.key: plain(one) for one in judges(jobs)}
    assert same == round_ and judges.resources == {"GPU": 1} and found == serial
    assert {one["verdict"] for one in found.values()} == {"PASS", "FAIL"}
    assert {one["mode"] for one in found.values()} == {"gpu"}
    assert judges.counts["handed_out"] == judges.counts["came_back"] == 40
    asked = set(two_gpus.read_text().split())
    assert asked == {"0", "1"}, "each worker sees a GPU of its own, and both judged"


@contextmanager
def client_of(here: local.Local):
    from distributed import Client

    security, timeout = settings.security(here.keys), 120
    with Client(here.address, security=security, timeout=timeout, set_as_default=False) as client:
        yield client


def processes(client) -> dict[str, int]:
    """The workers' addresses, and the processes that judge."""
    found = client.run(os.getpid, on_error="return")
    return {where: pid for where, pid in found.items() if isinstance(pid, int)}


def stopped_while_it_judges(client, slow: str, met: set[str], over: threading.Event) -> Iterator[int]:
    """The worker that has the slow answer, stopped when all that it finished before was fetched.

    For a finished answer of a worker that is stopped one would wait a minute.
    """

    def at_it() -> list[str]:
        return [where for where, names in client.processing().items() if any(slow in name for name in names)]

    while not over.wait(0.05):
        for where in at_it():
            if (pid := processes(client).get(where)) is None:
                continue
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.3)  # until the scheduler has read what was said before
            finished = {str(name).split("-")[0] for name in client.has_what()[where]}
            if where in at_it() and finished <= met:
                yield pid
                return
            os.kill(pid, signal.SIGCONT)


def plain(verdict: Record) -> dict:
    """Without what differs between two honest runs."""
    return {**verdict.as_json(), "date": "", "seconds": 0.0}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


class Client:
    """A scheduler that answers at once, from a table: what each try of an answer brings."""

    def __init__(self, tries: list):
        self.tries, self.submitted, self.status = tries, [], "running"

    def scheduler_info(self, n_workers):
        return {"workers": dict.fromkeys(("tls://a", "tls://b"))}

    def submit(self, function, *arguments, **more):
        self.submitted.append(more)
        found = self.tries.pop(0)
        future = SimpleNamespace(status="finished", result=lambda timeout: found, exception=lambda: found)
        if isinstance(found, Exception):
            future.status = "error"
        elif isinstance(found, str):
            future.status = found
        future.add_done_callback = lambda call: threading.Timer(0.01, call, [future]).start()
        return future

    def close(self, timeout):
        pass


def record_of(verdict: str, message: str = "", **more) -> dict:
    return Record("gemm_tiling.reuse", verdict, 0.0, 2.0, "cpu", message=message, key="k", **more).as_json()


ONE = job.Job("k", "ada", "def reuse", "gemm_tiling.reuse", "cpu", 1, "e")
TROUBLE = {"record": record_of(INCONCLUSIVE, "the jail broke off"), "worker": "tls://a"}
SETTLED = {"record": record_of(PASS), "worker": "tls://b"}
KilledWorker = type("KilledWorker", (Exception,), {})


@pytest.fixture
def judges(tmp_path):
    return farm.Farm("tls://127.0.0.1:1", settings.make_keys(tmp_path / "keys"), patience_s=0.1)


@pytest.mark.parametrize(
    "tries, verdict, handed_out",
    [
        ([SETTLED], PASS, 1),
        ([{"record": record_of("FAIL"), "worker": "tls://a"}], "FAIL", 1),
        ([TROUBLE, SETTLED], PASS, 2),
        ([TROUBLE, TROUBLE, TROUBLE], INCONCLUSIVE, 3),
        ([KilledWorker("dead"), SETTLED], PASS, 2),
        ([KilledWorker("dead")] * 3, INCONCLUSIVE, 3),
        ([{"unfit": "another version", "worker": "tls://a"}, SETTLED], PASS, 2),
        (["cancelled", SETTLED], PASS, 2),
        (["cancelled", "lost", TROUBLE, SETTLED], PASS, 4),
    ],
)
def test_trouble_is_tried_twice_more_and_a_verdict_never(judges, monkeypatch, tries, verdict, handed_out):
    client = Client(list(tries))
    monkeypatch.setattr(judges, "connect", lambda: client)
    (found,) = judges([ONE])
    assert (found.verdict, found.key, judges.counts["handed_out"]) == (verdict, "k", handed_out)
    assert not client.tries, "what was settled was asked for once"
    again = client.submitted[-1]
    if isinstance(tries[0], dict) and handed_out > 1:
        assert again["workers"] == ["tls://b"] and again["allow_other_workers"], (
            "tried where it had no trouble"
        )
    if verdict == INCONCLUSIVE:
        assert found.message


def test_nobody_without_the_keys_is_let_in(tmp_path):
    keys = settings.make_keys(tmp_path / "keys")
    assert (keys / settings.KEY).stat().st_mode & 0o77 == 0 and keys.stat().st_mode & 0o77 == 0
    security = settings.security(keys)
    assert security.require_encryption and security.tls_ca_file == str(keys / settings.CERTIFICATE)
    with pytest.raises(ValueError, match="could run programs as you"):
        farm.Farm("tcp://127.0.0.1:8786", keys)
    with pytest.raises(ValueError, match="keys must be a folder with key.pem and certificate.pem"):
        settings.security(tmp_path / "none")


def test_a_worker_judges_only_what_it_would_judge_alike(course, monkeypatch):
    round_ = grading_round.open_round(course.root, LAB, "cpu")
    monkeypatch.setattr(task, "where", lambda: "tls://here")
    key = grading_round.key(round_, questions.find("gemm_tiling.reuse"), RIGHT["reuse"])
    one = (RIGHT["reuse"], "gemm_tiling.reuse", "cpu", 1, round_.epoch)
    assert task.attempt(key, *one)["record"]["verdict"] == PASS
    assert "another version" in task.attempt("0" * 32, *one)["unfit"]


FACTS = {"machine": "NVIDIA H100", "versions": {}, "code": "c", "level": 3}


@pytest.mark.parametrize(
    "found, words",
    [
        ({"a": {**FACTS, "versions": {"triton": "3.6.0"}}}, "must have the packages of this environment"),
        ({"a": {**FACTS, "code": "d"}}, "must have this version of the course"),
        ({"a": {**FACTS, "level": 1}}, "must have a box of level 2, got 1"),
        ({"a": FACTS, "b": {**FACTS, "machine": "NVIDIA H200"}}, "must have one kind of GPU, got NVIDIA H100, NVIDIA H200"),
        ({"a": {**FACTS, "machine": "no gpu"}}, "must have one kind of GPU, got no gpu"),
        ({"a": OSError("gone")}, "worker a must be able to judge, got OSError: gone"),
    ],
)  # fmt: skip
def test_workers_are_looked_at_before_they_judge(tmp_path, monkeypatch, found, words):
    monkeypatch.setattr(task, "facts", lambda mode: {**FACTS, "machine": "no gpu"})
    round_ = grading_round.open_round(tmp_path, LAB, "gpu")
    looked_at = SimpleNamespace(fitness=lambda mode: found, address="tls://x")
    with pytest.raises(ValueError, match=words):
        farm._fit(looked_at, round_, print)


def test_a_lab_keeps_the_gpu_of_its_first_round(tmp_path, monkeypatch):
    monkeypatch.setattr(task, "facts", lambda mode: {**FACTS, "machine": "no gpu"})
    round_ = grading_round.open_round(tmp_path, LAB, "gpu")

    def fit(machine):
        looked_at = SimpleNamespace(
            fitness=lambda mode: {"a": {**FACTS, "machine": machine}}, address="tls://x"
        )
        return farm._fit(looked_at, grading_round.open_round(tmp_path, LAB), print)

    question = questions.find("gemm_tiling.reuse")
    assert fit("NVIDIA H100").machine == grading_round.open_round(tmp_path, LAB).machine == "NVIDIA H100"
    assert grading_round.key(fit("NVIDIA H100"), question, "x = 1") != grading_round.key(
        round_, question, "x = 1"
    )
    with pytest.raises(
        ValueError, match="workers must have NVIDIA H100 as in this lab's first round, got NVIDIA H200"
    ):
        fit("NVIDIA H200")


@pytest.mark.parametrize(
    "options, words",
    [
        (["--jobs", "0"], "jobs must be at least 1"),
        (["--jobs", "2", "--scheduler", "tls://a:1"], "Give one of the two"),
        (["--scheduler", "tcp://a:1"], "scheduler must be an address as tls://HOST:PORT"),
        (["--scheduler", "tls://a:1", "--keys", "nowhere"], "keys must be a folder"),
        (["--mode", "gpu", "--jobs", "2"], "jobs must be at most 0, the GPUs of this machine, got 2"),
    ],
)
def test_wishes_that_can_not_be_met_are_said(course, monkeypatch, capsys, options, words):
    monkeypatch.setattr(command, "ROOT", course.root)
    monkeypatch.setattr(local, "gpus", lambda: [])
    course.hand_in("ada", RIGHT)
    assert command.main([LAB, *options]) == 64
    assert words in capsys.readouterr().err


def test_what_is_missing_or_twice_or_another_is_seen(monkeypatch):
    """The suite's own comparison, on records that were spoiled."""
    whole = {
        "k1": {"question": "q", "answer": "a", "verdict": "PASS"},
        "k2": {"question": "q", "answer": "b", "verdict": "FAIL"},
    }
    spoiled = {
        "missing": {"k1": whole["k1"]},
        "no record more": {**whole, "k3": {"question": "r", "answer": "a", "verdict": "PASS"}},
        "must have one record": {**whole, "k2": {**whole["k2"], "answer": "a"}},
        "verdict must be the same": {**whole, "k2": {**whole["k2"], "verdict": "PASS"}},
        "": whole,
    }
    said = SimpleNamespace(code=0, lines=[])
    runs = SimpleNamespace(said=[said], killed=["worker"])
    wanted = scale.Plan(1, 2, 0.0, [(0.2, "worker")])
    for words, records in spoiled.items():
        courses = [SimpleNamespace(records=whole), SimpleNamespace(records=records, place="p")]
        monkeypatch.setattr(scale.outcome, "records", lambda course: course.records)
        monkeypatch.setattr(scale.outcome, "ask", lambda *_: [])
        monkeypatch.setattr(scale.outcome, "left_running", lambda *_: [])
        monkeypatch.setattr(scale.promises, "rows_of", lambda *_: {"ada": {"points": 1}})
        broken = scale.compare(*courses, said, runs, wanted)
        assert bool(broken) == bool(words) and (not words or any(words in line for line in broken)), words

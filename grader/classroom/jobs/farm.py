"""Have the workers of a Dask scheduler judge answers. Verdicts return to this process, the only one that keeps any."""

import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from grader import questions
from grader.classroom import grading_round
from grader.classroom.atomic_file import PLACE
from grader.classroom.jobs import job, local, settings, task
from grader.classroom.jobs.job import TRIES, Job
from grader.judge.record import INCONCLUSIVE, Record

LONGEST_S = 900.0  # for one answer. Its limits in the box are far below, so a worker that takes longer hangs
PATIENCE_S = 300.0  # without a scheduler or without any worker
LOOK_S = 2.0  # between two looks at what hangs


class Gone(Exception):
    """The scheduler or its knowledge is gone. Jobs without a record are handed out again."""


@dataclass
class Open:
    """One answer that has no verdict yet."""

    job: Job
    tries: int = 0
    avoid: set[str] = field(default_factory=set)  # workers that had trouble with it
    trouble: str = ""


class Farm:
    """Call it with jobs. Their records arrive in any order, each once, even if workers end on the way."""

    def __init__(
        self, address: str, keys: Path, gpu: bool = False, say: Callable = lambda line: None, **more
    ):
        self.address, self.security = settings.tls(address), settings.security(keys)
        self.resources, self.say = {"GPU": 1} if gpu else {}, say
        self.longest_s = more.get("longest_s", LONGEST_S)
        self.patience_s = more.get("patience_s", PATIENCE_S)
        self.look_s = min(LOOK_S, self.longest_s / 4)
        self.counts = {"handed_out": 0, "came_back": 0, "own_trouble": 0, "hung": 0, "schedulers_lost": 0}
        self.unfit: set[str] = set()
        settings.apply()

    def __call__(self, jobs: list[Job]) -> Iterator[Record]:
        open_ = {one.key: Open(one) for one in jobs}
        while open_:
            client = self.connect()
            try:
                yield from Round(self, client, open_)
            except Gone as gone:
                self.counts["schedulers_lost"] += 1
                self.say(f"{gone}. {len(open_)} answers are handed out again")
            finally:
                client.close(timeout=2)

    def connect(self):
        """A client that has at least one worker."""
        from distributed import Client

        until, why = time.monotonic() + self.patience_s, ""
        while time.monotonic() < until:
            client = None
            try:
                client = Client(self.address, security=self.security, timeout=5, set_as_default=False)
                client.wait_for_workers(1, timeout=max(1.0, until - time.monotonic()))
                return client
            except (OSError, TimeoutError, RuntimeError, ValueError) as error:
                why = f"{type(error).__name__}: {error}"
                if client:
                    client.close(timeout=2)
                time.sleep(0.5)
        raise Gone(f"no worker answered at {self.address} for {self.patience_s:.0f} s ({why[:200]})")

    def fitness(self, mode: str) -> dict[str, dict]:
        """Return worker -> the facts that its verdicts would rest on."""
        client = self.connect()
        try:
            return client.run(task.facts, mode, on_error="return")
        finally:
            client.close(timeout=2)


class Round:
    """Results of one connection to the scheduler. Iterating ends when nothing is open, and Gone reports a lost
    connection."""

    def __init__(self, farm: Farm, client, open_: dict[str, Open]):
        self.farm, self.client, self.open = farm, client, open_
        self.done, self.futures, self.since = queue.SimpleQueue(), {}, {}

    def __iter__(self) -> Iterator[Record]:
        for one in list(self.open.values()):
            self._hand_out(one)
        looked = time.monotonic()
        while self.open:
            verdict = self._next()
            if verdict is not None and self.open.pop(verdict.key, None):
                yield verdict
            if time.monotonic() - looked > self.farm.look_s:
                looked = time.monotonic()
                yield from self._hanging()

    def _hand_out(self, one: Open) -> None:
        key, job_ = one.job.key, one.job
        avoid, where = one.avoid | self.farm.unfit, {}
        if avoid:
            there = self.client.scheduler_info(n_workers=-1)["workers"]
            where = {
                "workers": [w for w in there if w not in avoid] or list(there),
                "allow_other_workers": True,
            }
        future = self.client.submit(
            task.attempt,
            key,
            *job_.task(),
            key=f"{key}-{one.tries}-{len(one.avoid)}",
            pure=False,
            retries=0,
            resources=self.farm.resources or None,
            **where,
        )
        self.farm.counts["handed_out"] += 1
        self.futures[key] = future
        future.add_done_callback(lambda done: self.done.put((key, done)))

    def _next(self) -> Record | None:
        try:
            key, future = self.done.get(timeout=0.5)
        except queue.Empty:
            if self.client.status not in ("running", "connecting"):
                raise Gone("the scheduler is gone") from None
            return None
        if self.futures.get(key) is not future or key not in self.open:
            return None  # of a try that was given up
        if future.status in ("cancelled", "lost"):
            raise Gone("the scheduler is gone")
        return self._verdict(self.open[key], future)

    def _verdict(self, one: Open, future) -> Record | None:
        """Return the record, or None if it is tried again."""
        if future.status == "error":
            return self._trouble(one, _words(future.exception()))
        try:
            found = future.result(timeout=30)
        except Exception as error:  # it came back, and its worker went before we had it
            return self._trouble(one, _words(error))
        self.farm.counts["came_back"] += 1
        where = found.get("worker", "")
        if "unfit" in found:
            self.farm.unfit.add(where)
            return self._trouble(one, found["unfit"], where)
        verdict = Record.from_json(found["record"])
        if job.infrastructure(verdict) and one.tries + 1 < TRIES:
            return self._trouble(one, verdict.message, where)
        return verdict

    def _trouble(self, one: Open, why: str, where: str = "") -> Record | None:
        """Try again, on another worker if there is one. After the last try the verdict is INCONCLUSIVE."""
        self.farm.counts["own_trouble"] += 1
        one.tries, one.trouble = one.tries + 1, why
        one.avoid |= {where} if where else set()
        self.farm.say(f"{one.job.question}: {why[:200]} (try {one.tries} of {TRIES})")
        if one.tries < TRIES:
            self._hand_out(one)
            return None
        points = questions.find(one.job.question).points
        message = f"not judged after {TRIES} tries: {why}"
        return Record(
            one.job.question, INCONCLUSIVE, 0.0, points, one.job.mode, message=message, key=one.job.key
        )

    def _hanging(self) -> Iterator[Record]:
        """Replace workers that have had one answer for too long, and try the answer elsewhere."""
        try:
            working = self.client.processing()
        except (OSError, TimeoutError, RuntimeError):
            raise Gone("the scheduler is gone") from None
        now = time.monotonic()
        there = {(where, name) for where, names in working.items() for name in names}
        self.since = {one: self.since.get(one, now) for one in there}
        for (where, name), since in list(self.since.items()):
            one = self.open.get(str(name).split("-")[0])
            if one is None or now - since < self.farm.longest_s:
                continue
            self.farm.counts["hung"] += 1
            self.client.cancel([self.futures.pop(one.job.key)], force=True)
            self.client.restart_workers([where], timeout=30, raise_for_error=False)
            verdict = self._trouble(
                one, f"a worker had it for {self.farm.longest_s:.0f} s and was replaced", where
            )
            if verdict is not None and self.open.pop(verdict.key, None):
                yield verdict


def _words(error: BaseException | None) -> str:
    if type(error).__name__ == "KilledWorker":
        return "every worker that had it ended"
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


@contextmanager
def opened(
    wants, round_: grading_round.GradingRound, say: Callable
) -> Iterator[tuple[grading_round.GradingRound, Farm]]:
    """Open the farm that the class command's options request, checked, and a round with the GPU of its workers."""
    gpu = round_.mode == "gpu"
    if wants.scheduler:
        farm = Farm(wants.scheduler, Path(wants.keys or round_.root / PLACE / "keys"), gpu, say)
        yield _fit(farm, round_, say), farm
        return
    gpus = local.gpus() if gpu else []
    if gpu and wants.jobs > len(gpus):
        raise ValueError(f"jobs must be at most {len(gpus)}, the GPUs of this machine, got {wants.jobs}")
    with local.Local(wants.jobs, gpus, say, logs=round_.root / PLACE / "farm") as here:
        say(f"starting {wants.jobs} workers")
        yield round_, Farm(here.address, here.keys, gpu, say)


def _fit(farm: Farm, round_: grading_round.GradingRound, say: Callable) -> grading_round.GradingRound:
    """Check that all workers judge as this process would. ValueError names the differences."""
    try:
        found = farm.fitness(round_.mode)
    except Gone as gone:
        raise ValueError(f"scheduler must have a worker, got none: {gone}") from None
    mine = task.facts(round_.mode)
    for where, facts in found.items():
        if not isinstance(facts, dict):
            raise ValueError(f"worker {where} must be able to judge, got {_words(facts)}")
        if facts["versions"] != mine["versions"]:
            differ = {k: v for k, v in facts["versions"].items() if mine["versions"].get(k) != v}
            raise ValueError(
                f"worker {where} must have the packages of this environment, got {differ}. Run make setup"
            )
        if facts["code"] != mine["code"]:
            raise ValueError(
                f"worker {where} must have this version of the course, got another. Copy this version there"
            )
        if facts["level"] < job.LEAST_BOX:
            raise ValueError(f"worker {where} must have a box of level {job.LEAST_BOX}, got {facts['level']}")
    kinds = sorted({facts["machine"] for facts in found.values()})
    if len(kinds) > 1 or kinds == ["no gpu"]:
        raise ValueError(f"all workers must have one kind of GPU, got {', '.join(kinds)}")
    say(f"{len(found)} workers at {farm.address}")
    return grading_round.on_machine(round_, kinds[0]) if round_.mode == "gpu" else round_

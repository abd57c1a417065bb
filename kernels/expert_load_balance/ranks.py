"""Run one watched process per rank on this machine. If one ends, all end with one sentence, and no process remains.

    with Ranks(4, "cpu") as ranks:
        results = ranks.run(function, *arguments)  # calls function(here, *arguments) in each, returns results by rank

`function` is a module's top-level function, and `here` is rank_process.Here. A dead or failed rank is noticed
immediately, a hung one after `patience_s` without progress. Every rank that still can prints the same one-sentence
cause to stderr and ends, the others are killed, and the caller gets the sentence as RanksEnded.
"""

import multiprocessing
import pickle
import signal
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

from kernels import require
from kernels.expert_load_balance import rank_process

START_S = 180.0  # every rank loads torch, and on a GPU NCCL
TOGETHER_S = 0.5  # a death makes others fail, so failures within this time count as one event
LEAVE_S = 3.0  # to print the sentence and end, before a rank is killed


class RanksEnded(RuntimeError):
    """Carry the one sentence that every rank said."""


@dataclass
class Watched:
    """Hold the launcher's knowledge of one rank. `place` is memory that the rank writes to."""

    rank: int
    process: multiprocessing.Process
    pipe: object
    place: rank_process.Place
    done: bool = False
    result: object = None
    failed: str | None = None

    @property
    def stage(self) -> str:
        return repr(self.place.stage.decode(errors="replace"))

    @property
    def died(self) -> str | None:
        code = self.process.exitcode
        if code is None:
            return None
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def listen(self) -> None:
        try:
            while self.pipe.poll():
                kind, said = self.pipe.recv()
                if kind == "done":
                    self.done, self.result = True, pickle.loads(said)
                else:
                    self.failed = said
        except (EOFError, OSError):
            pass  # the process says how it ended

    def tell(self, *message) -> None:
        try:
            self.pipe.send(message)
        except OSError:
            pass  # it is dead, and is found to be


@dataclass
class Ranks:
    count: int
    device: str = "cpu"  # or "cuda", where rank r takes GPU r
    patience_s: float = 60.0
    watched: list[Watched] = field(default_factory=list, init=False)

    def __post_init__(self):
        require.count(ranks=self.count)
        require.one_of(tuple(rank_process.BACKENDS), device=self.device)
        require.positive(patience_s=self.patience_s)

    def __enter__(self) -> "Ranks":
        new = multiprocessing.get_context("spawn")
        self.folder = tempfile.TemporaryDirectory(prefix="ranks_")
        store = str(Path(self.folder.name) / "store")
        try:
            for rank in range(self.count):
                ours, theirs = new.Pipe()
                place = new.RawValue(rank_process.Place)
                given = (rank, self.count, self.device, store, theirs, place)
                process = new.Process(target=rank_process.serve, args=given, daemon=True)
                process.start()
                theirs.close()
                self.watched.append(Watched(rank, process, ours, place))
            self._until_done(START_S)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def run(self, function, *arguments) -> list:
        """Run function(here, *arguments) in every rank, and return the results by rank."""
        if not self.watched:
            raise RanksEnded("the ranks have ended before; start new ones")
        job = pickle.dumps((function, arguments))
        for one in self.watched:
            one.done, one.failed = False, None
            one.tell("run", job)
        self._until_done(self.patience_s)
        return [one.result for one in self.watched]

    def close(self) -> None:
        """End all ranks, and kill a rank that does not leave, so that no process remains."""
        for one in self.watched:
            one.pipe.close()  # a rank whose launcher is gone ends
        self._join_or_kill()
        for one in self.watched:
            one.process.close()
        self.watched = []
        self.folder.cleanup()

    def _join_or_kill(self) -> None:
        until = time.monotonic() + LEAVE_S
        for one in self.watched:
            one.process.join(max(0.0, until - time.monotonic()))
        for one in self.watched:
            if one.process.is_alive():
                one.process.kill()
            one.process.join()

    def _until_done(self, patience_s: float) -> None:
        seen, since = None, time.monotonic()
        while not all(one.done for one in self.watched):
            wait([one.pipe for one in self.watched if not one.died], timeout=0.1)
            for one in self.watched:
                one.listen()
            now = [(one.place.moves, one.done) for one in self.watched]
            if now != seen:
                seen, since = now, time.monotonic()
            if any(one.failed or one.died for one in self.watched):
                self._end_all(self._what_broke())
            elif time.monotonic() - since > patience_s:
                self._end_all(self._who_hangs(patience_s))

    def _what_broke(self) -> str:
        """Blame the dead before the failed, and a rank that failed at work before one that failed while it waited."""
        time.sleep(TOGETHER_S)
        for one in self.watched:
            one.listen()
        for one in self.watched:
            if one.died:
                return f"rank {one.rank} {one.died} in {one.stage}"
        failed = [one for one in self.watched if one.failed]
        first = min(failed, key=lambda one: (one.place.waits, one.place.moves))
        return f"rank {first.rank} failed in {first.stage}: {first.failed}"

    def _who_hangs(self, patience_s: float) -> str:
        """Blame a silent rank, or else one that works while others wait, or else one that is late."""
        late = [one for one in self.watched if not one.done]
        silent = [one for one in late if one.place.heard < time.monotonic() - patience_s / 2]
        busy = [one for one in late if not one.place.waits]
        moves = [one.place.moves for one in self.watched]
        behind = [one for one in late if one.place.moves == min(moves) < max(moves)]
        blamed = silent or busy or behind
        if not blamed:
            return f"no rank moved for {patience_s:g} s: all that are not done wait in {late[0].stage}"
        first = blamed[0]
        what = "no longer answers" if silent else "hangs"
        return f"rank {first.rank} {what}: nothing moved for {patience_s:g} s while it was in {first.stage}"

    def _end_all(self, sentence: str) -> None:
        for one in self.watched:
            one.tell("end", sentence)
        self._join_or_kill()  # before the pipes close, because that would end a rank without the sentence
        self.close()
        raise RanksEnded(sentence)

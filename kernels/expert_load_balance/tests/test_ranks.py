"""Ranks that die, stop, hang or fail: one sentence on every rank that can speak, and no process left behind.

Starting a rank takes seconds: here one that ends and one that stays and says nothing; `make proofs` takes all four.
"""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernels.expert_load_balance.rank_process import Here, Place
from kernels.expert_load_balance.ranks import Ranks, RanksEnded, Watched
from kernels.expert_load_balance.tests import on_ranks
from kernels.tests.figures import REFUSAL

PATIENCE_S = 3.0
TROUBLE = {  # what the last rank does: (ranks, what is said of it, who says it)
    "dies": (2, "was killed by SIGKILL in 'experts'", (0,)),
    "stops": (2, "no longer answers: nothing moved for 3 s while it was in 'experts'", (0,)),
    "hangs": (2, "hangs: nothing moved for 3 s while it was in 'experts'", (0, 1)),
    "fails": (2, "failed in 'experts': RuntimeError: The size of tensor a (2)", (0, 1)),
}


def gone(processes) -> bool:
    """All of them: not even a zombie is left."""
    return not any(on_ranks.is_there(pid) for pid in processes)


@pytest.mark.parametrize(
    "what", ["dies", "hangs", *(pytest.param(what, marks=pytest.mark.slow) for what in ("stops", "fails"))]
)
def test_trouble_of_one_ends_all_with_one_sentence(what, capfd):
    count, sentence, speakers = TROUBLE[what]
    sentence = f"rank {count - 1} {sentence}"
    with Ranks(count, patience_s=PATIENCE_S) as ranks:
        processes = [pid for _, _, pid in ranks.run(on_ranks.who)]
        started = time.monotonic()
        with pytest.raises(RanksEnded, match=f"^{re.escape(sentence)}"):
            ranks.run(on_ranks.trouble, what, count - 1)
        assert time.monotonic() - started < 60
        assert gone(processes)
        with pytest.raises(RanksEnded, match="start new ones"):
            ranks.run(on_ranks.who)
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("rank ")]
    assert sorted(line[:6] for line in said) == [f"rank {r}" for r in speakers]
    assert len({line[6:] for line in said}) == 1
    assert all(f": the run ended because {sentence}" in line for line in said)


def test_work_that_moves_may_take_longer_than_the_patience_and_an_endless_wait_may_not():
    with Ranks(2, patience_s=PATIENCE_S) as ranks:
        assert ranks.run(on_ranks.nobody_waits, 1.5 * PATIENCE_S) == ["done", "done"]
        with pytest.raises(
            RanksEnded,
            match="no rank moved for 3 s: all that are not done wait in 'a barrier that nobody opens'",
        ):
            ranks.run(on_ranks.all_wait)


def test_what_cannot_be_sent_back_is_a_failure_that_is_said():
    ours, theirs = multiprocessing.Pipe()
    Here(0, 1, "cpu", theirs, Place()).work(threading.Lock)
    kind, said = ours.recv()
    assert kind == "failed" and said.startswith("TypeError: cannot pickle")


def test_ranks_end_with_a_launcher_that_is_killed():
    """Its pipes close, and that is all that a rank needs to know."""
    program = (
        "from kernels.expert_load_balance.ranks import Ranks\n"
        "from kernels.expert_load_balance.tests import on_ranks\n"
        "if __name__ == '__main__':\n"
        "    with Ranks(1) as ranks:\n"
        "        print(*[pid for _, _, pid in ranks.run(on_ranks.who)], flush=True)\n"
        "        ranks.run(on_ranks.all_wait)\n"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    )
    processes = [int(pid) for pid in launcher.stdout.readline().split()]
    assert len(processes) == 1 and all(on_ranks.is_there(pid) for pid in processes)
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.wait()
    launcher.stdout.close()
    until = time.monotonic() + 20
    while not gone(processes) and time.monotonic() < until:
        time.sleep(0.05)
    assert gone(processes)


def watched(rank, moves=0, waits=False, stage=b"experts", exitcode=None, silent_s=0.0, **more):
    place = Place(moves, waits, time.monotonic() - silent_s, stage)
    return Watched(rank, SimpleNamespace(exitcode=exitcode), None, place, **more)


@pytest.mark.parametrize(
    "states, says",
    [
        ([{"waits": True}, {}], "rank 1 hangs: .* in 'experts'"),
        ([{}, {"silent_s": 60}], "rank 1 no longer answers"),
        (
            [{"moves": 5, "waits": True}, {"moves": 3, "waits": True, "stage": b"counts"}],
            "rank 1 .* in 'counts'",
        ),
        (
            [{"moves": 5, "done": True}, {"moves": 5, "waits": True}],
            "no rank moved for 9 s: all that are not done wait in 'experts'",
        ),
        ([{"moves": 5, "waits": True}] * 2, "no rank moved for 9 s: all that are not done wait in 'experts'"),
    ],
)
def test_who_hangs(states, says):
    ranks = Ranks(2)
    ranks.watched = [watched(rank, **state) for rank, state in enumerate(states)]
    assert re.match(says, ranks._who_hangs(9))


def test_the_dead_are_named_before_the_failed_and_who_failed_at_work_before_who_failed_waiting(monkeypatch):
    monkeypatch.setattr(Watched, "listen", lambda self: None)
    ranks = Ranks(3)
    waiting = watched(0, 4, True, b"return", failed="RuntimeError: Connection closed by peer")
    ranks.watched = [waiting, watched(1, 4, False, failed="ValueError: no"), watched(2, 4, True)]
    assert ranks._what_broke() == "rank 1 failed in 'experts': ValueError: no"
    ranks.watched[2] = watched(2, 4, exitcode=7)
    assert ranks._what_broke() == "rank 2 ended with exit code 7 in 'experts'"


@pytest.mark.parametrize(
    "refused",
    [lambda: Ranks(0), lambda: Ranks(2, "tpu"), lambda: Ranks(2, patience_s=0)],
)
def test_nonsense_is_refused(refused):
    with pytest.raises(ValueError, match=REFUSAL):
        refused()

"""Ranks that die, stop, hang or fail: one sentence on every rank that can speak, and no process left behind."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernels.expert_load_balance.ranks import Ranks, RanksEnded
from kernels.expert_load_balance.tests import on_ranks
from kernels.tests.figures import REFUSAL

PATIENCE_S = 2.0
TROUBLE = {  # what rank 1 does: (what is said of it, who says it)
    "dies": ("rank 1 was killed by SIGKILL in 'experts'", (0, 2)),
    "exits": ("rank 1 ended with exit code 7 in 'experts'", (0, 2)),
    "stops": ("rank 1 no longer answers: nothing moved for 2 s while it was in 'experts'", (0, 2)),
    "hangs": ("rank 1 hangs: nothing moved for 2 s while it was in 'experts'", (0, 1, 2)),
    "fails": ("rank 1 failed in 'experts': RuntimeError: The size of tensor a (2)", (0, 1, 2)),
}


def gone(processes) -> bool:
    """All of them: not even a zombie is left."""
    return not any(on_ranks.is_there(pid) for pid in processes)


@pytest.mark.parametrize("what", TROUBLE)
def test_trouble_of_one_ends_all_with_one_sentence(what, capfd):
    sentence, speakers = TROUBLE[what]
    with Ranks(3, patience_s=PATIENCE_S) as ranks:
        processes = [pid for _, _, pid in ranks.run(on_ranks.who)]
        started = time.monotonic()
        with pytest.raises(RanksEnded, match=f"^{re.escape(sentence)}"):
            ranks.run(on_ranks.trouble, what, 1)
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
            RanksEnded, match="no rank moved for 2 s: all wait in 'a barrier that nobody opens'"
        ):
            ranks.run(on_ranks.all_wait)


def test_what_cannot_be_sent_back_is_said():
    with Ranks(1) as ranks:
        with pytest.raises(RanksEnded, match="rank 0 failed in .*: TypeError: cannot pickle"):
            ranks.run(on_ranks.returns_a_thread_lock)


def test_ranks_end_with_a_launcher_that_is_killed():
    """Its pipes close, and that is all that a rank needs to know."""
    program = (
        "from kernels.expert_load_balance.ranks import Ranks\n"
        "from kernels.expert_load_balance.tests import on_ranks\n"
        "if __name__ == '__main__':\n"
        "    with Ranks(2) as ranks:\n"
        "        print(*[pid for _, _, pid in ranks.run(on_ranks.who)], flush=True)\n"
        "        ranks.run(on_ranks.all_wait)\n"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    )
    processes = [int(pid) for pid in launcher.stdout.readline().split()]
    assert len(processes) == 2 and all(on_ranks.is_there(pid) for pid in processes)
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.wait()
    launcher.stdout.close()
    until = time.monotonic() + 20
    while not gone(processes) and time.monotonic() < until:
        time.sleep(0.05)
    assert gone(processes)


@pytest.mark.parametrize(
    "refused",
    [lambda: Ranks(0), lambda: Ranks(2, "tpu"), lambda: Ranks(2, patience_s=0)],
)
def test_nonsense_is_refused(refused):
    with pytest.raises(ValueError, match=REFUSAL):
        refused()

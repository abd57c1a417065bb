"""Two graders never meet on one course, and nobody has to clean up after one that was killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grader.classroom import atomic_file, command, lock
from grader.classroom.tests.conftest import LAB, RIGHT
from grader.judge import record

HOLDER = """
import sys, time
from pathlib import Path
from grader.classroom import lock
with lock.held(Path(sys.argv[1]), "grading 01_gemm_tiling"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that grades the course in tmp_path."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_second_grader_is_told_who_and_since_when(holder, tmp_path):
    with pytest.raises(
        lock.Busy, match=f"grading 01_gemm_tiling of .* on .* .process {holder.pid}., begun 20"
    ):
        with lock.held(tmp_path, "mine"):
            pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    said = []
    with lock.held(tmp_path, "mine", said.append), lock.held(tmp_path, "mine, within"):
        assert "taking over from grading 01_gemm_tiling" in said[0]
        assert json.loads((tmp_path / atomic_file.PLACE / lock.FILE).read_text())["pid"] == os.getpid()
    with lock.held(tmp_path, "mine", said.append):
        assert len(said) == 1, "an orderly end leaves nothing to take over"


def test_every_door_is_shut_while_another_grades(course, holder, monkeypatch, capsys):
    """The class command and nbgrader's own autograde, which must not remove what is entered."""
    course.hand_in("ada", RIGHT)
    entered = course.root / "autograded" / "ada" / LAB
    entered.mkdir(parents=True)
    monkeypatch.setattr(command, "ROOT", course.root)
    assert command.main([LAB]) == record.EXIT[record.INCONCLUSIVE]
    assert "one grader at a time" in capsys.readouterr().err
    from grader.classroom import gradebooks

    log, heard = gradebooks.logger(None)
    said = gradebooks.autograde(course.root, LAB, "ada", "cpu", log, heard)
    assert "one grader at a time" in said and entered.is_dir()
    assert not Path(course.root / atomic_file.PLACE / "records").exists()

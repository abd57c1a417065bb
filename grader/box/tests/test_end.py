"""How boxes end: by themselves, by a limit, with their referee; and that nothing is ever left of one."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from grader.box import BoxError, spawn
from grader.box import keeper as keeper_module
from grader.box.box import RING_BYTES
from grader.box.tests.conftest import need

ENDLESS = "import time\nwhile True: time.sleep(1)"
DEAF = """
import signal, time
for n in range(1, 65):
    if n not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
        signal.signal(n, signal.SIG_IGN)
"""
BOMB = """
import os
while True:
    try: os.fork()
    except OSError: pass
"""
HOPPING = """
import os, sys
os.close(0); os.close(1); os.close(2)
while True:
    try:
        if os.fork(): os._exit(0)
    except OSError: pass
"""
ENDS = {
    "plain": ("pass", 0, "ended"),
    "code": ("import sys; sys.exit(3)", 3, "ended with exit code 3"),
    "crash": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -11, "crashed with SIGSEGV"),
    "traceback": ("1 / 0", 1, "ended with exit code 1"),
}


@pytest.mark.parametrize("name", ENDS)
def test_says_how_it_ended(name, level, boxed):
    source, code, reason = ENDS[name]
    box = boxed(source, level)
    assert (box.wait(20.0), box.reason()) == (code, reason)


# Limits alone promise to hold neither a fork bomb nor a process that is always another.
CLOCKS = [(name, level) for name in ("spin", "deaf") for level in (3, 2, 1)]
CLOCKS += [(name, level) for name in ("bomb", "hopping") for level in (3, 2)]


@pytest.mark.parametrize("name, level", CLOCKS)
def test_cant_outlive_the_clock(name, level, boxed, alive):
    need(level)
    source = {
        "spin": "while True: pass",
        "deaf": DEAF + "while True: time.sleep(1)",
        "bomb": BOMB,
        "hopping": HOPPING,
    }
    box = boxed(source[name], level, pass_fds=[alive.fd], wall_s=0.5)
    assert box.wait(20.0) is not None
    assert box.reason() == ("ended" if name == "hopping" else "ran longer than 0.5 s")
    assert alive.ends(1.0), "something of the box is still there"


def test_cant_use_more_processor_time(level, boxed):
    box = boxed("while True: pass", level, cpu_s=1)
    box.wait(20.0)
    assert box.reason() == "used more than 1 s of processor time"


def test_cant_ignore_the_processor_limit(boxed):
    box = boxed(DEAF + "while True: pass", 1, cpu_s=1)
    box.wait(20.0)
    assert box.reason() == "used more than 1 s of processor time"


def test_cant_use_more_memory_by_many_hands(level, boxed, alive):
    source = """
import os
for _ in range(5):
    if os.fork() == 0: break
keep = bytearray(b"1") * (90 << 20)
import time; time.sleep(20)
"""
    box = boxed(source, level, pass_fds=[alive.fd], memory_bytes=256 << 20)
    box.wait(20.0)
    assert box.reason() == "used more than 256 MiB of memory"
    assert alive.ends(1.0)


def test_memory_that_is_shared_counts_once(level, boxed):
    source = """
import os, sys, time
keep = bytearray(b"1") * (90 << 20)
for _ in range(4):
    if os.fork() == 0: time.sleep(20)
time.sleep(0.4)
os.write(1, b"fine")
"""
    box = boxed(source, level, memory_bytes=256 << 20)
    assert box.read_exactly(4, 20.0) == b"fine"


@pytest.mark.parametrize(
    "level", [2, 1]
)  # at level 3 scratch is memory of a fixed size: test_cant[scratch-3]
@pytest.mark.parametrize("how", ["kept", "deleted but open"])
def test_cant_fill_the_disk(how, level, boxed):
    need(level)
    source = f"""
import os, time
files = []
for n in range(6):
    files.append(open(str(n), "wb", buffering=0))
    files[-1].write(bytes(1 << 20))
    if {how != "kept"}: os.unlink(str(n))
time.sleep(20)
"""
    box = boxed(source, level, file_bytes=4 << 20)
    box.wait(20.0)
    assert box.reason() == "wrote more than 4 MiB, or too many files"


def test_a_flood_on_stderr_is_drained_and_bounded(level, boxed):
    source = 'import os\nfor _ in range(512): os.write(2, b"x" * 65536)\nos.write(2, b"\\x1b[31mthe end"); os.write(1, b"done")'
    box = boxed(source, level)
    assert box.read_exactly(4, 10.0) == b"done"
    box.wait(20.0)
    assert box.stderr_tail(16) == "xxxx\\x1b[31mthe end"
    assert box._ring.seen > 32 << 20 and len(box._ring.tail(1 << 30)) == RING_BYTES


def test_output_is_raw_bounded_and_has_a_deadline(level, boxed):
    source = "import os\nwhile data := os.read(0, 1 << 16): os.write(1, data)"
    box = boxed(source, level, output_bytes=300_000)
    payload = os.urandom(200_000)
    writer = threading.Thread(target=box.stdin.write, args=(payload,))
    writer.start()
    assert box.read_exactly(len(payload), 20.0) == payload
    writer.join()
    with pytest.raises(TimeoutError):
        box.read_exactly(1, 0.05)
    with pytest.raises(EOFError, match="more than 293 KiB of output"):
        box.read_exactly(200_000, 1.0)
    assert box.poll() == -signal.SIGKILL


@pytest.mark.parametrize("victim", ["referee", "keeper", "both"])
def test_a_box_ends_with_its_referee_and_its_keeper(victim, level, alive):
    """Each killed with SIGKILL, while a deaf daemon runs in the box (with both gone, no more than the program)."""
    inside = DEAF + ("" if victim == "both" else "import os\nos.fork()\n") + "time.sleep(20)"
    source = f"""
import os, sys, time
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from grader.box import spawn
inside = {inside!r}
box = spawn([sys.executable, "-I", "-S", "-c", inside], level={level}, pass_fds=[{alive.fd}])
other = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 7"], os.environ)
os.close({alive.fd})
print(box._keeper.pid, box.scratch, flush=True)
while box.wait(0.1) is None: pass
print(box.reason(), os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]), flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, text=True, pass_fds=[alive.fd]
    ) as referee:
        keeper, scratch = referee.stdout.readline().split()
        time.sleep(0.1)
        if victim != "keeper":
            os.kill(referee.pid, signal.SIGKILL)
        if victim != "referee":
            os.kill(int(keeper), signal.SIGKILL)
        assert alive.ends(10.0), "something of the box is still there"
        said = referee.stdout.read()
    assert said == ("lost its keeper, which something outside has killed 7\n" if victim == "keeper" else "")
    folder = os.path.dirname(scratch)
    if victim == "both":
        keeper_module.clear(folder)  # nobody was left to do it
    assert _within(10.0, lambda: not os.path.exists(folder))


def _within(seconds, condition):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_a_box_outlives_the_thread_that_started_it(level, boxed):
    boxes = []
    thread = threading.Thread(target=lambda: boxes.append(boxed(ENDLESS, level)))
    thread.start()
    thread.join()
    assert boxes[0].wait(0.3) is None


def test_killing_is_complete_and_may_be_repeated(level, boxed, alive):
    box = boxed("import os\nos.mkdir('shut', 0)\n" + ENDLESS, level, pass_fds=[alive.fd])
    folder = Path(box.scratch).parent
    time.sleep(0.1)
    box.kill()
    assert alive.ends(1.0) and not folder.exists()
    box.kill()
    assert box.reason() == "was stopped by the grader" and box._said["clean"]


def test_a_folder_of_the_callers_is_read_only_and_stays(level, boxed, tmp_path):
    for folder in (tmp_path, *tmp_path.parents):
        if folder.is_dir() and folder.owner() == tmp_path.owner() and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    (tmp_path / "task").write_text("seven")
    source = """
import os, sys
os.read(0, 1)
text = open("../task").read()
try: open("../task", "w").write("mine"); text += " overwritten"
except OSError: pass
open("made", "w").write("x")
os.write(1, text.encode())
"""
    box = boxed(source, level, job_dir=tmp_path)
    with pytest.raises(BoxError, match="job_dir must not hold a scratch folder yet"):
        boxed(source, level, job_dir=tmp_path)
    box.stdin.write(b"x")
    assert box.stdout.read() == (b"seven" if level > 1 else b"seven overwritten")
    box.kill()
    assert sorted(os.listdir(tmp_path)) == ["task"]


def test_the_environment_is_made_anew(level, boxed, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD_X", "1")
    box = boxed("import os, json; os.write(1, json.dumps(dict(os.environ)).encode())", level)
    import json

    found = json.loads(box.stdout.read())
    assert "LD_PRELOAD_X" not in found and found["HOME"] == found["TMPDIR"] == box.scratch


@pytest.mark.parametrize(
    "wrong, error",
    [
        ({"argv": ["/no/such/program"]}, BoxError),
        ({"readonly": ["/no/such/folder"]}, ValueError),
        ({"readonly": ["~"]}, ValueError),
        ({"readonly": ["/"]}, ValueError),
    ],
)
def test_what_cannot_start_says_so_and_leaves_nothing(wrong, error, level, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    wrong = {key: [os.path.expanduser(path) for path in value] for key, value in wrong.items()}
    with pytest.raises(error, match="must be"):
        spawn(**{"argv": [sys.executable, "-c", "pass"], "level": level} | wrong)
    assert not os.listdir(tmp_path)

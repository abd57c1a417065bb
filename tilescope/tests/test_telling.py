"""What a user reads while a kernel runs: its own prints, that it takes long, and where it was stopped."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from tilescope.launcher import LaunchError, install
from tilescope.machine import limits
from tilescope.watching import watch

FILE, ROOT = __file__, Path(__file__).parents[2]
NEAR = os.path.relpath(FILE)


@triton.jit
def chatty(x, n):
    p = tl.program_id(0)
    for turn in range(n):
        tl.device_print("turn", turn)
        print("x", tl.load(x + tl.arange(0, 2)) + p)


@triton.jit
def endless(x, flag, WAITS: tl.constexpr):
    i = 0
    while i != 9:
        i = (i + 2) % 8
        if WAITS:
            tl.atomic_xchg(flag, i)
        else:
            tl.store(x + tl.program_id(0), i)


def line_of(kernel, words: str) -> int:
    lines = kernel.src.splitlines()
    first = kernel.fn.__code__.co_firstlineno + 1
    return first + next(at for at, line in enumerate(lines) if words in line)


@pytest.mark.parametrize("way", ["watch", "install"])
def test_a_kernels_prints_come_out_program_by_program(capsys, way):
    if way == "watch":
        with watch():
            chatty[(1, 2)](torch.tensor([1, -2]), 1)
    else:
        install()
        chatty[(1, 2)](torch.tensor([1, -2]), 1)
    first, second = line_of(chatty, "device_print"), line_of(chatty, 'print("x')
    each = [
        f"{NEAR}:{line}: program (0, {p}): {text}"
        for p in range(2)
        for line, text in ((first, "turn: 0"), (second, "x: [ 1 -2]"))
    ]
    assert capsys.readouterr().out.splitlines() == each


def test_prints_beyond_the_limit_are_counted_and_the_first_programs_keep_theirs(capsys):
    with watch():
        chatty[(64,)](torch.zeros(2, dtype=torch.int32), 10)
    *lines, last = capsys.readouterr().out.splitlines()
    programs = [int(line.split("program ")[1].split(":")[0]) for line in lines]
    assert programs == [p for p in range(10) for _ in range(20)]
    assert last == f"{NEAR}: chatty printed 1,080 more lines, left out here"


@pytest.mark.parametrize("waits", [False, True])
def test_a_run_that_is_long_says_where_it_is_and_ends_at_its_limit(capsys, monkeypatch, waits):
    monkeypatch.setattr(limits, "LONG", 0.02)
    with watch(seconds=0.2) as seen:
        endless[(2,)](torch.zeros(2, dtype=torch.int32), torch.zeros(1, dtype=torch.int32), WAITS=waits)
    said = capsys.readouterr().err.splitlines()
    assert 2 <= len(said) <= 16  # not every look at the clock is a line, also on a busy machine
    assert all(line.startswith(f"tilescope: {NEAR}:") and "endless has run for" in line for line in said)
    assert "it may take 0.2 s of processor time (--seconds)" in said[0]
    assert "need more than 0.2 s of processor time" in seen.findings[0].message


def interrupted(monkeypatch, **how) -> KeyboardInterrupt:
    """Stop a launch as Ctrl-C does, at its first look at the clock after a while."""

    def stop(line, seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(limits, "LONG", 0.02)
    monkeypatch.setattr("tilescope.call.Call.tell", lambda *_: stop(*_[1:]))
    with pytest.raises(KeyboardInterrupt) as caught, watch() as seen:
        endless[(2,)](torch.zeros(2, dtype=torch.int32), torch.zeros(1, dtype=torch.int32), **how)
    assert seen.launches == 1
    return caught.value


def test_a_stopped_kernel_is_named_with_the_line_that_ran(monkeypatch):
    (note,) = interrupted(monkeypatch, WAITS=False).__notes__
    assert note.startswith("endless, launched as 2 programs, was stopped")
    assert int(note.rsplit(" ", 1)[1]) in range(line_of(endless, "while"), line_of(endless, "tl.store") + 1)


@pytest.mark.slow
@pytest.mark.parametrize("waits", [False, True])
def test_ctrl_c_tells_where_the_kernel_was(tmp_path, waits):
    source = Path(FILE).read_text().split("@triton.jit\ndef endless")[1].split("\n\n\n")[0]
    call = (
        f"endless[(2,)](torch.zeros(2, dtype=torch.int32), torch.zeros(1, dtype=torch.int32), WAITS={waits})"
    )
    script = tmp_path / "endless.py"
    script.write_text(
        f"import torch, triton, triton.language as tl\n@triton.jit\ndef endless{source}\nprint('on', flush=True)\n{call}\n"
    )
    command = [sys.executable, "-m", "tilescope", str(script)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as run:
        assert run.stdout.readline() == "on\n"
        heard = run.stderr.readline()  # after five seconds
        run.send_signal(signal.SIGINT)
        told = run.communicate(timeout=60)[1]
    assert "endless has run for 5 s" in heard and run.returncode == 130, told
    assert "tilescope: endless" in told and "was stopped" in told and "Traceback" not in told
    assert "tilescope: 1 launch, 0 errors, 0 warnings" in told


@triton.jit
def doubled(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i) * 2)


@triton.jit
def far(x, out, stride):
    row = tl.program_id(0) + 70000
    tl.store(out + 9, tl.load(x + row * stride))


@triton.jit
def held(x, B: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * B + tl.arange(0, B))
    tl.device_assert(v >= 0, "negative")


def test_a_load_and_a_store_of_one_line_are_two_findings():
    with watch() as seen:
        doubled[(2,)](torch.ones(40), 40, B=32)
    assert [(f.kind, f.access, f.lane) for f in seen.findings] == [
        ("bounds", "load", [8]),
        ("bounds", "store", [8]),
    ]


def test_an_address_that_overflowed_says_so_without_being_asked():
    with watch() as seen:
        far[(1,)](torch.ones(4), torch.zeros(1), 40000)
    line = line_of(far, "row * stride")
    wanted = f", because int32 overflows at line {line}, where 70000 * 40000 is kept as -1494967296"
    assert [(f.access, f.message.endswith(wanted)) for f in seen.findings] == [
        ("load", True),
        ("store", False),
    ]
    with watch() as seen:
        far[(1,)](torch.ones(4), torch.zeros(1), 4)
    assert "overflow" not in seen.findings[0].message


def test_an_assertion_names_its_program_and_lane():
    x = torch.arange(64)
    x[37] = -3
    with watch() as seen:
        held[(2, 2)](x.repeat(2), B=32, debug=True)
    assert seen.findings[0].message == "an assertion does not hold in lane 5 of program (1, 0): negative"


def test_a_wrong_word_for_a_watch_is_named():
    with pytest.raises(TypeError, match="watch takes program, seconds, .*, got foo"), watch(foo=1):
        pass


@triton.jit
def counted(x, out):
    tl.store(out, tl.load(out) + tl.load(x + tl.program_id(0)))


def test_an_installed_launch_names_what_a_watch_names():
    x, out = torch.ones(4), torch.zeros(1)
    with watch() as seen:
        counted[(4,)](x, out)
    install()
    with pytest.raises(LaunchError) as caught:
        counted[(4,)](x, torch.zeros(1))
    one, other = seen.findings[0], caught.value.findings[0]
    assert other.same_as(one) and other.message == one.message
    assert str(caught.value).startswith(
        f"{NEAR}:{one.line}: race in counted: program 0 writes out[0], program 3"
    )
    assert replace(other, times=1).as_dict() == one.as_dict()

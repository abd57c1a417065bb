"""The tools that a program turns on itself: the filter for both architectures, and each wall alone."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.box import bubblewrap, inside, measure, mounts
from grader.box.tests.conftest import need

MACHINES = list(inside.ARCHITECTURES)
HEADERS = {
    "x86_64": ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"],
    "aarch64": ["/usr/include/asm-generic/unistd.h"],
}
NEEDED = {  # calls that Python, torch and Triton live by
    "read": (0, 63),
    "write": (1, 64),
    "mmap": (9, 222),
    "execve": (59, 221),
    "exit_group": (231, 94),
    "futex": (202, 98),
    "getrandom": (318, 278),
    "openat": (257, 56),
    "wait4": (61, 260),
    "setpgid": (109, 154),
}


def decide(machine, call, arguments=(), audit=None):
    """Runs the filter as the kernel would, on one system call."""
    data = {0: call, 4: audit or inside.ARCHITECTURES[machine][0]}
    for index in range(6):
        data[16 + 8 * index] = (arguments[index] if index < len(arguments) else 0) & 0xFFFFFFFF
    rows, at, loaded = inside.filter_program(machine), 0, None
    while True:
        code, if_true, if_false, value = rows[at]
        if code == inside.RETURN:
            return value
        if code == inside.LOAD:
            loaded, at = data[value], at + 1
            continue
        holds = {
            inside.EQUAL: loaded == value,
            inside.AT_LEAST: loaded >= value,
            inside.ANY_BIT: bool(loaded & value),
        }
        at += 1 + (if_true if holds[code] else if_false)


def number(machine, name):
    tables = (
        inside.REFUSED | inside.NOT_IMPLEMENTED | {row[0]: row[1] for row in inside.REFUSED_WHEN} | NEEDED
    )
    return tables[name][inside.ARCHITECTURES[machine][1]]


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_decides_as_its_table_says(machine):
    column = inside.ARCHITECTURES[machine][1]
    for name, numbers in inside.REFUSED.items():
        if numbers[column] is not None:
            assert decide(machine, numbers[column]) == inside.EPERM, name
    for name, numbers in NEEDED.items():
        assert decide(machine, numbers[column]) == inside.ALLOW, name
    assert decide(machine, number(machine, "clone3")) == inside.ENOSYS
    assert decide(machine, inside.NEWEST + 1) == inside.ENOSYS
    assert decide(machine, 0x40000000 + 1) == inside.ENOSYS  # the x32 way to say write
    assert decide(machine, number(machine, "read"), audit=0x40000003) == inside.KILL  # 32-bit calls


CONDITIONS = [
    ("clone", (0x10000000 | 17,), inside.EPERM, "a user namespace"),
    ("clone", (0x01200011,), inside.ALLOW, "fork"),
    ("clone", (0x003D0F00,), inside.ALLOW, "a thread"),
    ("kill", (-1, 9), inside.EPERM, "everything"),
    ("kill", (4242, 9), inside.ALLOW, "a child"),
    ("kill", (-4242, 9), inside.ALLOW, "a child's group"),
    ("ioctl", (0, 0x5412), inside.EPERM, "typing into the terminal"),
    ("ioctl", (0, 0x5401), inside.ALLOW, "asking for the terminal"),
    ("prlimit64", (0, 7), inside.ALLOW, "one's own limits"),
    ("prlimit64", (4242, 7), inside.EPERM, "another's limits"),
    ("setpriority", (0, 0, 5), inside.ALLOW, "one's own priority"),
    ("setpriority", (0, 4242, 5), inside.EPERM, "another's priority"),
    ("setpriority", (1, 0, 5), inside.EPERM, "the priority of all in one's group"),
    ("setpriority", (2, 0, 5), inside.EPERM, "the priority of all that the box's user runs"),
    ("ioprio_set", (1, 0, 0x4007), inside.ALLOW, "one's own turn at the disk"),
    ("ioprio_set", (1, 4242, 0x4007), inside.EPERM, "another's turn at the disk"),
    ("ioprio_set", (2, 0, 0x4007), inside.EPERM, "one's group's turn at the disk"),
    ("ioprio_set", (3, 0, 0x4007), inside.EPERM, "the user's turn at the disk"),
    ("sched_setaffinity", (4242,), inside.EPERM, "another's processors"),
    ("socketpair", (1,), inside.ALLOW, "a pipe between relatives"),
    ("socketpair", (30,), inside.EPERM, "TIPC"),
]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "name, arguments, answer, what", CONDITIONS, ids=lambda value: str(value).replace(" ", "-")
)
def test_the_filter_looks_at_arguments(machine, name, arguments, answer, what):
    assert decide(machine, number(machine, name), arguments) == answer, what


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_the_kernels(machine):
    header = next((path for path in HEADERS[machine] if os.path.exists(path)), None)
    if header is None:
        pytest.skip("the kernel's header is not installed (linux-libc-dev)")
    text = Path(header).read_text()
    known = {name: int(value) for name, value in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    column = inside.ARCHITECTURES[machine][1]
    ours = inside.REFUSED | inside.NOT_IMPLEMENTED | NEEDED | {row[0]: row[1] for row in inside.REFUSED_WHEN}
    # A header older than a call does not name it; a call we say is missing must not be there.
    wrong = {
        name: (numbers[column], known.get(name))
        for name, numbers in ours.items()
        if known.get(name) != numbers[column]
        and (name in known or (numbers[column] or 0) <= max(known.values()))
    }
    wrong = {name: pair for name, pair in wrong.items() if pair != (None, None)}
    assert not wrong, "name: (ours, the header's)"


def alone(setup: str, attack: str, *prefix: str, cwd=None) -> str:
    """What an attack meets behind one wall only."""
    source = f"""
import importlib.util, os, sys
found = importlib.util.spec_from_file_location("inside", {str(mounts.INSIDE)!r})
inside = importlib.util.module_from_spec(found); found.loader.exec_module(inside)
{setup}
try:
    {attack}
    print("through")
except OSError as error:
    print(type(error).__name__)
"""
    program = [*prefix, sys.executable, "-I", "-S", "-B", "-c", source]
    done = subprocess.run(program, capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


ONE_WALL = {
    "seccomp: a socket": ("inside.seccomp()", "import socket; socket.socket()", "PermissionError"),
    "seccomp: a file": ("inside.seccomp()", "open({secret!r}).close()", "through"),
    "landlock: a file": ("inside.landlock(['/usr'], ['.'])", "open({secret!r}).close()", "PermissionError"),
    "landlock: a new file": (
        "inside.landlock(['/usr'], ['.'])",
        "open({secret!r} + '2', 'w')",
        "PermissionError",
    ),
    "landlock: scratch": ("inside.landlock(['/usr'], ['.'])", "open('mine', 'w').close()", "through"),
    "landlock: scratch, a device": (
        "inside.landlock(['/usr'], ['.'])",
        "os.mknod('d', 0o20600, 259)",
        "PermissionError",
    ),
    "limits: lower": (
        "inside.set_limits(file_bytes=100)",
        "open('big', 'wb', 0).write(b'x' * 200) == 100 or 1 / 0",
        "through",
    ),
    "limits: never higher": (
        "inside.set_limits(processes=50); inside.set_limits(processes=70)",
        "import resource; assert resource.getrlimit(resource.RLIMIT_NPROC) == (50, 50)",
        "through",
    ),
}


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")
@pytest.mark.parametrize("name", ONE_WALL)
def test_each_wall_alone(name, tmp_path):
    if "landlock" in name and inside.landlock_version() < 1:
        pytest.skip("this kernel has no Landlock")
    setup, attack, expected = ONE_WALL[name]
    (tmp_path / "scratch").mkdir()
    (tmp_path / "secret").write_text("x")
    found = alone(setup, attack.format(secret=str(tmp_path / "secret")), cwd=tmp_path / "scratch")
    assert found == expected


def test_bubblewrap_alone_has_another_network():
    need(3)
    with measure._targets() as (facts, _):
        connect = f"import socket; socket.create_connection(('127.0.0.1', {facts['port']}), 1)"
        assert alone("", connect) == "through"
        job = Path("/tmp", f"box-alone-{os.getpid()}")
        (job / "scratch").mkdir(parents=True)
        try:
            seen = mounts.tidy([*mounts.interpreter(), mounts.INSIDE])
            prefix = bubblewrap.command(seen, str(job), 1 << 20)
            assert alone("", connect, *prefix) == "ConnectionRefusedError"
        finally:
            shutil.rmtree(job)


def test_a_child_in_the_box_binds_itself_tighter(level, boxed):
    source = """
import importlib.util, os
found = importlib.util.spec_from_file_location("inside", os.environ["BOX_INSIDE"])
inside = importlib.util.module_from_spec(found); found.loader.exec_module(inside)
child = os.fork()
if child == 0:
    inside.set_limits(memory_bytes=64 << 20, cpu_s=1, file_bytes=1 << 20)
    try: keep = bytearray(128 << 20)
    except MemoryError: os._exit(42)
    os._exit(1)
keep = bytearray(128 << 20)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    box = boxed(source, level)
    assert box.wait(20.0) == 42, box.stderr_tail()


LOOKS = """
import os, sys
seen = []
for name in ("kernels", "other"):
    try:
        open(f"{sys.argv[1]}/{name}/secret.py").close()
        seen.append(name)
    except OSError:
        pass
os.write(1, ",".join(seen).encode().ljust(40))
"""


@pytest.mark.parametrize("level", [3, 2])
def test_a_package_of_ours_beside_the_others_is_not_seen(level, boxed, tmp_path):
    """As where the course was installed into the environment and not from a checkout."""
    need(level)
    site = tmp_path / "env/lib/python3.11/site-packages"
    for name in ("kernels", "other"):
        (site / name).mkdir(parents=True)
        (site / name / "secret.py").write_text("answer = 42")
    tmp_path.chmod(0o755)
    box = boxed(LOOKS, level, str(site), readonly=[str(tmp_path / "env")])
    assert box.read_exactly(40, 10.0).decode().strip() == "other"

"""Attack everything outside the box: networks, files, other processes, descriptors that the caller left open."""

import os
import signal
import socket

from through import Through


def network(facts):
    with socket.socket() as s:
        s.settimeout(1)
        s.connect(("127.0.0.1", facts["port"]))
    raise Through("connected to a port of the host")


def dns(facts):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"\x00" * 12, ("127.0.0.1", facts["port"]))
    raise Through("sent a datagram, as a name look-up does")


def vsock(facts):
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    raise Through("made a socket to the host of this virtual machine")


def netlink(facts):
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()
    raise Through("made a socket to the kernel's network settings")


def unix_socket(facts):
    for address in facts["unix"]:
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(address.replace("@", "\0", 1))
            except (FileNotFoundError, ConnectionRefusedError):
                continue
        raise Through(f"connected to {address}")


def read_home(facts):
    _read(facts["home"])


def read_project(facts):
    _read(facts["project"])


def _read(places):
    for path in places:
        try:
            with open(path, "rb") as file:
                file.read(1)
        except OSError:
            continue
        raise Through(f"read {path}")


def write_outside(facts):
    for folder in facts["write"]:
        path = os.path.join(folder, f".box-probe-{os.getpid()}")
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError:
            continue
        os.unlink(path)
        raise Through(f"made a file in {folder}")


def change_outside(facts):
    """Try changes to a file that need no opening."""
    tries = {"chmod": lambda p: os.chmod(p, 0o666), "utime": lambda p: os.utime(p, (0, 0))}
    tries |= {"setxattr": lambda p: os.setxattr(p, "user.box", b"1"), "truncate": lambda p: os.truncate(p, 0)}
    for path in facts["home"]:
        for name, change in tries.items():
            try:
                change(path)
            except OSError:
                continue
            raise Through(f"{name} changed {path}")


def _victim_in_sight(facts):
    try:
        with open(f"/proc/{facts['victim']}/cmdline", "rb") as file:
            return facts["marker"].encode() in file.read()
    except OSError:
        return False


def see_processes(facts):
    if _victim_in_sight(facts):
        raise Through("read the command line of a process of the caller")


def signals(facts):
    """Send signals. The starter sees whether the victim, a process made for this, has died."""
    if facts["victim"] not in (os.getpid(), os.getppid()):
        try:
            os.kill(facts["victim"], signal.SIGTERM)
        except OSError:
            pass
    os.kill(-1, 0)
    raise Through("may send signals to everything")


def other_memory(facts):
    if _victim_in_sight(facts):
        for name in ("mem", "environ"):
            try:
                open(f"/proc/{facts['victim']}/{name}", "rb").close()
            except OSError:
                continue
            raise Through(f"opened /proc/.../{name} of a process of the caller")


def descriptors(facts):
    for fd in range(3, 512):
        try:
            os.fstat(fd)
        except OSError:
            continue
        if fd not in facts["fds"]:
            raise Through(f"descriptor {fd} of the caller is open here")


def environment(facts):
    if "BOX_PROBE_SECRET" in os.environ:
        raise Through("the caller's environment is here")

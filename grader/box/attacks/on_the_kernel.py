"""Attack the kernel's namespaces, mounts, privileges and rarely used system calls."""

import ctypes
import errno
import importlib.util
import os
import signal

from through import Through

NEW_USER, NEW_NET = 0x10000000, 0x40000000


def ptrace(facts):
    def attach(child):
        attach_request = 16
        return _libc().ptrace(attach_request, child, None, None)

    _on_a_child(attach, "attached to a process")


def _on_a_child(action, what):
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        if action(child) == 0:
            raise Through(what)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def namespaces(facts):
    for flags in (NEW_USER, NEW_NET, NEW_USER | NEW_NET):
        if _in_a_child(lambda flags=flags: _libc().unshare(flags)):
            raise Through(f"unshare made a namespace (flags {flags:#x})")
        clone = _inside_table("clone", conditional=True)
        child = _libc().syscall(clone, ctypes.c_ulong(flags | signal.SIGCHLD), 0, 0, 0, 0)
        if child == 0:
            os._exit(0)
        if child > 0:
            os.waitpid(child, 0)
            raise Through(f"clone made a namespace (flags {flags:#x})")


def privileges(facts):
    tries = {
        "become root": lambda: os.setuid(0) or (0 if os.geteuid() == 0 else -1),
        "mount": lambda: _libc().mount(b"none", os.getcwd().encode(), b"tmpfs", 0, None),
        "chroot": lambda: os.chroot(".") or 0,
        "raise a limit": _raise_a_limit,
    }
    for name, attempt in tries.items():
        if _in_a_child(attempt):
            raise Through(f"could {name}")


def _raise_a_limit():
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (soft + 1, max(hard, soft) + 1) if hard >= 0 else (soft, hard))
    return 0


def _in_a_child(attempt):
    """Return whether attempt() gives 0 in a child of ours, which then ends and undoes the effect."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if attempt() == 0 else 1)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def kernel_doors(facts):
    for name in (
        "bpf",
        "perf_event_open",
        "io_uring_setup",
        "keyctl",
        "userfaultfd",
        "memfd_create",
        "process_vm_readv",
    ):
        if _libc().syscall(_inside_table(name), -1, 0, 0, 0, 0, 0) < 0 and ctypes.get_errno() == errno.EPERM:
            continue
        raise Through(f"{name} reaches the kernel ({errno.errorcode.get(ctypes.get_errno())})")


def _inside_table(name, conditional=False):
    found = importlib.util.spec_from_file_location("inside", os.environ["BOX_INSIDE"])
    inside = importlib.util.module_from_spec(found)
    found.loader.exec_module(inside)
    rows = {row[0]: row[1] for row in inside.REFUSED_WHEN} if conditional else inside.REFUSED
    return rows[name][inside.ARCHITECTURES[os.uname().machine][1]]


def _libc():
    return ctypes.CDLL(None, use_errno=True)

"""Bind a program with limits, fewer files and fewer system calls, before a stranger's code runs in the program.

Standard library only, and nothing of ours is imported. This file runs inside the box, as `python -I -S -B inside.py
SPEC PROGRAM ...`, and a forked child there may import it (its path is in the environment as BOX_INSIDE) to bind
itself more tightly still. Everything here can only take rights away.
"""

import ctypes
import json
import os
import sys

PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 8, 38, 47
CAP_DAC_READ_SEARCH = 2
SIGKILL = 9


def _libc():
    return ctypes.CDLL(None, use_errno=True)


def _prctl(*arguments):
    if _libc().prctl(*(ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:5])):
        raise OSError(ctypes.get_errno(), f"prctl {arguments} failed")


def set_limits(cpu_s=None, memory_bytes=None, processes=None, file_bytes=None, open_files=None):
    """Lower this process's limits and its children's. None leaves one as it is. No limit is ever raised.

    Memory is RLIMIT_DATA, the bytes that a program asks to write to. Address space would count every mapped library,
    and a CUDA build of torch maps more than a student may use.
    """
    import resource

    def lower(name, soft, hard=None):
        if soft is not None and hasattr(resource, name):
            which = getattr(resource, name)
            _, top = resource.getrlimit(which)
            fits = (lambda n: n) if top == resource.RLIM_INFINITY else (lambda n: min(n, top))
            resource.setrlimit(which, (fits(soft), fits(soft if hard is None else hard)))

    # SIGXCPU comes first, which distinguishes this end from all others. One second later the process is killed.
    lower("RLIMIT_CPU", cpu_s, cpu_s and cpu_s + 1)
    lower("RLIMIT_DATA", memory_bytes)
    lower("RLIMIT_NPROC", processes)
    lower("RLIMIT_FSIZE", file_bytes)
    lower("RLIMIT_NOFILE", open_files)
    lower("RLIMIT_CORE", 0)
    lower("RLIMIT_MEMLOCK", 1 << 16)
    lower("RLIMIT_MSGQUEUE", 0)


def die_with_parent():
    if sys.platform == "linux":
        _prctl(PR_SET_PDEATHSIG, SIGKILL)


def become(uid, keep_reading=False):
    """Change from root to a user that owns nothing. `keep_reading` keeps one right, to read files despite their
    permissions.

    It is meant for an interpreter under /root, and only after landlock(), which then alone decides about reading.
    """
    if keep_reading:
        _prctl(PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if keep_reading:
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        bit = 1 << CAP_DAC_READ_SEARCH
        if _libc().capset(header, (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)):
            raise OSError(ctypes.get_errno(), "capset failed")
        _prctl(PR_CAP_AMBIENT, 2, CAP_DAC_READ_SEARCH)


# Landlock's rights on files, as bits.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14 | 1 << 15  # the last two: truncate, device ioctl
NO_DEVICES = ~(1 << 6 | 1 << 11)  # scratch may hold anything but character and block devices
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # Landlock version -> how many rights on files it knows


def landlock_version():
    return (
        _libc().syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint32(1)) if sys.platform == "linux" else -1
    )


def landlock(readonly, writable):
    """From now on only these paths can be opened, here and in all that starts here. Returns the version."""
    libc, version = _libc(), landlock_version()
    if version < 1:
        raise OSError(ctypes.get_errno(), "this kernel has no Landlock")
    known = (1 << FILE_RIGHTS[min(version, 5)]) - 1
    # TCP bind and connect are named and never granted, and from version 6 so are signals and abstract sockets.
    handled = (ctypes.c_uint64 * 3)(known, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.syscall(444, handled, ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset failed")
    reads = EXECUTE | READ_FILE | READ_DIR
    for path, rights in [(p, reads) for p in readonly] + [(p, known & NO_DEVICES) for p in writable]:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        here = rights & known if os.path.isdir(path) else rights & known & ON_FILES
        beneath = here.to_bytes(8, "little") + fd.to_bytes(4, "little")
        if libc.syscall(445, ruleset, 1, beneath, ctypes.c_uint32(0)):
            raise OSError(ctypes.get_errno(), f"landlock_add_rule failed for {path}")
        os.close(fd)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    if libc.syscall(446, ruleset, ctypes.c_uint32(0)):
        raise OSError(ctypes.get_errno(), "landlock_restrict_self failed")
    os.close(ruleset)
    return version


ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # name -> audit number, table column
NEWEST = 462  # calls newer than this table is are unknown to it, so they are "not implemented" here

# name -> (number on x86_64, number on aarch64), None if the architecture lacks the call
REFUSED = {
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "kcmp": (312, 272), "pidfd_getfd": (438, 438), "move_pages": (279, 239),
    "migrate_pages": (256, 238), "setsid": (112, 157),  # in one session, nothing escapes the clean-up
    # doors into the kernel that no lesson needs
    "userfaultfd": (323, 282), "bpf": (321, 280), "perf_event_open": (298, 241), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "lookup_dcookie": (212, 18), "fanotify_init": (300, 262),
    "personality": (135, 92), "modify_ldt": (154, None), "uselib": (134, None), "ustat": (136, None),
    "sysfs": (139, None), "_sysctl": (156, None), "nfsservctl": (180, 42), "syslog": (103, 116),
    # namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # the machine
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "sethostname": (170, 161),
    "setdomainname": (171, 162), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "iopl": (172, None), "ioperm": (173, None), "vhangup": (153, 58),
    # memory that no limit counts
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186),
    "semget": (64, 190), "mq_open": (240, 180),
    # marks on files, which Landlock does not guard (nor, before version 3, their length)
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "truncate": (76, 45),
    # every network there is, so sockets of no family (pipes and socketpair stay)
    "socket": (41, 198),
}  # fmt: skip
NOT_IMPLEMENTED = {
    "clone3": (435, 435)
}  # its flags are in memory, out of a filter's sight, and libc falls back
NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
# call -> (numbers, which argument, test, value), refused when the test holds
REFUSED_WHEN = [
    ("clone", (56, 220), 0, "any bit of", NAMESPACES),
    ("socketpair", (53, 199), 0, "is not", 1),  # 1 is AF_UNIX, a pipe between relatives
    ("ioctl", (16, 29), 1, "equals", 0x5412),  # TIOCSTI types into the terminal
    ("ioctl", (16, 29), 1, "equals", 0x541C),  # TIOCLINUX
    ("kill", (62, 129), 0, "equals", 0xFFFFFFFF),  # every process there is
    ("prlimit64", (302, 261), 0, "is not", 0),  # someone else's limits, priority or processors
    ("sched_setaffinity", (203, 122), 0, "is not", 0),
    ("sched_setparam", (142, 118), 0, "is not", 0),
    ("sched_setscheduler", (144, 119), 0, "is not", 0),
    ("sched_setattr", (314, 274), 0, "is not", 0),
    (
        "setpriority",
        (141, 140),
        0,
        "is not",
        0,
    ),  # of a process, because a group's or a user's priority affects others too
    ("setpriority", (141, 140), 1, "is not", 0),
    ("ioprio_set", (251, 30), 0, "is not", 1),
    ("ioprio_set", (251, 30), 1, "is not", 0),
]
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026


def filter_program(machine):
    """Return the filter, a chain of tests with answers, as rows of (code, jump if true, jump if false, value)."""
    audit, column = ARCHITECTURES[machine]
    rows = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, audit), (RETURN, 0, 0, KILL)]
    rows += [(LOAD, 0, 0, 0), (AT_LEAST, 0, 1, NEWEST + 1), (RETURN, 0, 0, ENOSYS)]
    for table, answer in ((REFUSED, EPERM), (NOT_IMPLEMENTED, ENOSYS)):
        for numbers in table.values():
            if numbers[column] is not None:
                rows += [(EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, answer)]
    for _, numbers, argument, test, value in REFUSED_WHEN:
        match = {
            "equals": (EQUAL, 0, 1, value),
            "is not": (EQUAL, 1, 0, value),
            "any bit of": (ANY_BIT, 0, 1, value),
        }
        rows += [(EQUAL, 0, 4, numbers[column]), (LOAD, 0, 0, 16 + 8 * argument), match[test]]
        rows += [(RETURN, 0, 0, EPERM), (LOAD, 0, 0, 0)]
    return [*rows, (RETURN, 0, 0, ALLOW)]


def seccomp():
    """Refuse, from now on, every system call named above. Torch and Triton don't need these calls."""
    machine = os.uname().machine
    if sys.platform != "linux" or machine not in ARCHITECTURES:
        raise OSError(f"no system call table for {sys.platform} on {machine}")
    rows = filter_program(machine)
    code = b"".join(c.to_bytes(2, "little") + bytes((t, f)) + k.to_bytes(4, "little") for c, t, f, k in rows)
    body = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("rows", ctypes.c_void_p)]

    program = Program(len(rows), ctypes.addressof(body))
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    set_filter, all_threads = 1, 1
    number = {"x86_64": 317, "aarch64": 277}[machine]
    if _libc().syscall(
        number, ctypes.c_uint32(set_filter), ctypes.c_uint32(all_threads), ctypes.byref(program)
    ):
        raise OSError(ctypes.get_errno(), "seccomp failed")


def main(spec, program):
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="utf-8") as file:
            file.write("1000")  # when the machine itself runs short, this goes first
    except OSError:
        pass
    set_limits(**spec["limits"])
    if spec.get("uid"):
        become(spec["uid"], spec.get("keep_reading", False))
    if spec.get("die_with_parent"):
        die_with_parent()
    if spec.get("landlock"):
        landlock(**spec["landlock"])
    os.chdir(spec["cwd"])
    if spec.get("seccomp"):
        seccomp()
    if not os.path.exists(program[0]):
        raise FileNotFoundError(f"the program must be one that runs in the box, got {program[0]}")
    os.set_inheritable(spec["report_fd"], False)
    os.write(spec["report_fd"], b'{"ready": true}\n')
    os.execv(program[0], program)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])

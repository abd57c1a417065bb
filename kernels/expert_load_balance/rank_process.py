"""Run one rank's process. It does the launcher's jobs, shows its stage, and ends on request.

Two threads run next to the work. One shows that the process lives. The other listens, so that a rank that waits for
others, in gloo or for a GPU, still hears the launcher and leaves.
"""

import ctypes
import datetime
import functools
import os
import pickle
import queue
import signal
import sys
import threading
import time

BEAT_S = 0.1
ENDED = 3  # exit code of a rank that the launcher told to end
BACKENDS = {"cpu": "gloo", "cuda": "nccl"}
BACKSTOP = datetime.timedelta(minutes=30)  # of the backend, longer than the launcher's patience
LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
ONE_MACHINE = {
    "GLOO_SOCKET_IFNAME": LOOPBACK,
    "NCCL_SOCKET_IFNAME": LOOPBACK,
}  # unless the user says otherwise
# An all-to-all has no use for NVLink multicast, and a host that shares its GPUs may not allow it either.
MULTICAST_OFF = {
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
}


class Place(ctypes.Structure):
    """Hold a rank's stage in memory that the launcher reads. Writing to it takes a microsecond, a message takes longer."""

    _fields_ = [
        ("moves", ctypes.c_longlong),  # stages begun
        ("waits", ctypes.c_bool),  # the stage can only end when other ranks move
        ("heard", ctypes.c_double),  # time.monotonic(), every BEAT_S
        ("stage", ctypes.c_char * 64),
    ]


class Here:
    """Hold what a rank's function is given: its rank, its device, and `kept`, which outlives a run."""

    def __init__(self, rank: int, ranks: int, device: str, pipe, place: Place):
        self.rank, self.ranks, self.kept = rank, ranks, {}
        self.device = f"cuda:{rank}" if device == "cuda" else device
        self.pipe, self.place = pipe, place

    def stage(self, name: str, waits: bool = False) -> None:
        """Say that the rank begins `name`. With `waits` it can only go on when other ranks do."""
        self.place.stage, self.place.waits = name.encode()[:63], waits
        self.place.moves += 1

    def work(self, job) -> None:
        """Run job() and send what it returns, or how it failed."""
        try:
            message = ("done", pickle.dumps(job()))
        except BaseException as why:
            message = ("failed", f"{type(why).__name__}: {' '.join(str(why).split())[:300]}")
        try:
            self.pipe.send(message)
        except OSError:
            pass  # the listener finds the launcher gone, and ends the process


def beat(place: Place) -> None:
    while True:
        place.heard = time.monotonic()
        time.sleep(BEAT_S)


def leave(rank: int, sentence: str) -> None:
    """Say why and end immediately, because the main thread may be stuck where it can't receive an exception."""
    try:
        os.write(
            2, f"rank {rank}: {sentence}\n".encode()
        )  # in one piece, because others print at the same moment
    finally:
        os._exit(ENDED)


def listen(here: Here, jobs: queue.Queue) -> None:
    while True:
        try:
            kind, said = here.pipe.recv()
        except (EOFError, OSError):
            os._exit(0)  # the launcher is gone, or done with us
        if kind == "end":
            leave(here.rank, f"the run ended because {said}")
        jobs.put(said)


def start(here: Here, store: str) -> None:
    """Join the other ranks. torch is loaded here, so that a rank can be stopped during that load."""
    import torch
    import torch.distributed as dist

    kind, more = here.device.partition(":")[0], {}
    if kind == "cuda":
        if torch.cuda.device_count() < here.ranks:
            found = torch.cuda.device_count()
            raise ValueError(f"ranks must be at most the {found} GPUs here, got {here.ranks}; start fewer")
        torch.cuda.set_device(here.rank)
        more["device_id"] = torch.device(here.device)
    else:
        torch.set_num_threads(1)
    here.stage("meeting the other ranks", waits=True)
    dist.init_process_group(
        BACKENDS[kind],
        init_method=f"file://{store}",
        rank=here.rank,
        world_size=here.ranks,
        timeout=BACKSTOP,
        **more,
    )
    dist.all_reduce(torch.zeros(1, device=here.device))
    here.stage("idle")


def serve(rank: int, ranks: int, device: str, store: str, pipe, place: Place) -> None:
    for name, value in ONE_MACHINE.items():
        os.environ.setdefault(name, value)
    os.environ.update(MULTICAST_OFF)
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches all of a terminal's processes, and the launcher ends us
    here, jobs = Here(rank, ranks, device, pipe, place), queue.Queue()
    here.stage("its start")
    threading.Thread(target=beat, args=(place,), daemon=True).start()
    threading.Thread(target=listen, args=(here, jobs), daemon=True).start()
    here.work(functools.partial(start, here, store))
    while True:
        here.work(functools.partial(_run, here, jobs.get()))


def _run(here: Here, job: bytes):
    function, arguments = pickle.loads(job)
    return function(here, *arguments)

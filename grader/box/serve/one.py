"""Run a worker where nothing forks and nothing is contained: it does a worker's tasks in this very process.

    python -I -B one.py FOLDER MODULE SHOWN...

It speaks as main.py does. After a task that ran an answer's Python its status asks for a fresh process. Imports what every
system has.
"""

import json
import os
import sys
import threading
import time

TICK_S = 0.2
SPENT = 152  # the exit code of a task that used up its processor time, as a signal elsewhere
TRUSTED = "grader.machine."  # runs only our own Python, so one process serves many tasks


def own_channel():
    """Move the pipes to the referee to new numbers. An answer that prints or reads by the old numbers reaches
    nothing."""
    channel = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    return channel


class Clock:
    """Ends this process when a task has used up its processor time."""

    def __init__(self):
        self.until = None
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        while True:
            time.sleep(TICK_S)
            if self.until is not None and time.process_time() > self.until:
                os._exit(SPENT)

    def limit(self, task: dict) -> None:
        self.until = time.process_time() + float(task.get("limits", {}).get("cpu_s", 60))


def main(folder: str, module: str, *shown: str) -> None:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import tasks

    stdin, out = own_channel()
    ready, clock = tasks.Ready(folder, module, list(shown)), Clock()
    out.write(b"ready\n")
    out.flush()
    streams = sys.stdout, sys.stderr
    for _, block in ready.requests(stdin):
        started, cpu = time.monotonic(), time.process_time()
        data = ready.done(block, clock.limit)
        clock.until, (sys.stdout, sys.stderr) = None, streams
        status = {"late": False, "exit": 0, "seconds": time.monotonic() - started}
        status |= {"cpu_s": time.process_time() - cpu, "left_behind": not module.startswith(TRUSTED)}
        for at in range(0, len(data), tasks.CHUNK):
            part = data[at : at + tasks.CHUNK]
            out.write(tasks.U32.pack(len(part)) + part)
        text = json.dumps(status).encode()
        out.write(tasks.U32.pack(0) + tasks.U32.pack(len(text)) + text)
        out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Judge many answers in parallel, in several processes with jails of their own. Results keep the order of the
tasks."""

import atexit
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

from grader.box import warm

EVERY_S = 15.0  # a sign of life


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def judged(judge: Callable, tasks: list[tuple], jobs: int) -> Iterator:
    """Yield judge(*task) for each task. With more than one job `judge` must be a top-level function of a module."""
    if jobs <= 1 or len(tasks) < 2:
        yield from (judge(*task) for task in tasks)
        return
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), multiprocessing.get_context("spawn"), _begin)
    try:
        yield from pool.map(judge, *zip(*tasks, strict=True))
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    atexit.register(warm.stop_all)


def with_signs_of_life(results: Iterator, tasks: list[tuple]) -> Iterator[tuple]:
    """Yield (task, result) as they come. From time to time, print progress on stderr."""
    last = time.monotonic()
    for number, (task, result) in enumerate(zip(tasks, results, strict=True), 1):
        if time.monotonic() - last > EVERY_S:
            last = time.monotonic()
            print(f"... {number} of {len(tasks)}: {task[0]}", file=sys.stderr, flush=True)
        yield task, result

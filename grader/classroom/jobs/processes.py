"""Run the scheduler and the workers of a farm, each in a process that survives the end of any other process."""

import asyncio
import os
import sys
import threading
import time
from pathlib import Path

from grader.classroom.jobs import settings

PATIENCE_S = 600.0  # for which a worker looks for a scheduler that is gone
AGAIN_S = 1.0
GIVEN = "given"  # the GPU that the cluster has set


def scheduler(host: str, port: int, keys: Path, **more) -> None:
    """Hands out answers until it is ended."""
    settings.apply(**more)
    asyncio.run(_scheduler(host, port, settings.security(keys)))


async def _scheduler(host: str, port: int, security) -> None:
    from distributed import Scheduler

    async with Scheduler(
        host=host,
        port=port,
        protocol="tls",
        security=security,
        dashboard=False,
        dashboard_address="127.0.0.1:0",
    ) as one:
        print(one.address, flush=True)
        await one.finished()


def worker(
    address: str, keys: Path, gpu: str | None = None, patience_s: float = PATIENCE_S, **more: str | None
) -> None:
    """Judge what the scheduler hands out, one answer at a time. A worker process that dies or hangs is replaced.

    `more` holds a cluster's settings: the worker's name, the network interface.
    """
    settings.apply()
    asyncio.run(_worker(settings.tls(address), settings.security(keys), gpu, patience_s, more))


async def _worker(address: str, security, gpu: str | None, patience_s: float, more: dict) -> None:
    seen = time.monotonic()
    while time.monotonic() - seen < patience_s:
        try:
            async with _nanny(address, security, gpu, more) as nanny:
                print(f"judging for {address}", flush=True)
                await nanny.finished()
                seen = time.monotonic()
        except (TimeoutError, OSError, RuntimeError) as error:
            print(
                f"no scheduler at {address} yet: {type(error).__name__}: {error}", file=sys.stderr, flush=True
            )
        await asyncio.sleep(AGAIN_S)
    print(f"no scheduler at {address} for {patience_s:.0f} s", file=sys.stderr, flush=True)


def _nanny(address: str, security, gpu: str | None, more: dict):
    from distributed import Nanny

    own = {"CUDA_VISIBLE_DEVICES": gpu} if gpu not in (None, GIVEN) else {}
    return Nanny(
        address,
        **more,
        nthreads=1,
        memory_limit=0,
        resources={"GPU": 1} if gpu is not None else {},
        security=security,
        protocol="tls",
        env=own,
        preload=["grader.classroom.jobs.task"],
        death_timeout=30,
        dashboard=False,
        dashboard_address="127.0.0.1:0",
    )


def end_with_parent() -> None:
    """End this process when its standard input ends, so that a killed class command leaves no process running."""

    def listen() -> None:
        while os.read(0, 1024):
            pass
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()

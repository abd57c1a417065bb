"""Run the scheduler and the workers that judge a large class, and write their configuration for a cluster (python -m
grader farm).

keys DIR                      a key that scheduler, workers and the class command share, and that lets no one else in
scheduler [--host --port]     hands out answers, at the address to give to `class LAB --scheduler`
worker ADDRESS [--gpu N]      judges one answer at a time, on one GPU
slurm | kubernetes            writes the configuration of a cluster, checked against its schema
on-slurm FILE [--workers N]   keeps N jobs there, by that configuration
"""

import argparse
import sys
from pathlib import Path

from grader.classroom.atomic_file import PLACE
from grader.paths import ROOT
from grader.verdicts import WRONG_USAGE

KEYS = ROOT / PLACE / "keys"
# dask-jobqueue adds these to every worker's command, but this course's own worker already has them.
BY_JOBQUEUE = (
    "--name",
    "--nthreads",
    "--memory-limit",
    "--death-timeout",
    "--local-directory",
    "--interface",
    "--protocol",
    "--tls-ca-file",
    "--tls-cert",
    "--tls-key",
)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m grader farm",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    keys = commands.add_parser("keys")
    keys.add_argument("folder", type=Path, nargs="?", default=KEYS, metavar="DIR")
    scheduler = commands.add_parser("scheduler")
    scheduler.add_argument(
        "--host", default="127.0.0.1", help="the address of this machine that workers reach"
    )
    scheduler.add_argument("--port", type=int, default=8786)
    scheduler.add_argument(
        "--worker-ttl", default="60s", help="without a heartbeat for so long a worker is replaced"
    )
    worker = commands.add_parser("worker")
    worker.add_argument("address", metavar="ADDRESS")
    worker.add_argument(
        "--gpu",
        metavar="N",
        help="the one GPU that this worker sees, or `given` to keep the cluster's setting",
    )
    for name in BY_JOBQUEUE:
        worker.add_argument(name, help=argparse.SUPPRESS)
    jobs = commands.add_parser("on-slurm")
    jobs.add_argument("file", type=Path, metavar="FILE")
    jobs.add_argument("--workers", type=int, default=8)
    for one in (scheduler, worker, jobs):
        one.add_argument("--keys", type=Path, default=KEYS, metavar="DIR")
        one.add_argument("--end-with-parent", action="store_true", help=argparse.SUPPRESS)
    clusters(commands)
    wants = parser.parse_args(argv)
    try:
        return _run(wants)
    except (ValueError, OSError) as error:
        print(f"python -m grader farm: {error}", file=sys.stderr)
        return WRONG_USAGE
    except KeyboardInterrupt:
        return 0


def clusters(commands) -> None:
    from grader.classroom.jobs import cluster

    for kind in cluster.KINDS:
        cluster.add(commands.add_parser(kind, help=f"writes a configuration for {kind}"), kind)


def _run(wants: argparse.Namespace) -> int:
    from grader.classroom.jobs import processes, settings

    if getattr(wants, "end_with_parent", False):
        processes.end_with_parent()
    if wants.command == "keys":
        print(settings.make_keys(wants.folder))
    elif wants.command == "scheduler":
        processes.scheduler(wants.host, wants.port, wants.keys, worker_ttl=wants.worker_ttl)
    elif wants.command == "worker":
        processes.worker(wants.address, wants.keys, wants.gpu, name=wants.name, interface=wants.interface)
    elif wants.command == "on-slurm":
        from grader.classroom.jobs import slurm

        slurm.start(wants.file, wants.workers, wants.keys)
    else:
        from grader.classroom.jobs import cluster

        print(*cluster.write(wants.command, vars(wants)), sep="\n")
    return 0

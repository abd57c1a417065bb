"""Run on Slurm through dask-jobqueue. Writes its configuration, starts its jobs, and keeps them running."""

import signal
import sys
import time
from pathlib import Path

from grader.classroom.atomic_file import PLACE
from grader.classroom.jobs import settings
from grader.paths import ROOT

PACKAGE = "dask-jobqueue==0.9.0"
TEXT, TEXTS = {"type": ["string", "null"]}, {"type": "array", "items": {"type": "string"}}
SCHEMA = {  # the keys that dask-jobqueue 0.9.0 knows under jobqueue.slurm, as far as this course sets any
    "type": "object",
    "required": ["jobqueue"],
    "additionalProperties": False,
    "properties": {
        "jobqueue": {
            "type": "object",
            "required": ["slurm"],
            "additionalProperties": False,
            "properties": {
                "slurm": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["cores", "memory", "processes", "python", "walltime", "worker-command"],
                    "properties": {
                        "name": TEXT,
                        "cores": {"const": 1},  # threads of a worker, for one answer at a time
                        "processes": {"const": 1},
                        "job-cpu": {"type": "integer"},
                        "memory": TEXT,
                        "python": {"type": "string"},
                        "worker-command": {"const": "grader farm worker"},
                        "worker-extra-args": TEXTS,
                        "death-timeout": {"type": "integer"},
                        "queue": TEXT,
                        "account": TEXT,
                        "walltime": {"type": "string"},
                        "interface": TEXT,
                        "job-extra-directives": TEXTS,
                        "job-script-prologue": TEXTS,
                        "log-directory": TEXT,
                    },
                }
            },
        }
    },
}


def made(wants: dict) -> dict:
    course = wants["course"] or str(ROOT)
    keys = wants["keys"] or f"{course}/{PLACE}/keys"
    gpu = wants["gpus"] == 1
    own = {
        "name": "tile-farm",
        "cores": 1,
        "processes": 1,
        "job-cpu": wants["cores"],
        "memory": wants["memory"],
        "python": wants["python"],
        "worker-command": "grader farm worker",
        "worker-extra-args": ["--keys", keys, *(["--gpu", "given"] if gpu else [])],
        "death-timeout": 600,
        "queue": wants["partition"],
        "account": wants["account"] or None,
        "walltime": wants["walltime"],
        "interface": wants["interface"] or None,
        "job-extra-directives": [f"--gres={wants['gres']}"] if gpu else [],
        "job-script-prologue": [f"cd {course}", f"export PYTHONPATH={course}"],
        "log-directory": f"{course}/{PLACE}/slurm",
    }
    return {"jobqueue": {"slurm": own}}


def then(given: dict, path: Path) -> list[str]:
    keys = [given["keys"]] if given["keys"] else []
    with_keys = "".join(f" --keys {one}" for one in keys)
    return [
        f"{given['python']} -m pip install {PACKAGE}",
        " ".join(["python -m grader farm keys", *keys]),
        f"python -m grader farm on-slurm {path} --workers {given['workers']}{with_keys}",
        f"python -m grader class LAB --scheduler tls://ADDRESS{with_keys}",
    ]


def start(path: Path, workers: int, keys: Path) -> None:
    """Keep this number of jobs running until it is ended. A job that ends, by its time or otherwise, is replaced."""
    import dask
    import yaml

    try:
        from dask_jobqueue import SLURMCluster
    except ImportError:
        raise ValueError(
            f"Slurm needs {PACKAGE}, got none. Install the package with python -m pip install {PACKAGE}"
        ) from None
    settings.apply()
    own = yaml.safe_load(path.read_text(encoding="utf-8"))
    dask.config.update(dask.config.config, own, priority="new")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # its jobs end with it
    options = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    with SLURMCluster(security=settings.security(keys), scheduler_options=options) as cluster:
        cluster.adapt(minimum_jobs=workers, maximum_jobs=workers)
        print(cluster.scheduler_address, flush=True)
        while True:
            time.sleep(1)

"""Write configurations of clusters, for Slurm through dask-jobqueue and for Kubernetes through dask-kubernetes'
operator.

Each has a table of options, their translation, and a schema that the result must fit. Both start the commands of
`python -m grader farm` on every machine, and hold the class's keys.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grader.classroom.jobs import kubernetes, slurm


@dataclass(frozen=True)
class Option:
    """One option with its rule, as a schema of its value."""

    default: object
    about: str
    rule: dict
    kind: type = str


WORKERS = Option(8, "workers, one answer at a time each", {"type": "integer", "minimum": 1}, int)
GPUS = Option(1, "GPUs of a worker: 1 in gpu mode, 0 in cpu mode", {"enum": [0, 1]}, int)
CORES = Option(4, "processor cores of a worker", {"type": "integer", "minimum": 2}, int)
MEMORY = Option("16GiB", "memory of a worker", {"type": "string", "pattern": "^[1-9][0-9]*GiB$"})
NAME = {"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$", "maxLength": 50}
PATH = {"type": "string", "pattern": "^/"}
COMMON = {"workers": WORKERS, "gpus": GPUS, "cores": CORES, "memory": MEMORY}
SLURM = {
    "python": Option(sys.executable, "the environment's Python, on a shared file system", PATH),
    "course": Option("", "the course's folder, on a shared file system (this folder if left out)", {"type": "string"}),
    "keys": Option("", "the folder of keys (the course's work/class/keys if left out)", {"type": "string"}),
    "partition": Option("gpu", "Slurm's partition", {"type": "string", "pattern": r"^[\w.-]+$"}),
    "account": Option("", "Slurm's account, if it wants one", {"type": "string", "pattern": r"^[\w.-]*$"}),
    "walltime": Option("04:00:00", "the time limit of one job, which is replaced when it ends", {"type": "string", "pattern": r"^(\d+-)?\d{1,2}:\d\d:\d\d$"}),
    "interface": Option("", "the network that machines reach each other by, such as ib0", {"type": "string", "pattern": r"^[\w.-]*$"}),
    "gres": Option("gpu:1", "the request to Slurm for one GPU of one kind, such as gpu:h100:1", {"type": "string", "pattern": r"^gpu(:[\w.-]+)?:1$"}),
}  # fmt: skip
KUBERNETES = {
    "image": Option("", "a container image with the course in its working folder and its environment's python on PATH",
                    {"type": "string", "pattern": r"^[\w./:@-]+$"}),
    "name": Option("tile-farm", "of the DaskCluster", NAME),
    "namespace": Option("default", "where it lives", NAME),
    "secret": Option("tile-keys", "the Secret that holds the keys", NAME),
    "gpu-label": Option("", "the node label that names one kind of GPU, such as nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3",
                        {"type": "string", "pattern": r"^([\w./-]+=[\w.-]+)?$"}),
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    options: dict[str, Option]
    make: Callable[[dict], dict]
    schema: dict
    file: str
    then: Callable[[dict, Path], list[str]]  # what is to be done with it, as commands


KINDS = {
    "slurm": Kind(COMMON | SLURM, slurm.made, slurm.SCHEMA, "jobqueue.yaml", slurm.then),
    "kubernetes": Kind(COMMON | KUBERNETES, kubernetes.made, kubernetes.SCHEMA, "farm.yaml", kubernetes.then),
}


def add(parser: argparse.ArgumentParser, kind: str) -> None:
    parser.add_argument("--out", type=Path, default=Path("."), metavar="DIR", help="where the file goes")
    for name, option in KINDS[kind].options.items():
        about = option.about + (f" ({option.default})" if option.default not in ("", None) else "")
        parser.add_argument(f"--{name}", type=option.kind, default=option.default, help=about)


def checked(kind: str, given: dict) -> dict:
    """Return the configuration. ValueError names the option that doesn't fit, or the field of the result."""
    import jsonschema

    options = KINDS[kind].options
    values = {name: given[name.replace("-", "_")] for name in options}
    for name, value in values.items():
        try:
            jsonschema.validate(value, options[name].rule)
        except jsonschema.ValidationError as error:
            raise ValueError(
                f"{name} must be {options[name].about}, got {value!r} ({error.message})"
            ) from None
    made = KINDS[kind].make({name.replace("-", "_"): value for name, value in values.items()})
    try:
        jsonschema.validate(made, KINDS[kind].schema)
    except jsonschema.ValidationError as error:
        raise ValueError(f"{'.'.join(map(str, error.absolute_path))}: {error.message}") from None
    return made


def write(kind: str, given: dict) -> list[str]:
    """Write the configuration, and return the next steps, line by line."""
    import yaml

    made = checked(kind, given)
    path = given["out"] / KINDS[kind].file
    path.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(json.loads(json.dumps(made)), sort_keys=False)
    path.write_text(text, encoding="utf-8")
    return [f"{path} is written. Then:", *(f"    {line}" for line in KINDS[kind].then(given, path))]

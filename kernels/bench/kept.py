"""Keep a run's measurements as one JSON file, written after each, so that an interrupted run keeps them."""

import json
from pathlib import Path

import torch

from kernels.bench import here, machine


def dumps(run: dict) -> str:
    """Return a run as JSON, one measurement a line."""

    def short(value):
        return float(f"{value:.4g}") if isinstance(value, float) else value

    def line(value):
        if isinstance(value, list):
            return "[\n" + ",\n".join("    " + line(one) for one in value) + "\n  ]"
        return json.dumps({k: short(v) for k, v in value.items()} if isinstance(value, dict) else value)

    return "{\n" + ",\n".join(f'  "{key}": {line(value)}' for key, value in run.items()) + "\n}\n"


class Kept:
    """Hold a run's file, which names the GPU, the versions and the date."""

    def __init__(self, path: Path | None, folder: Path):
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.run = here.about(self.device)
        self.path = path or folder / f"{machine.short_name(self.run['machine']['gpu'])}.json"
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def keep(self, **parts) -> None:
        self.run |= parts
        self.path.write_text(dumps(self.run), encoding="utf-8")


def begin(argv: list[str], folder: Path) -> Kept | None:
    """Return the file to keep measurements in, the one that argv names, else the GPU's in the folder. Without a GPU,
    say so."""
    return Kept(Path(argv[0]) if argv else None, folder) if here.has_gpu() else None

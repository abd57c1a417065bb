"""Keep a run's measurements as one JSON file, written after each: a run that is cut short keeps what it has."""

import json
from pathlib import Path

import torch

from kernels.bench import machine

NO_GPU = 3


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
    """A run's file, which names the GPU, the versions and the date."""

    def __init__(self, path: Path | None, folder: Path):
        self.device = torch.device("cuda", torch.cuda.current_device())
        about = machine.describe(self.device)
        self.path = path or folder / f"{machine.short_name(about['gpu'])}.json"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.run = {"machine": about, "versions": machine.versions(), "date": machine.today()}

    def keep(self, **parts) -> None:
        self.run |= parts
        self.path.write_text(dumps(self.run), encoding="utf-8")


def begin(argv: list[str], folder: Path) -> Kept | None:
    """Return the file to keep measurements in: the one that argv names, else the GPU's in the folder. Without a GPU, say so."""
    if torch.cuda.is_available():
        return Kept(Path(argv[0]) if argv else None, folder)
    print("PyTorch finds no NVIDIA GPU here, so nothing was measured; run this where there is one.")
    return None

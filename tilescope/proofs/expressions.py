"""List cases as expressions. Each is computed with fresh inputs, and so are its gradients."""

import builtins
import importlib
from collections.abc import Callable, Iterator
from contextlib import suppress

import torch


def cases(table: str, inputs: Callable[[], dict], home: str, only: str) -> Iterator[tuple[str, Callable]]:
    """Return (name, what runs it) for every line of a table.
    A name that `inputs` lacks is a module of `home`."""
    for line in table.strip().splitlines():
        line = line.strip()
        if line and not line.startswith("#") and only in line:
            yield line.split("(")[0], runner(line, inputs, home)


def runner(line: str, inputs: Callable[[], dict], home: str) -> Callable[[], str]:
    def run() -> str:
        import_parts(line.split("(")[0].split("."), home)
        found = eval(line, {"torch": torch}, Names(inputs(), home))  # noqa: S307
        backward(found)
        return ""

    return run


def import_parts(path: list[str], home: str) -> None:
    """Import the modules on the way to a function whose package does not import them, such as
    rwkv7.fused_k_update.fused_k_rwkv7."""
    for root in (home, home.split(".")[0]):
        for count in range(1, len(path)):
            with suppress(ModuleNotFoundError):
                importlib.import_module(".".join([root, *path[:count]]))


class Names(dict):
    def __init__(self, inputs: dict, home: str):
        super().__init__(inputs)
        self.home = home

    def __missing__(self, name: str):
        if name in dir(builtins) or name == "torch":
            raise KeyError(name)
        for home in (self.home, self.home.split(".")[0]):
            try:
                return importlib.import_module(f"{home}.{name}")
            except ModuleNotFoundError as missing:
                if missing.name != f"{home}.{name}":  # it is there, and needs what is not
                    raise
        raise KeyError(name)


def backward(found) -> None:
    """Computes the gradients of the sum of all results that have one."""
    given = found if isinstance(found, tuple | list) else [found]
    wanted = [x for x in given if isinstance(x, torch.Tensor) and x.requires_grad]
    if wanted:
        torch.autograd.backward(wanted, [torch.randn_like(x) for x in wanted])

"""Find the simulators by looking into the folders for widgets/<slug>/<name>.py with a SIMULATOR."""

import difflib
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

from widgets.declare import Declaration

HERE = Path(__file__).parent


@cache
def places() -> dict[str, str]:
    """Return name -> slug of every simulator, read from the files' text, without importing any."""
    found: dict[str, str] = {}
    for file in sorted(HERE.glob("*/*.py")):
        if "\nSIMULATOR = " not in file.read_text(encoding="utf-8"):
            continue
        if file.stem in found:
            raise ValueError(f"simulator names must be unique, got {file.stem!r} twice; rename one")
        found[file.stem] = file.parent.name
    return found


@cache
def find(name: str) -> Declaration:
    """Find a simulator by its name, 'tile_walk', or with its topic, 'gemm_tiling.tile_walk'."""
    slug, _, short = name.rpartition(".")
    if short not in places() or slug not in ("", places()[short]):
        known = sorted(places())
        near = difflib.get_close_matches(short, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else "see python -m widgets list"
        raise ValueError(f"simulator must be one of {', '.join(known)}, got {name!r}; {hint}")
    module = import_module(f"widgets.{places()[short]}.{short}")
    return replace(module.SIMULATOR, slug=places()[short], name=short)


def _met(name: str) -> tuple:
    """Return simulators by topic, and within a topic by its ORDER, with unlisted ones last."""
    slug = places()[name]
    order = getattr(import_module(f"widgets.{slug}"), "ORDER", ())
    return slug, order.index(name) if name in order else len(order), name


def every() -> list[Declaration]:
    return [find(name) for name in sorted(places(), key=_met)]

"""Put our builder where Triton's Python looks for its compiled library, before Triton is imported."""

import importlib.util
import os
import sys
import types
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from . import ir
from .arguments import specialised

NAME = "triton._C.libtriton"
WISH = "TILESCOPE_FRONT_END"  # "python" asks for this way although the library is there
TRUE = ("1", "true", "on", "y", "yes")
EMPTY = ("interpreter", "passes", "llvm", "nvidia", "amd", "proton", "gluon_ir", "linear_layout")


def is_needed() -> bool:
    """Return whether Triton's compiled library is missing here or was not wanted."""
    wish = os.environ.get(WISH, "")
    if wish not in ("", "python"):
        raise ValueError(f"{WISH} must be python or nothing, got {wish!r}")
    return wish == "python" or not has_library()


def has_library() -> bool:
    found = importlib.util.find_spec("triton")
    folders = found.submodule_search_locations or [] if found else []
    names = [f"libtriton{suffix}" for suffix in EXTENSION_SUFFIXES]
    return any((Path(folder) / "_C" / name).exists() for folder in folders for name in names)


def where_needed() -> bool:
    """Install the replacement where the library is missing. Return whether it is installed now."""
    if NAME not in sys.modules and is_needed():
        install()
    ours = getattr(sys.modules.get(NAME), "ir", None) is ir
    if os.environ.get(WISH) and not ours:
        raise RuntimeError(f"{WISH} must be heard before Triton is imported; import tilescope.lowering first")
    return ours


def install() -> None:
    os.environ.setdefault("TRITON_BACKENDS_IN_TREE", "1")  # its other way asks the package's metadata
    package = module("", getenv=os.environ.get, getenv_bool=is_true, native_specialize_impl=specialised)
    package.get_cache_invalidating_env_vars = dict
    above = types.ModuleType("triton._C")  # no wheel of another platform is looked into
    above.__path__, package.__path__, above.libtriton = [], [], package
    sys.modules["triton._C"] = above
    sys.modules[f"{NAME}.ir"] = package.ir = ir
    for name in EMPTY:
        setattr(package, name, module(f".{name}"))
    for name in ("nvidia", "amd"):
        getattr(package, name).load_dialects = ir.load_dialects


def is_true(name: str, default: bool = False) -> bool:
    return os.environ[name].lower() in TRUE if name in os.environ else default


def module(name: str, **names) -> types.ModuleType:
    """Make a module that has any name. A name that only a compiler would call says so when called."""
    made = sys.modules[NAME + name] = types.ModuleType(NAME + name)
    vars(made).update(names, __getattr__=anything)
    return made


def anything(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    return ir.missing

"""The strongest level that this machine really has, and the refusal of work that needs a stronger one."""

import hashlib
import json
import os
import sys
from functools import cache
from pathlib import Path

from grader.box import bubblewrap
from grader.box.limits import NO_BOX, BoxError, Level
from grader.box.measure import QUICK, try_attacks
from grader.box.systems import cache_folder, has_boxes


@cache
def best_level() -> Level:
    """The strongest level whose every promise held when it was attacked here.

    The full measurement is kept per boot. A process that finds one tries the quickest attacks again.
    """
    if not has_boxes():
        return NO_BOX
    known = _recall()
    if known is not None and (known == Level.LIMITS or not try_attacks(known, tuple(QUICK)).why_not()):
        return known
    level = next((one for one in (Level.BUBBLEWRAP, Level.LANDLOCK) if not why_not(one)), Level.LIMITS)
    _remember(level)
    return level


@cache
def why_not(level: Level) -> str:
    """Return what keeps this machine from a level, or an empty text."""
    return try_attacks(level).why_not()


def require(level: int, purpose: str) -> Level:
    """Return the best level here. Raise BoxError if that is weaker than `level`."""
    best = best_level()
    if best >= level:
        return best
    if best == NO_BOX:
        raise BoxError(
            f"the box must be of level {level} or better for {purpose}, got a system without boxes. "
            "Answers are judged here only at the learner's own pace, and a class is graded on Linux"
        )
    reasons = "; ".join(f"level {int(one)} is out: {why_not(one)}" for one in Level if one >= level)
    asroot = (
        " and not as root" if hasattr(os, "geteuid") and os.geteuid() == 0 and best == Level.LIMITS else ""
    )
    raise BoxError(
        f"the box must be of level {level} or better for {purpose}, got level {int(best)} ({reasons}). "
        f"Install bubblewrap or run on a kernel with Landlock{asroot}, then look at `python -m grader box`"
    )


def _cache_file() -> Path:
    return cache_folder() / "box.json"


def _key() -> str:
    """Return the conditions of a measurement: this boot, this user, this interpreter, this bubblewrap, this code."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    code = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.rglob("*.py"))))
    return f"{boot} {os.getuid()} {sys.executable} {bubblewrap.trouble()} {code.hexdigest()[:16]}"


def _recall() -> Level | None:
    try:
        kept = json.loads(_cache_file().read_text(encoding="utf-8"))
        return Level(kept["level"]) if kept["key"] == _key() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(level: Level):
    try:
        _cache_file().parent.mkdir(parents=True, exist_ok=True)
        _cache_file().write_text(json.dumps({"key": _key(), "level": int(level)}) + "\n", encoding="utf-8")
    except OSError:
        pass

"""What this system lacks that a box is made of: the one place that asks which system it is."""

import os
import sys

WISH = "GRADER_BOX"  # "none" asks for no box although one could be made


def has_boxes() -> bool:
    """Whether programs can be started here and held in: not in a browser's tab, and not on Windows."""
    wish = os.environ.get(WISH, "")
    if wish not in ("", "none"):
        raise ValueError(f"{WISH} must be none or nothing, got {wish!r}")
    return os.name == "posix" and sys.platform != "emscripten" and not wish

"""Where things lie: the checkout, and what a learner's own checks leave behind. Imports nothing of ours."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]


def records() -> Path:
    """Where records are kept: beside the learner's copies of the labs."""
    return Path(os.environ.get("TILE_RECORDS") or ROOT / "work" / "records")

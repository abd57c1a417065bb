"""Run a stranger's Python in boxes. `python -m grader box` shows which attacks they hold back here."""

from grader.box.best import best_level, require
from grader.box.launch import spawn
from grader.box.limits import LEVELS, BoxError, Level, Limits

__all__ = ["LEVELS", "BoxError", "Level", "Limits", "best_level", "require", "spawn"]

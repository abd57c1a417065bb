"""Turn the source of an answer into a Record. A notebook needs only `check`, `run`, `hint` and `step`."""

from grader.paths import own_package

own_package("tilescope")

__all__ = ["best_record", "check", "hint", "last_record", "needs", "run", "step"]


def __getattr__(name: str):
    if name in ("check", "hint", "needs", "run", "step"):
        from grader import notebook

        return getattr(notebook, name)
    if name in ("last_record", "best_record"):
        from grader.judge import record

        return getattr(record, name.removesuffix("_record"))
    raise AttributeError(f"grader has no {name!r}, only {', '.join(__all__)}")

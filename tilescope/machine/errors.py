"""End a run early, for the answer's mistake or for its use of resources.
A run that goes on after mistakes keeps them here."""

from contextlib import contextmanager


class KernelError(Exception):
    """The answer made a mistake. `facts` says where: tensor, program, axis, index."""

    def __init__(self, kind: str, message: str, line: int = 0, **facts):
        super().__init__(f"{message} (line {line})" if line else message)
        self.kind, self.message, self.line, self.facts = kind, message, line, facts

    def report(self) -> dict:
        return {
            "stage": "kernel",
            "kind": self.kind,
            "message": self.message,
            "line": self.line or None,
            **self.facts,
        }


class Mistakes:
    """Mistakes that a run survived: the first of each kind at one line, tensor and kind of access."""

    def __init__(self):
        self.kept: dict[tuple, dict] = {}
        self.told_again: set[tuple] = set()  # by a pass whose account comes second

    def add(self, error: KernelError) -> None:
        key = (error.kind, error.line, error.facts.get("tensor", ""), error.facts.get("access", ""))
        if key not in self.kept or key in self.told_again:
            self.kept[key] = error.report()
            self.told_again.discard(key)

    def tell_again(self) -> None:
        """Let a mistake that is met again replace the known one, once."""
        self.told_again = set(self.kept)


GOING_ON: list[Mistakes] = []  # of the run that is under way, where it goes on after mistakes


@contextmanager
def going_on(mistakes: Mistakes | None):
    """Let the code inside go on after mistakes. With None the first mistake ends the run."""
    if mistakes is None:
        yield
        return
    GOING_ON.append(mistakes)
    try:
        yield
    finally:
        GOING_ON.pop()


def hold(error: KernelError) -> None:
    """Keeps a mistake where the run goes on after it, and raises it everywhere else."""
    if not GOING_ON:
        raise error
    GOING_ON[-1].add(error)


class OverLimit(Exception):
    """More processor time, operations or memory than a run may have."""

    def __init__(self, what: str, message: str, line: int = 0):
        super().__init__(f"{message} (line {line})" if line else message)
        self.what, self.message, self.line = what, message, line

    def report(self) -> dict:
        return {
            "stage": "kernel",
            "kind": "OverLimit",
            "message": self.message,
            "line": self.line or None,
            "what": self.what,
        }

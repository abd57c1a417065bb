"""Every launch inside a block, compared with Triton's interpreter and noted by kernel."""

from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from tilescope import launcher
from tilescope.arrays import is_tensor
from tilescope.call import Tensors
from tilescope.machine import memory
from tilescope.watching import watch

from .reference import Unable, interpreted

CLOSE = {2: (2e-2, 2e-2), 4: (1e-4, 1e-4), 8: (1e-7, 1e-7)}  # bytes of a float -> relative, absolute
OF_LARGEST = 3e-3  # of the largest value
MOST_COMPARED = 2  # launches of one kernel
RANKS = ("wrong", "refused", "close", "equal")


@dataclass
class Kernel:
    """The outcome of one kernel's launches."""

    package: str
    launches: int = 0
    against: Counter = field(default_factory=Counter)  # by Triton's interpreter: equal, close, apart, unable
    results: Counter = field(default_factory=Counter)  # of its callers, against torch: right, wrong
    notes: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if text not in self.notes and len(self.notes) < 4:
            self.notes.append(text)

    @property
    def verdict(self) -> str:
        """Return the worst outcome.
        If both judged, torch decides, because Triton's interpreter is sometimes wrong."""
        if self.against["refused"]:
            return "refused"
        if self.results["right"] and not self.results["wrong"]:
            return "right"
        if self.results["right with zeros"] and not self.results["wrong"]:
            return "right with 0 in masked lanes"
        if self.against["apart"]:
            return "differs"
        if self.against["close with zeros"]:
            return "right with 0 in masked lanes"
        if self.results["wrong"]:
            return "as Triton's interpreter, and not as torch" if self.against else "differs"
        return "right" if self.against["equal"] or self.against["close"] else "not compared"


class Launches:
    """Collects kernels by name, for all cases of a package."""

    def __init__(self, package: str, compares: bool):
        self.package, self.compares, self.zeros = package, compares, False
        self.kernels: dict[str, Kernel] = defaultdict(lambda: Kernel(package))
        self.seen: list[str] = []  # kernels of the present case

    @property
    def met_undefined(self) -> bool:
        """Return whether a kernel of the present case lets undefined lanes reach a result."""
        return any(f.startswith("mask:") for name in self.seen for f in self.kernels[name].findings)

    @contextmanager
    def with_zeros(self):
        """Gives undefined lanes 0, as today's GPUs do."""
        original, memory.poison = memory.poison, lambda shape, dtype, kind=0: np.zeros(shape, dtype)
        self.zeros = True
        try:
            yield
        finally:
            memory.poison, self.zeros = original, False

    @contextmanager
    def case(self):
        """Runs what is inside on the machine, with every launch noted."""
        self.seen = []
        with watch() as seen:
            original, launcher.JITFunction.run = launcher.JITFunction.run, self.runner(seen)
            try:
                yield
            finally:
                launcher.JITFunction.run = original

    def runner(self, seen):
        def run(kernel, *args, grid, warmup, **kwargs):
            if warmup:
                return None
            row = self.kernels[kernel.fn.__name__]
            self.seen.append(kernel.fn.__name__)
            row.launches += 1
            named = {**dict(zip(kernel.arg_names, args, strict=False)), **kwargs}
            given = [(n, value) for n, value in named.items() if is_tensor(value)]
            memories = [storage.elements for storage in Tensors(given, whole=True).stored]
            before, known = [one.copy() for one in memories], len(seen.findings)
            launcher.launch(kernel, *args, grid=grid, warmup=False, **kwargs)
            for finding in seen.findings[known:]:
                row.findings.append(f"{finding.kind}: {finding.message}")
                if finding.kind == "not run":
                    row.against["refused"] += 1
            if self.compares and not self.zeros and sum(row.against.values()) < MOST_COMPARED:
                self.compare(row, kernel, grid, args, kwargs, memories, before)

        return run

    def compare(self, row: Kernel, kernel, grid, args, kwargs, memories, before) -> None:
        after = [one.copy() for one in memories]
        for one, content in zip(memories, before, strict=True):
            one[...] = content
        try:
            other = interpreted(kernel, grid, args, kwargs, memories)
        except Unable as error:
            row.against["unable"] += 1
            row.note(f"Triton's interpreter: {error}")
        else:
            how, most = difference(after, other)
            if how == "apart" and any(finding.startswith("mask:") for finding in row.findings):
                with self.with_zeros():
                    launcher.launch(kernel, *args, grid=grid, warmup=False, **kwargs)
                if difference(memories, other)[0] != "apart":
                    how = "close with zeros"
            row.against[how] += 1
            if how == "apart":
                row.note(f"apart from Triton's interpreter by {most:.3g} of the largest value")
        for one, content in zip(memories, after, strict=True):
            one[...] = content


def difference(ours: list[np.ndarray], theirs: list[np.ndarray]) -> tuple[str, float]:
    """Return whether two results are equal bit for bit, close, or apart,
    and the largest difference as a share of the largest value."""
    if all(a.tobytes() == b.tobytes() for a, b in zip(ours, theirs, strict=True)):
        return "equal", 0.0
    most, close = 0.0, True
    for a, b in zip(ours, theirs, strict=True):
        if a.dtype.kind in "biu":
            close &= bool((a == b).all())
            continue
        relative, absolute = CLOSE[max(2, a.dtype.itemsize)]
        a, b = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(invalid="ignore"):
            apart = float(np.nan_to_num(np.abs(a - b)).max(initial=0.0))
            share = apart / max(float(np.nan_to_num(np.abs(b), posinf=0.0).max(initial=0.0)), 1e-30)
        most = max(most, share)
        same_nans = bool((np.isnan(a) == np.isnan(b)).all())
        near = np.allclose(a, b, relative, absolute, equal_nan=True)
        close &= near or (
            same_nans and share <= OF_LARGEST
        )  # a dot of fp32 in tf32, which the interpreter lacks
    return ("close" if close else "apart"), most

"""Find loops whose turns overlap, with a load of what an earlier turn may store. The compiler's pipeline loads for later turns
first, whatever barriers say, and an interpreter that runs the turns in order sees nothing of it."""

import re

from grader.judge.failed import Failed
from grader.judge.kernel_evidence import KernelEvidence
from grader.judge.printed import LINE, OPERATION, functions, read, root_of

STAGES = re.compile(r"tt\.num_stages = (\d+)")
MOVES = {"tt.load": "load", "tt.store": "store", "tt.atomic_rmw": "store", "tt.atomic_cas": "store"}


def judge(evidence: KernelEvidence) -> None:
    """Raise Failed for such a loop."""
    for line in evidence.lines_found(lines):
        raise Failed(
            f"line {line} loads what an earlier turn of its loop may store, and tl.range(num_stages=...) lets turns overlap",
            "range(...) without num_stages there: a pipelined loop loads for later turns before this one stores",
            told="a pipelined loop that loads what it stores",
        )


def lines(text: str) -> list[int]:
    """Return the lines of the cell that load a tensor in a pipelined loop that also stores it."""
    found = set()
    for function in functions(text):
        values, loops = read(function)
        for begins, ends, _ in loops:
            stages = STAGES.search(function[ends])
            if not stages or int(stages[1]) < 2:
                continue
            moved = [(MOVES[op], root, at) for op, root, at in accesses(values, function, begins, ends)]
            stored = {root for kind, root, _ in moved if kind == "store"}
            found |= {at for kind, root, at in moved if kind == "load" and root in stored}
    return sorted(found)


def accesses(values: dict, function: list[str], begins: int, ends: int):
    """Yield each access between two lines of a function, with the argument that its address is made from and its line."""
    for text in function[begins + 1 : ends]:
        match, place = OPERATION.match(text), LINE.search(text)
        if match and match[2] in MOVES and place:
            yield match[2], root_of(values, match[3].split(",")[0].strip()), int(place[1])

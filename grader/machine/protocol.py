"""Type the messages between referee and machine on both sides. Nothing is pickled: a header of plain data, and arrays
whose size the asking side knows beforehand."""

from dataclasses import dataclass, field, fields
from math import prod

import numpy as np

from tilescope.machine.comparisons import Comparison
from tilescope.machine.contiguity import Access
from tilescope.machine.influence import Content, Steer
from tilescope.machine.report import LaunchReport, Report

TOLD_OF_WRITERS = ("program", "line", "launch")  # of each element of an output, -1 where nothing stores it


class BadReply(ValueError):
    """The other side answered something that wasn't requested."""


@dataclass(frozen=True)
class Step:
    text: int  # index among the request's texts
    grid: tuple[int, int, int]
    arguments: list  # ["tensor", name] or [type, value]

    def plain(self) -> dict:
        return {
            "text": self.text,
            "grid": list(self.grid),
            "arguments": [list(pair) for pair in self.arguments],
        }


@dataclass(frozen=True)
class RunRequest:
    """One case: a plan's texts and steps on the question's tensors."""

    texts: list[str]
    steps: list[Step]
    tensors: list[dict]  # name, dtype, shape, strides, axes, role
    scratch: dict[str, dict] = field(default_factory=dict)  # name -> shape, dtype, fill
    sm_count: int = 16
    repeatable: bool = True
    programs: list | None = None  # for each step the ones to run, where not all
    counting: str = "full"
    seed: int = 0
    fill: int = 0  # seeds the content of unwritten memory
    shuffled: int = 0  # seeds another order of programs, where atomics may tell one
    poison: int = 0  # 1: masked-off lanes hold 0, as on the GPUs of today
    seconds: float = 20.0
    waves_of: int = 0  # programs a wave, if the written part of each wave is requested
    # or "poison" (which masked loads without `other` reach a result), "stores" (the elements that no program writes),
    # "writers" (the programs that store each element of an output) or "lines" (the bytes that each line asks for)
    operation: str = "run"

    def task(self) -> dict:
        return {**vars(self), "steps": [step.plain() for step in self.steps]}

    def arrays(self) -> dict[str, tuple[str, int]]:
        """Return (dtype, elements) of every array that a reply may hold. -1 elements means the number that the
        programs wrote."""
        expected = {}
        outputs = [one for one in self.tensors if one["role"] in ("out", "inout")]
        if self.operation == "stores":
            drawn = len(self.programs[0]) if self.programs else 0
            return {f"by:{one['name']}": ("i64", drawn) for one in outputs if drawn}
        if self.operation == "writers":
            return {
                f"{what}:{one['name']}": ("i64", elements(one)) for one in outputs for what in TOLD_OF_WRITERS
            }
        if self.operation == "lines":
            return {}
        if self.programs:
            for tensor in outputs:
                expected |= {tensor["name"]: (tensor["dtype"], -1)}
                expected |= {f"{what}:{tensor['name']}": ("i64", -1) for what in ("at", "by")}
            return expected
        for tensor in self.tensors:
            extent = elements(tensor)
            if tensor["role"] in ("out", "inout"):
                expected[tensor["name"]] = tensor["dtype"], extent
            if self.counting == "full":
                expected |= {f"{kind}:{tensor['name']}": ("u32", extent) for kind in ("loads", "stores")}
        return expected


# of a line: the bytes that lanes ask for, that they ask for once, of accesses that begin at an even place, and of sectors
OF_LINES = "bytes", "distinct", "even", "sectors"


@dataclass(frozen=True)
class PrintRequest:
    texts: list[str]

    def task(self) -> dict:
        return {"operation": "print", **vars(self)}


def elements(tensor: dict) -> int:
    """From the first element that a tensor owns to its last."""
    shape = tensor["shape"]
    if "strides" not in tensor:
        return prod(shape)
    return 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, tensor["strides"], strict=True))


def run_reply(request: RunRequest, header: dict, arrays: dict[str, np.ndarray], name_of) -> Report:
    """Return the report in a reply. Raise BadReply if it isn't one, or if an array doesn't have the expected size.

    `name_of` gives an array's dtype its name.
    """
    expected = request.arrays()
    for name, array in arrays.items():
        dtype, size = expected.get(name, ("", 0))
        if dtype != name_of(array) or size not in (-1, array.size):
            raise BadReply(f"an array that was not asked for: {name[:40]!r}")
    fields = {name: header[name] for name in Report.__dataclass_fields__ if name in header}
    if fields.keys() != Report.__dataclass_fields__.keys():
        raise BadReply("a report without all of its fields")
    if not isinstance(fields["launches"], list) or not isinstance(fields["races"], list):
        raise BadReply("a report whose launches or races are no list")
    if fields["error"] is None and len(arrays) != len(expected):
        raise BadReply("a report without all of its arrays")
    try:
        fields["launches"] = [LaunchReport(**launch) for launch in fields["launches"]]
    except TypeError as error:
        raise BadReply(f"a launch that is none: {error}") from None
    return Report(**fields)


def writers_reply(request: RunRequest, arrays: dict[str, np.ndarray], name_of) -> None:
    """BadReply where a reply about writers lacks an array, or has one of another size."""
    expected = request.arrays()
    if arrays.keys() != expected.keys():
        raise BadReply("other arrays than were asked for")
    for name, array in arrays.items():
        if (name_of(array), array.size) != expected[name]:
            raise BadReply(f"an array that was not asked for: {name[:40]!r}")


def lines_reply(request: RunRequest, header: dict, arrays: dict) -> None:
    """Raise BadReply if a reply about lines isn't a list of tensors, kinds of access, lines and counts of bytes."""
    rows, types = (
        header.get("lines"),
        {"tensor": str, "kind": str, "line": int} | dict.fromkeys(OF_LINES, int),
    )
    if arrays or not isinstance(rows, list):
        raise BadReply("no list of lines")
    for row in rows:
        if not isinstance(row, dict) or {name: type(value) for name, value in row.items()} != types:
            raise BadReply("a line that is none")


def poison_reply(header: dict) -> list[dict]:
    found = header.get("poison")
    if not isinstance(found, list) or not all(
        isinstance(row, dict) and isinstance(row.get("line"), int) for row in found
    ):
        raise BadReply("no list of lines")
    return found


def print_reply(request: PrintRequest, header: dict) -> list[dict]:
    """Return for each text its print, or {"error": ...}, its accesses, and what steers them: {"text", "accesses", "steers",
    "content", "compared"}."""
    columns = texts, seen, steered = [header.get(name) for name in ("texts", "accesses", "steers")]
    if any(not isinstance(column, list) or len(column) != len(request.texts) for column in columns):
        raise BadReply("another number of texts than was asked for")
    for text in texts:
        if not isinstance(text, str) and not (isinstance(text, dict) and isinstance(text.get("error"), dict)):
            raise BadReply("neither a text nor an error")
    found = []
    for text, accesses, steers in zip(texts, seen, steered, strict=True):
        if not isinstance(steers, list) or len(steers) != 3:
            raise BadReply(
                "no lists of what steers a text, of what its tensors hold, and of what it compares"
            )
        found.append(
            {
                "text": text,
                "accesses": rows_of(Access, accesses),
                "steers": rows_of(Steer, steers[0]),
                "content": rows_of(Content, steers[1]),
                "compared": rows_of(Comparison, steers[2]),
            }
        )
    return found


def rows_of(kind: type, rows) -> list:
    """Return rows of one kind, by its types. Raise BadReply if a row is none."""
    types = [field.type for field in fields(kind)]
    if not isinstance(rows, list) or not all(
        isinstance(row, list) and [*map(type, row)] == types for row in rows
    ):
        raise BadReply(f"a row that is no {kind.__name__}")
    return [kind(*row) for row in rows]

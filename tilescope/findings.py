"""Describe the mistakes of a checked launch in the script's own names for parameters, lines and programs."""

import re
from dataclasses import asdict, dataclass, field

from .machine.bounds import ids
from .machine.order import NO_BARRIER
from .machine.tree import BadIR
from .sources import place_of

ERRORS = {
    "bounds": "an access outside its tensor",
    "race": "two programs meet at one element, or two lanes of one program, and nothing orders them",
    "deadlock": "programs wait, and no other can end that",
    "failed": "the launch ended in another error, such as a device_assert",
    "overflow": "int32 arithmetic overflows on its way into an address (on request)",
    "not run": "the launch needs what is not supported, or more than it may use",
}
WARNINGS = {
    "neighbour": "an access outside a view, in the memory that the view is part of",
    "mask": "the undefined lanes of a masked load reach an output",
    "hint": "a promise to the compiler that is not kept",
    "atomics": "atomic additions of floats, whose order decides the last bits (on request)",
    "undecided": "the launch ran, but its races could not be decided",
    "nan": "an operation makes a NaN of numbers that are none",
    "infinity": "an operation makes an infinity of finite numbers",
}
SANITIZED = re.compile(r"int\d+ overflow detected")
KINDS = {
    "OutOfBounds": "bounds",
    "Deadlock": "deadlock",
    "StoredTwice": "race",
    "FalseHint": "hint",
    "FalseAssume": "hint",
    "Overflow": "overflow",
}


@dataclass(eq=False)
class Finding:
    """Holds one mistake of one kernel. `times` counts the launches with this mistake."""

    kind: str  # a key of ERRORS or WARNINGS
    message: str
    kernel: str
    file: str
    line: int | None = None
    tensor: str = ""  # the parameter's name, or x/y if two parameters share memory
    programs: list[list[int]] = field(default_factory=list)  # ids on the grid's three axes
    element: int | None = None
    other_line: int | None = None  # for a race, the line of the second program
    outputs: list[str] = field(default_factory=list)  # for a mask, the tensors that change
    times: int = 1
    lane: list[int] = field(
        default_factory=list
    )  # of an access outside or of a birth, the index in the block
    operands: list[str] = field(default_factory=list)  # of a birth, in words
    access: str = ""  # of an access outside, "load", "store" or "atomic"

    @property
    def severity(self) -> str:
        return "error" if self.kind in ERRORS else "warning"

    @property
    def place(self) -> str:
        return place_of(self.file, self.line)

    def same_as(self, other: "Finding") -> bool:
        """Return whether both are one mistake, met in different launches or programs."""
        return self._key() == other._key()

    def _key(self) -> tuple:
        key = (self.kind, self.kernel, self.file, self.line, self.other_line, self.tensor, self.access)
        return key if self.line else (*key, self.message)

    def as_dict(self) -> dict:
        return {"severity": self.severity, **asdict(self)}

    def __str__(self) -> str:
        often = f" ({self.times} launches)" if self.times > 1 else ""
        return f"{self.place}: {self.severity}: {self.kind} in {self.kernel}: {self.message}{often}"


def of_error(kernel: str, file: str, error: dict) -> Finding:
    """The finding that a run's error is."""
    kind = KINDS.get(error["kind"], "failed")
    if error["kind"] == "Assertion" and SANITIZED.search(
        error["message"]
    ):  # Triton's own check, with debug on
        kind = "overflow"
    if error["kind"] == "OverLimit" or error["stage"] != "kernel":
        kind = "not run"
    programs = error.get("programs") or ([error["program"]] if error.get("program") else [])
    return Finding(
        kind,
        error["message"],
        kernel,
        file,
        error["line"],
        error.get("tensor", ""),
        programs,
        error.get("element"),
        lane=error.get("lane") or [],
        access=error.get("access", ""),
    )


def of_refusal(kernel: str, file: str, error: BadIR) -> Finding:
    """Return the finding that a launch makes that can't even begin."""
    said = str(error).removeprefix(f"line {error.line}: ")  # the finding names its line already
    return Finding("not run", said, kernel, file, error.line or None)


VERBS = {"read": "reads {}", "write": "writes {}", "atomic": "changes {} atomically"}


def of_race(call, race: dict, other: tuple[list, int] | None, element: str) -> Finding:
    """Return the finding for a race.
    `other` has the ids and the line of the second program, `element` its name."""
    late, _, early = race["how"].split()[:3]
    if race["earlier"] is not None:
        return of_lanes(call, race, VERBS[late].format(element), {"read": "read", "write": "wrote"}[early])
    line, programs = None, [race["program"]]
    met = f"another program {VERBS[early].format('it')}"
    if other is not None:
        program, line = other
        programs.append(program)
        met = f"program {ids(program, call.grid)} {VERBS[early].format('it')} at line {line}"
    orders = (
        "no tl.debug_barrier() lets all threads store before one of them does the atomic"
        if race["how"].endswith(NO_BARRIER)
        else "nothing orders the two"
    )
    message = f"program {ids(race['program'], call.grid)} {VERBS[late].format(element)}, {met}, and {orders}"
    return Finding(
        "race",
        message,
        call.kernel,
        call.file,
        race["line"] or None,
        race["tensor"],
        programs,
        race["element"],
        line,
    )


def of_lanes(call, race: dict, does: str, did: str) -> Finding:
    """Return the finding for a race among the lanes of one program."""
    message = f"a lane of program {ids(race['program'], call.grid)} {does}, another {did} it at line {race['earlier']}, and no tl.debug_barrier() is between"
    where = race["line"] or None, race["tensor"], [race["program"]], race["element"], race["earlier"]
    return Finding("race", message, call.kernel, call.file, *where)


def of_atomics(call, race: dict, other: tuple[list, int] | None, element: str) -> Finding:
    """The finding that atomic additions of floats to one element are."""
    programs, met = [race["program"]], "others"
    if other is not None:
        programs.append(other[0])
        met = f"program {ids(other[0], call.grid)}"
    message = f"program {ids(race['program'], call.grid)} and {met} add floats to {element} atomically, and their order decides the last bits"
    line, tensor, at = race["line"] or None, race["tensor"], race["element"]
    return Finding(
        "atomics", message, call.kernel, call.file, line, tensor, programs, at, other[1] if other else None
    )


def of_mask(call, row: dict, tensor: str, programs: list) -> Finding:
    """The finding that a masked load of `tensor` without `other` is."""
    what = ", ".join(row["outputs"])
    reaches = f"reaches {what}" if what else "decides whether the launch fails"
    message = f"the load of {tensor} has a mask and no other=: the content of the masked lanes is undefined, and it {reaches}"
    if programs:
        message += f" in program {ids(programs[0], call.grid)}"
    return Finding(
        "mask", message, call.kernel, call.file, row["line"], tensor, programs, outputs=row["outputs"]
    )

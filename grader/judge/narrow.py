"""Find loads and stores that move few bytes by one instruction although their lanes ask for neighbours in memory, because the
address hides it from the compiler. Bytes and sectors don't show it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from grader.jail.protocol import Kernel
from grader.judge.diagnose import named
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import ALIGNED, METERED, KernelEvidence, is_hidden
from grader.judge.printed import functions, parameters, read, root_of
from tilescope.machine.contiguity import Access

FULL = 1.25  # times the bytes that lanes ask for, in whole sectors, where neighbours stand together
REPEATED = 1.5  # times its bytes, from where lanes share numbers more than they have neighbours
EVENLY = 0.75  # of its bytes, from where accesses begin where one instruction may move several numbers
SHARE = 0.02  # of all bytes of a case, which a line must move to matter


# as Triton's IR spells loads that pass by the L1 cache: volatile=True and cache_modifier=".cv"
UNCACHED = re.compile(r"isVolatile = true|\bcache = 7 :")


@dataclass(frozen=True)
class Narrow:
    """Hold the access of a tensor in a line, and the bits that one instruction moves."""

    tensor: str
    kind: str
    line: int
    bits: int


def judge(evidence: KernelEvidence) -> None:
    """Raise Failed for such an access, at sizes that are whole blocks, where rows begin with a sector."""
    purpose = ALIGNED if ALIGNED in evidence.cases else METERED
    suspected = {
        (one.tensor, one.kind, one.line): one
        for step in evidence.steps(purpose)
        for one in narrow(evidence, step)
    }
    if not suspected:
        return
    _, placed = evidence.draw(purpose)
    rows = evidence.lines_of(purpose, placed)
    least = SHARE * sum(row["distinct"] for row in rows)
    for row in sorted(rows, key=lambda row: row["line"]):
        one = suspected.get((row["tensor"], row["kind"], row["line"]))
        if one and row["distinct"] > least and neighbours(row):
            verb = {"load": "loads", "store": "stores"}[one.kind]
            said = f"line {one.line} {verb} {one.tensor} {bytes_of(one.bits)} at a time, though its lanes are neighbours in memory"
            raise Failed(
                f"{said}, {named(evidence.cases[purpose], is_hidden(purpose))}",
                "how the address is made, and the mask: the compiler knows neighbours by tl.arange, sums and constant factors, and "
                "equal masks by comparing them with a size. An xor, a remainder or a reversed order of lanes hides neighbours, "
                "and a GPU then moves each number by an instruction of its own",
                told=said,
            )


def narrow(evidence: KernelEvidence, step: Kernel) -> list[Narrow]:
    """Return the accesses of a kernel that one instruction moves few bits of."""
    found = []
    for tensor, access in moved(evidence, step):
        bits = access.bits * access.neighbours
        if bits < min(evidence.question.vector, access.bits * access.side):
            found.append(Narrow(tensor, access.kind, access.line, bits))
    return found


def moved(evidence: KernelEvidence, step: Kernel) -> Iterator[tuple[str, Access]]:
    """Yield the loads and stores of a kernel's blocks whose addresses and masks don't come from memory, with their tensors."""
    for access in evidence.printed_text(step.text).get("accesses", ()):
        if access.parameter < len(step.arguments):
            yield step.arguments[access.parameter].removesuffix("_ptr"), access


def judge_uncached(evidence: KernelEvidence) -> None:
    """Raise Failed for a load of an input, which never changes, that asks memory each time, in any case."""
    inputs = {tensor.name for tensor in evidence.question.tensors if tensor.role == "in"}
    each = {step.text: step for purpose in evidence.cases for step in evidence.steps(purpose)}
    for step in each.values():
        for lines in functions(evidence.ir_of(step)) if UNCACHED.search(evidence.ir_of(step)) else ():
            values, _ = read(lines)
            given = dict(zip(parameters(values), step.arguments, strict=False))
            for name, value in values.items():
                tensor = given.get(root_of(values, name), "").removesuffix("_ptr")
                if value.op == "tt.load" and tensor in inputs and UNCACHED.search(lines[value.at]):
                    said = f"line {value.line} loads {tensor} past the caches"
                    raise Failed(
                        said,
                        'volatile=True and cache_modifier=".cv" are for numbers that other programs change while this one waits',
                        told=said,
                    )


def neighbours(row: dict) -> bool:
    """Return whether the lanes of a line ask for whole sectors, each number once, from even places on."""
    once = row["distinct"]
    return row["sectors"] <= FULL * once and row["bytes"] <= REPEATED * once and row["even"] >= EVENLY * once


def bytes_of(bits: int) -> str:
    return f"{bits // 8} byte{'s' * (bits > 8)}"

"""Close the account of a kernel question: every quantity that the machine counts has a bound, whether its author
named it or not.

A question states budgets, by part. This module closes the rest strictly: an input is loaded once, an output is stored
once and never loaded, scratch is empty, arithmetic has a limit for each element, and no program does all the work.
"""

import math
from dataclasses import replace

import numpy as np

from grader.box.serve.frames import DTYPES
from grader.questions.min_programs import side_by_side
from grader.questions.model import Budget, Case, KernelQuestion, Tensor, UpTo
from grader.questions.timed import CHIP, timed
from grader.questions.work import filled, work

SMALL = 0.1  # every program may load an input of less than this share of all bytes, within this share
A_FEW = 16_384  # bytes that a small input may take in any case, as a codebook that every program loads
TIGHT = 1 << 19  # bytes of all tensors, from where the few kB more of a small case hardly matter
LONG = 256  # elements of an axis with a few tiles
MANY_TILES = 4  # times that, which an axis with many may have
CYCLES = 64  # of a lane, for each element that is moved
EACH = 20  # operations of every kind for each element that is moved
A_PROGRAM = 65536  # elements of the largest tensor that one program may have to itself
MOST_LAUNCHES = 4
MOVED = 3  # times all tensors, for waves that share little, and scratch
WHOLE_SECTORS = 2  # bytes in whole sectors, over the bytes that the budgets allow
ALIGNED = 16  # elements, of which Triton looks whether a size is a multiple
LARGE = 0.25  # a tensor of so large a share of all bytes has a limit of sectors of its own, if it is moved but once
ONCE = 1.25  # times its bytes
SECTOR, SHORT = (
    32,
    256,
)  # bytes of a sector, and of a row whose ends matter more than all that is between them
CUT, APART = 1.02, 2  # ratio to its bytes, if its rows begin with a sector, else two sectors per piece
OPEN = "how often each program loads or stores this tensor, and whether once is enough"
KEPT = "what is stored and loaded again: a block lives in its variable as long as the program needs it"
TOGETHER = (
    "which addresses stand in one warp: neighbours share a sector, and a lone number moves all 32 bytes of it"
)
BYTES = ("dedup", "sectors", "requested")
USED = {"in": "load", "out": "store", "inout": "store"}


def account(question: KernelQuestion, part: str, case: Case) -> list[Budget]:
    """Return all limits of a part. The first part with budgets also limits every count that no budget does."""
    narrow = replace(case, dtypes={})
    stated = {
        name: [in_its_dtypes(budget, question, case) for budget in rule(narrow)]
        for name, rule in question.budgets.items()
    }
    own = [with_bytes(b, question, case) for b in [*stated[part], *without_a_clock(question, part, case)]]
    if part != next(iter(stated)):
        return own
    every = [budget for budgets in stated.values() for budget in budgets]
    return [*own, *closing(question, case, every)]


def in_its_dtypes(budget: Budget, question: KernelQuestion, case: Case) -> Budget:
    """Return a limit of bytes, which a question states for tensors of one dtype, for the dtypes that a case has."""
    wide = {
        t.name: size(t, case) / size(t, replace(case, dtypes={}))
        for t in question.tensors
        if t.name in case.dtypes and not t.dtype and size(t, case)
    }
    if budget.count not in BYTES or not wide:
        return budget
    times = wide.get(budget.tensor, 1)
    more = sum(
        size(t, case) * (1 - 1 / wide[t.name])
        for t in question.tensors
        if budget.tensor == "all" and t.name in wide and budget.access in ("any", USED[t.role])
    )
    return replace(budget, most=times * budget.most + more, least=times * budget.least)


def in_blocks(question: KernelQuestion, case: Case) -> Case:
    """Return a case with its sizes rounded up to whole blocks: lanes beyond the last element compute too."""
    whole = {axis: filled((max(case.sizes[axis], 1), lanes)) for axis, lanes in question.blocks.items()}
    return replace(case, sizes=case.sizes | whole)


def aligned(question: KernelQuestion, case: Case) -> Case:
    """Return a case in whole blocks, at whose ends the compiler sees that neighbours have one mask. A question that names no
    blocks has multiples of 16."""
    if question.blocks:
        return in_blocks(question, case)
    whole = {
        axis: min(filled((max(case.sizes[axis], 1), math.lcm(ALIGNED, one.step))), one.most)
        for axis, one in question.up_to.items()
        if isinstance(one, UpTo)
    }
    return replace(case, sizes=case.sizes | whole)


def without_a_clock(question: KernelQuestion, part: str, case: Case) -> list[Budget]:
    """Return the limit of time of a part that a GPU judges by the clock, where the question states none."""
    by_clock = any(one.name == part and one.gpu == "speed" for one in question.parts)
    if not by_clock or any(budget.count == "time" for budget in question.budgets[part](case)):
        return []
    return [timed(CYCLES, sum(math.prod(t.sizes(case.sizes)) for t in question.tensors), "element")]


def with_bytes(budget: Budget, question: KernelQuestion, case: Case) -> Budget:
    """Return a budget. A time budget allows at least for moving all tensors a few times."""
    if budget.count != "time":
        return budget
    moved = MOVED * sum(size(tensor, case) for tensor in question.tensors)
    return replace(budget, most=max(budget.most, moved / CHIP.bandwidth))


def unbounded(question: KernelQuestion, drawn: int = 3) -> list[str]:
    """Return the quantities of the metered case that no limit bounds, in words."""
    case = question.metered(np.random.default_rng(drawn)) if question.metered else None
    if case is None:
        return ["all that is counted: there is no metered size, and so everything"]
    found = [budget for part in question.budgets for budget in account(question, part, case)]
    kept = []
    for tensor in question.tensors:
        access = "load" if tensor.role == "in" else "store"
        kept.append((f"the {access} of {tensor.name}", any(bounds(b, tensor.name, access) for b in found)))
    scratch = [b for b in found if b.tensor in ("scratch", "all") and b.access in ("load", "any")]
    kept.append(("scratch", any(b.count in BYTES and math.isfinite(b.most) for b in scratch)))
    for count, words in (("work", "operations of every kind"), ("sectors", "whole sectors")):
        every = [b for b in found if b.count == count and b.tensor == "all"]
        kept.append((words, any(math.isfinite(b.most) for b in every)))
    kept.append(("the number of programs", any(b.count == "programs" and b.least > 0 for b in found)))
    if any(part.gpu == "speed" for part in question.parts):
        kept.append(("the time without a GPU", any(b.count == "time" for b in found)))
    kept.append(("the number of launches", 0 < question.most_launches <= MOST_LAUNCHES))
    return [words for words, bounded in kept if not bounded]


def size(tensor: Tensor, case: Case) -> int:
    """Return the bytes of a tensor."""
    return math.prod(tensor.sizes(case.sizes)) * DTYPES[case.dtype_of(tensor)].itemsize


def bounds(budget: Budget, tensor: str, access: str) -> bool:
    """Return whether a budget limits the bytes of this access from above, at each of its accesses."""
    names = budget.tensor in (tensor, "all")
    return names and budget.access in (access, "any") and budget.count in BYTES and math.isfinite(budget.most)


def closing(question: KernelQuestion, case: Case, stated: list[Budget]) -> list[Budget]:
    """Return a bound for each quantity that no stated budget bounds."""
    total = sum(size(tensor, case) for tensor in question.tensors)
    found = []
    for tensor in question.tensors:
        for access in ("load",) if tensor.role == "in" else ("store",):
            if not any(bounds(budget, tensor.name, access) for budget in stated):
                found.append(once(tensor, access, case, total))
    if not any(
        budget.tensor in ("scratch", "all") and budget.access in ("any", "load") and budget.count in BYTES
        for budget in stated
    ):
        found.append(
            Budget(
                what="scratch, and outputs read back",
                tensor="scratch",
                access="any",
                most=0,
                look=KEPT,
                model="0 bytes",
            )
        )
    if not any(budget.count == "work" for budget in stated):
        elements = sum(math.prod(tensor.sizes(case.sizes)) for tensor in question.tensors)
        found.append(work(EACH, elements, f"{elements:,} elements of all tensors"))
    if not any(budget.count in ("dot", "wide dot") for budget in stated):
        found.append(no_wide_dot())
    if not any(budget.count == "programs" for budget in stated):
        found.append(shared_out(question, case))
    if not any(budget.count == "sectors" and budget.tensor == "all" for budget in stated):
        large = [tensor for tensor in question.tensors if size(tensor, case) >= LARGE * total]
        found += [one for tensor in large for one in of_tensor(tensor, case, [*stated, *found])]
        allowed = sum(allowance(tensor, case, [*stated, *found]) for tensor in question.tensors)
        allowed += min(
            (b.most for b in [*stated, *found] if b.tensor == "scratch" and b.count in BYTES), default=0
        )
        found.append(whole_sectors(WHOLE_SECTORS, allowed))
    return found


def no_wide_dot() -> Budget:
    """Return the bound of products of fp32, which tensor cores take at half the rate or not at all, where none is useful."""
    return Budget(
        what="FLOP in tl.dot on fp32",
        count="wide dot",
        most=0,
        look="what adds up the numbers: a tl.dot with a matrix of ones multiplies each number many times",
        model="none: a product with ones takes 16 or more multiply-adds for each number, a sum one addition",
    )


def of_tensor(tensor: Tensor, case: Case, budgets: list[Budget]) -> list[Budget]:
    """Return the bound of the sectors of a tensor without gaps that is moved once. It is little more than its bytes where
    its rows begin with a sector, and else adds the sectors that pieces of a row touch at their ends."""
    stated = any(b.tensor == tensor.name and b.count == "sectors" for b in budgets)
    times, most = in_sectors(tensor, case), allowance(tensor, case, budgets)
    if stated or math.isinf(times) or most > ONCE * size(tensor, case):
        return []
    access = "load" if tensor.role == "in" else "store"
    return [
        Budget(
            what=f"whole sectors of {tensor.name}",
            count="sectors",
            tensor=tensor.name,
            access=access,
            most=times * most,
            look=TOGETHER,
            model=f"{times:g} times the bytes that its other limits allow"
            + ", since its rows begin within sectors" * (times == APART),
        )
    ]


def in_sectors(tensor: Tensor, case: Case) -> float:
    """Return the ratio of a tensor's whole sectors to its bytes, if neighbours are loaded together, or infinity for gaps
    between its elements or short rows."""
    shape = tensor.sizes(case.sizes)
    row = shape[-1] * DTYPES[case.dtype_of(tensor)].itemsize if shape else 0
    if tensor.name in case.layout or row < SHORT:
        return math.inf
    return CUT if len(shape) < 2 or row % SECTOR == 0 else APART


def neighbours(question: KernelQuestion, metered: Case | None, parts: tuple[str, ...] = ()) -> set[str]:
    """Return the tensors with rows as long as a size whose sectors are limited, in some parts or in all."""
    if metered is None:
        return set()
    named = {t.name for t in question.tensors if not callable(t.shape)}
    limits = (b for part in parts or question.budgets for b in account(question, part, metered))
    return named & {b.tensor for b in limits if b.count == "sectors"}


def in_whole_sectors(question: KernelQuestion, names: set[str], case: Case) -> bool:
    """Return whether the rows of all these tensors begin with a sector in a case, where limits are strictest."""
    return bool(names) and all(in_sectors(t, case) == CUT for t in question.tensors if t.name in names)


def long_axes(question: KernelQuestion) -> list[str]:
    """Return the axes along which tiles may be many."""
    axes = question.up_to.items()
    return [axis for axis, one in axes if isinstance(one, UpTo) and one.most >= MANY_TILES * LONG]


def tight(question: KernelQuestion, axis: str, case: Case) -> bool:
    """Return whether a case is so large, and so long along an axis, that what small sizes may spend more hardly matters."""
    return case.sizes[axis] >= LONG and TIGHT <= sum(size(tensor, case) for tensor in question.tensors)


def whole_sectors(times: float, allowed: float) -> Budget:
    """Return the bound of the sectors that all accesses touch, as a factor of their allowed bytes."""
    return Budget(
        what="whole sectors of all tensors",
        count="sectors",
        access="any",
        most=times * allowed,
        look=TOGETHER,
        model=f"{times:g} times the bytes that the other limits allow",
    )


def once(tensor: Tensor, access: str, case: Case, total: int) -> Budget:
    """Return the strict bound of a tensor that no budget names."""
    own = size(tensor, case)
    small = access == "load" and own < SMALL * total
    shape = " x ".join(map(str, tensor.sizes(case.sizes)))
    return Budget(
        what=f"{'write' if access == 'store' else 'read'} of {tensor.name}",
        tensor=tensor.name,
        access=access,
        most=max(own, SMALL * total, A_FEW) if small else own,
        look=OPEN,
        model=f"{SMALL:.0%} of all tensors' bytes, or {A_FEW:,} bytes if that is more"
        if small
        else f"{shape} elements, once",
    )


def shared_out(question: KernelQuestion, case: Case) -> Budget:
    """Return the fewest programs that must share the largest output, or the largest input of a small one."""
    largest = max(question.tensors, key=lambda tensor: size(tensor, case))
    access = "load" if largest.role == "in" else "store"
    elements = math.prod(largest.sizes(case.sizes))
    many = 2 if len(question.tensors) > 3 or question.prepare else 1  # a first kernel may be one program
    least = max(many, min(case.sm_count // 2, elements // A_PROGRAM))
    what = f"{access} {largest.name}"
    return side_by_side(
        what, largest.name, access, least, f"one for every {A_PROGRAM:,} of {elements:,} elements"
    )


def allowance(tensor: Tensor, case: Case, budgets: list[Budget]) -> float:
    """Return the bytes of a tensor that its own budgets allow, or those of all tensors together."""
    accesses = ("load",) if tensor.role == "in" else ("store",)
    found = 0.0
    for access in accesses:
        own = [b.most for b in budgets if b.tensor == tensor.name and bounds(b, tensor.name, access)]
        every = [b.most for b in budgets if b.tensor == "all" and bounds(b, tensor.name, access)]
        found += min(own or every)
    return found

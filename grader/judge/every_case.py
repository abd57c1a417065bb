"""Judge the spending of programs in each public and hidden case, by the formulas of the metered case, so that no answer
may waste for another dtype, stride or shape alone."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from grader.box.serve.frames import DTYPES
from grader.judge import by_line, comparing, narrow, only_here, registers, steering, traffic
from grader.judge.accounts import account
from grader.judge.diagnose import describe
from grader.judge.failed import Failed
from grader.judge.kernel_evidence import AT_SMS, METERED, ON_CONDITION, WAITING, WHOLE, KernelEvidence, Run
from grader.questions import Budget, Case, KernelQuestion, Part, Tensor, corner, on_condition, reach
from grader.questions.account import (
    A_FEW,
    CUT,
    LARGE,
    MOST_LAUNCHES,
    SMALL,
    in_blocks,
    in_sectors,
    neighbours,
    size,
)
from grader.questions.timed import CHIP
from kernels import machines
from tilescope.machine.traffic import PAIR

ROOM = 1.25  # times a limit, at sizes that no limit was made for
MORE_IN_CORNERS = 1.5  # times that where several axes are long, which limits say least of
MORE_WORK = 2  # and of operations, since lanes beyond the last element may be many there
MORE_ALONE = 5  # and of those of one program there, or where an axis ends, as a sum over all counts grows with two axes
FREE = 2048  # loaded bytes of a tensor too few to look at (A_FEW for a tensor that is small in its case)
TABLE = 256  # bytes, as of a codebook
FREE_OF_ALL = 32_768  # and of all tensors or scratch
FREE_WORK = 16_384  # and operations: some blocks of a thousand lanes
FREE_OF = {
    "dot": 4 * FREE_WORK,
    "wide dot": 0,
    "operations": FREE_WORK / 4,
    "integers": FREE_WORK,
    "work": FREE_WORK,
    "time": CHIP.issue_time({"float": FREE_WORK}),
}
ALONE = 65_536  # operations that one program may do alone, such as a sum over the counts of all others
SIDE_BY_SIDE = 2  # programs may be half of a limit, or half of the multiprocessors
ASKED = 2  # times the bytes of a large input that all lanes together may ask for
ASK_ONCE = "which addresses of one load are the same: each lane that asks for a number takes its turn"
IDLE = 256  # programs that may be idle, besides an axis without blocks and one for each storing program
ROWS = 16  # of a tile, all of which may belong to one expert
IN_PAIRS = 1.4  # times the bytes of a large tensor that the programs of a wave use, in 64 bytes at a time
LONG_ROW = 512  # bytes
MEETING = 4096  # bytes of lanes that find their address taken by another lane of the same atomic
WAVES = 8  # programs that a persistent kernel may plan for each multiprocessor, however little work there is
STORING = ("store", "atomic")
MANY_LONG = *WHOLE, WAITING, *ON_CONDITION, *AT_SMS
LARGE_KINDS = corner.KIND, *on_condition.KINDS


def judge(evidence: KernelEvidence, part: Part) -> None:
    """Raise Failed for the first case that breaks a limit of this part."""
    question = evidence.question
    if METERED not in evidence.cases:
        return
    if part.name == next(iter(question.budgets)):
        steering.judge(evidence)
        comparing.judge(evidence)
        if not question.compiled_part:
            registers.judge_uncompiled(evidence)
        narrow.judge(evidence)
        for run in ran(evidence, *evidence.public, *evidence.hidden, *MANY_LONG, METERED):
            judge_launches(question, run)
        for run in ran(evidence, *evidence.public, *evidence.hidden, METERED):
            judge_idle(question, run)
            judge_meeting(run)
        for run in ran(evidence, METERED):
            judge_touching(run)
            judge_pairs(evidence, run)
    for run in ran(evidence, *evidence.public, *evidence.hidden, *MANY_LONG):
        for number, (budget, found, most) in enumerate(spent(question, part, evidence.cases[METERED], run)):
            if found > most:
                said = f"{budget.what}, {describe(run)}: {traffic.times(found / max(most, 1e-12), 1)} the limit there"
                told = f"{budget.what}: more than the limit in {describe(run)}"
                keeps = partial(keeps_limit, question, part, evidence.cases[METERED], number)
                there = share_when_metered(evidence, part, run, budget)
                shares = there, found / max(budget.most, 1e-12), found / max(most, 1e-12)
                usual = by_line.look(evidence, run, budget, budget.look_above)
                named = usual != budget.look_above
                look = only_here.look(evidence, run, usual, keeps, shares, named)
                asked = f"{budget.what}: in each case at most the limit for its sizes"
                raise Failed(said, look, told=told, asked=asked)
        for budget in sharing(evidence, part, run.case):
            judge_side_by_side(run, budget)
    for run in ran(evidence, *evidence.public, *evidence.hidden, *MANY_LONG, METERED):
        judge_busiest(run, sharing(evidence, part, run.case))
    for run in ran(evidence, *evidence.public, *evidence.hidden, *MANY_LONG, METERED):
        for budget, found, most in lane_by_lane(question, part, run):
            if found > most:
                raise Failed(
                    f"{budget.what}, {describe(run)}: {traffic.times(found / most, 1)} what it allows",
                    by_line.look(evidence, run, budget, ASK_ONCE),
                    told=budget.what,
                )
    if part.name == next(iter(question.budgets)):  # last, since it says least of a load that is one too many
        narrow.judge_uncached(evidence)


def keeps_limit(question: KernelQuestion, part: Part, metered: Case, number: int, run: Run) -> bool:
    """Return whether a case keeps the limit of this number."""
    found = list(spent(question, part, metered, run))
    return number < len(found) and found[number][1] <= found[number][2]


def share_when_metered(evidence: KernelEvidence, part: Part, run: Run, budget: Budget) -> float:
    """Return which share of a limit the metered case spends, or 0 if that says nothing."""
    metered = evidence.runs.get(METERED)
    if metered is None or metered.outcome.error or metered is run:
        return 0.0
    own = account(evidence.question, part.name, metered.case)
    limit = next((one for one in own if one.what == budget.what), None)
    if limit is None or not 0 < limit.most < math.inf:
        return 0.0
    return amount(metered, replace(limit, count=budget.count)) / limit.most


def sharing(evidence: KernelEvidence, part: Part, case: Case) -> list[Budget]:
    """Return the limits on programs of a case for the metered case's multiprocessors, because a real GPU may have more than
    a small case can fill. A limit that is `on_any_gpu` asks for the case's own multiprocessors."""
    few = min(case.sm_count, evidence.cases.get(METERED, case).sm_count)
    on_few = account(evidence.question, part.name, replace(case, sm_count=few))
    if few == case.sm_count or not any(one.on_any_gpu for one in on_few):
        return [one for one in on_few if one.count == "programs"]
    on_own = account(evidence.question, part.name, case)
    both = [(one, own) for one, own in zip(on_few, on_own, strict=True) if one.count == "programs"]
    return [own if own.on_any_gpu else one for one, own in both]


def ran(evidence: KernelEvidence, *purposes: int) -> Iterator[Run]:
    """Yield the cases that ran to their end, except those whose short axes no budget was made for."""
    runs = (evidence.runs.get(purpose) for purpose in purposes)
    there = (run for run in runs if run is not None and not run.outcome.error and not run.case.crossed)
    return (run for run in there if run.case.kind not in on_condition.KINDS or run.whole)


def spent(
    question: KernelQuestion, part: Part, metered: Case, run: Run
) -> Iterator[tuple[Budget, float, float]]:
    """Yield each upper limit of a case, the amount spent, and the largest amount allowed."""
    tensors = {tensor.name: tensor for tensor in question.tensors}
    together = neighbours(question, metered, (part.name,))
    in_corner = run.case.kind in LARGE_KINDS
    room, for_work = (ROOM * MORE_IN_CORNERS, ROOM * MORE_WORK) if in_corner else (ROOM, ROOM)
    of_blocks: dict[str, float] = {}
    for one in account(question, part.name, in_blocks(question, run.case)):
        of_blocks[one.count] = min(of_blocks.get(one.count, math.inf), one.most)
    for budget in account(question, part.name, run.case):
        own = tensors.get(budget.tensor)
        if budget.count == "dedup" or own and budget.count == "sectors":
            most = budget.most
            more = 1 if budget.exact else room
            look = budget.look_above if budget.count == "dedup" else by_line.spare(budget)
            bytes_of = replace(budget, count="dedup", look=look)
            free = 0 if budget.access == "store" else free_of(own, tensors, run) if own else FREE_OF_ALL
            yield bytes_of, traffic.spent(run, bytes_of), more * most + free
            if (budget.tensor, budget.access) == ("scratch", "any") and run.plan is not None:
                yield (
                    replace(bytes_of, what=f"{budget.what}, all that is asked for"),
                    asked_for(run),
                    more * most + free,
                )
        if own and budget.count == "sectors" and own.name in together:
            times = in_sectors(own, run.case)
            if math.isfinite(times):
                most = max(budget.most, times * size(own, run.case))
                allowed = room * most
                if in_corner and times == CUT:  # the room is for bytes, and each is worth a sector here
                    allowed = min(allowed, max(most, of_bytes(budget, run, own)))
                yield budget, traffic.spent(run, budget), allowed + free_of(own, tensors, run)
        elif budget.count in FREE_OF:
            most = budget.most if budget.exact else for_work * max(budget.most, of_blocks[budget.count])
            yield budget, amount(run, budget), most + FREE_OF[budget.count]


def asked_for(run: Run) -> int:
    """Return the bytes of a plan's scratch, all of which is filled before each call."""
    scratch = run.plan.scratch.values()
    return sum(math.prod(one["shape"]) * DTYPES[one["dtype"]].itemsize for one in scratch)


def of_bytes(budget: Budget, run: Run, own: Tensor) -> float:
    """Return the most sectors of a tensor for the bytes that a run asks for of it, where its rows begin with a sector."""
    times = max(budget.most / size(own, run.case), CUT)
    return ROOM * times * traffic.spent(run, replace(budget, count="dedup"))


def amount(run: Run, budget: Budget) -> float:
    """Return what a case spends of a limit, of a time without that of memory."""
    return computing(run) if budget.count == "time" else traffic.spent(run, budget)


def lane_by_lane(question: KernelQuestion, part: Part, run: Run) -> Iterator[tuple[Budget, float, float]]:
    """Yield the limits of large inputs of floats and of outputs once more, by what all lanes ask for: an address that
    several lanes of an access share counts once as a byte, and each of them still asks for it. A word may hold codes for
    several lanes."""
    total = sum(size(tensor, run.case) for tensor in question.tensors)
    floats = [t for t in question.tensors if t.role == "in" and run.case.dtype_of(t).startswith(("fp", "bf"))]
    large = {t.name: t for t in floats if size(t, run.case) >= LARGE * total}
    large |= {t.name: t for t in question.tensors if t.role != "in"}
    for budget in account(question, part.name, run.case):
        if (
            budget.count == "dedup"
            and budget.access in ("load", "store")
            and (own := large.get(budget.tensor))
        ):
            budget = replace(budget, what=f"{budget.what}, lane by lane", count="requested")
            yield budget, traffic.spent(run, budget), ASKED * max(budget.most, size(own, run.case)) + A_FEW


def free_of(own: Tensor, tensors: dict[str, Tensor], run: Run) -> int:
    """Return the bytes of a tensor that are too few to look at: every program may look something up in a small one, and load
    a table of a few numbers."""
    small = size(own, run.case) < SMALL * sum(size(one, run.case) for one in tensors.values())
    table = own.role == "in" and size(own, run.case) <= TABLE
    programs = sum(launch["programs"] for launch in run.launches) if table else 0
    return max(A_FEW if small else FREE, programs * size(own, run.case))


def computing(run: Run) -> float:
    """Return the seconds of operations and dots: bytes have limits of their own, and strides take many sectors."""
    each = (machines.of_launch(launch, CHIP) for launch in run.launches)
    return sum(max(s for limit, s in limits.items() if limit != machines.MEMORY) for limits in each)


def judge_side_by_side(run: Run, budget: Budget) -> None:
    """Raise Failed for fewer programs than half of a limit, which is never more than the multiprocessors."""
    least = min(budget.least, run.case.sm_count)
    found = max(traffic.spent(run, budget), traffic.of_all_launches(run, budget))
    if SIDE_BY_SIDE * found < least:
        raise Failed(
            f"{budget.what}, {describe(run)}: less than half of those that could share the work",
            budget.look,
            told=f"{budget.what}: less than it takes in {describe(run)}",
        )


def judge_busiest(run: Run, budgets: list[Budget]) -> None:
    """Raise Failed for a program with more than twice its share of the operations, and a little, because programs that share
    the bytes share the operations too. Of several shared tensors, the one that needs the fewest programs sets the share,
    as its programs may be the longest."""
    budgets = [budget for budget in budgets if budget.of_work]
    if not budgets:
        return
    budget = min(budgets, key=lambda one: one.least)
    least = max(1, min(budget.least, run.case.sm_count))
    whole = traffic.spent(run, replace(budget, count="work"))
    busiest = sum(launch["busiest"] for launch in run.launches)
    more = MORE_ALONE if run.case.kind in LARGE_KINDS or run.case.kind.endswith(reach.AT_END) else 1
    if busiest > more * (SIDE_BY_SIDE * whole / least + ALONE):
        raise Failed(
            f"{budget.what}, {describe(run)}: one of them does {busiest / whole:.0%} of all operations, where {least:,.0f} could "
            "share them",
            "what one program does alone while all others wait, such as a loop in the first one",
            told=f"one program does most operations in {describe(run)}",
        )


def judge_touching(run: Run) -> None:
    """Raise Failed for a launch of the metered case that moves nothing, because only its start costs time, uncounted."""
    for launch in run.launches:
        if not any(one["dedup"] for kinds in launch["tensors"].values() for one in kinds.values()):
            raise Failed(
                f"{describe(run)}: {launch['kernel']} loads and stores nothing",
                "the steps of launch(p): a launch that has nothing to do still has to start",
                told="a launch that loads and stores nothing",
            )


def judge_meeting(run: Run) -> None:
    """Raise Failed for atomics of which many lanes meet at an address, because a GPU does one after the other."""
    for launch in run.launches:
        for name, kinds in launch["tensors"].items():
            row = kinds.get("atomic")
            if row and row["requested"] - row["dedup"] > MEETING:
                raise Failed(
                    f"{describe(run)}: lanes of an atomic on {name} meet at one address, {launch['kernel']}",
                    "add up the lanes of a block first (tl.sum), and let one atomic add the sum",
                    told=f"lanes of an atomic on {name} meet at one address",
                )


def judge_pairs(evidence: KernelEvidence, run: Run) -> None:
    """Raise Failed for a large tensor with long rows of which the programs of a wave use one sector of each two, because
    memory moves two sectors together, and the other one comes again later. Counts of sectors don't show it. What a loaded
    mask leaves out may be any sector, and where rows begin between two sectors that belong together, so do their pieces."""
    plain = {name for step in evidence.steps(METERED) for name, _ in narrow.moved(evidence, step)}
    long = {
        one.spec.name
        for one in run.placed
        if (row := one.shape[-1] * one.storage.itemsize) >= LONG_ROW
        and row % PAIR == 0
        and not run.case.layout.get(one.spec.name)
    } & plain
    found = [
        (launch["kernel"], name, counts)
        for launch in run.launches
        for name, kinds in launch["tensors"].items()
        for counts in kinds.values()
    ]
    least = LARGE * sum(counts["wave"] for _, _, counts in found)
    for kernel, name, counts in found:
        if name in long and counts["wave"] > least and counts["pairs"] > IN_PAIRS * counts["wave"]:
            times = counts["pairs"] / counts["wave"]
            raise Failed(
                f"{describe(run)}: {kernel} moves {times:.3g} times the bytes of {name} that it uses, in 64 bytes at a time",
                "which programs run at the same time: memory moves 64 bytes together, so those that use the two halves should be "
                "neighbours in the grid, or one program",
                told=f"half-used pairs of sectors of {name}",
            )


def judge_launches(question: KernelQuestion, run: Run) -> None:
    """Raise Failed for a case with more launches than any question allows, since another size may need a second kernel."""
    allowed = max(question.most_launches, MOST_LAUNCHES)
    if len(run.launches) > allowed:
        raise Failed(
            f"{describe(run)}: {len(run.launches)} launches, at most {allowed} in any case",
            "fuse the steps of launch(p)",
            told=f"too many launches in {describe(run)}",
        )


def judge_idle(question: KernelQuestion, run: Run) -> None:
    """Raise Failed for too many programs that store nothing, because only their start costs time, uncounted. One for each
    expert may be idle, and one for each tile of rows that an expert may have."""
    sizes = run.case.sizes
    idle = max(IDLE, WAVES * run.case.sm_count)
    idle += max((n for axis, n in sizes.items() if axis not in question.blocks), default=0)
    idle += sizes.get("E", 0) * math.ceil(sizes.get("M", 0) / ROWS)
    for launch in run.launches:
        kinds = launch["tensors"].values()
        storing = sum(one[how]["programs"] for one in kinds for how in STORING if how in one)
        if launch["programs"] > 2 * storing + idle:
            raise Failed(
                f"{describe(run)}: {launch['kernel']} has {launch['programs'] / max(1, storing):,.0f} programs for each that stores "
                "anything",
                "the grid: a program that has nothing to do still has to start",
                told=f"idle programs in {describe(run)}",
            )

"""Judge what no single compilation shows: whether in each case the blocks and loops of a kernel fit the registers of the
warps that launch(p) chooses."""

from grader.jail.protocol import Kernel
from grader.judge.diagnose import in_full, named
from grader.judge.failed import Failed
from grader.judge.held import Held, of
from grader.judge.kernel_evidence import COMPILED, METERED, KernelEvidence, is_hidden

LANES, ELEMENTS = 32, 256  # of a warp, and of a lane; two numbers of 16 bits share a register
REGISTERS, BITS = 255, 32  # of a lane, each
USUAL_WARPS = 4  # of a launch that names no number
SHARED_LIMIT = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 120: 101376}
OLDER = 101376
ALONE = 2  # elements of the largest block that each thread has, with more warps than these
# with more warps than so many, each has so many numbers of the largest result of tl.dot
MANY_WARPS, OF_A_DOT = 8, 1024
# that wgmma multiplies, warps that do it together, bits of its operands at most
ROWS, WARPGROUP, NARROW = 64, 4, 16


def judge(evidence: KernelEvidence) -> None:
    """Raise Failed for the first case whose blocks or loops don't fit, because spills are compiled at one size alone, and
    launch(p) may choose few warps for all others."""
    judge_lanes(evidence)
    judge_registers(evidence)
    judge_threads(evidence)
    judge_warpgroups(evidence)


def judge_uncompiled(evidence: KernelEvidence) -> None:
    """Raise Failed for kernels of a question without the part `compiled` that keep more than registers hold, or have more
    threads than work."""
    judge_registers(evidence)
    judge_threads(evidence)
    for row in evidence.compiled_elsewhere():
        if found := badly(row, evidence.question.most_spills_elsewhere):
            raise Failed(f"{row.kernel} for sm_{row.target}: {found[0]}", found[1], told=found[0])


def limits_in_words() -> list[str]:
    return [
        f"blocks of at most {ELEMENTS} elements per thread in every case",
        f"blocks and loops that hold at most {REGISTERS} registers of 32 bits per thread",
        f"at least {ALONE} elements of the largest block for each thread, with more than {USUAL_WARPS} warps",
        f"at least {OF_A_DOT:,} numbers of a tl.dot's result for each warp, with more than {MANY_WARPS}",
        f"whole groups of {WARPGROUP} warps where tl.dot has {ROWS} rows or more",
    ]


def judge_lanes(evidence: KernelEvidence) -> None:
    """Raise Failed for a case whose largest block has more elements for each lane than a lane has registers."""
    allowed = max(ELEMENTS, max((elements(*row) for row in kernels(evidence, COMPILED)), default=0))
    for purpose in evidence.cases:
        for step, held in kernels(evidence, purpose):
            each = elements(step, held)
            if each > allowed:
                where = named(evidence.cases[purpose], is_hidden(purpose))
                raise Failed(
                    f"{step.name}, {where}: {each:,.0f} numbers for each lane of its largest block, where a lane has {ELEMENTS} "
                    "registers",
                    "num_warps, or the size of the block, where launch(p) chooses them by the case",
                    told=f"more numbers for each lane than it has registers in {where}",
                )


def judge_registers(evidence: KernelEvidence) -> None:
    """Raise Failed for a case with a block, or a loop, that needs more registers than a lane has: they spill, whatever the
    compiler does."""
    for purpose in evidence.cases:
        for step, held in kernels(evidence, purpose):
            for what, bits in (("a block", held.by_a_block), ("a loop", held.by_a_loop)):
                each = bits / (BITS * LANES * step.num_warps)
                if each > REGISTERS:
                    where = named(evidence.cases[purpose], is_hidden(purpose))
                    raise Failed(
                        f"{step.name}, {where}: {what} holds {each:,.0f} registers of numbers for each lane, which has {REGISTERS}",
                        "num_warps, or the size of the blocks that are loaded or added up, where launch(p) chooses them by the case",
                        told=f"{what} holds more numbers than a lane has registers in {where}",
                    )


def judge_threads(evidence: KernelEvidence) -> None:
    """Raise Failed for a kernel with more threads than its blocks have work for. Several threads then compute one element,
    or each has so little that it mostly waits, and no count by elements shows it."""
    for purpose in (METERED, COMPILED):
        for step, held in kernels(evidence, purpose):
            each, of_dots = elements(step, held), max((m * n for m, n, _ in held.dots), default=0)
            few = each < ALONE and step.num_warps > USUAL_WARPS
            split = of_dots and of_dots < OF_A_DOT * step.num_warps and step.num_warps > MANY_WARPS
            if few or split:
                said = f"{each:.3g} elements of its largest block for each thread"
                if not few:
                    said = f"{of_dots / step.num_warps:,.0f} numbers of a tl.dot's result for each warp"
                raise Failed(
                    f"{step.name}, {in_full(evidence.cases[purpose])}, {step.num_warps} warps: {said}",
                    "num_warps: threads beyond the elements of a block compute them again, and a row that many threads share is "
                    "mostly waited for",
                    told="more threads than a block has work for",
                )


def judge_warpgroups(evidence: KernelEvidence) -> None:
    """Raise Failed for a tl.dot that wgmma could do, but for the number of warps, in any case: the compiler then takes the
    slower mma.sync."""
    if not evidence.question.instruction:
        return
    for purpose in evidence.cases:
        for step, held in kernels(evidence, purpose):
            fits = any(rows >= ROWS and size <= NARROW for rows, _, size in held.dots)
            if fits and step.num_warps % WARPGROUP:
                where = named(evidence.cases[purpose], is_hidden(purpose))
                raise Failed(
                    f"{step.name}, {where}: {step.num_warps} warps for a tl.dot of {ROWS} rows or more",
                    f"num_warps: wgmma needs whole groups of {WARPGROUP} warps",
                    told=f"too few warps for wgmma in {where}",
                )


def kernels(evidence: KernelEvidence, purpose: int) -> list[tuple[Kernel, Held]]:
    """Return each kernel of a case, with what it holds."""
    steps = evidence.steps(purpose) if purpose in evidence.cases else ()
    return [(step, of(evidence.ir_of(step))) for step in steps]


def elements(step: Kernel, held: Held) -> float:
    """Return the elements of a kernel's largest block for each lane."""
    return held.largest / (LANES * step.num_warps)


def badly(row, most_spills: int):
    limit = SHARED_LIMIT.get(row.target, OLDER)
    if row.shared_bytes > limit:
        return (
            f"needs {row.shared_bytes:,} bytes of shared memory, a block may have {limit:,}",
            "smaller tiles or fewer num_stages",
        )
    if row.spilled_bytes > most_spills:
        return (
            f"spills {row.spilled_bytes:,} bytes of registers, allowed {most_spills:,}",
            "a smaller tile or one of another shape, or more num_warps to share it",
        )
    return None

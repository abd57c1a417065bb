"""Judge the compiler's result of a kernel for real GPUs: spills, shared bytes, the unit the lesson is about."""

from grader.box import warm
from grader.compiler import host as compiler
from grader.judge.diagnose import from_error, in_full
from grader.judge.failed import Failed, Refusal, Waits
from grader.judge.kernel_evidence import COMPILED, METERED, KernelEvidence, is_hidden
from grader.judge.record import PartResult
from grader.questions import Part

SHARED_LIMIT = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 120: 101376}
OLDER = 101376
LANES, REGISTERS = 32, 256  # of a warp, and of a lane; two numbers of 16 bits share one
CARRIED = 255 * 32  # bits of a lane's registers
USUAL_WARPS = 4  # of a launch that names no number
SHARING = 4  # threads, of more warps than these, for each element of the largest block


def judge(evidence: KernelEvidence, part: Part, result: PartResult) -> None:
    if not compiler.is_here():
        raise Waits("judged at hand-in: it needs Triton's compiler, which this system lacks")
    question = evidence.question
    names = ", ".join(f"sm_{t}" for t in question.targets)
    result.evidence, result.asked = f"compiled for {names}", limits_in_words(question, names)
    evidence.say(f"compiling for {names}")
    outcome, large, others = evidence.compiled()
    if outcome.error:
        error = outcome.error
        if error["stage"] == "text":
            raise Refusal(error["message"], error["line"])
        target = outcome.header.get("error", {}).get("target")
        where = f"for sm_{target} " if isinstance(target, int) else ""
        if outcome.end == warm.ENDLESS:
            said = f"the compiler takes longer than {compiler.LIMITS.cpu_s} s of processor time"
            raise Failed(
                said, "how many numbers the largest block holds, and which loops are unrolled", told=said
            )
        raise from_error({**error, "message": f"does not compile {where}: {error['message']}"}, "")
    result.facts = {"compiled": [vars(row) for row in (*large, *others)]}
    for row in large:
        if found := badly(row, question.most_spills):
            raise Failed(
                f"{row.kernel} for sm_{row.target}: {found[0]}", found[1], told=found[0], **result.facts
            )
    for row in others:
        if found := badly(row, question.most_spills_elsewhere):
            said = (
                f"{found[0]}, with the tile, num_warps and num_stages that launch(p) chooses for other sizes"
            )
            raise Failed(f"{row.kernel} for sm_{row.target}: {said}", found[1], told=said, **result.facts)
    judge_lanes(evidence)
    judge_carried(evidence)
    judge_threads(evidence)
    if missing := missing_instruction(question, large):
        look = "do the products go through tl.dot, in a dtype and tile that tensor cores take?"
        raise Failed(missing, look, told=missing, **result.facts)
    one = large[0]
    result.came = (
        f"compiles for {names} ({in_full(evidence.cases[COMPILED])}); sm_{one.target}: {one.registers} registers, "
        f"{one.spilled_bytes} bytes spilled, {one.shared_bytes:,} bytes of shared memory"
    )


def judge_lanes(evidence: KernelEvidence) -> None:
    """Raise Failed for a case whose largest block gives each lane more numbers than it has registers: spills are compiled at
    one size alone, and launch(p) may choose few warps for all others."""
    allowed = max(REGISTERS, max((row[0] for row in lanes(evidence, COMPILED)), default=0))
    for purpose, case in evidence.cases.items():
        for each, kernel in lanes(evidence, purpose):
            if each > allowed:
                where = f"a hidden case ({case.kind})" if is_hidden(purpose) else in_full(case)
                raise Failed(
                    f"{kernel}, {where}: {each:,.0f} numbers for each lane of its largest block, where a lane has {REGISTERS} "
                    "registers",
                    "num_warps, or the size of the block, where launch(p) chooses them by the case",
                    told=f"more numbers for each lane than it has registers in {where}",
                )


def judge_carried(evidence: KernelEvidence) -> None:
    """Raise Failed for a case with a loop that carries more numbers from turn to turn than registers hold: they spill,
    whatever the compiler does, and at the compiled size alone it shows them."""
    for purpose, case in evidence.cases.items():
        for step in evidence.steps(purpose):
            each = evidence.carried(step) / (LANES * step.num_warps)
            if each > CARRIED:
                where = f"a hidden case ({case.kind})" if is_hidden(purpose) else in_full(case)
                raise Failed(
                    f"{step.name}, {where}: a loop carries {each / 32:,.0f} registers of numbers for each lane, which has "
                    f"{CARRIED // 32}",
                    "num_warps, or the size of the sums that the loop adds up, where launch(p) chooses them by the case",
                    told=f"a loop carries more numbers than a lane has registers in {where}",
                )


def judge_threads(evidence: KernelEvidence) -> None:
    """Raise Failed for a block that many more threads share than it has elements: several threads compute each of them, which
    a count by elements doesn't show."""
    for purpose in (METERED, COMPILED):
        for step, (each, kernel) in zip(evidence.steps(purpose), lanes(evidence, purpose), strict=True):
            if each * SHARING < 1 and step.num_warps > USUAL_WARPS:
                raise Failed(
                    f"{kernel}, {in_full(evidence.cases[purpose])}: {1 / each:.3g} threads for each element of its largest block",
                    "num_warps: threads beyond the elements of a block compute them again",
                    told="more threads than a block has elements",
                )


def lanes(evidence: KernelEvidence, purpose: int) -> list[tuple[float, str]]:
    """Return (numbers of the largest block for each lane, kernel) of each launch of a case."""
    found = []
    for step in evidence.steps(purpose):
        most = max(evidence.blocks(step).values(), default=1)
        found.append((most / (LANES * step.num_warps), step.name))
    return found


def limits_in_words(question, names: str) -> str:
    said = [f"compiles for {names}", f"at most {question.most_spills:,} bytes of registers spilled"]
    said.append(
        f"at most {question.most_spills_elsewhere:,} bytes spilled at other sizes, if launch(p) chooses another tile, num_warps or num_stages for them"
    )
    said += [f"{word} in the code for sm_{target}" for target, word in question.instruction.items()]
    said.append(f"blocks of at most {REGISTERS} elements per thread in every case")
    said.append(f"loops that carry at most {CARRIED // 32} registers of 32 bits per thread")
    said.append(
        f"at most {SHARING} threads for each element of the largest block, with more than {USUAL_WARPS} warps"
    )
    return "; ".join(said)


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


def missing_instruction(question, rows: list) -> str:
    for target, instruction in question.instruction.items():
        mine = [row for row in rows if row.target == target]
        if mine and not any(row.instructions.get(instruction) for row in mine):
            return f"the tensor-core instruction {instruction} is nowhere in the code for sm_{target}"
    return ""

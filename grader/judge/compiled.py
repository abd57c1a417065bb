"""Judge the compiler's result of a kernel for real GPUs: spills, shared bytes, the unit the lesson is about."""

from grader.compiler import host as compiler
from grader.judge.cases import from_error, in_full
from grader.judge.failed import Failed, Refusal, Waits
from grader.judge.kernel_evidence import COMPILED, KernelEvidence
from grader.judge.record import PartResult
from grader.questions import Part

SHARED_LIMIT = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 120: 101376}
OLDER = 101376


def judge(evidence: KernelEvidence, part: Part, result: PartResult) -> None:
    if not compiler.is_here():
        raise Waits("judged at hand-in: it needs Triton's compiler, which this system lacks")
    question = evidence.question
    names = ", ".join(f"sm_{t}" for t in question.targets)
    result.evidence, result.asked = f"compiled for {names}", limits_in_words(question, names)
    evidence.say(f"compiling for {names}")
    outcome, rows = evidence.compiled()
    if outcome.error:
        error = outcome.error
        if error["stage"] == "text":
            raise Refusal(error["message"], error["line"])
        target = outcome.header.get("error", {}).get("target")
        where = f"for sm_{target} " if isinstance(target, int) else ""
        raise from_error({**error, "message": f"does not compile {where}: {error['message']}"}, "")
    result.facts = {"compiled": [vars(row) for row in rows]}
    large = evidence.at_full_size(rows)
    for row in rows:  # odd sizes and strides cost registers of their own, so spills count at the named size
        if found := badly(question, row, row in large):
            raise Failed(
                f"{row.kernel} for sm_{row.target}: {found[0]}", found[1], told=found[0], **result.facts
            )
    if missing := missing_instruction(question, large):
        look = "do the products go through tl.dot, in a dtype and tile that tensor cores take?"
        raise Failed(missing, look, told=missing, **result.facts)
    one = large[0]
    result.came = (
        f"compiles for {names} ({in_full(evidence.cases[COMPILED])}); sm_{one.target}: {one.registers} registers, "
        f"{one.spilled_bytes} bytes spilled, {one.shared_bytes:,} bytes of shared memory"
    )


def limits_in_words(question, names: str) -> str:
    said = [f"compiles for {names}", f"at most {question.most_spills:,} bytes of registers spilled"]
    said += [f"{word} in the code for sm_{target}" for target, word in question.instruction.items()]
    return "; ".join(said)


def badly(question, row, large: bool):
    limit = SHARED_LIMIT.get(row.target, OLDER)
    if row.shared_bytes > limit:
        return (
            f"needs {row.shared_bytes:,} bytes of shared memory, a block may have {limit:,}",
            "smaller tiles or fewer num_stages",
        )
    if large and row.spilled_bytes > question.most_spills:
        return (
            f"spills {row.spilled_bytes:,} bytes of registers, allowed {question.most_spills:,}",
            "a smaller tile or one of another shape, or more num_warps to share it",
        )
    return None


def missing_instruction(question, rows: list) -> str:
    for target, instruction in question.instruction.items():
        mine = [row for row in rows if row.target == target]
        if mine and not any(row.instructions.get(instruction) for row in mine):
            return f"the tensor-core instruction {instruction} is nowhere in the code for sm_{target}"
    return ""

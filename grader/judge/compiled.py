"""Judge the compiler's result of a kernel for real GPUs: spills, shared bytes, the unit the lesson is about."""

from grader.box import warm
from grader.compiler import host as compiler
from grader.judge import registers
from grader.judge.diagnose import from_error, in_full
from grader.judge.failed import Failed, Refusal, Waits
from grader.judge.kernel_evidence import COMPILED, KernelEvidence
from grader.judge.record import PartResult
from grader.questions import Part


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
        if found := registers.badly(row, question.most_spills):
            raise Failed(
                f"{row.kernel} for sm_{row.target}: {found[0]}", found[1], told=found[0], **result.facts
            )
    for row in others:
        if found := registers.badly(row, question.most_spills_elsewhere):
            said = (
                f"{found[0]}, with the tile, num_warps and num_stages that launch(p) chooses for other sizes"
            )
            raise Failed(f"{row.kernel} for sm_{row.target}: {said}", found[1], told=said, **result.facts)
    registers.judge(evidence)
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
    said.append(
        f"at most {question.most_spills_elsewhere:,} bytes spilled at other sizes, if launch(p) chooses another tile, num_warps or num_stages for them"
    )
    said += [f"{word} in the code for sm_{target}" for target, word in question.instruction.items()]
    said += registers.limits_in_words()
    return "; ".join(said)


def missing_instruction(question, rows: list) -> str:
    for target, instruction in question.instruction.items():
        mine = [row for row in rows if row.target == target]
        if mine and not any(row.instructions.get(instruction) for row in mine):
            return f"the tensor-core instruction {instruction} is nowhere in the code for sm_{target}"
    return ""

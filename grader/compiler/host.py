"""The referee's end of the compiler."""

from grader.box import warm
from grader.compiler.protocol import Compiled, Request

REPORT = warm.Worker("grader.compiler.inside.report", ("grader/compiler",))
LIMITS = warm.Limits(wall_s=240.0, cpu_s=90, memory_bytes=6 << 30, answer_bytes=4 << 20)


def compile_kernels(request: Request, level: int | None = None) -> tuple[warm.Outcome, list[Compiled]]:
    outcome = warm.programs(REPORT, level).ask(request.as_task(), {}, LIMITS)
    return outcome, [Compiled.from_row(row) for row in outcome.header.get("compiled", [])]

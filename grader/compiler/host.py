"""The referee's end of the compiler."""

from functools import cache

from grader.box import warm
from grader.box.systems import has_boxes
from grader.compiler.protocol import Compiled, Request

REPORT = warm.Worker("grader.compiler.inside.report", ("grader/compiler",))
LIMITS = warm.Limits(wall_s=240.0, cpu_s=90, memory_bytes=6 << 30, answer_bytes=4 << 20)


@cache
def is_here() -> bool:
    """Return whether this system has Triton's compiler: its library, and a box to run it in."""
    from tilescope.front_end.stand_in import has_library

    return has_boxes() and has_library()


def compile_kernels(request: Request, level: int | None = None) -> tuple[warm.Outcome, list[Compiled]]:
    outcome = warm.programs(REPORT, level).ask(request.as_task(), {}, LIMITS)
    return outcome, [Compiled.from_row(row) for row in outcome.header.get("compiled", [])]

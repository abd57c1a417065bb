"""What ran is Triton, and what is compiled is what ran: the referee's side of it."""

from grader.bench import ir
from grader.evidence import Evidence, Run
from grader.record import PartResult
from grader.sentences import describe, fail, from_error, tell


def not_triton(evidence: Evidence, runs: list[Run], result: PartResult) -> PartResult | None:
    """Fails where a plan that ran in the interpreter would not get through Triton's own front end."""
    outcome = evidence.front_end(runs)
    if outcome.error:
        run = runs[outcome.error.get("case") or 0]
        message = f"ran in the interpreter and is no kernel: {outcome.error['message']}"
        from_error({**outcome.error, "message": message, "stage": "kernel"}, result, describe(run))
        return tell(result, run.case.kind) if run.hidden else result
    return foreign(outcome.header["ir"], result)


def foreign(texts: list[str], result: PartResult) -> PartResult | None:
    """Fails where IR holds what could not be loaded beside the clock; the same here as on a GPU."""
    for text in filter(None, texts):
        try:
            ir.hold(text)
        except ir.BadIR as bad:
            return fail(result, str(bad), "which tl operations the kernel uses")
    return None


def settings(plan: dict) -> list:
    return [(s["kernel"], s["constexprs"], s["num_warps"], s["num_stages"]) for s in plan["steps"]]


def other_plan(evidence: Evidence, compiled: dict, result: PartResult) -> PartResult | None:
    """Fails where launch(p) tells the compiler something else than the interpreter."""
    asked = evidence.plan(evidence.question.compile_case)
    if asked.error:
        return from_error(asked.error, result, "the compiled case")
    if asked.header["plan"] == compiled:
        return None
    return fail(
        result, "launch(p) gave another plan when it was asked again", "launch(p): it must depend on p alone"
    )


def metered_plan(evidence: Evidence, run: Run, compiled: dict) -> dict | None:
    """The outcome of compiling the case whose bytes were counted, where its tiles are not those compiled already."""
    plan = run.outcome.header["plan"]
    if settings(plan) == settings(compiled):
        return None
    return evidence.compile(run.case, evidence.question.targets[:1], plan=plan)

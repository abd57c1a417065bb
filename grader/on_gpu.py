"""An answer on the GPU: lowered to IR in the jail, built beside it, launched by the bench, compared by the referee."""

from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from grader import gpu
from grader.bencher import Bench, Broken, Builder
from grader.compare import difference
from grader.evidence import Evidence, Run, beside
from grader.record import PartResult
from grader.sentences import describe, fail, tell

TIMED = 500
TILES = "the sizes of its tiles, num_warps and num_stages"


@dataclass
class OnGpu:
    """All that an answer will launch: its public and hidden cases, and the timed one last.

    Everything is built before anything is launched, so that no compiler runs beside the clock.
    """

    evidence: Evidence
    cases: list = field(default_factory=list)
    bench: Bench = field(default_factory=Bench)
    builder: Builder = field(default_factory=Builder)
    preparing: Future | None = None
    drawing: Future | None = None

    def __post_init__(self):
        question = self.evidence.question
        if not self.cases:
            self.cases = [*question.public, *self.evidence.hidden_cases()]
            self.cases += [question.speed.case] if question.speed else []

    def begin(self) -> None:
        """Lower, build and start the bench while the interpreter runs."""
        self.preparing = self.preparing or beside().submit(self._prepare)
        if self.evidence.question.speed:
            self.drawing = self.drawing or beside().submit(
                self.evidence.draw, self.evidence.question.speed.case, TIMED
            )

    def timed_inputs(self) -> tuple[dict, list]:
        self.begin()
        return self.drawing.result()

    def _prepare(self) -> tuple[dict, dict]:
        """What crossed of the cases, and which of its kernels could not be built."""
        capability, sms = gpu.facts()
        self.bench.start()  # loading its libraries takes longer than all else
        self.evidence.say(f"lowering {len(self.cases)} cases for sm_{capability}")
        outcome = self.evidence.cross(self.cases, capability, sms)
        if outcome.error:
            return {"cases": [{"error": outcome.error}] * len(self.cases), "ir": []}, {}
        crossed = outcome.header
        pairs = zip(crossed["ir"], crossed["settings"], strict=True)
        kernels = [{"ir": text, "settings": settings} for text, settings in pairs]
        return crossed, self.builder.build(kernels, capability, self.evidence.say) if kernels else {}

    def request(self, number: int, placed: list, **more) -> tuple[dict, dict]:
        """One case as the bench wants it: IR, numbers and input bytes. Broken where it has no code."""
        self.begin()
        crossed, failed = self.preparing.result()
        row = crossed["cases"][number]
        target = f"sm_{gpu.facts()[0]}"
        if "error" in row:
            raise Broken(f"does not compile for {target}: {row['error']['message']}")
        for kernel in row["kernels"]:
            if reason := failed.get(kernel["ir"]):
                raise Broken(f"does not compile for {target}: {reason}")
        plan, case = row["plan"], self.cases[number]
        steps = [
            {
                "ir": crossed["ir"][kernel["ir"]],
                "arguments": kernel["arguments"],
                "grid": step["grid"],
                "num_warps": step["num_warps"],
                "num_stages": step["num_stages"],
            }
            for step, kernel in zip(plan["steps"], row["kernels"], strict=True)
        ]
        tensors = [{**p.as_task(), "storage_bytes": int(p.storage.nbytes)} for p in placed]
        scalars = {**case.sizes, **case.scalars, **_strides(tensors, plan["scratch"])}
        header = {"steps": steps, "scalars": scalars, "tensors": tensors, "scratch": plan["scratch"], **more}
        return header, {p.spec.name: p.storage for p in placed if p.spec.role != "out"}

    def ask(self, number: int, placed: list, **more) -> tuple[dict, dict]:
        return self.bench.ask(*self.request(number, placed, **more))

    def stream(self, number: int, placed: list, **more):
        return self.bench.stream(*self.request(number, placed, **more))

    def end(self) -> None:
        """Nothing of this answer goes on beside the next one."""
        for future in filter(None, (self.preparing, self.drawing)):
            if not future.cancel():
                self.builder.stop()
                future.exception()
        self.bench.stop()


def _strides(tensors: list[dict], scratch: dict) -> dict:
    found = {}
    for t in tensors:
        found |= {f"stride_{t['name']}{axis}": s for axis, s in zip(t["axes"], t["strides"], strict=True)}
    for name, s in scratch.items():
        steps = np.cumprod([1, *reversed(s["shape"][1:])])[::-1]
        found |= {f"stride_{name}{i}": int(v) for i, v in enumerate(steps)}
    return found


def differs(evidence: Evidence, runs: list[Run], result: PartResult) -> PartResult | None:
    """Every case that the interpreter ran, once more on the GPU; what went wrong there, or None."""
    for number, run in enumerate(runs):
        evidence.say(f"running {len(runs)} cases on {gpu.name()} … {number}/{len(runs)}")
        try:
            report, found = evidence.gpu.ask(number, run.placed, repeat=3)
        except Broken as broken:
            fail(result, f"{describe(run)}: the kernel {broken}", TILES, sort="it does not run on the GPU")
        else:
            trouble = misbehaves(report, evidence.question) or _wrong(evidence.question, run, found)
            if not trouble:
                continue
            look = "what the interpreter does in order and a GPU at once"
            fail(result, f"{describe(run)}, on the GPU: {trouble}", look, sort="another result on the GPU")
        return tell(result, run.case.kind) if run.hidden else result
    return None


def misbehaves(report: dict, question) -> str:
    """What a launch did beside its outputs, as a sentence."""
    if report["changed"]:
        return f"{report['changed'][0]} was written"
    if report.get("repeats") is False and question.repeatable:
        return "the same inputs gave other bits on a repeat: two programs race"
    if report.get("differing"):
        return "a timed launch gave other results than the judged one"
    return ""


def outputs(placed: list, found: dict) -> dict:
    """The output arrays as views, strided as the kernel wrote them."""
    return {
        p.spec.name: p.view(found[p.spec.name].view(p.storage.dtype)) for p in placed if p.spec.role != "in"
    }


def _wrong(question, run: Run, found: dict) -> str:
    """Empty where what the GPU wrote equals the reference."""
    got = {name: array for name, array in outputs(run.placed, found).items() if name in run.want}
    if question.agree:
        return question.agree(run.inputs, run.case, got, run.want)
    allowed = question.tolerance(run.inputs, run.case, run.want)
    return compare(got, run.want, allowed)


def compare(got: dict, want: dict, allowed: dict) -> str:
    for name, target in want.items():
        worst = difference(name, got[name].astype(np.float64), target, allowed[name])
        if worst:
            return worst.sentence()
    return ""

"""Run an answer on the GPU. It is built from the machine's print, launched by the bench and compared by the referee."""

from concurrent.futures import Future
from dataclasses import dataclass, field

from grader.bench import gpu
from grader.bench.host import Bench, Broken, Builder
from grader.bench.protocol import Kernel, Ran, RunRequest, Step, Timed
from grader.judge.diagnose import describe, differs
from grader.judge.evidence import background_pool
from grader.judge.failed import Failed, Refusal
from grader.judge.kernel_evidence import COMPILED, METERED, TIMED, KernelEvidence
from grader.judge.record import PartResult
from grader.machine import host as machine

TILES = "the sizes of its tiles, num_warps and num_stages"


@dataclass
class OnGpu:
    """All that an answer will launch. Everything is built before anything runs, so that no compiler runs during
    timing."""

    evidence: KernelEvidence
    bench: Bench = field(default_factory=Bench)
    builder: Builder = field(default_factory=Builder)
    building: Future | None = None
    drawing: Future | None = None

    def begin(self) -> None:
        """Build, and start the bench, while the machine runs."""
        self.building = self.building or background_pool().submit(self._build)
        if TIMED in self.evidence.known:
            self.drawing = self.drawing or background_pool().submit(self.evidence.draw, TIMED)

    def timed_inputs(self) -> tuple[dict, list]:
        self.begin()
        return self.drawing.result()

    def launched(self) -> list[int]:
        """Return the purposes of all cases that the GPU runs."""
        return [p for p in self.evidence.known if not METERED <= p <= COMPILED]

    def _build(self) -> dict[tuple, str]:
        """Return why a kernel could not be built, by its text, warps and stages."""
        evidence, capability = self.evidence, gpu.first_gpu()[0]
        self.bench.start()  # loading its libraries takes longer than all else
        known = {}
        for purpose in self.launched():
            plan = evidence.plan(purpose)
            for step in () if isinstance(plan, dict) else plan.steps:
                row = evidence.printed_text(step.text)
                if "error" not in row:
                    known[_key(step)] = Kernel(row["text"], step.num_warps, step.num_stages)
        failed = self.builder.build(list(known.values()), capability, evidence.say) if known else {}
        return {key: failed[number] for number, key in enumerate(known) if number in failed}

    def request(self, kind: type[RunRequest], purpose: int, placed: list, **more) -> tuple[RunRequest, dict]:
        """Return one case in the bench's form, as IR, numbers and input bytes. Raise Broken if the case has no code."""
        self.begin()
        evidence, case = self.evidence, self.evidence.case(purpose)
        failed, plan, target = self.building.result(), evidence.plan(purpose), f"sm_{gpu.first_gpu()[0]}"
        if isinstance(plan, dict):
            raise Broken(f"does not compile for {target}: {plan['message']}")
        steps = []
        for step in plan.steps:
            row = evidence.printed_text(step.text)
            if "error" in row:
                raise Refusal(row["error"]["message"], row["error"]["line"])
            if reason := failed.get(_key(step)):
                raise Broken(f"does not compile for {target}: {reason}")
            kernel = Kernel(row["text"], step.num_warps, step.num_stages)
            steps.append(Step(kernel, step.grid, step.arguments))
        request = kind(
            steps=tuple(steps),
            numbers={name: value for name, (_, value) in machine.numbers(case, plan, placed).items()},
            tensors=tuple({**p.as_task(), "storage_bytes": int(p.storage.nbytes)} for p in placed),
            scratch=plan.scratch,
            **more,
        )
        return request, {p.spec.name: p.storage for p in placed if p.spec.role != "out"}

    def ask(self, kind: type[RunRequest], purpose: int, placed: list, **more) -> tuple[Ran, dict]:
        return self.bench.ask(*self.request(kind, purpose, placed, **more))

    def stream(self, kind: type[RunRequest], purpose: int, placed: list, **more):
        return self.bench.stream(*self.request(kind, purpose, placed, **more))

    def end(self) -> None:
        """Stop this answer's work before the next answer begins."""
        for future in filter(None, (self.building, self.drawing)):
            if not future.cancel():
                self.builder.stop()
                future.exception()
        self.bench.stop()


def _key(step) -> tuple:
    return step.text, step.num_warps, step.num_stages


def judge_runs(evidence: KernelEvidence, runs: list, result: PartResult) -> None:
    """Run every case of the machine once more on the GPU, and raise Failed if the GPU's result is wrong."""
    result.evidence += f" and on {gpu.name()}"
    purposes = [*evidence.public, *evidence.hidden]
    for number, (purpose, run) in enumerate(zip(purposes, runs, strict=True)):
        evidence.say(f"running {len(runs)} cases on {gpu.name()} … {number}/{len(runs)}")
        try:
            ran, found = evidence.on_gpu.ask(RunRequest, purpose, run.placed, repeat=3)
        except Broken as broken:
            told = "it does not run on the GPU"
            raise Failed(f"{describe(run)}: the kernel {broken}", TILES, told=told) from None
        trouble = misbehaves(ran, evidence.question)
        got = {name: array for name, array in outputs(run.placed, found).items() if name in run.want}
        trouble = trouble or differs(evidence.question, run.inputs, run.case, got, run.want)[0]
        if trouble:
            look = "what programs do in order here and a GPU does at once"
            raise Failed(
                f"{describe(run)}, on the GPU: {_without_hidden_numbers(run, trouble)}",
                look,
                told="another result on the GPU",
            )


def _without_hidden_numbers(run, trouble: str) -> str:
    return "another result than the reference" if run.hidden else trouble


def misbehaves(ran: Ran, question) -> str:
    """Return a sentence about side effects of a launch outside its outputs."""
    if ran.changed:
        return f"{ran.changed[0]} was written"
    if ran.repeats is False and question.repeatable:
        return "the same inputs gave other bits on a repeat: two programs race"
    if isinstance(ran, Timed) and ran.differing:
        return "a timed launch gave other results than the judged one"
    return ""


def outputs(placed: list, found: dict) -> dict:
    """Return the output arrays as views, strided as the kernel wrote them."""
    return {
        p.spec.name: p.view(found[p.spec.name].view(p.storage.dtype)) for p in placed if p.spec.role != "in"
    }

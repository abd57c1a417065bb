"""Gathers what is known about one answer: runs it in the jail on a case and keeps what came back."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from grader import memory
from grader.box.warm import Limits, Outcome, jail, width
from grader.questions import Case, KernelQuestion, NumpyQuestion, Question

# Processor time decides, so that a busy machine fails nobody; the wall clock is for answers that sleep.
KERNEL_LIMITS = Limits(wall_s=120.0, cpu_s=30)
COMPILE_LIMITS = Limits(wall_s=240.0, cpu_s=60, memory_bytes=6 << 30)
NUMPY_LIMITS = Limits(wall_s=30.0, cpu_s=5)


@cache
def beside() -> ThreadPoolExecutor:
    """For what goes on beside the judge: compiling, the GPU's side, and cases where there are cores for them."""
    return ThreadPoolExecutor(3 + width(), "beside")


def quiet(sentence: str) -> None:
    """Where nobody watches."""


@dataclass
class Run:
    """One case as it ran: inputs and reference stay here, only raw bytes came back."""

    case: Case
    hidden: bool
    placed: list
    inputs: dict
    want: dict
    outcome: Outcome

    def output(self, name: str) -> np.ndarray:
        placed = next(p for p in self.placed if p.spec.name == name)
        return placed.view(self.outcome.arrays[name])

    @property
    def launches(self) -> list[dict]:
        return self.outcome.header["launches"]


@dataclass
class Evidence:
    question: Question
    source: str
    seed: int
    mode: str = "cpu"
    level: int | None = None
    printed: str = ""
    pictured: bool = False
    runs: dict = field(default_factory=dict)
    eager: bool = False  # work ahead on other cores; a wrong answer then wastes some
    ahead: dict = field(default_factory=dict)
    compiling: Future | None = None
    say: Callable[[str], None] = quiet  # where it stands, for who waits; never part of a record
    gpu: object = None  # in gpu mode the answer's way there, an OnGpu

    def rng(self, purpose: int) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([self.seed, purpose]))

    def hidden_cases(self) -> list:
        return list(self.question.hidden(self.rng(0)))

    def kernel_task(self, case: Case, placed) -> dict:
        question: KernelQuestion = self.question
        return {
            "source": self.source,
            "entry": question.entry,
            "sizes": dict(case.sizes),
            "scalars": {
                name: ["fp32" if isinstance(v, float) else "i32", v] for name, v in case.scalars.items()
            },
            "sm_count": case.sm_count,
            "tensors": [p.as_task() for p in placed],
            "repeatable": question.repeatable,
        }

    def draw(self, case: Case, purpose: int) -> tuple[dict, list]:
        inputs = self.question.inputs(case, self.rng(purpose))
        return inputs, memory.place(self.question, case, inputs)

    def run(self, case: Case, purpose: int, hidden: bool) -> Run:
        """The kernel answer on one case, in the interpreter, metered. Each case runs once."""
        if purpose not in self.runs:
            started = self.ahead.pop(purpose, None)
            self.runs[purpose] = started.result() if started else self._interpret(case, purpose, hidden)
        if not hidden:
            self.heard(self.runs[purpose].outcome)
        return self.runs[purpose]

    def run_ahead(self, cases: list[tuple], hidden: bool) -> None:
        """Start (purpose, case) pairs side by side, where there are cores and jails for it."""
        if self.eager and width() > 1:
            self.ahead |= {p: beside().submit(self._interpret, c, p, hidden) for p, c in cases}

    def _interpret(self, case: Case, purpose: int, hidden: bool) -> Run:
        inputs, placed = self.draw(case, purpose)
        arrays = {p.spec.name: p.storage for p in placed if p.storage.size}
        outcome = jail("interpret", self.level).ask(self.kernel_task(case, placed), arrays, KERNEL_LIMITS)
        return Run(case, hidden, placed, inputs, self.question.reference(inputs, case), outcome)

    def shapes(self, case: Case) -> list:
        """Tensors of a case as the compiler needs them: shapes and strides, no contents."""
        return [memory.shape_only(spec, case) for spec in self.question.tensors]

    def compile(self, case: Case, targets, **more) -> Outcome:
        task = {**self.kernel_task(case, self.shapes(case)), "targets": list(targets), **more}
        return jail("compile", self.level).ask(task, {}, COMPILE_LIMITS)

    def plan(self, case: Case) -> Outcome:
        """What launch(p) says in the interpreter's jail, without running it."""
        task = {**self.kernel_task(case, self.shapes(case)), "plan_only": True}
        return jail("interpret", self.level).ask(task, {}, KERNEL_LIMITS)

    def front_end(self, runs: list[Run]) -> Outcome:
        """Every plan that ran, through Triton's front end; the plans must be the same when asked for again."""
        cases = [self.kernel_task(r.case, r.placed) | {"plan": r.outcome.header["plan"]} for r in runs]
        return self._as_far_as_ir(cases, targets=[self.question.targets[0]])

    def cross(self, cases: list[Case], target: int, sms: int) -> Outcome:
        """Every case as IR for one GPU, each distinct kernel once."""
        tasks = [self.kernel_task(case, self.shapes(case)) | {"sm_count": sms} for case in cases]
        return self._as_far_as_ir(tasks, targets=[target], crossing=True)

    def _as_far_as_ir(self, cases: list[dict], **more) -> Outcome:
        cases = [{key: value for key, value in case.items() if key != "source"} for case in cases]
        task = {"source": self.source, "entry": self.question.entry, "cases": cases, **more}
        return jail("compile", self.level).ask(task, {}, COMPILE_LIMITS)

    def begin(self) -> None:
        """Compile beside the interpreter: with two cores a check takes as long as the slower of the two."""
        question = self.question
        if question.kind == "kernel" and question.compile_case:
            self.compiling = beside().submit(self.compile, question.compile_case, question.targets)
        if self.gpu is not None:
            self.gpu.begin()

    def compiled(self) -> Outcome:
        if self.compiling is None:
            self.begin()
        outcome = self.compiling.result()
        self.heard(outcome)
        return outcome

    def settle(self) -> None:
        """Nothing of this answer computes beside the clock."""
        for future in filter(None, (self.compiling, *self.ahead.values())):
            future.exception()

    def end(self) -> None:
        """Nobody waits for what has not been compiled yet."""
        for future in filter(None, (self.compiling, *self.ahead.values())):
            future.cancel()
        if self.gpu is not None:
            self.gpu.end()

    def call(self, calls: list, hidden: bool) -> Outcome:
        """The numpy answer on a list of calls."""
        question: NumpyQuestion = self.question
        arrays, encoded = {}, []
        for call in calls:
            row = []
            for argument in call.args:
                if isinstance(argument, np.ndarray):
                    name = f"a{len(arrays)}"
                    arrays[name] = argument
                    row.append({"array": name})
                else:
                    row.append({"value": argument})
            encoded.append(row)
        task = {"source": self.source, "entry": question.entry, "calls": encoded}
        outcome = jail("numpy", self.level).ask(task, arrays, NUMPY_LIMITS)
        if not hidden:
            self.heard(outcome)
        return outcome

    def heard(self, outcome: Outcome) -> None:
        """Prints of public cases alone: what an answer prints of a hidden one would give it away."""
        if not self.printed:
            self.printed = str(outcome.header.get("printed") or "")[:4000]

"""Gathers what is known about one answer: runs it in the jail on a case and keeps what came back."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from grader import memory
from grader.jailer import Limits, Outcome, jail
from grader.questions import Case, KernelQuestion, NumpyQuestion, Question

# Processor time decides, so that a busy machine fails nobody; the wall clock is for answers that sleep.
KERNEL_LIMITS = Limits(wall_s=120.0, cpu_s=30)
COMPILE_LIMITS = Limits(wall_s=240.0, cpu_s=60, memory_bytes=6 << 30)
NUMPY_LIMITS = Limits(wall_s=30.0, cpu_s=5)


@cache
def pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "compile")


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
    compiling: Future | None = None

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
            inputs, placed = self.draw(case, purpose)
            arrays = {p.spec.name: p.storage for p in placed if p.storage.size}
            outcome = jail("interpret", self.level).ask(self.kernel_task(case, placed), arrays, KERNEL_LIMITS)
            if not hidden:
                self.heard(outcome)
            want = self.question.reference(inputs, case)
            self.runs[purpose] = Run(case, hidden, placed, inputs, want, outcome)
        return self.runs[purpose]

    def shapes(self, case: Case) -> list:
        """Tensors of a case as the compiler needs them: shapes and strides, no contents."""
        return [memory.shape_only(spec, case) for spec in self.question.tensors]

    def compile(self, case: Case, targets, **more) -> Outcome:
        task = {**self.kernel_task(case, self.shapes(case)), "targets": list(targets), **more}
        outcome = jail("compile", self.level).ask(task, {}, COMPILE_LIMITS)
        self.heard(outcome)
        return outcome

    def plan(self, case: Case) -> Outcome:
        """What launch(p) says in the interpreter's jail, without running it."""
        task = {**self.kernel_task(case, self.shapes(case)), "plan_only": True}
        return jail("interpret", self.level).ask(task, {}, KERNEL_LIMITS)

    def front_end(self, runs: list[Run]) -> Outcome:
        """Every plan that ran, through Triton's front end; the plans must be the same when asked for again."""
        cases = [
            self.kernel_task(run.case, run.placed) | {"plan": run.outcome.header["plan"]} for run in runs
        ]
        for case in cases:
            case.pop("source")
        task = {
            "source": self.source,
            "entry": self.question.entry,
            "cases": cases,
            "targets": [self.question.targets[0]],
        }
        return jail("compile", self.level).ask(task, {}, COMPILE_LIMITS)

    def begin(self) -> None:
        """Compile beside the interpreter: with two cores a check takes as long as the slower of the two."""
        question = self.question
        if question.kind == "kernel" and question.compile_case:
            self.compiling = pool().submit(self.compile, question.compile_case, question.targets)

    def end(self) -> None:
        """Nobody waits for what has not been compiled yet."""
        if self.compiling is not None:
            self.compiling.cancel()

    def compiled(self) -> Outcome:
        if self.compiling is None:
            self.begin()
        return self.compiling.result()

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

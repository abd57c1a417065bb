"""What crosses each wall in one check of a kernel: no value and no count comes from, or goes to, a student's Python."""

import numpy as np
import pytest

from grader import questions
from grader.box import warm
from grader.judge import referee
from grader.proofs.right import right
from tilescope.machine.read import read
from tilescope.machine.write import write

QUESTION = "roofline.layernorm_gelu"


@pytest.fixture(scope="module")
def crossed():
    """(worker, task, arrays in, outcome) of every exchange with a box during one check."""
    seen, ask = [], warm.Program.ask

    def spy(self, task, arrays=None, limits=warm.Limits()):  # noqa: B008
        outcome = ask(self, task, arrays, limits)
        seen.append((self.worker.module, task, dict(arrays or {}), outcome))
        return outcome

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm.Program, "ask", spy)
        verdict = referee.grade_one(right(QUESTION), questions.find(QUESTION), seed=11)
    assert verdict.passed, str(verdict)
    return seen


def of(crossed, module: str) -> list:
    found = [row for row in crossed if row[0] == module]
    assert found, f"nothing went to {module}"
    return found


def lowered(crossed) -> list:
    return [row for row in of(crossed, "grader.jail.inside.lower") if row[1]["operation"] == "lower"]


def numbers(value):
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, dict | list | tuple) or hasattr(value, "__iter__") and not isinstance(value, str):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, float):
        yield value


def test_every_box_that_a_check_uses_is_one_of_three(crossed):
    assert {row[0] for row in crossed} == {
        "grader.jail.inside.lower",
        "grader.machine.inside.main",
        "grader.compiler.inside.report",
    }


def test_the_jail_is_asked_once_for_shown_and_once_for_hidden_cases_and_is_told_no_tensor(crossed):
    shown, hidden = lowered(crossed)
    for _, task, arrays, outcome in of(crossed, "grader.jail.inside.lower"):
        assert arrays == {} == outcome.arrays
        eps = {value for case in task["cases"] for kind, value in case["scalars"].values()}
        assert set(numbers(task["cases"])) <= eps, "floating-point numbers beside the scalars"
    question = questions.find(QUESTION)
    public = [case.sizes for case in (*question.public, question.compile_case)]
    assert all(case["sizes"] in public for case in shown[1]["cases"]) and len(shown[1]["cases"]) == len(
        public
    )


def test_the_jail_answers_with_plans_and_texts_and_nothing_else(crossed):
    for *_, outcome in lowered(crossed):
        assert set(outcome.header) == {"cases", "texts", "nonce", "printed"}
        for row in outcome.header["cases"]:
            assert set(row) == {"plan", "kernels", "printed"}
            assert not list(numbers(row["plan"])), "a plan holds whole numbers and names"


def test_secret_inputs_go_to_the_machine_alone(crossed):
    for module, _, arrays, _ in crossed:
        assert bool(arrays) <= (module == "grader.machine.inside.main")
    assert any(
        a.dtype.kind == "f" and np.ptp(a)
        for *_, arrays, _ in of(crossed, "grader.machine.inside.main")
        for a in arrays.values()
    )


def test_the_compiler_gets_what_the_machine_printed(crossed):
    tasks = [task for _, task, _, _ in of(crossed, "grader.compiler.inside.report")]
    came = {text for row in lowered(crossed) for text in row[3].header["texts"]}
    assert tasks
    for kernel in (kernel for task in tasks for kernel in task["kernels"]):
        assert kernel["text"] not in came and write(read(kernel["text"])) == kernel["text"]


def test_no_program_of_ours_that_holds_an_input_holds_python_of_an_answer(crossed):
    for module, task, *_ in crossed:
        assert ("source" in task) == (module == "grader.jail.inside.lower")

"""Every kernel question's right answer and two of its honest forms, as their texts leave the jail: read, held, printed.

`make proofs` takes all the forms, and compiles what was printed of every question; here of one question a topic.
"""

import pytest

from grader import questions
from grader.judge import kernel_evidence as evidence
from grader.proofs.honest import AS_IT_STANDS, forms, source
from grader.proofs.right import kernel_questions
from grader.proofs.wrong import leads, sample
from tilescope.machine.module_size import hopeless
from tilescope.machine.read import read
from tilescope.tests.lowering_for_tests import compiled, same_code
from tilescope.tests.test_round_trips import round_trip

QUESTIONS = [question.id for question in kernel_questions()]
COMPILED = [
    question.id if leads(question) else pytest.param(question.id, marks=pytest.mark.slow)
    for question in kernel_questions()
]


def texts(question_id: str, form: str) -> dict[str, int]:
    """Each text of a form for the first public case, with its warps."""
    question = questions.find(question_id)
    asked = evidence.KernelEvidence(question, source(question, form), seed=7)
    asked.cases = {evidence.PUBLIC: asked.known[evidence.PUBLIC]}
    found = asked.lowered()
    steps = (step for plan in found.plans for step in plan.steps)
    return {found.texts[step.text]: step.num_warps for step in steps}


@pytest.mark.parametrize(
    "count", [pytest.param(2, id="some"), pytest.param(None, marks=pytest.mark.slow, id="all")]
)
@pytest.mark.parametrize("question_id", QUESTIONS)
def test_honest_forms_are_read_and_printed_again(question_id, count):
    for form in {AS_IT_STANDS, *sample(forms(questions.find(question_id)), count)}:
        for text, warps in texts(question_id, form).items():
            round_trip(text)
            assert hopeless(read(text), warps) == ""


@pytest.mark.parametrize("question_id", COMPILED)
def test_what_is_printed_compiles_as_what_was_read(question_id):
    text, warps = max(texts(question_id, AS_IT_STANDS).items(), key=lambda pair: len(pair[0]))
    printed = round_trip(text)
    assert same_code(compiled(printed, 90, num_warps=warps), compiled(text, 90, num_warps=warps))

"""The honest forms fit their cells, a fixed sample of them passes, and a false alarm is found."""

import pytest

from grader.proofs import honest, right

if not (right.ROOT / "solutions").exists():
    pytest.skip("solutions/, which is not handed out", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("no_jails_left")

QUESTIONS = {question.id: question for question in right.kernel_questions()}
SAMPLE = [(question.id, name) for question in QUESTIONS.values() for name in honest.sampled(question)]
NORM = QUESTIONS["roofline.layernorm_gelu"]
CHEAP = right.inward(
    NORM, parts=NORM.parts[:2], hidden=lambda rng: NORM.hidden(rng)[:2]
)  # nothing to compile


@pytest.mark.parametrize("question", QUESTIONS)
def test_forms_fit_their_question(question):
    assert honest.misfits(QUESTIONS[question]) == []


def test_every_cell_is_the_right_answer_or_a_form_of_its_question():
    named = {right.cell(q.id, "right") for q in QUESTIONS.values()} | {
        right.cell(q.id, change)
        for q in QUESTIONS.values()
        for _, change in honest.forms(q).values()
        if isinstance(change, str)
    }
    found = (right.ROOT / "grader/topics").glob("*/*/answers/*.py")
    kept = {path for path in found if path.name not in ("__init__.py", "forms.py")}
    assert kept and kept <= named


LONG = {  # 20 s each or more
    "gemm_tiling.tiled_gemm",
    "flash_attention.forward",
    "roofline.layernorm_gelu",
    "moe_routing.order",
    "quantization_layouts.own_layout",
    "sampling_fusion.draw",
}


@pytest.mark.parametrize(
    "question, name",
    [pytest.param(*row, id=": ".join(row), marks=[pytest.mark.slow] * (row[0] in LONG)) for row in SAMPLE],
)
def test_an_honest_form_loses_what_it_costs(question, name):
    assert honest.judge(question, name)["broken"] == ""


JUDGED = {
    "loses more": ((), [("d * rstd * w + b", "d * rstd * w")], "must lose nothing"),
    "loses less": (("traffic",), [("tl.sum(g, axis=0)", "tl.sum(g)")], "must lose traffic"),
    "no such cell": ((), "no_such_cell", "no_such_cell"),
}
SEEN = {
    "words that are not there": ((), [("no such words", "")], "must hold 'no such words'"),
    "nothing changed": ((), (), "is the right answer itself"),
    "no such part": (
        ("beauty",),
        [("tl.sum(g, axis=0)", "tl.sum(g)")],
        "loses a part that the question lacks: beauty",
    ),
}


@pytest.mark.parametrize("lie", JUDGED)
def test_a_form_that_lies_is_found(monkeypatch, lie):
    lost, change, found = JUDGED[lie]
    monkeypatch.setattr(honest, "LEAST", 0)
    monkeypatch.setattr(honest.questions, "find", lambda name: CHEAP)
    monkeypatch.setattr(honest, "forms", lambda question: {"a form": (lost, change)})
    rows, broken = honest.run(True, lambda row: None, NORM.id)
    assert any(found in trouble for trouble in broken), broken
    assert [row["form"] for row in rows] == ["a form"]


def test_a_right_answer_is_judged_at_several_seeds(monkeypatch):
    tried = []

    def judged(name, form, seed):
        tried.append((name, form, seed))
        return {"question": name, "form": form, "broken": "lost a point" if len(tried) == 2 else ""}

    monkeypatch.setattr(honest, "judge", judged)
    _, broken = honest.run(False, lambda row: None, NORM.id, seeds=3)
    assert {(name, form) for name, form, _ in tried} == {(NORM.id, honest.AS_IT_STANDS)}
    assert len({seed for _, _, seed in tried}) == 3
    assert broken == [f"{NORM.id}, {honest.AS_IT_STANDS}, {tried[1][2]}: lost a point"]


@pytest.mark.parametrize("lie", SEEN)
def test_a_form_that_does_not_fit_is_found(monkeypatch, lie):
    lost, change, found = SEEN[lie]
    monkeypatch.setattr(honest, "forms", lambda question: {"a form": (lost, change)})
    assert any(found in trouble for trouble in honest.misfits(NORM))


def test_too_few_forms_are_found(monkeypatch):
    monkeypatch.setattr(honest, "forms", lambda question: {honest.AS_IT_STANDS: ((), ())})
    assert honest.misfits(NORM) == [f"{NORM.id}: must have 6 honest forms or more, got 0"]

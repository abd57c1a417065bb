"""The zoo's tables fit their questions, a fixed sample of them is judged, and a lie in them is found."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from grader import questions
from grader.proofs import right
from grader.proofs import wrong as zoo
from grader.questions import Mistake
from grader.questions.rows import edited

if not (right.ROOT / "solutions").exists():
    pytest.skip("solutions/, which is not handed out", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("no_jails_left")

QUESTIONS = {question.id: question for question in right.kernel_questions()}
WRONG = [(question.id, name) for question in QUESTIONS.values() for name in zoo.sampled_wrong(question)]
SOONEST = {zoo.soonest_of_topic(question) for question in QUESTIONS.values()}
NORM = QUESTIONS["roofline.layernorm_gelu"]
CHEAP = right.inward(
    NORM, parts=NORM.parts[:2], hidden=lambda rng: NORM.hidden(rng)[:2]
)  # nothing to compile
BIAS = [("d * rstd * w + b", "d * rstd * w")]
ADDS, SUBTRACTS = "+ b).to(", "- b).to("


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_table_fits_its_question(question):
    assert zoo.misfits(QUESTIONS[question]) == []


LONG = "roofline.layernorm_gelu"  # whose answers that lose the speed alone take a minute each
LATER = (
    ("moe_routing.order", "totals of 16 bits"),
    ("roofline.tile_settings", "four warps"),
    ("sampling_fusion.masked_draw", "banned tokens low, not gone"),
)


def waits(question: str, name: str) -> bool:
    return (question, name) in LATER or (question == LONG and name.startswith(zoo.SLOW))


@pytest.mark.parametrize(
    "question, name",
    [pytest.param(*row, id=": ".join(row), marks=[pytest.mark.slow] * waits(*row)) for row in WRONG],
)
def test_a_wrong_answer_loses_what_it_should(question, name):
    assert zoo.wrong(QUESTIONS[question], name) == ""


@pytest.mark.parametrize(
    "question",
    [name if name in SOONEST else pytest.param(name, marks=pytest.mark.slow) for name in QUESTIONS],
)
def test_mutants_die(question):
    chosen = zoo.sampled_mutants(QUESTIONS[question])
    assert chosen and [n for n in chosen if zoo.lives(QUESTIONS[question], zoo.changed(question)[n])] == []


NUMPY = [question for question in questions.load().values() if question.kind == "numpy"]
SOME = {(question.id, name) for question in NUMPY for name in zoo.sample(list(zoo.table(question)), 1)}
TOLD = [
    pytest.param(*row, id=": ".join(row), marks=[pytest.mark.slow] * (row not in SOME))
    for row in ((question.id, name) for question in NUMPY for name in zoo.table(question))
]


@pytest.mark.parametrize("question, name", TOLD)
def test_a_wrong_numpy_answer_is_told_its_mistake(question, name):
    sentences = {m.name: m.sentence for m in questions.find(question).mistakes}
    assert zoo.told(question, name) == sentences[name]


@pytest.mark.parametrize("question", NUMPY, ids=lambda question: question.id)
def test_every_mistake_of_a_numpy_question_is_made(question):
    assert [row.name for row in question.mistakes if not row.made] == []
    assert zoo.named_twice(question) == []


def test_every_survivor_is_of_a_question(monkeypatch):
    assert zoo.of_no_question() == []
    monkeypatch.setitem(zoo.survivors(), "roofline.nobody_asks", {})
    assert zoo.of_no_question() == ["roofline.nobody_asks"]


# Planted lies: one question with a table of ours, name -> (part, edits, mistake told).


def as_rows(table: dict) -> dict[str, Mistake]:
    return {
        name: edited(name, *edits, part=part, told_as=told) for name, (part, edits, told) in table.items()
    }


@pytest.fixture
def planted(monkeypatch):
    """run() over the norm alone, with the given rows, equivalents and changes of the right answer."""

    def plant(wrong=None, equivalent=None, changes=()):
        correct = right.right(NORM.id)
        made = {name: SimpleNamespace(line=1, source=right.edited(correct, edits)) for name, edits in changes}
        monkeypatch.setattr(zoo, "LEAST", 0)
        monkeypatch.setattr(zoo.questions, "find", lambda name: CHEAP)
        monkeypatch.setattr(zoo, "table", lambda question: as_rows(wrong or {}))
        monkeypatch.setattr(zoo, "equivalent", lambda question: equivalent or {})
        monkeypatch.setattr(zoo, "changed", lambda question: made)
        rows, broken = zoo.run(True, lambda row: None, NORM.id)
        about_tables = "no wrong answer is recognised"
        return rows, [trouble for trouble in broken if about_tables not in trouble]

    return plant


def test_tables_that_are_true_are_believed(planted):
    rows, broken = planted(
        {"no bias": ("values", BIAS, "no bias")},
        {"same": "a sum has no order"},
        [("dies", [(ADDS, SUBTRACTS)]), ("same", [("d * rstd * w + b", "b + d * rstd * w")])],
    )
    assert broken == []
    assert [rows[0][x] for x in ("wrong", "caught", "mutants", "killed", "equivalent", "kill_rate")] == [
        1,
        1,
        2,
        1,
        1,
        100,
    ]


JUDGED = {
    "another part": ({"no bias": ("traffic", BIAS, "")}, "no bias: the part traffic must be lost"),
    "another mistake": (
        {"no bias": ("values", BIAS, "no weight")},
        "must be recognised as the mistake 'no weight'",
    ),
    "a right answer": (
        {"no bias": ("values", [("+ eps)", "+ eps + 0.0)")], "")},
        "the part values must be lost",
    ),
}
SEEN = {
    "no such mistake": (
        {"no bias": ("values", BIAS, "no such")},
        "names a mistake that the question lacks: no such",
    ),
    "no such part": ({"no bias": ("beauty", BIAS, "")}, "loses a part that the question lacks: beauty"),
    "words that are not there": (
        {"no bias": ("values", [("no such words", "")], "")},
        "must hold 'no such words'",
    ),
    "nothing changed": ({"no bias": ("values", [("d * rstd", "d  *  rstd")], "")}, "is the right answer"),
    "too few": ({}, "must have 8 wrong answers or more in its zoo, got 0"),
}


@pytest.mark.parametrize("lie", JUDGED)
def test_a_row_that_lies_is_found(planted, lie):
    wrong, found = JUDGED[lie]
    assert any(found in trouble for trouble in planted(wrong)[1])


@pytest.mark.parametrize("lie", SEEN)
def test_a_row_that_does_not_fit_is_found(monkeypatch, lie):
    wrong, found = SEEN[lie]
    monkeypatch.setattr(zoo, "table", lambda question: as_rows(wrong))
    assert any(found in trouble for trouble in zoo.misfits(NORM))


def test_a_survivor_is_found(planted):
    rows, broken = planted(changes=[("lives", [("mean = ", "mean = 0.0 + ")]), ("dies", [(ADDS, SUBTRACTS)])])
    assert broken == [f"{NORM.id}: this mutant lives: line 1, lives"]
    assert rows[0]["kill_rate"] == 50 and "1 of 2 mutants killed" in zoo.words(rows[0])


def test_an_equivalent_that_dies_is_found(planted):
    same = {"dies": "it is said to be the same", "gone": "it is said to be there", "bare": "because"}
    _, broken = planted({}, same, [("dies", [(ADDS, SUBTRACTS)])])
    assert f"{NORM.id}: listed as equivalent and dies: dies" in broken
    assert f"{NORM.id}: listed as equivalent and does not exist: gone" in broken
    assert f"{NORM.id}: equivalent without a reason: bare" in broken


def test_a_mistake_that_nothing_proves_is_found():
    more = (*NORM.mistakes, Mistake("never made", "a sentence", shows=lambda *_: False))
    assert zoo.misfits(replace(NORM, mistakes=more)) == [
        f"{NORM.id}: no wrong answer is recognised as the mistake 'never made'"
    ]


def test_two_mistakes_of_one_name_are_found():
    again = replace(NORM, mistakes=(*NORM.mistakes, NORM.mistakes[0]))
    assert zoo.misfits(again) == [f"{NORM.id}: two mistakes have one name: {NORM.mistakes[0].name}"]


def test_trouble_of_the_graders_own_kills_no_mutant(monkeypatch):
    monkeypatch.setattr(zoo.referee.box, "best_level", lambda: 1 / 0)
    assert zoo.lives(NORM, SimpleNamespace(source=right.right(NORM.id)))

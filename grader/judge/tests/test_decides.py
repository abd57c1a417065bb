"""A record's key is made of exactly what decides its question's grade."""

import pytest

from grader.judge import decides

GEMM, REUSE, NORM = "gemm_tiling.tiled_gemm", "gemm_tiling.reuse", "roofline.layernorm_gelu"


@pytest.fixture
def key(monkeypatch):
    """key(question, (file's ending, words, other words)): the key as it would be with a file changed so."""

    def forget():
        for kept in (decides.code_of, decides._tree, decides._definitions):
            kept.cache_clear()

    def of(question, change=None):
        forget()
        plain, met = type(decides.ROOT).read_text, []

        def read(path):
            text = plain(path, encoding="utf-8")
            if change and path.as_posix().endswith(change[0]):
                met.append(change[1] in text)
                text = text.replace(change[1], change[2])
            return text

        with monkeypatch.context() as patch:
            patch.setattr(decides, "read", read)
            found = decides.code_of(question)
        assert all(met), "the change must be one"
        forget()
        return found

    return of


CHANGES = {
    "a point": (
        ("topics/gemm_tiling/questions.py", '"grouping",\n            2,', '"grouping",\n            3,'),
        {GEMM},
    ),
    "a part's words in the lab": (
        ("topics/gemm_tiling/questions.py", "C is stored exactly once", "C is stored once"),
        set(),
    ),
    "a hint": (
        ("topics/gemm_tiling/questions.py", "Start with one program a tile", "Begin with one program a tile"),
        set(),
    ),
    "a sentence": (("topics/gemm_tiling/questions.py", "C = A B in fp16", "C = A times B in fp16"), set()),
    "a formula": (
        ("kernels/gemm_tiling/cost.py", "def tile_loads(", "def tile_loads(_=0, *, "),
        {GEMM, REUSE},
    ),
    "another topic": (("topics/roofline/questions.py", "Part(", "Part( "), set()),
    "a hidden case": (("topics/gemm_tiling/cases.py", "no stride of 1", "not one stride of 1"), {GEMM}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_judges_anew_what_it_decides_and_nothing_else(key, name):
    change, changed = CHANGES[name]
    assert {question for question in (GEMM, REUSE) if key(question) != key(question, change)} == changed


def test_a_question_that_no_topic_holds_is_named():
    with pytest.raises(LookupError, match="got 'gemm_tiling.nothing'"):
        decides.code_of("gemm_tiling.nothing")


def test_every_questions_own_row_is_found():
    from grader import questions

    rows = {question: decides.row_of(question) for question in questions.load()}
    assert all(len(found) > 2 for found in rows.values())

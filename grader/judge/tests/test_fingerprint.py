"""A record's key is made of exactly what decides its question's grade."""

import pytest

from grader.judge import fingerprint

GEMM, REUSE, NORM = "gemm_tiling.tiled_gemm", "gemm_tiling.reuse", "roofline.layernorm_gelu"


@pytest.fixture
def key(monkeypatch):
    """key(question, (file's ending, words, other words)): the key as it would be with a file changed so."""

    def forget():
        fingerprint.code_of.cache_clear()
        fingerprint.shared_code.cache_clear()

    def of(question, change=None):
        forget()
        plain, met = type(fingerprint.ROOT).read_text, []

        def read(path):
            text = plain(path, encoding="utf-8")
            if change and path.as_posix().endswith(change[0]):
                met.append(change[1] in text)
                text = text.replace(change[1], change[2])
            return text

        with monkeypatch.context() as patch:
            patch.setattr(fingerprint, "read", read)
            found = fingerprint.code_of(question)
        assert all(met), "the change must be one"
        forget()
        return found

    return of


OWN, PLAIN = "topics/gemm_tiling/tiled_gemm/", "topics/gemm_tiling/reuse/"
CHANGES = {
    "a point": ((OWN + "question.py", '"grouping",\n            2,', '"grouping",\n            3,'), set()),
    "a part's words in the lab": (
        (OWN + "question.py", "C is stored exactly once", "C is stored once"),
        set(),
    ),
    "a hint": (
        (OWN + "question.py", "Start with one program per tile", "Begin with one program per tile"),
        set(),
    ),
    "a sentence": ((OWN + "question.py", "C = A B in fp16", "C = A times B in fp16"), set()),
    "a mistake's sentence": ((PLAIN + "mistakes.py", "two FLOPs", "2 FLOPs"), set()),
    "a formula": (
        ("kernels/gemm_tiling/cost.py", "def tile_loads(", "def tile_loads(_=0, *, "),
        {GEMM, REUSE},
    ),
    "a comment": (("topics/gemm_tiling/shared.py", "a few programs may", "several programs may"), set()),
    "what a topic shares": (
        ("topics/gemm_tiling/shared.py", "OUTSIDE = 0.25", "OUTSIDE = 0.5"),
        {GEMM, REUSE},
    ),
    "another topic": (
        (
            "topics/roofline/layernorm_gelu/question.py",
            '"values",\n            4',
            '"values",\n            5',
        ),
        set(),
    ),
    "another question": ((PLAIN + "question.py", "Call((64, 64))", "Call((64, 32))"), {REUSE}),
    "a hidden case": ((OWN + "cases.py", "no stride of 1", "not one stride of 1"), {GEMM}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_judges_anew_what_it_fingerprint_and_nothing_else(key, name):
    change, changed = CHANGES[name]
    assert {question for question in (GEMM, REUSE) if key(question) != key(question, change)} == changed


def test_a_question_that_no_topic_holds_is_named():
    with pytest.raises(LookupError, match="got 'gemm_tiling.nothing'"):
        fingerprint.code_of("gemm_tiling.nothing")


def test_what_a_question_imports_is_found_and_no_words_of_the_report():
    found = {path.relative_to(fingerprint.ROOT).as_posix() for path in fingerprint.files_of(GEMM)}
    assert {"kernels/gemm_tiling/cost.py", "kernels/gemm_tiling/reference.py"} <= found
    assert "grader/topics/gemm_tiling/shared.py" in found
    assert not [name for name in found if "mistakes" in name or "reuse/" in name]

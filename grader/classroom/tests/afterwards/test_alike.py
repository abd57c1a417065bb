"""Copies are named whatever their names, comments and spaces; right answers that people wrote apart are not."""

import io
import keyword
import re
import tokenize

import nbformat
import pytest

from grader import questions
from grader.classroom.preprocessors import answers_to_checks
from grader.classroom.report import alike, tokens
from grader.classroom.report.alike import Written
from grader.paths import ROOT
from grader.proofs import honest

KEPT = {"tl", "triton", "jit", "cdiv", "range", "min", "max", "len", "int", "float", "p", "launch", "self"}


def disguised(source: str) -> str:
    """The same program under other names, with comments and other spaces."""
    out, names = [], {}
    for one in tokenize.generate_tokens(io.StringIO(source).readline):
        text = one.string
        chosen = one.type == tokenize.NAME and not keyword.iskeyword(text) and text not in KEPT
        if chosen and not re.search(r"\.\s*$", one.line[: one.start[1]]):
            text = names.setdefault(text, f"v{len(names)}")
        out.append((one.type, text))
    return "# all mine\n" + tokenize.untokenize(out)


def stub(question: str) -> str:
    for path in sorted((ROOT / "labs").glob("*/*.ipynb")):
        for name, source in answers_to_checks(nbformat.read(path, as_version=4)).values():
            if name == question:
                return source
    raise KeyError(question)


def written_apart(question) -> list[str]:
    """Forms that are whole cells of their own, not edits of the solution."""
    forms = honest.forms(question)
    return [
        name for name, (_, change) in forms.items() if isinstance(change, str) or name == honest.AS_IT_STANDS
    ]


LAB_KERNELS = (
    "gemm_tiling.tiled_gemm",
    "flash_attention.forward",
    "flash_attention.backward",
    "sampling_fusion.draw",
    "sampling_fusion.filtered_draw",
)


@pytest.mark.parametrize("name", LAB_KERNELS)
def test_right_answers_written_apart_are_not_named(name):
    question = questions.find(name)
    apart = [Written(form, honest.source(question, form)) for form in written_apart(question)]
    assert len(apart) > 1
    assert alike.find(apart, stub(name)) == alike.Alike([], [])


@pytest.mark.parametrize("name", LAB_KERNELS)
def test_a_copy_is_named_however_it_is_disguised(name):
    question = questions.find(name)
    own = honest.source(question, honest.AS_IT_STANDS)
    found = alike.find([Written("ada", own), Written("bob", disguised(own))], stub(name))
    assert found.identical == [["ada", "bob"]]
    assert [(p.one.student, p.other.student, p.share) for p in found.pairs] == [("ada", "bob", 1.0)]
    edits = [form for form in honest.forms(question) if form not in written_apart(question)]
    for form in edits:
        changed = Written("bob", disguised(honest.source(question, form)))
        found = alike.find([Written("ada", own), changed], stub(name))
        assert found.pairs, f"{form}: a copy with a change in it"


def test_what_is_shared_is_marked_and_the_rest_is_not():
    own = honest.source(questions.find("gemm_tiling.tiled_gemm"), honest.AS_IT_STANDS)
    pair = alike.find(
        [Written("a", own + "\nunshared = {1: [2, 3]}\n"), Written("b", disguised(own))], ""
    ).pairs[0]
    source, marks = pair.one.source, pair.marks[0]
    assert all(0 <= start < end <= len(source) for start, end in marks)
    assert all(one[1] <= other[0] for one, other in zip(marks, marks[1:], strict=False))
    marked = "".join(source[start:end] for start, end in marks)
    assert "tl.dot(a, b, acc)" in re.sub(r"\s+", " ", source) and len(marked) > 0.7 * len(own) * 0.7
    assert "{1: [2, 3]}" not in marked


def test_what_was_handed_out_says_nothing():
    given = honest.source(questions.find("gemm_tiling.tiled_gemm"), honest.AS_IT_STANDS)
    assert alike.find([Written("a", given), Written("b", given + "\n# mine\n")], given) == alike.Alike([], [])


def test_what_everybody_writes_weighs_little_and_what_two_share_much():
    usual = (
        "def f(a, b):\n" + "".join(f"    x{n} = a * {n} + b - {n}\n" for n in range(6)) + "    return x1\n"
    )
    rare = (
        "def f(a, b):\n"
        + "".join(f"    y{n} = (b // {n + 50}) % a - {n}\n" for n in range(6))
        + "    return y0\n"
    )
    many = [Written(f"s{n:02}", usual) for n in range(20)]
    found = alike.find([*many, Written("x", rare), Written("y", rare)], "")
    assert [(p.one.student, p.other.student) for p in found.pairs] == [("x", "y")]
    assert [len(group) for group in found.identical] == [2, 20]


def test_of_many_that_are_the_same_two_are_shown():
    own = honest.source(questions.find("gemm_tiling.tiled_gemm"), honest.AS_IT_STANDS)
    ring = [Written(name, own) for name in ("a", "b", "c", "d")]
    found = alike.find(
        [*ring, Written("e", own.replace("acc = tl.dot(a, b, acc)", "acc += tl.dot(a, b)"))], ""
    )
    assert found.identical == [["a", "b", "c", "d"]]
    assert [(p.one.student, p.other.student) for p in found.pairs] == [("a", "b"), ("a", "e")]


def test_short_answers_and_broken_ones():
    same = "def reuse(bm, bn):\n    return 2 * bm * bn / (bm + bn)\n"
    assert alike.find(
        [Written("a", same), Written("b", same)], "def reuse(bm, bn):\n    raise"
    ) == alike.Alike([], [])
    broken = "def f(:\n" + " ".join(f"word{n}" for n in range(60)) + '\n"""'
    assert alike.find([Written("a", broken), Written("b", broken)], "").identical == [["a", "b"]]


def test_prose_is_compared_by_its_words():
    text = "Because both sides of a tile add up below the line while above it they multiply, " * 3
    found = alike.find(
        [Written("a", text, "markdown"), Written("b", text.upper().replace(",", " ;"), "markdown")], ""
    )
    assert found.identical == [["a", "b"]]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    (
        ("x = a + b", "y = c + d  # sum", True),
        ("x = a + a", "x = a + b", False),
        ('"""Says."""\nx = 1', "x = 1", True),
        ("x = f.load(1)", "x = f.store(1)", False),
        ("x = 'a'", 'x = "b"', True),
        ("if a:\n  b()", "if a:\n        b()\n", True),
    ),
)
def test_form_of_tokens(one, other, same):
    read = [tokens.grams(found := tokens.of_code(text), len(found)) for text in (one, other)]
    assert (read[0] == read[1]) is same

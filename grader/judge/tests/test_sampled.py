"""What drawn programs of a case say about where to look."""

from dataclasses import replace

from grader import questions
from grader.judge.sampled import together


def test_dtypes_and_strides_are_named_where_they_differ_from_the_first_case():
    question = questions.find("gemm_tiling.tiled_gemm")
    plain = question.public[0]
    assert together(question, replace(plain, sizes={})) == "the sizes of this case"
    both = replace(plain, dtype="bf16" if plain.dtype != "bf16" else "fp16", layout={"a": "transposed"})
    assert together(question, both) == (
        "the sizes of this case, its dtypes and its strides, which count together"
    )

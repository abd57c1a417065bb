"""What Python and Triton's front end say in their own words is said in a learner's."""

import pytest

from grader.jail.inside.front_end_words import said_anew


@pytest.mark.parametrize(
    "text, said",
    [
        ("Did you forget to add @triton.jit ? (`_semantic` argument must be provided outside of JIT functions.)", "tl.load(x_ptr + offs)"),
        ("'range' object has no attribute 'type'", "tl.arange(0, BLOCK)"),
        (
            "Loop-carried variable h has initial type int32 but is re-assigned to <['64', '16'], fp32> in loop! Please",
            "h begins as a 32-bit integer and becomes a block of 64 x 16 in fp32 in the loop",
        ),
        ("NameError('offz is not defined')", "NameError: offz is not defined"),
        ("AssertionError(\"K must be a multiple of 16\")", "K must be a multiple of 16"),
        ("something else entirely", "something else entirely"),
    ],
)  # fmt: skip
def test_a_sentence_is_said_anew(text, said):
    assert said in said_anew(text) and "AssertionError(" not in said_anew(text)

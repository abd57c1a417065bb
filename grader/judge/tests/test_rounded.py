"""Addresses made of a division of whole numbers as floats, from the text of a kernel."""

import pytest

from grader.judge import rounded

TEXT = """
    "tt.func"() ({
    ^bb0(%0: !tt.ptr<f32>, %1: i32, %9: f32):
    %2 = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32 loc("<answer>":4:1)
    %3 = "arith.sitofp"(%2) : (i32) -> f32 loc("<answer>":5:1)
    %4 = "arith.divf"(NUMBER, %9) : (f32, f32) -> f32 loc("<answer>":6:1)
    %5 = "arith.fptosi"(%4) : (f32) -> i32 loc("<answer>":7:1)
    %6 = "arith.muli"(PLACE, %1) : (i32, i32) -> i32 loc("<answer>":8:1)
    %7 = "tt.addptr"(%0, %6) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32> loc("<answer>":9:1)
    %8 = "tt.load"(%7) <{cache = 1 : i32}> : (!tt.ptr<f32>) -> f32 loc("<answer>":9:1)
"""


@pytest.mark.parametrize(
    "text, found",
    [
        (TEXT.replace("NUMBER", "%3").replace("PLACE", "%5"), [6]),
        (TEXT.replace("NUMBER", "%3").replace("PLACE", "%2"), []),  # the quotient makes no address
        (TEXT.replace("NUMBER", "%9").replace("PLACE", "%5"), []),  # no whole number was divided
        (
            TEXT.replace("NUMBER", "%3").replace("PLACE", "%5").replace("arith.divf", "tt.precise_divf"),
            [],
        ),
    ],
)
def test_an_address_of_a_quotient_that_a_gpu_rounds_otherwise_is_found(text, found):
    assert rounded.lines(text) == found

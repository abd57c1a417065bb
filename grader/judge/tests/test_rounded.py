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


COMPARED = """
    "tt.func"() ({
    ^bb0(%0: !tt.ptr<f32>, %1: i32):
    %2 = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32> loc("<answer>":4:1)
    %3 = "arith.sitofp"(%2) : (tensor<64xi32>) -> tensor<64xf32> loc("<answer>":5:1)
    %4 = "arith.sitofp"(%1) : (i32) -> f32 loc("<answer>":5:1)
    %5 = "tt.splat"(%4) : (f32) -> tensor<64xf32> loc("<answer>":5:1)
    %6 = "tt.splat"(%0) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>> loc("<answer>":6:1)
    %7 = "tt.load"(%6) <{cache = 1 : i32}> : (tensor<64x!tt.ptr<f32>>) -> tensor<64xf32> loc("<answer>":6:1)
    %8 = "arith.divf"(DIVIDED, %5) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> loc("<answer>":7:1)
    %9 = "arith.cmpf"(%8, %7) <{predicate = 4 : i64}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1> loc("<answer>":8:1)
"""


@pytest.mark.parametrize("divided, found", [("%3", [7]), ("%7", [])])
def test_a_quotient_of_whole_numbers_that_is_compared_is_found(divided, found):
    """A loaded number over a size is a mean, and not exact anyway."""
    assert rounded.lines(COMPARED.replace("DIVIDED", divided)) == found

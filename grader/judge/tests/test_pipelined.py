"""Loops whose turns overlap, with loads of what an earlier turn stores."""

import pytest

from grader.judge import pipelined

LOOP = """
    "tt.func"() ({
    ^bb0(%0: !tt.ptr<f32>, %1: !tt.ptr<f32>, %2: i32):
    %3 = "scf.for"(%2, %2, %2, %2) ({
    ^bb1(%4: i32, %5: i32):
      %6 = "tt.addptr"(%0, %4) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32> loc("<answer>":3:1)
      %7 = "tt.load"(%6) <{cache = 1 : i32}> : (!tt.ptr<f32>) -> f32 loc("<answer>":4:1)
      %8 = "tt.addptr"(TO, %4) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32> loc("<answer>":5:1)
      "tt.store"(%8, %7) <{cache = 1 : i32}> : (!tt.ptr<f32>, f32) -> () loc("<answer>":6:1)
      "scf.yield"(%5) : (i32) -> () loc("<answer>":2:1)
    }) {STAGES} : (i32, i32, i32, i32) -> i32 loc("<answer>":2:1)
"""


@pytest.mark.parametrize(
    "to, stages, found",
    [
        ("%0", "{tt.num_stages = 3 : i32}", [4]),
        ("%1", "{tt.num_stages = 3 : i32}", []),
        ("%0", "{tt.num_stages = 1 : i32}", []),
        ("%0", "", []),
    ],
)
def test_a_load_of_what_a_pipelined_loop_stores_is_found(to, stages, found):
    assert pipelined.lines(LOOP.replace("TO", to).replace(" {STAGES}", f" {stages}")) == found

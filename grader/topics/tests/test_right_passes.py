"""No hidden case refuses a right answer: each is computed in fp32 and in tiles, as a GPU does, for fresh seeds."""

from functools import partial

import numpy as np
import pytest

from grader import questions
from grader.judge.compare import difference
from grader.proofs.necessity import Drawn
from grader.topics.tests import right_in_fp32 as right

RIGHT = {
    "gemm_tiling.tiled_gemm": (right.gemm, partial(right.gemm, block=16), partial(right.gemm, block=128)),
    "gemm_tiling.block_scaled_gemm": (right.block_scaled, partial(right.block_scaled, lost_bits=1)),
    "roofline.layernorm_gelu": (right.norm,),
    "flash_attention.forward": (
        right.attention,
        partial(right.attention, block=16),
        right.attention_of_scaled_queries,
    ),
    "flash_attention.split_decode": (right.attention, right.attention_of_scaled_queries),
    "flash_attention.window_softcap": (right.attention, right.attention_of_scaled_queries),
    "flash_attention.backward": (right.gradients,),
    "moe_routing.grouped_gemm": (right.gated, partial(right.gated, block=16)),
    "moe_routing.fused_combine": (right.combined,),
    "next_bottleneck.residual_norm": (right.residual_norm,),
    "next_bottleneck.rotary_cache": (right.rotary_cache,),
    **{
        f"sampling_fusion.{name}": (right.draws,)
        for name in ("draw", "masked_draw", "filtered_draw", "grouped_draw")
    },
}


@pytest.mark.parametrize("seed", [20, pytest.param(21, marks=pytest.mark.slow)])
@pytest.mark.parametrize("question, way", [(q, i) for q, ways in RIGHT.items() for i in range(len(ways))])
def test_a_right_answer_passes(question, way, seed):
    drawn = Drawn(questions.find(question), seed)
    for i in range(len(drawn.cases)):
        inputs, case, want, allowed = drawn.prepared(i)
        with np.errstate(all="ignore"):
            got = RIGHT[question][way](inputs, case)
        if drawn.question.agree:
            assert drawn.question.agree(inputs, case, got, want) == "", case
            continue
        for name in want:
            worst = difference(name, got[name], want[name], allowed[name])
            assert worst is None, f"{case}: {worst.sentence()}"

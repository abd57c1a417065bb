"""The row that is shown is the row of the reference, rule by rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.sampling_fusion.cost_distribution import distribution, draw
from kernels.sampling_fusion.reference import Ranking, kept

LOGITS = st.lists(st.sampled_from([-3.0, -1.0, 0.0, 0.5, 1.0, 2.5, 4.0]), min_size=1, max_size=12)


@given(
    LOGITS,
    st.sampled_from([0.3, 1.0, 1.7]),
    st.integers(0, 12),
    st.sampled_from([0.13, 0.57, 0.91, 1.0]),
    st.sampled_from([0.0, 0.07, 0.33]),
)
def test_what_is_kept_and_with_what_share(logits, temperature, top_k, top_p, min_p):
    ours = distribution(logits, temperature, top_k, top_p, min_p)
    ranking = Ranking.of(np.array(logits), temperature)
    keep = kept(ranking, top_k, top_p, min_p)
    assert [one.token for one in ours] == ranking.token.tolist()
    assert [not one.cut_by for one in ours] == keep.tolist()
    share = np.where(keep, ranking.weight, 0) / ranking.weight[keep].sum()
    np.testing.assert_allclose([one.final for one in ours], share, atol=1e-12)
    np.testing.assert_allclose(
        [one.tempered for one in ours], ranking.weight / ranking.weight.sum(), atol=1e-12
    )


def test_the_first_rule_that_drops_a_token_is_named():
    logits = [float(np.log(p)) for p in (0.5, 0.3, 0.15, 0.04, 0.01)]
    assert [one.cut_by for one in distribution(logits, top_k=4, top_p=0.9)] == ["", "", "", "top-p", "top-k"]
    assert [one.cut_by for one in distribution(logits, min_p=0.25)] == ["", "", "", "min-p", "min-p"]
    assert [one.cut_by for one in distribution(logits, temperature=0)] == [""] + ["greedy"] * 4


@given(LOGITS, st.floats(0, 1))
def test_a_draw_is_where_u_falls_in_the_running_sum(logits, u):
    ours = distribution(logits, top_k=3)
    rank = draw(ours, u)
    before = sum(one.final for one in ours[:rank])
    assert not ours[rank].cut_by
    assert before <= u + 1e-12 and (u <= before + ours[rank].final + 1e-12)


@pytest.mark.parametrize(
    "wrong", [{"top_p": 0}, {"top_p": 1.2}, {"min_p": -1}, {"top_k": 1.5}, {"temperature": -1}]
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be .*, got "):
        distribution([1.0, 2.0], **wrong)

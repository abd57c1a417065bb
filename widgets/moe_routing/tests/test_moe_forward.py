"""The six steps against numpy, and the picture against the steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.moe_routing import cost
from widgets.registry import find

FORWARD = find("moe_forward")
STATES = st.fixed_dictionaries(
    {"tokens": st.integers(2, 6), "experts": st.integers(3, 4), "top_k": st.integers(1, 3)}
)


def run(**inputs):
    return FORWARD.run(**FORWARD.inputs({"follow": 0} | inputs))


@given(STATES)
def test_the_layer_is_numpys(inputs):
    r = run(**inputs)
    x, router, mlps = cost.example(inputs["tokens"], inputs["experts"])
    x, logits = np.array(x), np.array(x) @ np.array(router)
    out = np.zeros_like(x)
    for t, row in enumerate(x):
        best = np.argsort(-logits[t], kind="stable")[: inputs["top_k"]]
        weight = np.exp(logits[t, best]) / np.exp(logits[t, best]).sum()
        for w, e in zip(weight, best, strict=True):
            gate = row @ np.array(mlps[e].gate)
            out[t] += w * (
                (gate / (1 + np.exp(-gate)) * (row @ np.array(mlps[e].up))) @ np.array(mlps[e].down)
            )
    np.testing.assert_allclose(r.layer.combined, out, atol=1e-12)
    assert r.largest_difference < 1e-12
    assert r.rows == inputs["tokens"] * inputs["top_k"] == sum(r.layer.loads)


def test_launches_of_the_default_by_hand():
    r = run()
    assert (r.active_experts, r.separate_launches, r.fused_launches) == (4, 2 + 4 * 6 + 1, 5)


@given(STATES)
def test_lines_lead_to_the_token_and_back(inputs):
    """A permuted row starts at its token's row and returns to its slot."""
    r = run(**inputs)
    scenes = FORWARD.scenes(r)
    to = {m["id"]: m for m in scenes[2].marks if m["id"].startswith("to-")}
    back = {m["id"]: m for m in scenes[4].marks if m["id"].startswith("from-")}
    places = {m["id"]: m for m in scenes[4].marks}
    assert len(to) == len(back) == r.rows

    def middle(id: str) -> float:
        return pytest.approx(places[id]["y"] + (places[id]["h"] + 1) / 2, abs=0.02)

    for row, (token, slot) in enumerate(r.layer.order):
        assert to[f"to-{row}"]["y2"] == back[f"from-{row}"]["y"] == middle(f"row-{row}")
        assert to[f"to-{row}"]["y"] == middle(f"x-{token}")
        assert back[f"from-{row}"]["y2"] == middle(f"slot-{token}-{slot}")


@given(STATES)
def test_rows_of_one_expert_lie_side_by_side_and_never_on_another(inputs):
    r = run(**inputs)
    tops = [m["y"] for m in FORWARD.scenes(r)[2].marks if m["t"] == "rect" and m["id"].startswith("row-")]
    assert all(low - high >= 15 for high, low in zip(tops, tops[1:], strict=False))


def test_the_followed_token_is_the_one_that_stands_out():
    r = run(follow=3)
    for scene in FORWARD.scenes(r)[2:]:
        solid = {m["id"] for m in scene.marks if m["t"] == "rect" and m["role"] == "now"}
        own = {f"row-{row}" for row, (token, _) in enumerate(r.layer.order) if token == 3}
        assert own | {"x-3"} <= solid and not {"x-1", "x-2"} & solid
        assert "t3" in scene.caption or "Grouped" in scene.caption


def test_a_token_that_is_not_there():
    with pytest.raises(ValueError, match="follow must be below 2, the number of tokens, got 5; pick another"):
        run(tokens=2, follow=5)

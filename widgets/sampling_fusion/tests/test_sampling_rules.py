"""What is kept and drawn, against the reference sampler."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.sampling_fusion.reference import Ranking, kept
from widgets.registry import find
from widgets.sampling_fusion.sampling_rules import LOGITS, WORDS
from widgets.scene import extent

SAMPLER = find("sampling_rules")
RULES = st.fixed_dictionaries(
    {
        "temperature": st.sampled_from([0.1, 0.8, 1.0, 1.7]),
        "top_k": st.integers(1, 12),
        "top_p": st.sampled_from([0.1, 0.5, 0.9, 1.0]),
        "min_p": st.sampled_from([0.0, 0.1, 0.5]),
        "u": st.sampled_from([0.0, 0.33, 0.6, 1.0]),
    }
)


def run(**inputs):
    return SAMPLER.run(**SAMPLER.inputs(inputs))


@given(RULES)
def test_the_rules_are_the_references(inputs):
    r = run(**inputs)
    ranking = Ranking.of(np.array(LOGITS), inputs["temperature"])
    keep = kept(ranking, inputs["top_k"], inputs["top_p"], inputs["min_p"])
    assert [not one.cut_by for one in r.row] == keep.tolist() and r.kept == keep.sum()
    cdf = np.cumsum(np.where(keep, ranking.weight, 0)) / ranking.weight[keep].sum()
    assert cdf[r.drawn] >= inputs["u"] - 1e-9 and keep[r.drawn]
    assert sum(one.final for one in r.row) == pytest.approx(1)


@given(RULES)
def test_bars_hatch_exactly_what_is_dropped(inputs):
    r = run(**inputs)
    marks = {m["id"]: m for m in SAMPLER.scene(r).marks}
    for i, one in enumerate(r.row):
        kept_role = "now" if i == r.drawn else "useful"
        assert marks[f"bar-{i}"]["role"] == ("dropped" if one.cut_by else kept_role)
        assert marks[f"word-{i}"]["s"] == WORDS[one.token]
    assert WORDS[r.row[r.drawn].token] in SAMPLER.scene(r).figures[2].label


def test_greedy_keeps_the_best_alone():
    r = run(temperature=0.0, u=1.0)
    assert (r.kept, r.drawn, r.row[0].final) == (1, 0, 1.0)


@given(RULES)
def test_the_figures_add_up(inputs):
    r = run(**inputs)
    assert r.cut_by_top_k + r.cut_by_top_p + r.cut_by_min_p + r.kept == len(r.row)
    assert r.kept_share + r.lost_share == pytest.approx(1)
    assert r.kept_share == pytest.approx(sum(one.tempered for one in r.row if not one.cut_by))


@pytest.mark.parametrize("width", [720, 340])
@pytest.mark.parametrize("state", [{}, {"temperature": 0.0}, {"temperature": 2.0}])
def test_words_neither_touch_nor_stand_on_a_line(width, state):
    marks = SAMPLER.scene(run(**state), width=width).marks
    fates = [extent(m) for m in marks if m["id"].startswith("fate-")]
    assert all(a[2] < b[0] for a, b in zip(fates, fates[1:], strict=False))
    named = {m["id"]: m for m in marks}
    if "cut-p-name" in named:
        left, _, right, _ = extent(named["cut-p-name"])
        assert not left < named["cut-k"]["x"] < right


@given(RULES)
def test_the_number_over_a_bar_is_its_height_and_the_one_below_its_chance(inputs):
    r = run(**inputs)
    marks = {m["id"]: m for m in SAMPLER.scene(r).marks}
    whole = marks["bar-0"]["h"] / r.row[0].tempered
    for i, one in enumerate(r.row):
        assert float(marks[f"share-{i}"]["s"].strip("<%")) == pytest.approx(
            100 * marks[f"bar-{i}"]["h"] / whole, abs=0.1
        )
        below = marks[f"fate-{i}"]["s"]
        assert below == one.cut_by or float(below.strip("<%")) == pytest.approx(100 * one.final, abs=0.1)
        assert "0.0%" not in (marks[f"share-{i}"]["s"], below), "what may be drawn is not said to be nothing"
    assert marks["chance-name"]["s"] == "chance"


@given(RULES)
def test_a_phone_writes_each_chance_or_the_letter_of_the_rule(inputs):
    r = run(**inputs)
    marks = {m["id"]: m for m in SAMPLER.scene(r, width=340).marks}
    for i, one in enumerate(r.row):
        said = marks[f"fate-{i}"]["s"]
        if one.cut_by in ("top-k", "top-p", "min-p"):
            assert said == one.cut_by.removeprefix("top-")[0]
        else:
            assert float(said.strip("<")) == pytest.approx(100 * one.final, abs=1)
    assert all(rule in marks["chances-key"]["s"] for rule in ("top-k", "top-p", "min-p"))


@given(RULES)
def test_the_best_token_s_bar_is_pulled_by_the_temperature(inputs):
    marks = {m["id"]: m for m in SAMPLER.scene(run(**inputs)).marks}
    assert marks["pull-heat"]["y"] == pytest.approx(marks["bar-0"]["y"], abs=0.1)
    if marks["pull-heat"]["t"] == "handle":
        (pull,) = marks["pull-heat"]["drag"]
        assert pull["input"] == "temperature" and sorted(pull["at"]) == pull["at"], "hotter is lower"


@given(RULES)
def test_the_draw_falls_into_the_drawn_token_s_share_of_the_strip(inputs):
    r = run(**inputs)
    for width in (720, 340):
        marks = {m["id"]: m for m in SAMPLER.scene(r, width=width).marks}
        pieces = [marks.get(f"draw-{i}") for i in range(len(r.row))]
        assert [piece is not None for piece in pieces] == [one.final > 0 for one in r.row]
        mine = pieces[r.drawn]
        assert (
            mine["role"] == "now" and mine["x"] - 0.1 <= marks["draw-u"]["x"] <= mine["x"] + mine["w"] + 1.1
        )
        whole = 580 if width == 720 else 310
        for one, piece in zip(r.row, pieces, strict=True):
            assert not piece or piece["w"] == pytest.approx(max(0, one.final * whole - 1), abs=0.02)


@given(RULES)
def test_the_knob_of_top_p_stands_after_the_tokens_that_it_leaves(inputs):
    r = run(**inputs)
    marks = {m["id"]: m for m in SAMPLER.scene(r).marks}
    left = sum(one.cut_by in ("", "min-p") for one in r.row)
    bars = [marks[f"bar-{i}"] for i in range(len(r.row))]
    middles = [bar["x"] + bar["w"] / 2 for bar in bars]
    assert sum(middle < marks["pull-p"]["x"] for middle in middles) == left
    (pull,) = marks["pull-p"].get("drag", [{"at": [marks["pull-p"]["x"]]}])
    assert sorted(pull["at"]) == pull["at"], "a larger top-p never leaves fewer"


def test_at_temperature_0_no_rule_is_drawn():
    marks = {m["id"] for m in SAMPLER.scene(run(temperature=0.0)).marks}
    assert not [id for id in marks if id.startswith(("cut-", "pull-k", "pull-p", "pull-min"))]


def test_the_question_s_shares_are_the_opening_state_s():
    r, asked = run(), SAMPLER.prediction.question
    assert ", ".join(f"{100 * one.tempered:.1f}" for one in r.row[:6]) in asked
    assert r.cut_by_top_k and r.cut_by_top_p and r.cut_by_min_p, "each rule drops something"


def test_the_takeaway_counts_each_rule_that_cuts():
    said = SAMPLER.scene(run()).takeaway
    assert said == "Top-k drops 4, top-p 3 and min-p 1 of 12 tokens, which held 13.4% of the probability."
    assert "No rule cuts" in SAMPLER.scene(run(top_k=12, top_p=1.0, min_p=0.0)).takeaway

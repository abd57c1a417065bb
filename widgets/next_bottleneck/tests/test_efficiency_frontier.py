"""The frontier: configurations A and B of the source, and what holds for a third one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.registry import find
from widgets.scene import NARROW, WIDE

FRONTIER = find("efficiency_frontier")


def serve(**inputs):
    return FRONTIER.run(**FRONTIER.inputs(inputs))


def test_configuration_a():
    """50 tokens/s, 20 ms, 8 GPUs, $0.12 for 1,000 tokens: $2.70 a GPU hour."""
    a = serve().a
    assert (a.tokens_s, a.gpus, a.users, a.between_tokens_s) == (pytest.approx(50), 8, 1, 0.020)
    assert a.usd_per_1k == pytest.approx(0.12)


def test_configuration_b_and_what_does_not_add_up():
    """60 times cheaper, 6 times later. Its 4,000 tokens/s a GPU are not 64 users at 120 ms, nor is its price."""
    r = serve()
    assert (r.b.gpus, r.b.users, r.b.between_tokens_s, r.b.bits) == (4, 64, 0.120, 4)
    assert r.reported_cost_ratio == pytest.approx(60) and r.latency_ratio == pytest.approx(6)
    assert r.reported_b_tokens_s == 16000 and r.b.tokens_s == pytest.approx(533, rel=0.001)
    assert r.cost_ratio == pytest.approx(21.3, rel=0.01)


def test_each_application_has_its_own_best():
    assert serve(application="chatbot").best == "yours"
    assert serve(application="batch").best == "B: throughput"
    assert serve(application="medical").best == "A: latency"


@given(st.sampled_from([1, 7, 49, 64]), st.sampled_from([4, 10, 100]), st.sampled_from([1, 4, 16]))
def test_cost_is_gpus_over_tokens(users, reached, gpus):
    r = serve(users=users, reached=reached, gpus=gpus)
    assert r.yours.between_tokens_s == pytest.approx(r.floor_s / reached * 100)
    assert r.yours.tokens_s == pytest.approx(users / r.yours.between_tokens_s)
    assert r.yours.usd_per_1k == pytest.approx(gpus * 2.7 / 3600 / r.yours.tokens_s * 1000)
    assert r.yours.beaten == any(
        p.between_tokens_s <= r.yours.between_tokens_s
        and p.usd_per_1k <= r.yours.usd_per_1k
        and (p.between_tokens_s, p.usd_per_1k) != (r.yours.between_tokens_s, r.yours.usd_per_1k)
        for p in (r.a, r.b)
    )


def knob(**inputs):
    r = serve(**inputs)
    return next(m for m in FRONTIER.scene(r).marks if m["id"] == "yours-dot")


@pytest.mark.parametrize("users", [1, 8, 64, 256])
def test_the_knob_stops_at_the_frontier(users):
    """At the whole roof it stands on the curve, and no halt of its lies to the left of that."""
    along, _ = knob(users=users, reached=10)["drag"]
    best = next(m for m in FRONTIER.scene(serve(users=users, reached=10)).marks if m["id"] == "possible")
    assert min(along["at"]) == best["x"] == knob(users=users, reached=100)["x"]
    assert knob(users=users, reached=100)["y"] == best["y"]


def test_the_curve_has_a_knee():
    """One reading of 4-bit weights serves 73 users; past them a token takes longer and gets no cheaper."""
    edge = serve().edge
    assert [one.between_tokens_s for one in edge] == sorted(one.between_tokens_s for one in edge)
    before = [one for one in edge if one.users <= serve().sharing_users]
    past = [one for one in edge if one.users > serve().sharing_users]
    costs = [one.usd_per_1k for one in before]
    assert costs == sorted(costs, reverse=True) and costs[0] > 10 * costs[-1]
    assert all(one.usd_per_1k == pytest.approx(past[0].usd_per_1k) for one in past) and len(past) > 3
    assert "Past the knee" in FRONTIER.scene(serve(users=256, reached=100)).takeaway
    assert "only trade" in FRONTIER.scene(serve(users=32, reached=100)).takeaway


def test_the_sources_points_lie_far_inside():
    """A at 26% of what 8 H100 could do for one user, B at 5% of what 4 could do for its 64."""
    r = serve()
    assert r.a.roof_share == pytest.approx(0.26, abs=0.005)
    assert r.b.roof_share == pytest.approx(0.048, abs=0.001)


def test_best_in_all_five_is_said_only_when_it_is():
    wide = serve(users=64, reached=50, bits=16, gpus=16)
    assert wide.best_in_all == "yours" and "best in all five" in FRONTIER.scene(wide).takeaway
    assert serve().best_in_all == "" and "best in all five" not in FRONTIER.scene(serve()).takeaway


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="GPUs must be enough for 16-bit weights of .*, got 1; take more"):
        serve(bits=16, gpus=1)


def test_users_whose_caches_do_not_fit_are_refused_and_the_knob_stops_before():
    with pytest.raises(ValueError, match="Users at once must be at most 66, .*, got 84; take fewer"):
        serve(users=84, gpus=1)
    _, across = knob(gpus=1)["drag"]
    assert max(across["to"]) == 64 and len(across["to"]) == len(across["at"])


def test_a_chatbot_that_is_too_late_is_said():
    assert "too late" in FRONTIER.scene(serve(reached=5)).warning
    assert not FRONTIER.scene(serve(reached=5, application="batch")).warning


def test_every_key_figure_follows_the_state():
    """None says the same in all presets, and A against B, which never changes, is next to B."""
    seen = [
        [one.value for one in FRONTIER.scene(serve(**given)).figures] for given in FRONTIER.presets.values()
    ]
    assert all(len(set(values)) > 1 for values in zip(*seen, strict=True))
    assert all(len(set(values)) > 2 for values in list(zip(*seen, strict=True))[:3])
    assert any(
        m.get("s", "").endswith(("21.3× cheaper than A", "21.3× below A"))
        for m in FRONTIER.scene(serve()).marks
    )


def test_the_edge_says_whose_it_is_and_no_sentence_contradicts_itself():
    for state in (*FRONTIER.presets.values(), {"gpus": 16}):
        r = FRONTIER.run(**FRONTIER.inputs(state))
        scene = FRONTIER.scene(r)
        assert next(m["s"] for m in scene.marks if m["id"] == "frontier-name") == "your frontier"
        keys = dict(scene.legend)
        assert str(r.yours.gpus) in keys["ink line"] and str(r.most_users) in keys["idle"]
        assert "yours is." not in scene.takeaway


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize(
    "state", [*FRONTIER.presets.values(), {"gpus": 1}, {"gpus": 16, "bits": 16}], ids=str
)
def test_the_knee_is_the_cheapest_place_that_serves_and_no_one_there_waits_in_vain(state, width):
    r = serve(**state)
    late = 0.05 if r.application == "chatbot" else float("inf")
    serving = [one for one in r.edge if one.between_tokens_s <= late]
    assert r.knee in serving and all(one.usd_per_1k >= r.knee.usd_per_1k * (1 - 1e-9) for one in serving)
    fewer = [one for one in serving if one.users < r.knee.users]
    assert all(one.usd_per_1k > r.knee.usd_per_1k for one in fewer), "with fewer users a token costs more"
    scene = FRONTIER.scene(r, width=width)
    marks = {m["id"]: m for m in scene.marks}
    edge = marks["edge"]["p"]
    assert (marks["knee"]["x"], marks["knee"]["y"]) in zip(edge[::2], edge[1::2], strict=True), (
        "on the frontier"
    )
    assert (
        scene.figures[3].value == r.knee.users and scene.figures[3].role == marks["knee"]["role"] == "useful"
    )
    assert not any(id.startswith("dim") for id in marks), "the table is folded"


def test_b_made_perfect_is_tied_to_b():
    """B on its frontier keeps its users, GPUs and bits, and each token comes sooner and costs less by one factor."""
    state = FRONTIER.presets["B on its frontier"]
    r = serve(**state)
    scene = FRONTIER.scene(r)
    sooner, cheaper = r.b.between_tokens_s / r.yours.between_tokens_s, r.b.usd_per_1k / r.yours.usd_per_1k
    assert r.b_made_perfect and sooner == pytest.approx(cheaper) and f"{sooner:.1f}×" in scene.takeaway
    assert "b-gains" in {m["id"] for m in scene.marks}
    assert (
        not serve(**{**state, "users": 32}).b_made_perfect
        and not serve(**{**state, "reached": 50}).b_made_perfect
    )


def test_a_stricter_chat_stands_further_up_the_frontier():
    """The knob on the dashed line: earlier tokens mean fewer users, and each pays more, down to none in time."""
    seen = [serve(late_ms=ms) for ms in (50, 6, 5, 4, 3)]
    users, usd = [r.knee.users for r in seen], [r.knee.usd_per_1k for r in seen]
    assert users == sorted(users, reverse=True) and usd == sorted(usd) and users[0] > users[1] > users[-1]
    assert all(r.knee.between_tokens_s <= r.late_s for r in seen[:-1])
    scene = FRONTIER.scene(serve(late_ms=4))
    marks = {m["id"]: m for m in scene.marks}
    assert marks["pull-late"]["x"] == marks["limit"]["x"] == min(marks["late"]["p"][::2])
    assert "None of the three is in time" in scene.takeaway and "too late" in scene.warning
    assert "pull-late" not in {m["id"] for m in FRONTIER.scene(serve(application="batch")).marks}


def test_the_line_to_the_frontier_says_how_far_yours_is_off():
    marks = {m["id"]: m for m in FRONTIER.scene(serve()).marks}
    assert marks["off"]["s"] == "10× off" and serve().yours.roof_share == pytest.approx(0.1)
    assert "off" not in {m["id"] for m in FRONTIER.scene(serve(reached=100)).marks}

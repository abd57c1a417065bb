"""Rows that a dispatch sends, against sets counted by hand and against the formula for many tokens."""

import random

import pytest

from kernels.expert_load_balance import cost


def drawn(tokens: int, experts: int, top_k: int, seed: int = 0) -> list[list[int]]:
    draw = random.Random(seed)
    return [draw.sample(range(experts), top_k) for _ in range(tokens)]


def test_a_token_by_hand():
    """Two nodes of two ranks, two experts each; rank 0 holds 0 and 1, its node's rank 1 holds 2 and 3."""
    one = [[0, 2, 3, 4, 6, 7]]
    counted = {
        way: [(s.source, s.target, s.over, s.experts) for s in cost.sends(one, 2, 2, way)]
        for way in cost.WAYS
    }
    assert counted["pair"] == [
        (0, 1, "nvlink", (2,)),
        (0, 1, "nvlink", (3,)),
        (0, 2, "network", (4,)),
        (0, 3, "network", (6,)),
        (0, 3, "network", (7,)),
    ]
    assert counted["rank"] == [(0, 1, "nvlink", (2, 3)), (0, 2, "network", (4,)), (0, 3, "network", (6, 7))]
    assert counted["node"] == [(0, 1, "nvlink", (2, 3)), (0, 2, "network", (4,)), (2, 3, "nvlink", (6, 7))]


@pytest.mark.parametrize("home", [0, 5])
@pytest.mark.parametrize("way", cost.WAYS)
def test_every_expert_away_from_home_is_served_once_and_rows_are_counted(way, home):
    topk_ids = drawn(50, 64, 8)
    rows = cost.sends(topk_ids, 4, 4, way, home)
    for token, experts in enumerate(topk_ids):
        served = sorted(e for row in rows if row.token == token for e in row.experts)
        assert served == sorted(e for e in experts if e // 4 != home)
    for row in rows:
        assert (row.over == "network") == (row.source // 4 != row.target // 4)
    across = [row for row in rows if row.over == "network"]
    places = {"pair": lambda e: e, "rank": lambda e: e // 4, "node": lambda e: e // 16}[way]
    wanted = sum(len({places(e) for e in experts if e // 16 != home // 4}) for experts in topk_ids)
    assert len(across) == wanted


def test_many_tokens_meet_the_formula():
    topk_ids = [[random.Random(i * 8 + j).randrange(64) for j in range(8)] for i in range(4000)]
    rows = cost.sends([sorted(set(one)) for one in topk_ids], 1, 8, "node")
    across = sum(row.over == "network" for row in rows) / len(topk_ids)
    assert across == pytest.approx(cost.places_hit(8, 8) * 7 / 8, rel=0.02)


def test_the_break_even_is_where_copying_takes_what_it_saves():
    hidden, intermediate, rate, link = 7168, 2048, 989e12, 450e9
    for helpers in (1, 3):
        pairs = cost.break_even_pairs(rate, link, 2, helpers)
        busy = pairs * 6 * hidden * intermediate / rate
        copied = helpers * cost.expert_memory_bytes(1, hidden, intermediate) / link
        assert copied + busy / (helpers + 1) == pytest.approx(busy)
    assert cost.break_even_pairs(rate, link) == pytest.approx(2 * rate / link)


def test_copies_cost_their_weights_and_leave_each_rank_a_share():
    found = cost.copied(2000, 989e12, 450e9, 7168, 2048, 2, helpers=3)
    assert found.kept_s == pytest.approx(2000 * 6 * 7168 * 2048 / 989e12)
    assert found.sent_s == pytest.approx(3 * 3 * 7168 * 2048 * 2 / 450e9)
    assert found.copied_s == pytest.approx(found.sent_s + found.kept_s / 4)
    even = cost.copied(cost.break_even_pairs(989e12, 50e9, 1, 3), 989e12, 50e9, 7168, 2048, 1, 3)
    assert even.copied_s == pytest.approx(even.kept_s)


def test_an_unknown_way_is_refused():
    with pytest.raises(ValueError, match="way must be one of"):
        cost.sends([[0]], 1, 1, "machine")

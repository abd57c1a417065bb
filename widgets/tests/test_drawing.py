"""Numbers, scales, axes and bars."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets import charts, scene, units
from widgets.tests import rules

FINITE = st.floats(-1e12, 1e12)


@pytest.mark.parametrize(
    "shown, text",
    [
        (units.number(1365.33), "1,365"),
        (units.number(0.051249), "0.0512"),
        (units.number(64.0), "64"),
        (units.number(999.6), "1,000"),
        (units.number(-2.5), "-2.5"),
        (units.number(0), "0"),
        (units.percent(0.8214), "82.1%"),
        (units.times(2.678), "2.68×"),
        (units.si(1.374e11, "FLOP"), "137\u202fGFLOP"),
        (units.si(999.7e6, "B"), "1\u202fGB"),
        (units.si_bytes(67_108_864), "67.1\u202fMB"),
        (units.binary_bytes(67_108_864), "64\u202fMiB"),
        (units.binary_bytes(98_304), "96\u202fKiB"),
        (units.seconds(8.33e-3), "8.33\u202fms"),
        (units.seconds(5e-6), "5\u202fµs"),
        (units.seconds(0), "0\u202fs"),
        (units.seconds(36.4e-9), "36.4\u202fns"),
        (units.si(0, "B"), "0\u202fB"),
    ],
)
def test_numbers_read_as_people_write_them(shown, text):
    assert shown == text


@given(st.floats(1e-9, 1e17))
def test_three_digits_are_never_off_by_more_than_half_a_percent(value):
    text = units.number(value).replace(",", "")
    assert float(text) == pytest.approx(value, rel=0.0051)


@given(FINITE, st.floats(1e-3, 1e9), FINITE)
def test_a_scale_never_leaves_its_ends(lo, span, value):
    scale = charts.linear(lo, lo + span, 100, 20)
    assert 20 <= scale(value) <= 100
    assert scale(lo) == 100


@given(st.floats(1e-6, 1e6), st.floats(1.1, 1e6), st.floats(0, 1e12))
def test_a_log_scale_never_leaves_its_ends(lo, ratio, value):
    scale = charts.log(lo, lo * ratio, 0, 300)
    assert -1e-9 <= scale(value) <= 300 + 1e-9


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_lie_on_the_scale(lo, span):
    ticks = charts.linear(lo, lo + span, 0, 1).ticks()
    assert 1 <= len(ticks) <= 8
    assert all(lo - 1e-6 * span <= t <= lo + span + 1e-6 * span for t in ticks)


def test_log_ticks_are_powers_of_ten():
    assert charts.log(0.5, 5000, 0, 1).ticks() == [1, 10, 100, 1000]


@given(st.lists(st.floats(0, 400), min_size=1, max_size=12))
def test_spread_keeps_order_and_distance_and_moves_no_more_than_it_must(places):
    moved = charts.spread(places, 16)
    order = sorted(range(len(places)), key=lambda i: places[i])
    gaps = [moved[b] - moved[a] for a, b in zip(order, order[1:], strict=False)]
    assert all(gap >= 16 - 1e-6 for gap in gaps)
    assert sum(moved) == pytest.approx(sum(places), abs=1e-6)
    if all(abs(a - b) >= 16 for i, a in enumerate(places) for b in places[:i]):
        assert moved == pytest.approx(places)


@given(st.lists(st.lists(st.floats(0, 50), min_size=1, max_size=3), min_size=1, max_size=6))
def test_stacked_bars_add_up(columns):
    box = charts.Box(40, 20, 400, 200)
    scale = charts.linear(0, 200, box.bottom, box.y)
    rows = [(str(i), [charts.Part(size, "primary") for size in sizes]) for i, sizes in enumerate(columns)]
    marks = [m for m in charts.bars_up("b", rows, box, scale) if m["t"] == "rect"]
    for i, sizes in enumerate(columns):
        high = sum(m["h"] for m in marks if m["id"].startswith(f"b-{i}-"))
        assert high == pytest.approx(sum(sizes), abs=0.02 * len(sizes))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_mark_refuses_what_is_not_a_number(value):
    with pytest.raises(ValueError, match="must be finite"):
        scene.rect("a", 0, 0, value, 1, "primary")


def test_a_mark_refuses_a_colour_for_a_role():
    with pytest.raises(ValueError, match="role must be one of"):
        scene.circle("a", 0, 0, 1, "#ff0000")


def test_words_on_hatching_stand_on_a_plate_under_them_and_over_the_hatching():
    bar = scene.rect("bar", 0, 0, 300, 90, "waste")
    lines = [scene.text(f"line{i}", 150, 30 + 18 * i, "lost", anchor="middle", on="waste") for i in range(2)]
    plate = scene.plated([bar, *lines, scene.text("far", 150, 150, "beside it")])[1]
    assert plate["role"] == "ground"
    left, top, right, low = scene.extent(plate)
    for words in map(scene.extent, lines):
        assert left < words[0] and top < words[1] and words[2] < right and words[3] < low
    assert scene.plated([bar, scene.text("free", 150, 30, "free", on="idle")])[1]["t"] == "text"


def test_a_grid_counts_its_cells():
    made = scene.grid("g", 0, 0, 9, 9, 3, [0, 1, 1, 0, 0, 0], ("idle", "now"), ("free", "taken"))
    assert made["tip"] == "4 free; 2 taken" and made["runs"] == [0, 1, 1, 2, 0, 3]
    with pytest.raises(ValueError, match="whole rows of 4"):
        scene.grid("g", 0, 0, 9, 9, 4, [0] * 6, ("idle",), ("free",))


@pytest.mark.parametrize(
    "measured, words", [(2.0, "2× the model"), (1.001, "as the model says"), (0.5, "0.5× the model")]
)
def test_a_measurement_names_the_difference(measured, words):
    assert words in scene.beside_model("time", measured, 1.0, units.seconds)


def test_words_on_a_line_have_a_plate_of_their_own():
    rule = scene.line("rule", 0, 26, 300, 26, "limit")
    one, other = (scene.text(f"t{i}", 40 + 100 * i, 30, "here", on="ground") for i in range(2))
    made = scene.plated([rule, one, other])
    assert [m["id"] for m in made] == ["rule", "t0-plate", "t0", "t1-plate", "t1"]
    assert made[1]["x"] + made[1]["w"] < made[3]["x"], "far words do not share it"


BAR = scene.rect("bar", 0, 0, 30, 20, "waste")
WORDS = scene.text("words", 10, 20, "5 guesses")


@pytest.mark.parametrize(
    "rule, marks",
    [
        ("struck", [scene.line("rule", 30, 0, 30, 40, "limit"), WORDS]),
        ("struck", [WORDS, scene.path("curve", [(0, 0), (60, 34)], "primary")]),
        ("hidden", [WORDS, scene.rect("tile", 0, 8, 30, 30, "now")]),
        ("hidden", [WORDS, scene.circle("dot", 20, 16, 6, "hot")]),
        ("smothered", scene.plated([BAR, scene.text("z1", 2, 14, "Z1", on="waste")])),
    ],
)
def test_the_rules_see_what_spoils_a_word_or_a_box(rule, marks):
    shown = scene.Scene("All.", "Keep.", marks, (), scene.table(("a",), [("b",)]))
    assert getattr(rules, rule)(shown)
    clear = scene.Scene("All.", "Keep.", [BAR, scene.text("far", 100, 200, "5 guesses")], (), shown.table)
    assert not getattr(rules, rule)(clear)


@pytest.mark.parametrize(
    "words, wrong",
    [("1 guesses are best", True), ("All 1 kernels", True), ("as much as 0 homes", True), ("1 guess is best", False),
     ("31 GPUs", False), ("2.1 tokens", False), ("1 ms", False), ("Tile 1 brings 5", False), ("10 of 1,001 rows", False)],
)  # fmt: skip
def test_one_is_not_several(words, wrong):
    shown = scene.Scene(f"{words}.", "Keep.", [], (), scene.table(("a",), [("b",)]))
    assert bool(rules.misnumbered(shown)) == wrong


def test_figures_have_at_most_three_colours():
    """Ink is one of them; where there were more, the first two that mean something stay."""

    def colours(*roles):
        figures = [scene.figure(f"figure {i}", i, role=role) for i, role in enumerate(roles)]
        drawn = scene.Scene("s", "t", [], tuple(figures), scene.table(("a",), []))
        return [one.role for one in drawn.figures]

    assert colours("ink", "hot", "overhead", "useful") == ["ink", "hot", "overhead", "ink"]
    assert colours("hot", "useful", "waste", "primary") == ["hot", "useful", "ink", "ink"]
    assert colours("hot", "useful", "waste") == ["hot", "useful", "waste"]
    assert colours("hot", "hot", "ink", "useful") == ["hot", "hot", "ink", "useful"]

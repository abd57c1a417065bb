"""The explorer against a count of every slot, and against what routing must do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widgets.registry import find
from widgets.scene import NARROW, WIDE
from widgets.tests import rules
from widgets.tests.rules import covered

TILES = find("tile_utilization")
STATES = st.fixed_dictionaries(
    {
        "tokens": st.integers(8, 300),
        "skew": st.floats(0, 2),
        "tile": st.sampled_from([8, 16, 64]),
        "capacity": st.sampled_from([0, 1, 1.25, 2, 4]),
        "experts": st.integers(4, 40),
        "top_k": st.integers(1, 4),
    }
)


def run(**inputs):
    return TILES.run(**TILES.inputs(inputs))


@given(STATES)
def test_every_slot_counted_one_by_one(inputs):
    """Lay each expert's tokens into rows of a tile-wide array and count what is filled."""
    r = run(**inputs)
    filled = empty = 0
    for expert in r.experts:
        rows = np.zeros((-(-expert.kept_tokens // r.tile), r.tile), bool)
        rows.reshape(-1)[: expert.kept_tokens] = True
        filled, empty = filled + rows.sum(), empty + (~rows).sum()
        assert expert.tiles == len(rows) and expert.padded_slots < r.tile
    assert (filled, empty) == (r.kept, r.padded_slots) and filled + empty == r.slots
    assert r.kept + r.dropped_tokens == r.tokens * r.top_k
    assert r.useful_share == pytest.approx(filled / (filled + empty))


@given(STATES)
def test_a_limit_never_lets_an_expert_grow_and_no_limit_drops_nothing(inputs):
    free, held = run(**inputs | {"capacity": 0}), run(**inputs)
    assert free.dropped_tokens == 0
    assert max(e.kept_tokens for e in held.experts) <= max(e.kept_tokens for e in free.experts)
    if held.capacity_tokens:
        assert all(e.kept_tokens <= held.capacity_tokens for e in held.experts)
        assert held.slots <= free.slots


def test_even_loads_have_no_straggler():
    r = run(skew=0.0, experts=4)
    assert r.straggler_ratio == 1 and r.useful_share == 1


def test_more_tokens_fill_the_tiles_but_the_straggler_stays():
    few, many = run(), run(tokens=1024)
    assert few.useful_share < 0.5 < 0.95 < many.useful_share
    assert many.straggler_ratio == pytest.approx(few.straggler_ratio, rel=0.05)


@pytest.mark.parametrize("preset", TILES.presets)
def test_the_picture_shows_every_kept_token_and_every_dropped_one(preset):
    """Area in slots: what is drawn in a role adds up to what the model says."""
    r = run(**TILES.presets[preset])
    *_, scene = TILES.scenes(r)
    loads = [e.routed_tokens for e in r.experts]
    shown = {m["id"]: m["s"] for m in scene.marks if m["t"] == "text" and m["id"].startswith("held-")}
    assert all(
        int(words.removesuffix(" pairs").split()[-1]) == loads[int(id.split("-")[1])]
        for id, words in shown.items()
    )
    cells = [m for m in scene.marks if m["id"].startswith(("lost-", "small-lost-"))]
    assert bool(cells) == bool(r.dropped_tokens)
    if preset == "Skewed, 8 experts":
        assert sum(m["id"].startswith("kept-") for m in scene.marks) == r.kept == 32
        assert sum(m["id"].startswith("tile-") for m in scene.marks) == r.tiles == 9


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("preset", TILES.presets)
@pytest.mark.parametrize("tile", [8, 16, 32, 64, 128])
def test_the_knob_covers_no_number_of_the_axis_and_no_name(preset, tile, width):
    *_, scene = TILES.scenes(run(**TILES.presets[preset] | {"tile": tile}), width=width)
    assert not covered(scene)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("experts", [4, 8, 32, 64, 256])
@pytest.mark.parametrize("capacity", [1, 1.5])
def test_kept_and_dropped_tokens_stack_to_what_was_sent(capacity, experts, width):
    """Read off the axis: dropped tokens stand on the slots of their expert, as high as they are many."""
    r = run(capacity=capacity, experts=experts, tokens=256)
    *_, scene = TILES.scenes(r, width=width)
    marks = {m["id"]: m for m in scene.marks}
    bottom, top = marks["slots-grid0"]["y"], marks["slots-grid4"]["y"]
    highest = int(marks["slots-tick4"]["s"].replace(",", ""))
    busiest = r.experts[0]
    lost = [rules.extent(m) for m in scene.marks if m["id"].startswith(("lost-0", "small-lost-0"))]
    assert lost and busiest.dropped_tokens
    read = (bottom - min(box[1] for box in lost)) / (bottom - top) * highest
    assert read == pytest.approx(busiest.slots + busiest.dropped_tokens, abs=0.02 * highest)
    low = (bottom - max(box[3] for box in lost)) / (bottom - top) * highest
    assert low == pytest.approx(busiest.slots, abs=0.02 * highest)


def test_the_limit_s_takeaway_compares_with_the_same_batch_without_it():
    """The preset drops a third of the busiest expert's tokens, saves one tile, and fewer slots are useful than before."""
    free, held = run(), run(**TILES.presets["With a capacity limit"])
    assert (held.unlimited_slots, held.unlimited_useful_share) == (free.slots, free.useful_share)
    assert free.slots - held.slots == held.tile and held.useful_share < free.useful_share
    *_, scene = TILES.scenes(held)
    for words in ("drops 4 tokens", "save 8 slots", "44.4%", "43.8% are now"):
        assert words in scene.takeaway


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("capacity", [0, 1.5])
@pytest.mark.parametrize("experts", [128, 256])
def test_very_many_experts_stand_side_by_side_on_the_same_axis(experts, capacity, width):
    """Read off the axis at each expert's place: what it keeps, what is empty and what it drops, one above the other."""
    r = run(experts=experts, top_k=8, tokens=256, skew=0.5, tile=64, capacity=capacity)
    *_, scene = TILES.scenes(r, width=width)
    boxes = [m for m in scene.marks if m["id"].startswith("small-")]
    order = [m["id"].split("-")[1] for m in boxes]
    assert order == sorted(order, key=["pad", "kept", "lost"].index)
    marks = {m["id"]: m for m in scene.marks}
    floor, axis = marks["slots-grid0"]["y"], marks["slots-grid0"]["y"] - marks["slots-grid4"]["y"]
    slot = axis / int(marks["slots-tick4"]["s"].replace(",", ""))
    left, right = min(m["x"] for m in boxes), marks["slots-grid0"]["x2"]
    for e, expert in enumerate(r.experts):
        x = left + (e + 0.4) * (right - left) / experts
        here = {m["id"].split("-")[1]: m for m in boxes if m["x"] <= x <= m["x"] + m["w"]}
        height = {what: m["h"] / slot for what, m in here.items()}
        assert height.get("kept", 0) == pytest.approx(expert.kept_tokens, abs=0.1)
        assert height.get("pad", 0) == pytest.approx(expert.slots, abs=0.1), "tokens lie on the slots"
        assert height.get("lost", 0) == pytest.approx(expert.dropped_tokens, abs=0.1)
        assert here["kept"]["y"] + here["kept"]["h"] == pytest.approx(floor, abs=0.02)
    assert min(m["h"] for m in boxes if "kept" in m["id"]) > 4, "no sliver"


def test_while_tokens_drop_each_says_what_it_costs():
    r = run()
    *playing, end = TILES.scenes(r)
    paid = 0
    for scene in playing:
        marks = {m["id"]: m for m in scene.marks}
        cost = int(marks["news"]["s"].removeprefix("+"))
        assert ("opened" in marks) == (cost > 0) == ("opens a whole tile" in scene.caption)
        assert scene.figures[1].value - paid == cost
        paid = scene.figures[1].value
    assert "news" not in {m["id"] for m in end.marks}


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("preset", TILES.presets)
def test_no_knob_hides_a_token(preset, width):
    *_, scene = TILES.scenes(run(**TILES.presets[preset]), width=width)
    tokens = [rules.extent(m) for m in scene.marks if m["id"].startswith(("kept-", "lost-", "small-"))]
    for knob in (m for m in scene.marks if m["t"] == "handle"):
        assert all(knob["x"] + 9 <= left for left, *_ in tokens), knob["id"]


def test_a_token_cannot_pick_an_expert_twice():
    with pytest.raises(ValueError, match="top_k must be at most 4, got 8; a token picks different experts"):
        run(experts=4, top_k=8)


def test_it_says_when_the_answer_changes():
    *_, scene = TILES.scenes(run(capacity=1.5))
    assert "18.8% of all pairs are dropped" in scene.warning
    assert not TILES.scenes(run())[0].warning


def test_on_a_phone_the_limit_stands_at_its_line():
    marks = {
        m["id"]: m for m in TILES.scenes(run(**TILES.presets["With a capacity limit"]), width=340)[-1].marks
    }
    assert 0 <= marks["limit-line"]["y"] - marks["limit-name"]["y"] <= 14


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("preset", TILES.presets)
def test_tokens_drop_until_all_are_there_and_a_tile_opens_for_the_first_of_its(preset, width):
    r = run(**TILES.presets[preset])
    scenes = TILES.scenes(r, width=width)
    assert TILES.stepper.start(r) == len(scenes) - 1
    held = []
    for scene in scenes:
        marks = {m["id"]: m for m in scene.marks}
        tokens = [id for id, m in marks.items() if id.startswith(("kept-", "lost-")) and m["role"] != "now"]
        assert [m for m in marks.values() if m["role"] == "now" and m["t"] == "rect"] == [] or len(
            scenes
        ) == r.routed
        held.append(set(tokens))
    assert all(before <= after for before, after in zip(held, held[1:], strict=False)), "no token leaves"
    if r.routed == len(scenes):
        assert [len(tokens) for tokens in held] == list(range(1, r.routed + 1))
        for scene, after in zip(scenes, held[1:], strict=False):
            (coming,) = [m["id"] for m in scene.marks if m["role"] == "now" and m["t"] == "rect"]
            assert coming in after, "it drops into the slot whose name it bears"


def test_the_caption_says_when_a_token_opens_a_tile():
    r = run()
    said = [scene.caption for scene in TILES.scenes(r)]
    opened = sum("opens a whole tile" in one for one in said)
    assert opened in (r.tiles, r.tiles - 1) and "32 of 32 tokens: 72 slots run for 32 tokens" in said[-1]


def test_where_tokens_come_in_handfuls_the_caption_counts_as_the_player_does():
    scenes = TILES.scenes(run(tokens=512))
    for step, scene in enumerate(scenes, start=1):
        assert scene.caption.startswith(f"Part {step} of {len(scenes)}: ")
    assert "512 of 512 tokens, " in scenes[-1].caption and not TILES.scenes(run())[0].caption.startswith(
        "Part"
    )


def test_the_first_of_very_many_experts_has_its_count():
    r = run(**TILES.presets["256 experts, top-8"])
    marks = {m["id"]: m for m in TILES.scenes(r)[-1].marks}
    assert marks["held-0"]["s"] == f"{r.experts[r.busiest].kept_tokens} pairs" and r.busiest == 0


@pytest.mark.parametrize("preset", TILES.presets)
def test_the_figures_of_a_step_are_those_of_its_picture(preset):
    """Counted in the table of what is drawn: the bar of slots says what the figures say, in every step."""
    r = run(**TILES.presets[preset])
    for step, scene in zip(r.steps, TILES.scenes(r), strict=True):
        marks = {m["id"]: m for m in scene.marks}
        shown = [one.value for one in scene.figures]
        assert shown[:3] == [step.useful_share, step.slots, step.padded_slots]
        assert marks["paid-end1"]["s"].startswith(f"{step.slots:,} ")
        assert f"{step.slots:,} slot" in scene.caption or step.slots == 1
        assert step.kept / step.slots == step.useful_share and step.kept + step.padded_slots == step.slots
    assert r.steps[-1].useful_share == r.useful_share and r.steps[-1].dropped_tokens == r.dropped_tokens


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("experts", [8, 16, 32, 64, 128, 256])
def test_there_is_a_picture_with_the_tightest_limit_and_the_longest_numbers(experts, width):
    """Names of a column are longer where tokens are dropped, "32 of 1,024"."""
    r = run(experts=experts, tokens=1024, top_k=4, capacity=1, skew=2.0)
    assert r.dropped_tokens and TILES.scenes(r, width=width)


@pytest.mark.parametrize("preset", TILES.presets)
def test_the_busiest_load_is_pulled_to_where_it_is_at_each_skew(preset):
    inputs = TILES.presets[preset]
    grip = next(m for m in TILES.scenes(run(**inputs))[-1].marks if m["id"] == "pull-skew")
    (pulled,) = grip["drag"]
    now = pulled["to"].index(inputs.get("skew", 1.0))
    assert pulled["input"] == "skew" and grip["y"] == pytest.approx(pulled["at"][now], abs=0.02)
    assert all(low >= high for low, high in zip(pulled["at"], pulled["at"][1:], strict=False)), (
        "more skew, more load"
    )
    other = run(**{**inputs, "skew": 0.5})
    assert _top_of(run(**inputs), other.experts[other.busiest].routed_tokens) == pytest.approx(
        pulled["at"][pulled["to"].index(0.5)], abs=0.02
    )


def _top_of(r, tokens):
    """Read a height off the axis of the picture of `r`: its numbers are the evidence."""
    marks = [m for m in TILES.scenes(r)[-1].marks if m["id"] == "pull-tile"]
    (pulled,) = marks[0]["drag"]
    y_a, y_b = pulled["at"][0], min(pulled["at"])
    a, b = pulled["to"][0], pulled["to"][pulled["at"].index(y_b)]  # larger tiles share the axis's end
    return y_a + (tokens - a) * (y_b - y_a) / (b - a)

"""The tile walk against a brute count, and against what Triton's own tutorial says of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.gemm_tiling import cost
from widgets import units
from widgets.gemm_tiling.tile_walk_model import GROUPS, pieces
from widgets.registry import find
from widgets.scene import NARROW, WIDE
from widgets.site.build import ROOT

WALK = find("tile_walk")
SIZES = st.integers(1, 40)


@given(SIZES, SIZES, st.integers(1, 33))
def test_every_tile_is_computed_once_in_any_grouping(tiles_m, tiles_n, group_m):
    tiles = cost.wave_tiles(0, tiles_m * tiles_n, tiles_m, tiles_n, group_m)
    assert sorted(tiles) == [(i, j) for i in range(tiles_m) for j in range(tiles_n)]


@given(SIZES, SIZES)
def test_groups_of_one_walk_row_by_row(tiles_m, tiles_n):
    tiles = cost.wave_tiles(0, tiles_m * tiles_n, tiles_m, tiles_n, 1)
    assert tiles == [divmod(pid, tiles_n) for pid in range(tiles_m * tiles_n)]


def test_the_first_nine_tiles_of_tritons_matmul_tutorial():
    """Nine by nine tiles, the first nine outputs: 90 tiles loaded row by row, 54 in groups of three."""
    for group, loads in ((1, 90), (3, 54)):
        tiles = cost.wave_tiles(0, 9, 9, 9, group)
        assert 9 * (len({i for i, _ in tiles}) + len({j for _, j in tiles})) == loads


@pytest.mark.parametrize(
    "m, n, k, bm, bn", [(1000, 700, 300, 128, 64), (1, 4096, 512, 64, 128), (130, 257, 256, 64, 32)]
)
@pytest.mark.parametrize("group_m", [1, 5, 8])
def test_bytes_and_flops_of_a_wave_against_touched_elements(m, n, k, bm, bn, group_m):
    """Marks each element that the wave touches, cut-off tiles included, and counts."""
    result = WALK.run(m, n, k, bm, bn, 64, group_m, "fp16", "H200")
    bm, bn = min(bm, m), min(bn, n)
    rows, columns, outputs = np.zeros(m, bool), np.zeros(n, bool), 0
    tiles_m, tiles_n = -(-m // bm), -(-n // bn)
    for i, j in cost.wave_tiles(0, 132, tiles_m, tiles_n, group_m):
        rows[i * bm : (i + 1) * bm] = columns[j * bn : (j + 1) * bn] = True
        outputs += len(rows[i * bm : (i + 1) * bm]) * len(columns[j * bn : (j + 1) * bn])
    read = 2 * k * (rows.sum() + columns.sum())
    assert result.grouped.bytes_read == read
    assert result.grouped.flop_per_byte == pytest.approx(2 * k * outputs / read)


@given(
    st.sampled_from([1, 64, 1024, 8192]), st.sampled_from([16, 64, 256]), st.sampled_from([16, 64, 256]),
    st.sampled_from([1, 4, 8, 32]), st.sampled_from(["fp16", "fp8"]),
)  # fmt: skip
def test_a_wave_reads_less_than_its_programs_would_alone(m, bm, bn, group_m, dtype):
    inputs = {"m": m, "bm": bm, "bn": bn, "group_m": group_m, "dtype": dtype}
    r = WALK.run(**WALK.inputs(inputs))
    alone = r.programs * (r.bm + r.bn) * r.k * r.elem_bytes
    assert r.row.bytes_read <= alone and r.grouped.bytes_read <= alone
    assert min(r.row.flop_per_byte, r.grouped.flop_per_byte) >= r.tile_flop_per_byte * (1 - 1e-12)
    assert r.saving_ratio == r.row.bytes_read / r.grouped.bytes_read
    if group_m == 1:
        assert r.row == r.grouped and r.saving_ratio == 1


@given(SIZES, SIZES, st.integers(1, 33), st.integers(1, 60))
def test_a_wave_as_rectangles_is_the_wave_tile_by_tile(tiles_m, tiles_n, group_m, sms):
    seen = set()
    for first in range(0, tiles_m * tiles_n, sms):
        some = pieces(first, min(first + sms, tiles_m * tiles_n), tiles_m, tiles_n, group_m)
        tiles = [
            (i, j) for top, low, left, right in some for i in range(top, low) for j in range(left, right)
        ]
        assert sorted(tiles) == sorted(cost.wave_tiles(first, sms, tiles_m, tiles_n, group_m))
        assert seen.isdisjoint(tiles)
        seen |= set(tiles)


def test_the_walk_goes_on_and_a_group_keeps_its_saving():
    """Over all 32 waves of the 8192 square: row by row reads all of B in nearly each."""
    r = WALK.run(**WALK.inputs())
    assert r.wave_count == len(r.row_walk.waves) == len(r.ratios) == 32
    assert r.row_walk.read_so_far[-1] == sum(w.bytes_read for w in r.row_walk.waves)
    assert 2.2 < r.total_ratio < 2.8
    flop = 2 * r.m * r.n * r.k
    assert r.grouped_walk.flop_per_byte_so_far[-1] == pytest.approx(flop / r.grouped_walk.read_so_far[-1])


@given(
    st.sampled_from([1, 256, 2048, 8192]),
    st.sampled_from([16, 128, 256]),
    st.sampled_from([1, 2, 8, 32]),
)
def test_in_the_race_both_walks_have_done_the_same_tiles(m, bm, group_m):
    r = WALK.run(**WALK.inputs({"m": m, "bm": bm, "group_m": group_m}))
    row, grouped = r.row_walk.waves, r.grouped_walk.waves
    for wave, (one, other) in enumerate(zip(row, grouped, strict=True)):
        tiles = [
            sum((low - top) * (right - left) for top, low, left, right in (*w.walked, *w.pieces))
            for w in (one, other)
        ]
        assert tiles[0] == tiles[1] == pytest.approx(r.shares[wave] * r.tiles_m * r.tiles_n)
        read = [sum(w.bytes_read for w in walk[: wave + 1]) for walk in (row, grouped)]
        assert r.ratios[wave] == read[0] / read[1]
    assert r.ratios[-1] == r.total_ratio


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_bands_of_a_wave_are_drawn_to_one_scale_and_added(width):
    r = WALK.run(**WALK.inputs())
    for wave, scene in enumerate(WALK.scenes(r, width=width)):
        marks = {mark["id"]: mark for mark in scene.marks}
        pairs = (("row", r.row_walk.waves[wave]), ("grouped", r.grouped_walk.waves[wave]))
        unit = {marks[f"{id}-count-b"]["w"] / one.b_band_count for id, one in pairs}
        assert max(unit) == pytest.approx(min(unit), rel=0.01)
        for id, one in pairs:
            a, b = one.a_band_count, one.b_band_count
            assert marks[f"{id}-count"]["s"] == f"{a} + {b} = {a + b}"
            assert marks[f"{id}-count-a"]["w"] == pytest.approx(max(2, a * max(unit)), abs=0.1)
        assert scene.figures[2].value == r.ratios[wave]


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("inputs", [{}, {"bm": 256, "bn": 64}, {"m": 2048, "group_m": 2}])
def test_in_the_race_each_group_has_read_what_that_walk_reads_alone(inputs, width):
    """Bars are on one scale in every step, a click on one asks for that walk, and the figures say the same bytes."""
    r = WALK.run(**WALK.inputs(inputs))
    alone = [WALK.run(**WALK.inputs(inputs | {"group_m": group})).grouped_walk for group in GROUPS]
    scenes = WALK.scenes(r, width=width)
    unit = None
    for wave, scene in enumerate(scenes):
        marks = {mark["id"]: mark for mark in scene.marks}
        for group, walk in zip(GROUPS, alone, strict=True):
            size = walk.read_so_far[wave]
            bar = marks[f"size-{group}-bar"]
            unit = unit or bar["w"] / size
            assert bar["w"] == pytest.approx(size * unit, rel=0.02)
            assert bar["set"] == {"group_m": group}
            assert marks[f"size-{group}-read"]["s"] == units.si_bytes(size)
            total = r.read_by_group[GROUPS.index(group)]
            best = total < 1.02 * min(r.read_by_group) < max(r.read_by_group)
            assert (f"size-{group}-least" in marks) == best
            assert (marks[f"size-{group}-edge"]["role"] == "useful") == best
        said = [marks[f"size-{group}-read"]["s"] for group in (1, r.group_m)]
        assert said == [one.text for one in scene.figures[:2]]
    assert list(r.read_by_group) == [walk.read_so_far[-1] for walk in alone]
    assert r.best_group == next(
        g for g, b in zip(GROUPS, r.read_by_group, strict=True) if b == min(r.read_by_group)
    )


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("inputs", [{}, {"n": 2048}, {"m": 512}])
def test_a_small_c_shows_the_wave_of_its_group(inputs, width):
    r = WALK.run(**WALK.inputs(inputs))
    for wave, scene in enumerate(WALK.scenes(r, width=width)):
        marks = {mark["id"]: mark for mark in scene.marks}
        for group, walk in zip(GROUPS, r.walks, strict=True):
            whole = marks[f"size-{group}-c"]
            some = [m for id, m in marks.items() if id.startswith(f"w{group}-")]
            area = sum(m["w"] * m["h"] for m in some) / (whole["w"] * whole["h"])
            tiles = sum((low - top) * (right - left) for top, low, left, right in walk.waves[wave].pieces)
            assert area == pytest.approx(tiles / (r.tiles_m * r.tiles_n), rel=0.02)


def test_the_takeaway_names_the_best_group_or_praises_the_chosen_one():
    told = {g: WALK.scenes(WALK.run(**WALK.inputs({"group_m": g})))[0].takeaway for g in GROUPS}
    assert (
        "Nearly square" in told[8]
        and "about 2.5x less" in told[8].replace("×", "x")
        and "Nearly square" in told[16]
    )
    assert told[8].endswith("Groups of 16 are as good.") and told[16].endswith("Groups of 8 are as good.")
    assert "reads all of B" in told[1]
    assert "read as much" in told[2] or "more than row by row" in told[2]
    assert "standing up" in told[32] and "Groups of 8 and 16 read least" in told[32]


def test_a_flat_c_is_drawn_thicker_and_says_so():
    for m, shape, said in ((1, 2, True), (512, 4, True), (2048, 4, False), (8192, 1, False)):
        scene = WALK.scenes(WALK.run(**WALK.inputs({"m": m})))[0]
        marks = {mark["id"]: mark for mark in scene.marks}
        assert marks["row-c"]["h"] * shape == marks["row-c"]["w"]
        assert ("thick" in marks) == said


def test_it_opens_with_two_waves_of_a_whole_shape_and_the_lesson_says_what_it_shows():
    r = WALK.run(**WALK.inputs())
    opens = WALK.stepper.start(r)
    row, grouped = r.row_walk.waves[opens], r.grouped_walk.waves[opens]
    assert (row.a_band_count, row.b_band_count, grouped.a_band_count, grouped.b_band_count) == (3, 64, 8, 17)
    read = [walk.read_so_far[opens] / 1e9 for walk in (r.row_walk, r.grouped_walk)]
    words = " ".join((ROOT / "course/01_gemm_tiling/a_reuse.md").read_text(encoding="utf-8").split())
    assert f"step={opens})" in words
    assert f"row-by-row walk has read {read[0]:.2f} GB and the walk in groups {read[1]:.2f} GB" in words
    assert f"reads {r.total_ratio:.2f}x fewer bytes" in words


def test_tile_depth_changes_only_the_shared_memory():
    thin, deep = (WALK.run(**WALK.inputs({"bk": bk})) for bk in (32, 128))
    assert deep.stage_bytes == 4 * thin.stage_bytes
    assert (deep.row, deep.grouped, deep.reuse_flop_per_element) == (
        thin.row,
        thin.grouped,
        thin.reuse_flop_per_element,
    )


def test_a_type_that_the_gpu_has_not():
    with pytest.raises(ValueError, match="dtype must be one of .* on A100, got 'fp8'"):
        WALK.run(**WALK.inputs({"machine_name": "A100", "dtype": "fp8"}))


def test_a_colour_says_one_thing():
    """Blue is the walk in groups alone: operands, tiles and the row walk have other roles."""
    frames = WALK.scenes(WALK.run(**WALK.inputs({"m": 4096})))
    marks = frames[1].marks
    blue = {mark["id"] for mark in marks if mark["role"] == "primary"}
    counted = {"grouped-title", "grouped-count", "grouped-count-name"}
    assert blue == counted | {"group", "group-rows", "pull-group", "size-8-bar"}
    operands = [mark for mark in marks if mark["id"].startswith(("row-a", "row-b", "grouped-a", "grouped-b"))]
    assert {mark["role"] for mark in operands} == {"idle", "secondary"}


def test_steps_that_are_not_all_waves_say_so():
    small = WALK.run(**WALK.inputs({"bm": 16}))
    frames = WALK.scenes(small)
    assert small.wave_count > len(frames)
    assert f"the first {len(frames)} are steps here" in frames[0].caption
    one = WALK.scenes(WALK.run(**WALK.inputs({"m": 1})))
    assert "read 1 band of A" in one[0].caption
    assert "steps here" not in one[0].caption and "C takes 1 wave of" in one[0].summary


def test_the_formula_is_what_the_wave_reads():
    r = WALK.run(**WALK.inputs())
    scene = WALK.scenes(r)[0]
    for (_, said), walk in zip(scene.formula, (r.row_walk, r.grouped_walk), strict=True):
        assert said.endswith(f"= {units.si_bytes(walk.waves[0].bytes_read)}")
        one = walk.waves[0]
        assert one.bytes_read == (one.a_band_count * r.bm + one.b_band_count * r.bn) * r.k * r.elem_bytes

"""Figures of the sources, and formulas against the long way of counting."""

import numpy as np
import pytest

from kernels.flash_attention import cost, reference
from kernels.flash_attention.cost import Decode, Shape, Tiling
from kernels.machines import machine
from kernels.tests.figures import PERF, REAL, REFUSAL, hold, table
from kernels.tests.properties import given, st

HEAD = Shape(8192, 8192, 128)
LAYER = Shape(8192, 8192, 128, q_heads=64, kv_heads=64)
TRACE = cost.online_trace(cost.SCENE.scores, cost.SCENE.values)


@table(
    (
        (PERF, "naive state of a head", lambda: cost.naive_state_bytes(HEAD), 545.3e6, "0.5%"),
        (PERF, "naive state of a layer", lambda: cost.naive_state_bytes(LAYER), 34.9e9, "0.5%"),
        (PERF, "tiled state of a head", lambda: cost.tiled_state_bytes(HEAD), 8.4e6, "0.5%"),
        (PERF, "tiled state of a layer", lambda: cost.tiled_state_bytes(LAYER), 536.9e6, "0.5%"),
        (PERF, "ratio", lambda: cost.state_ratio(LAYER), 65, "exact"),
        (PERF, "score matrix of a head", lambda: cost.score_matrix_bytes(HEAD), 134e6, "1%"),
        (PERF, "tiles of Q, K and V", lambda: cost.sram_bytes(Tiling(), 128), 98.3e3, "0.1%"),
        (PERF, "row and key tiles", lambda: cost.tile_counts(HEAD, Tiling()), (64, 64), "exact"),
        (REAL, "tile maximum", lambda: [s.tile_max for s in TRACE], (3, 5, 4, 6), "exact"),
        (REAL, "running maximum", lambda: [s.m for s in TRACE], (3, 5, 5, 6), "exact"),
        (REAL, "rescale", lambda: [s.rescale for s in TRACE], (0, 0.135, 1, 0.368), 0.001),
        (REAL, "denominator", lambda: [s.l for s in TRACE], (1.59, 1.32, 1.89, 1.72), 0.005),
        (REAL, "output", lambda: [s.output for s in TRACE], (11.390, 13.175, 12.880, 14.054), 0.0006),
    )
)
def test_figures_of_the_sources(source, given, formula, expect, tolerance):
    hold(formula, expect, tolerance)


def test_the_scene_ends_at_the_softmax_of_all_sixteen_keys():
    weights, _ = reference.softmax(np.concatenate(cost.SCENE.scores).astype(float))
    assert TRACE[-1].output == pytest.approx(weights @ np.concatenate(cost.SCENE.values))


def test_a_tile_of_128_fits_an_h100_and_three_stages_do_not():
    assert cost.sram_bytes(Tiling(), 128) < machine("H100").sram_bytes
    assert cost.sram_bytes(Tiling(), 128, stages=2) < machine("H100").sram_bytes
    assert cost.sram_bytes(Tiling(), 128, stages=4) > machine("H100").sram_bytes


SIDE = st.none() | st.integers(0, 40)


@given(length=st.integers(0, 40), keys=st.integers(0, 40), left=SIDE, right=SIDE)
def test_pairs_are_what_the_mask_lets_through(length, keys, left, right):
    s = Shape(length, keys, 8, left=left, right=right)
    assert cost.pairs(s) == reference.visible(length, keys, window=(left, right)).sum()


@given(
    length=st.integers(1, 60),
    keys=st.integers(1, 60),
    left=SIDE,
    right=SIDE,
    block_m=st.sampled_from((8, 16)),
    block_n=st.sampled_from((8, 32)),
)
def test_loaded_keys_are_whole_tiles_round_the_seen_ones(length, keys, left, right, block_m, block_n):
    s, tiling = Shape(length, keys, 8, left=left, right=right), Tiling(block_m, block_n)
    seen = reference.visible(length, keys, window=(left, right))
    for row in range(0, length, block_m):
        columns = np.flatnonzero(seen[row : row + block_m].any(axis=0))
        loaded = cost.keys_loaded(s, tiling, row)
        tiles = set(columns // block_n)
        assert loaded == sum(min(keys, (t + 1) * block_n) - t * block_n for t in tiles)


def test_causal_is_half_the_work_and_taller_tiles_ask_for_less():
    full, causal = Shape(4096, 4096, 128), Shape(4096, 4096, 128, right=0)
    assert cost.flops(full) == 4 * 4096**2 * 128
    assert cost.flops(causal) == pytest.approx(cost.flops(full) / 2, rel=1e-3)
    assert cost.backward_flops(full) == 10 * 4096**2 * 128
    tall, low = (cost.tiled_traffic(full, Tiling(m, 64)) for m in (128, 64))
    assert tall.k == low.k / 2 and tall.q == low.q
    assert cost.intensity(full, Tiling(128, 64)) == pytest.approx(128, rel=0.04), (
        "FLOP a byte: the tile's height"
    )


def test_grouped_heads_save_bytes_that_must_move_and_none_that_tiles_ask_for():
    many, few = (Shape(1024, 1024, 64, q_heads=8, kv_heads=n) for n in (8, 2))
    assert cost.compulsory_bytes(few) < 0.65 * cost.compulsory_bytes(many)
    assert cost.tiled_traffic(few, Tiling()) == cost.tiled_traffic(many, Tiling())


def test_time_is_arithmetic_when_tiled_and_memory_when_not():
    h100 = machine("H100")
    assert cost.seconds(LAYER, h100) == cost.flops(LAYER) / 989e12
    assert cost.seconds(LAYER, h100, naive=True) == cost.naive_state_bytes(LAYER) / 3.35e12
    assert cost.exp_share(128) == 0.5 and cost.exp_share(64) == 1


def test_decoding_reads_the_cache_once_and_does_little_with_it():
    d = Decode(32, 4096, 32, 8, 128)
    assert cost.decode_bytes(d) == pytest.approx(2 * 32 * 8 * 4096 * 128 * 2, rel=2e-3)
    assert cost.decode_intensity(d) == pytest.approx(4, rel=2e-3), "query heads per key head"
    assert cost.decode_time_s(d, machine("H200")) == cost.decode_bytes(d) / 4.8e12
    half = cost.decode_bytes(Decode(32, 4096, 32, 8, 128, cache_bytes=1))
    assert half == pytest.approx(cost.decode_bytes(d) / 2, rel=2e-3)
    paged = cost.decode_bytes(Decode(32, 4096, 32, 8, 128, page_size=16))
    assert paged - cost.decode_bytes(d) == 32 * 256 * 4
    assert cost.cache_bytes_per_token(80, 8, 128) == 327_680


@pytest.mark.parametrize(
    "bad",
    (
        lambda: Shape(8, 8, 0),
        lambda: Shape(8, 8, 8, q_heads=3, kv_heads=2),
        lambda: Shape(-1, 8, 8),
        lambda: Tiling(0, 8),
        lambda: Decode(1, 0, 1, 1, 8),
        lambda: cost.exp_share(0),
    ),
)
def test_impossible_sizes_are_refused(bad):
    with pytest.raises(ValueError, match=REFUSAL):
        bad()

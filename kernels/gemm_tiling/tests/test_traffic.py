"""The bytes and times that the benchmark and the budgets stand on, counted again the long way."""

import math

from hypothesis import given
from hypothesis import strategies as st

from kernels.gemm_tiling import cost
from kernels.machines import machine

SIZE = st.integers(1, 300)
BLOCK = st.sampled_from((16, 32, 64))


@given(SIZE, SIZE, SIZE, BLOCK, BLOCK, st.integers(1, 9), st.integers(1, 40))
def test_a_wave_is_charged_each_row_and_column_once(m, n, k, bm, bn, group, programs):
    tiles_m, tiles_n = math.ceil(m / bm), math.ceil(n / bn)
    waves = cost.unique_bytes_per_wave(m, n, k, bm, bn, group, programs)
    assert len(waves) == math.ceil(tiles_m * tiles_n / programs)
    walked = [cost.program_tile(pid, tiles_m, tiles_n, group) for pid in range(tiles_m * tiles_n)]
    assert sorted(walked) == [(i, j) for i in range(tiles_m) for j in range(tiles_n)], "every tile once"
    for i, found in enumerate(waves):
        tiles = walked[i * programs : (i + 1) * programs]
        rows = {r for t, _ in tiles for r in range(t * bm, min(m, (t + 1) * bm))}
        cols = {c for _, t in tiles for c in range(t * bn, min(n, (t + 1) * bn))}
        assert found == 2 * k * (len(rows) + len(cols))


@given(SIZE, SIZE, SIZE, BLOCK, BLOCK)
def test_one_wave_of_everything_is_compulsory_and_one_program_a_wave_is_all_tile_loads(m, n, k, bm, bn):
    everything = cost.unique_bytes_per_wave(m, n, k, bm, bn, 4, 10**6)
    assert everything == [cost.compulsory_bytes(m, n, k) - 2 * m * n]
    assert sum(cost.unique_bytes_per_wave(m, n, k, bm, bn, 4, 1)) == 2 * cost.tile_loads(m, n, k, bm, bn)


def test_grouping_saves_on_a_large_square():
    square = (8192, 8192, 8192, 128, 256)
    plain, grouped = (sum(cost.unique_bytes_per_wave(*square, group, 132)) for group in (1, 8))
    assert grouped < 0.75 * plain


@given(SIZE, SIZE, SIZE)
def test_block_scaled_counts_ragged_blocks_as_whole_ones(m, n, k):
    scales = m * len(range(0, k, 128)) + len(range(0, k, 128)) * len(range(0, n, 128))
    assert cost.block_scaled_bytes(m, n, k) == m * k + k * n + 2 * m * n + 4 * scales


@given(SIZE, SIZE, BLOCK, BLOCK, st.integers(1, 200))
def test_the_last_wave_only_costs(m, n, bm, bn, sms):
    share = cost.last_wave_share(m, n, bm, bn, sms)
    assert 0 < share <= 1
    assert cost.last_wave_share(m, n, bm, bn, 1) == 1


def test_time_is_arithmetic_for_a_square_and_bytes_for_a_gemv():
    h200 = machine("H200")
    assert cost.seconds(4096, 4096, 4096, h200) == 2 * 4096**3 / 989e12
    assert cost.seconds(1, 28672, 8192, h200) == cost.compulsory_bytes(1, 28672, 8192) / 4.8e12
    assert round(cost.last_wave_share(4096, 4096, 128, 256, 132), 3) == 0.97

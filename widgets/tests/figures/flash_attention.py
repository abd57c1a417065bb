"""The figures of flash_attention, as its simulators give them."""

import pytest

from widgets.registry import find


def run(name, **inputs):
    simulator = find(name)
    return simulator.run(**simulator.inputs(inputs))


def online_softmax_scene():
    r = run("online_softmax")
    table = [  # tile max, m, rescale, l, output: the scene's own table
        (3.0, 3.0, 0.000, 1.59, 11.390),
        (5.0, 5.0, 0.135, 1.32, 13.175),
        (4.0, 5.0, 1.000, 1.89, 12.880),
        (6.0, 6.0, 0.368, 1.72, 14.054),
    ]
    for state, (tile_max, m, rescale, total, output) in zip(r.states, table, strict=True):
        assert (state.tile_max, state.m) == (tile_max, m)
        assert state.rescale == pytest.approx(rescale, abs=0.0005)
        assert state.l == pytest.approx(total, abs=0.005)
        assert state.output == pytest.approx(output, abs=0.0005)


def flash_state():
    r = run("attention_state")
    assert r.naive_head_bytes == pytest.approx(545.3e6, rel=0.005)
    assert r.naive_bytes == pytest.approx(34.9e9, rel=0.005)
    assert r.persistent_head_bytes == pytest.approx(8.4e6, rel=0.005)
    assert r.tiled_bytes == pytest.approx(536.9e6, rel=0.005)
    assert r.state_ratio == 65
    # one tile of Q, K and V, and the walk over 64 column tiles, of the same chapter
    assert r.tile_bytes == pytest.approx(98.3e3, rel=0.001)
    assert r.tiles_across == 64
    # "2-4x wall-clock time on relevant attention workloads": what the limits of the machine allow
    assert 2 <= r.speedup <= 4 and r.naive_waits_for_memory and not r.tiled_waits_for_memory


def flash_score_matrix():
    assert run("attention_state").score_matrix_bytes == pytest.approx(134e6, rel=0.01)


FIGURES = {
    "online_softmax_scene": online_softmax_scene,
    "flash_state": flash_state,
    "flash_score_matrix": flash_score_matrix,
}

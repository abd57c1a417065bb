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


FIGURES = {"online_softmax_scene": online_softmax_scene}

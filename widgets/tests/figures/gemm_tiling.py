"""The figures of gemm_tiling, as its simulators give them."""

import pytest

from widgets.registry import find

BLOCKS = (16, 32, 64, 128, 256)


def walk(**inputs):
    simulator = find("tile_walk")
    return simulator.run(**simulator.inputs(inputs))


def reuse_square():
    for bm in BLOCKS:
        for bn in BLOCKS:
            assert walk(bm=bm, bn=bn).reuse_flop_per_element == 2 * bm * bn / (bm + bn)
    assert walk(bm=128, bn=128).reuse_flop_per_element == 128


def reuse_decode():
    for bn in BLOCKS:
        for bm in BLOCKS:
            reuse = walk(m=1, bm=bm, bn=bn).reuse_flop_per_element
            assert reuse == 2 * bn / (1 + bn) < 2


def fp8_swamp():
    simulator = find("fp8_accumulator")
    result = simulator.run(**simulator.inputs())
    assert result.narrow.final_sum == 32.0
    assert result.exact_sum == pytest.approx(63.9, rel=0.005)  # the source's terms are its own
    assert result.narrow.error_share == pytest.approx(0.499, abs=0.01)
    assert result.fp16.error_share < 0.001 and result.fp32.error_share < 0.001


FIGURES = {"reuse_square": reuse_square, "reuse_decode": reuse_decode, "fp8_swamp": fp8_swamp}
